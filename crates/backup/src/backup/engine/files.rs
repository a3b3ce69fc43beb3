//! What a file of the stream is in the generation: its name, its blocks, how its pages are checked.

use super::super::read::pages::{self, PageCheck};
use super::super::read::read_file;
use evenkeel_op::{Context, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::files::{FileClass, ServerFiles, generation_name, relative_path};
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The one root of such a generation.
pub(super) const ROOT: &str = "data";
/// Block size of files that are not InnoDB's, as with every other provider: else an increment on one
/// of those would have nothing in common with it.
const PLAIN_BLOCK: u32 = 16 << 10;
/// Mode of what the server does not have any more.
const FILE_MODE: u32 = 0o660;
const DIR_MODE: u32 = 0o700;

/// What is known of a server's files before they come.
pub(super) struct Known<'a> {
    files: &'a ServerFiles,
    innodb: HashSet<&'a str>,
    /// How the files of the system tablespace are checked: only the whole first one says what of it
    /// is the doublewrite buffer, and later ones do not say what they are.
    system: HashMap<String, Option<PageCheck>>,
}

impl<'a> Known<'a> {
    /// Looks at the system tablespace on its own disk.
    pub(super) fn of(files: &'a ServerFiles) -> Result<Self> {
        let innodb = files
            .files
            .iter()
            .filter(|file| file.class == FileClass::InnodbData);
        let mut known = Self {
            innodb: innodb.map(|file| file.name.as_str()).collect(),
            system: HashMap::new(),
            files,
        };
        let (mut pages, mut first) = (0, None);
        for (number, name) in pages::system_space(files).iter().enumerate() {
            let Some(found) = files.files.iter().find(|file| file.name == *name) else {
                continue;
            };
            if number == 0 {
                let file = read_file::open(&found.path, found)
                    .context(|| format!("failed to open {}", found.path.display()))?;
                first = PageCheck::of_file(&file)?;
            }
            let begin = u32::try_from(pages).unwrap_or(u32::MAX);
            let check = first
                .as_ref()
                .map(|check: &PageCheck| check.continued(begin));
            // The tool puts them on top, wherever they lie.
            if let Some(name) = found.path.file_name() {
                let name = generation_name(ROOT, Path::new(name));
                known.system.insert(name, check);
            }
            pages += found.size / u64::from(files.page_size);
        }
        Ok(known)
    }

    /// Describes a file that begins.
    pub(super) fn meta(&self, name: &str) -> FileMeta {
        let block_size = match self.is_innodb(name) {
            true => self.files.page_size,
            false => PLAIN_BLOCK,
        };
        let mut meta = FileMeta::file(name, 0, block_size);
        dress(
            &mut meta,
            &original(name, &self.files.datadir),
            &self.files.datadir,
        );
        meta
    }

    pub(super) fn is_innodb(&self, name: &str) -> bool {
        // A table that was made meanwhile comes as .new.
        self.innodb.contains(name)
            || self.system.contains_key(name)
            || name.ends_with(".ibd")
            || name.ends_with(".new")
    }

    /// Returns how the pages of a file are checked, from its first block.
    pub(super) fn check(&self, name: &str, first: &[u8]) -> Option<PageCheck> {
        if !self.is_innodb(name) {
            return None;
        }
        match self.system.get(name) {
            Some(check) => check.clone(),
            None => PageCheck::of_page(first),
        }
    }
}

/// Whether it is a file of Aria's log, into whose header the tool writes when it has sent the rest.
pub(super) fn is_aria_log(name: &str) -> bool {
    let number = name.strip_prefix("data/aria_log.");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns where the server has, or had, what the generation has under a name.
pub(super) fn original(name: &str, datadir: &Path) -> PathBuf {
    relative_path(name).map_or_else(|| datadir.to_owned(), |(_, path)| datadir.join(path))
}

/// Describes a directory, which may be gone.
pub(super) fn dir_meta(name: &str, path: &Path, datadir: &Path) -> Result<FileMeta> {
    if path.is_dir() {
        return read_file::dir_meta(name, path);
    }
    let mut meta = FileMeta::file(name, 0, 0);
    meta.kind = FileKind::Dir;
    dress(&mut meta, path, datadir);
    meta.mode = DIR_MODE;
    Ok(meta)
}

/// Gives owner, mode and time of the original; of one that is gone, or that the tool made, the data
/// directory's owner.
fn dress(meta: &mut FileMeta, original: &Path, datadir: &Path) {
    let found = fs::symlink_metadata(original).ok();
    let own = found.as_ref().filter(|found| found.is_file());
    meta.mode = own.map_or(FILE_MODE, |own| own.permissions().mode() & 0o7777);
    let shown: Option<Metadata> = own.cloned().or_else(|| fs::metadata(datadir).ok());
    if let Some(shown) = shown {
        meta.uid = shown.uid();
        meta.gid = shown.gid();
        meta.mtime = (
            shown.mtime(),
            u32::try_from(shown.mtime_nsec()).unwrap_or(0),
        );
    }
    if own.is_some() {
        meta.xattrs = read_file::xattrs(original);
    }
}
