//! Walks the directories once and sorts what lies there.

use super::class::FileClass;
use super::found::{Access, FoundFile, Root};
use super::layout::{LeftOut, Plan};
use super::listing::{below, entries, file_type, looked_at};
use super::{generation_name, leave_out, outside, redo_names};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a walk found, in the order it came.
pub(super) struct Found {
    pub(super) roots: Vec<Root>,
    pub(super) files: Vec<FoundFile>,
    pub(super) dirs: Vec<(String, PathBuf)>,
    pub(super) excluded: Vec<(PathBuf, &'static str)>,
    pub(super) keyring: Vec<String>,
}

/// A walk under way.
pub(super) struct Walk<'a> {
    plan: &'a Plan,
    found: Found,
    /// Where the files are that were found by their own names: none of them twice.
    seen: HashSet<PathBuf>,
    /// Names of files that were found behind a symbolic link, with the link.
    behind_links: BTreeMap<String, PathBuf>,
    /// `.isl` files: each names a tablespace outside.
    links: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self> {
        let found = Found {
            roots: vec![Root {
                id: "data".to_owned(),
                path: plan.datadir.clone(),
            }],
            files: Vec::new(),
            dirs: Vec::new(),
            excluded: Vec::new(),
            keyring: Vec::new(),
        };
        Ok(Self {
            plan,
            found,
            seen: HashSet::new(),
            behind_links: BTreeMap::new(),
            links: Vec::new(),
        })
    }

    /// Walks the data directory, and the directories that symbolic links in it lead to.
    pub(super) fn data_directory(&mut self) -> Result<()> {
        self.tree("data", &self.plan.datadir.clone())
    }

    fn tree(&mut self, root: &str, base: &Path) -> Result<()> {
        let mut waiting = vec![base.to_owned()];
        while let Some(dir) = waiting.pop() {
            let mut files = Vec::new();
            for entry in entries(&dir)? {
                let Some(kind) = file_type(&entry)? else {
                    continue;
                };
                let path = entry.path();
                if self.plan.only_system && dir == base && is_schema(&path, kind) {
                    continue;
                }
                if let Some(why) = self.reason_to_leave_out(&path, kind, dir == base) {
                    self.found.excluded.push((path, why));
                } else if kind.is_dir() {
                    let relative = below(&path, base);
                    self.found
                        .dirs
                        .push((generation_name(root, relative), path.clone()));
                    waiting.push(path);
                } else if kind.is_symlink() {
                    self.link(root, base, &path)?;
                } else {
                    files.push(path);
                }
            }
            for (path, looked) in looked_at(files) {
                self.looked_at(root, below(&path, base), &path, looked)?;
            }
        }
        Ok(())
    }

    /// Follows a symbolic link: to a file, or from the top of the data directory to a schema.
    fn link(&mut self, root: &str, base: &Path, link: &Path) -> Result<()> {
        let Ok(target) = std::fs::canonicalize(link) else {
            self.found
                .excluded
                .push((link.to_owned(), "a symbolic link to nothing"));
            return Ok(());
        };
        let found = looked_at_one(&target)?;
        let kind = found.file_type();
        if let Some(why) = self.reason_to_leave_out(&target, kind, false) {
            self.found.excluded.push((link.to_owned(), why));
            return Ok(());
        }
        self.refuse_of_others(link, &target, &found)?;
        let relative = below(link, base);
        if !kind.is_dir() {
            self.behind_links
                .insert(generation_name(root, relative), link.to_owned());
            return self.file(root, relative, &target);
        }
        let is_schema = root == "data" && link.parent() == Some(base);
        if !is_schema || self.overlaps(&target) {
            return Err(Error::refused(format!(
                "{} is a symbolic link to the directory {}, which evenkeel does not follow",
                link.display(),
                target.display()
            ))
            .hint(
                "evenkeel follows only links from the data directory to the directory of one schema",
            ));
        }
        let id = generation_name("schema", relative).replacen('/', "-", 1);
        self.found.roots.push(Root {
            id: id.clone(),
            path: target.clone(),
        });
        self.tree(&id, &target)
    }

