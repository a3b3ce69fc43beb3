//! Files with pages in directories that need not be a server's: recognized by their names.

use super::named::refuse_other_files;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Context, Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file and its length in bytes.
type Sized = (PathBuf, u64);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Tablespaces of one file each.
    pub(super) plain: Vec<Sized>,
    /// The files of each system tablespace, in order.
    pub(super) systems: Vec<Vec<Sized>>,
    /// Redo logs.
    pub(super) redo: Vec<PathBuf>,
    /// Doublewrite files.
    pub(super) doublewrite: Vec<PathBuf>,
}

impl Found {
    /// Adds a file that was named, whatever it is called, or what is in a directory. Symbolic links in
    /// it are not followed: in a snapshot they would lead to the live files.
    pub(super) fn add(&mut self, path: &Path) -> Result<()> {
        let metadata = std::fs::metadata(path)
            .map_err(|error| unreadable("file or directory", path, error))?;
        if metadata.is_file() {
            if !has_pages(&path.to_string_lossy()) {
                refuse_other_files(path)?;
            }
            let one = (path.to_owned(), metadata.len());
            match is_system(&path.to_string_lossy()) {
                true => self.systems.push(vec![one]),
                false => self.plain.push(one),
            }
            return Ok(());
        }
        if !metadata.is_dir() {
            return Err(Error::usage(format!(
                "{} is neither a file nor a directory",
                path.display()
            )));
        }
        let mut systems: BTreeMap<PathBuf, Vec<Sized>> = BTreeMap::new();
        let mut waiting = vec![path.to_owned()];
        while let Some(dir) = waiting.pop() {
            let what = || format!("failed to list {}", dir.display());
            for entry in std::fs::read_dir(&dir).context(what)? {
                let entry = entry.context(what)?;
                let (path, name) = (entry.path(), entry.file_name());
                let name = name.to_string_lossy();
                let kind = entry.file_type().context(what)?;
                if kind.is_dir() && name != "#innodb_temp" {
                    waiting.push(path);
                } else if kind.is_file() {
                    let size = entry.metadata().context(what)?.len();
                    if is_system(&name) {
                        systems.entry(dir.clone()).or_default().push((path, size));
                    } else if has_pages(&name) {
                        self.plain.push((path, size));
                    } else if is_numbered(&name, "ib_logfile") || is_numbered(&name, "#ib_redo") {
                        self.redo.push(path);
                    } else if name.ends_with(".dblwr") {
                        self.doublewrite.push(path);
                    }
                }
            }
        }
        self.systems.extend(systems.into_values().map(|mut files| {
            files.sort_by_key(|(path, _)| number(&path.to_string_lossy()));
            files
        }));
        self.plain.sort();
        Ok(())
    }
}

/// Whether a file has pages, by its name; the system tablespace's among them.
pub(super) fn has_pages(name: &str) -> bool {
    let own = own_name(name);
    own.ends_with(".ibd")
        || own.ends_with(".ibu")
        || is_numbered(own, "undo")
        || is_numbered(own, "undo_")
        || is_system(name)
}

/// Whether it is a file of a system tablespace.
pub(super) fn is_system(name: &str) -> bool {
    is_numbered(own_name(name), "ibdata")
}

/// The number at the end of a name.
pub(super) fn number(name: &str) -> u64 {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[name.len() - digits..].parse().unwrap_or(0)
}

/// Whether a name ends in a number and is nothing else. That of a spare file of the log continues behind it; that
/// of a table which is called like a log has an extension.
fn is_numbered(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn own_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        for name in [
            "data/bank/a.ibd",
            "undo001",
            "undo_003",
            "x.ibu",
            "ibdata1",
            "mysql.ibd",
        ] {
            assert!(has_pages(name), "{name}");
        }
        for name in [
            "data/bank/a.frm",
            "undone",
            "ib_logfile0",
            "ibdata",
            "ib_buffer_pool",
            "ibtmp1",
        ] {
            assert!(!has_pages(name), "{name}");
        }
        assert_eq!(number("/x/ibdata12"), 12);
        assert!(
            is_numbered("#ib_redo12", "#ib_redo") && !is_numbered("#ib_redo12_tmp", "#ib_redo")
        );
    }

    #[test]
    fn links_are_not_followed_and_nonsense_is_said() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("db")).unwrap();
        std::fs::write(dir.path().join("db/t.ibd"), "x").unwrap();
        std::fs::write(dir.path().join("ibdata2"), "x").unwrap();
        std::fs::write(dir.path().join("ibdata1"), "x").unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let mut found = Found::default();
        found.add(dir.path()).unwrap();
        assert_eq!(found.plain, [(dir.path().join("db/t.ibd"), 1)]);
        let system: Vec<_> = found.systems[0]
            .iter()
            .map(|one| number(&one.0.to_string_lossy()))
            .collect();
        assert_eq!(system, [1, 2]);
        assert!(found.add(&dir.path().join("gone")).is_err());
        let socket = dir.path().join("s");
        let _held = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(found.add(&socket).is_err());
    }
}