    /// The server's user can make links in its directories, `.isl` files too: what that user could not read must not come
    /// into a backup that others restore for them. A link that root made is an administrator's.
    fn refuse_of_others(&self, link: &Path, target: &Path, found: &Metadata) -> Result<()> {
        let failed = || format!("failed to look at {}", link.display());
        let made = std::fs::symlink_metadata(link).context(failed)?.uid();
        let data = std::fs::metadata(&self.plan.datadir).context(failed)?.uid();
        if made == 0 || [made, data].contains(&found.uid()) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} points to {}, which does not belong to the data's owner",
            link.display(),
            target.display()
        ))
        .hint(format!(
            "check who created it; if it is intended: chown -h root {}",
            link.display()
        )))
    }

    /// The same of a tablespace that the dictionary names: that is the server's to write.
    fn refuse_named(&self, tablespace: &Path) -> Result<()> {
        let (found, data) = (
            looked_at_one(tablespace)?,
            looked_at_one(&self.plan.datadir)?,
        );
        if data.uid() == 0 || found.uid() == data.uid() {
            return Ok(());
        }
        let place = tablespace.display();
        Err(Error::refused(format!(
            "the tablespace {place}, which the server's dictionary names, does not belong to the data's owner"
        ))
        .hint(format!(
            "check who created it; if it is intended, give it to user {}: chown {} {place}",
            data.uid(),
            data.uid()
        )))
    }

    /// The same of a file that the server's settings lead to: which they are, the server says.
    fn refuse_set(&self, path: &Path) -> Result<()> {
        let (found, data) = (looked_at_one(path)?, looked_at_one(&self.plan.datadir)?);
        if data.uid() == 0 || found.uid() == data.uid() {
            return Ok(());
        }
        let place = path.display();
        Err(Error::refused(format!(
            "the file {place}, which the server's settings name, does not belong to the data's owner"
        ))
        .hint(format!(
            "check which setting names it; if it is intended, give it to user {}: chown {} {place}",
            data.uid(),
            data.uid()
        )))
    }

    /// Whether a directory is inside a root, or one inside it.
    fn overlaps(&self, dir: &Path) -> bool {
        let mut roots = self.found.roots.iter();
        roots.any(|root| dir.starts_with(&root.path) || root.path.starts_with(dir))
    }

    fn reason_to_leave_out(&self, path: &Path, kind: FileType, top: bool) -> Option<&'static str> {
        leave_out::by_kind(kind)
            .or_else(|| {
                // A schema may be called like a file that is left out.
                let is_it = |out: &&LeftOut| {
                    let is_free = out.directory || out.temporary || !self.is_needed(path);
                    out.path == path && out.directory == kind.is_dir() && is_free
                };
                let named = self.plan.leave_out.iter().find(is_it);
                named.map(|out| out.why)
            })
            .or_else(|| {
                let name = path.file_name()?.to_str()?;
                match kind.is_dir() {
                    true => leave_out::directory(name, top),
                    false => leave_out::file(name, top).filter(|_| !self.is_needed(path)),
                }
            })
    }

    /// Whether a file is the server's own by what it is, so that no other setting and no rule about names
    /// leaves it out: a tablespace, a log, a table's file. A spare redo log file is none.
    fn is_needed(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let dir = path.parent().unwrap_or(path);
        match FileClass::of(&name, dir, self.plan) {
            FileClass::Other | FileClass::ServerState => false,
            FileClass::InnodbRedo => !redo_names::is_spare(&name),
            _ => true,
        }
    }

    /// Adds one file, unless it is there already or was removed since it was listed.
    fn file(&mut self, root: &str, relative: &Path, path: &Path) -> Result<()> {
        self.looked_at(root, relative, path, std::fs::symlink_metadata(path))
    }

    /// The same, once it was looked at.
    fn looked_at(
        &mut self,
        root: &str,
        relative: &Path,
        path: &Path,
        looked: io::Result<Metadata>,
    ) -> Result<()> {
        let meta = match looked {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error).context(|| format!("failed to look at {}", path.display()));
            }
        };
        if !meta.is_file() {
            return Err(Error::refused(format!(
                "{} is a device, and evenkeel backs up files only",
                path.display()
            ))
            .hint("move what is on it into a file"));
        }
        let name = generation_name(root, relative);
        // What a link leads to may have a name of its own here, and that one counts whatever comes first.
        if !self.behind_links.contains_key(&name) && !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let own_name = relative.file_name().unwrap_or_default().to_string_lossy();
        let dir = path.parent().unwrap_or(path);
        let mut class = FileClass::of(&own_name, dir, self.plan);
        if self.plan.keyring.iter().any(|key| key == path) {
            class = FileClass::ServerState;
            self.found.keyring.push(name.clone());
        }
        if own_name.ends_with(".isl") {
            self.links.push(path.to_owned());
        }
        self.found.files.push(FoundFile {
            name,
            path: path.to_owned(),
            class,
            size: meta.len(),
            access: Some(Access::of(&meta)),
        });
        Ok(())
    }

    /// Lists the directories outside and takes the server's files from them, and only those: such
    /// a directory may serve others too.
    pub(super) fn special_directories(&mut self) -> Result<()> {
        for special in &self.plan.specials {
            let mut waiting = vec![special.path.clone()];
            while let Some(dir) = waiting.pop() {
                for entry in entries(&dir)? {
                    let Some(kind) = file_type(&entry)? else {
                        continue;
                    };
                    let path = entry.path();
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    if kind.is_dir() && name == redo_names::DIRECTORY {
                        waiting.push(path);
                        continue;
                    }
                    let class = FileClass::of(&name, &dir, self.plan);
                    let ours = kind.is_file() && special.classes.contains(&class);
                    if !ours || self.seen.contains(&path) {
                        continue;
                    }
                    if let Some(why) = self.reason_to_leave_out(&path, kind, false) {
                        self.found.excluded.push((path, why));
                        continue;
                    }
                    self.refuse_set(&path)?;
                    let id = self.root_at(special.id, &special.path);
                    if dir != special.path {
                        let name = generation_name(&id, below(&dir, &special.path));
                        if !self.found.dirs.iter().any(|(known, _)| *known == name) {
                            self.found.dirs.push((name, dir.clone()));
                        }
                    }
                    self.file(&id, below(&path, &special.path), &path)?;
                }
            }
        }
        for key in self.plan.keyring.clone() {
            if key.is_file() && !self.found.files.iter().any(|file| file.path == key) {
                let dir = key.parent().unwrap_or(&key).to_owned();
                let id = self.root_at("keyring", &dir);
                self.file(&id, below(&key, &dir), &key)?;
            }
        }
        Ok(())
    }

    /// Returns the id of the root at `path`; makes one, called `id` or `id-2` …, if there is none.
    fn root_at(&mut self, id: &str, path: &Path) -> String {
        if let Some(root) = self.found.roots.iter().find(|root| root.path == path) {
            return root.id.clone();
        }
        let taken = |id: &str| self.found.roots.iter().any(|root| root.id == id);
        let mut own = id.to_owned();
        let mut number = 2;
        while taken(&own) {
            own = format!("{id}-{number}");
            number += 1;
        }
        self.found.roots.push(Root {
            id: own.clone(),
            path: path.to_owned(),
        });
        own
    }

    /// Takes the tablespaces that `.isl` files, the server or its dictionary name.
    pub(super) fn outside_tablespaces(&mut self) -> Result<()> {
        let mut paths = BTreeSet::new();
        for link in &self.links {
            if let Some(target) = outside::target(link)? {
                let target = self.existing(&target, &link.display().to_string())?;
                self.refuse_of_others(link, &target, &looked_at_one(&target)?)?;
                paths.insert(target);
            }
        }
        for named in &self.plan.outside {
            let named = self.existing(named, "the server's dictionary")?;
            self.refuse_named(&named)?;
            paths.insert(named);
        }
        paths.retain(|path| !self.seen.contains(path));
        // Sorted by directory, so that the same directories get the same numbers every time.
        let mut by_base: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for path in paths {
            by_base.entry(self.base_of(&path)).or_default().push(path);
        }
        for (number, (base, paths)) in by_base.iter().enumerate() {
            let id = self.root_at(&format!("tablespaces-{}", number + 1), base);
            for path in paths {
                let relative = below(path, base);
                if let Some(schema) = relative.parent().filter(|p| !p.as_os_str().is_empty()) {
                    let dir = (generation_name(&id, schema), base.join(schema));
                    if !self.found.dirs.contains(&dir) {
                        self.found.dirs.push(dir);
                    }
                }
                self.file(&id, relative, path)?;
            }
        }
        Ok(())
    }

    fn existing(&self, path: &Path, named_by: &str) -> Result<PathBuf> {
        let path = self.plan.datadir.join(path);
        std::fs::canonicalize(&path).map_err(|error| {
            Error::new(
                ErrorKind::Refused,
                format!("the tablespace {} is missing", path.display()),
            )
            .because(error)
            .hint(format!(
                "{named_by} names it: put the file back, or drop its table"
            ))
        })
    }

    /// The directory that `DATA DIRECTORY` named: the file lies in its schema's own one below it.
    fn base_of(&self, path: &Path) -> PathBuf {
        let dir = path.parent().unwrap_or(path);
        let schema = dir.file_name().map(|name| self.plan.datadir.join(name));
        match (schema, dir.parent()) {
            (Some(schema), Some(base)) if schema.is_dir() => base.to_owned(),
            _ => dir.to_owned(),
        }
    }

    pub(super) fn finish(mut self) -> Found {
        self.drop_second_names();
        self.found
    }

    /// Leaves out links to files that are there by their own names, and says so. Of small files that the server
    /// only reads, certificates for example, both names are kept: a restored server looks for either.
    fn drop_second_names(&mut self) {
        let small = |class| matches!(class, FileClass::ServerState | FileClass::Other);
        let links = &self.behind_links;
        let own: HashMap<PathBuf, FileClass> = self
            .found
            .files
            .iter()
            .filter(|file| !links.contains_key(&file.name))
            .map(|file| (file.path.clone(), file.class))
            .collect();
        let excluded = &mut self.found.excluded;
        self.found.files.retain(|file| {
            let (Some(link), Some(class)) = (links.get(&file.name), own.get(&file.path)) else {
                return true;
            };
            if small(*class) && small(file.class) {
                return true;
            }
            excluded.push((link.clone(), leave_out::SECOND_NAME));
            false
        });
    }
}

fn looked_at_one(path: &Path) -> Result<Metadata> {
    std::fs::symlink_metadata(path).context(|| format!("failed to look at {}", path.display()))
}

/// Whether this is a schema's directory, for all that its name says, and none of the server's own.
fn is_schema(path: &Path, kind: FileType) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !kind.is_file() && name != "mysql" && !name.starts_with('#')
}
