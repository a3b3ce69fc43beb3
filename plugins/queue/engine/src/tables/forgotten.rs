//! Queues that their server has forgotten. MariaDB without the engine drops a queue by removing its own file of it, and
//! leaves the anchor.

use super::{Tables, anchors, files, unread};
use crate::fault::Fault;
use evenkeel_queue::place::is_anchor;
use std::ffi::OsStr;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The end of MariaDB's own file of a table.
const OWN: &str = ".frm";

/// How such a file names the engine: behind the length of the name.
const ENGINE: &[u8] = b"\x05\0QUEUE";

/// MariaDB's own file of the table at a path without a suffix.
pub(super) fn own_file(path: &Path) -> PathBuf {
    let mut own = path.as_os_str().to_owned();
    own.push(OWN);
    own.into()
}

/// Whether the server has forgotten the table of an anchor. One that cannot be looked for is not.
fn is_forgotten(anchor: &Path) -> bool {
    let own = fs::symlink_metadata(own_file(&anchor.with_extension("")));
    own.is_err_and(|why| why.kind() == ErrorKind::NotFound)
}

/// Whether a server's own file is that of a queue whose anchor is not beside it; one that cannot be read may be.
fn lacks_its_anchor(own: &Path) -> bool {
    let name = own.as_os_str().as_bytes();
    let path = Path::new(OsStr::from_bytes(&name[..name.len() - OWN.len()]));
    let names_us = |text: &[u8]| text.windows(ENGINE.len()).any(|word| word == ENGINE);
    !super::anchor(path).exists() && fs::read(own).map_or(true, |text| names_us(&text))
}

impl Tables {
    /// Drops what a schema's directory has of tables that MariaDB has forgotten: it is about to remove the directory,
    /// which has to be empty.
    ///
    /// # Errors
    ///
    /// The file system refuses, or an anchor cannot be read.
    pub(crate) fn drop_forgotten_in(&self, schema: &Path) -> Result<(), Fault> {
        let entries = fs::read_dir(schema).and_then(Iterator::collect::<Result<Vec<_>, Error>>);
        let entries = entries.map_err(|error| unread(schema, &error))?;
        let found = entries.iter().map(fs::DirEntry::path);
        for anchor in found.filter(|path| is_anchor(path) && is_forgotten(path)) {
            self.drop_table(&anchor.with_extension(""))?;
        }
        Ok(())
    }

    /// Drops all queues that MariaDB has forgotten, when it has recovered from what a crash cut short. While it knows a
    /// queue whose anchor is not there, the anchor of another name may be that queue's: then all stay, as do those of an
    /// ALTER TABLE. Returns what the error log is to say; nothing where there was none.
    ///
    /// # Errors
    ///
    /// The file system refuses, or an anchor cannot be read.
    pub(crate) fn drop_forgotten(&self) -> Result<String, Fault> {
        let all = anchors(&self.datadir).map_err(|error| unread(&self.datadir, &error))?;
        let is_whole = all.is_all;
        let (mut forgotten, mut said) = (all.files, Vec::new());
        forgotten.retain(|anchor| !super::names::is_for_now(anchor) && is_forgotten(anchor));
        if forgotten.is_empty() {
            return Ok(String::new());
        }
        let own = files(&self.datadir, OWN).map_err(|error| unread(&self.datadir, &error))?;
        let lost = own.files.iter().find(|own| lacks_its_anchor(own));
        for anchor in forgotten {
            let queue = anchor.display();
            said.push(match lost {
                Some(lost) => format!(
                    "{queue} belongs to no table, and {} lacks its own: if it is that one's, rename it so",
                    lost.display()
                ),
                None if !is_whole || !own.is_all => {
                    format!("{queue} belongs to no table, but not all schemas can be read: it stays")
                }
                None => {
                    self.drop_table(&anchor.with_extension(""))?;
                    format!("removed {queue}: its table was dropped while the engine was not loaded")
                }
            });
        }
        Ok(said.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_queue::place::ROOT;

    struct Scene {
        dir: tempfile::TempDir,
        tables: Tables,
    }

    /// Queues in the schema `shop`, each with a row. Of the first `known` the server has its own file.
    fn scene(names: &[&str], known: usize) -> Scene {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let tables = Tables::start(dir.path()).unwrap();
        for (at, name) in names.iter().enumerate() {
            let path = dir.path().join("shop").join(name);
            tables.create(&path, b"0\0").unwrap();
            let table = tables.table(&path).unwrap();
            table.append(vec![b"row".to_vec()], None).unwrap();
            if at < known {
                fs::write(own_file(&path), b"...\x05\0QUEUE...").unwrap();
            }
        }
        Scene { dir, tables }
    }

    impl Scene {
        fn shop(&self) -> PathBuf {
            self.dir.path().join("shop")
        }

        fn anchors(&self) -> Vec<String> {
            let all = anchors(self.dir.path()).unwrap().files;
            let mut names: Vec<_> = all
                .iter()
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            names.sort();
            names
        }

        fn count_rows(&self) -> usize {
            fs::read_dir(self.dir.path().join(ROOT)).unwrap().count()
        }
    }

    #[test]
    fn of_a_schema_that_is_dropped_all_goes_that_is_forgotten() {
        let scene = scene(&["known", "a", "#sql-alter-1"], 1);
        scene.tables.drop_forgotten_in(&scene.shop()).unwrap();
        assert_eq!(scene.anchors(), ["known"]);
        assert_eq!(scene.count_rows(), 1);
        let table = scene.tables.table(&scene.shop().join("known")).unwrap();
        assert_eq!(table.read(1).unwrap().unwrap(), b"row");
    }

    #[test]
    fn what_is_forgotten_goes() {
        let scene = scene(&["known", "a", "#sql-backup-1"], 1);
        let said = scene.tables.drop_forgotten().unwrap();
        assert!(said.contains("shop/a.QUE: its table was dropped"), "{said}");
        assert_eq!(scene.anchors(), ["#sql-backup-1", "known"]);
        assert_eq!(scene.count_rows(), 2);
        assert_eq!(scene.tables.drop_forgotten().unwrap(), "");
    }

    /// A crash in a RENAME may leave the server with one name and the engine with the other.
    #[test]
    fn nothing_goes_while_a_queue_lacks_its_anchor() {
        let scene = scene(&["new"], 0);
        fs::write(scene.shop().join("other.frm"), b"...\x06\0InnoDB...").unwrap();
        fs::write(scene.shop().join("old.frm"), b"...\x05\0QUEUE...").unwrap();
        let said = scene.tables.drop_forgotten().unwrap();
        assert!(said.contains("shop/old.frm lacks its own"), "{said}");
        assert_eq!(scene.anchors(), ["new"]);
        fs::remove_file(scene.shop().join("old.frm")).unwrap();
        scene.tables.drop_forgotten().unwrap();
        assert_eq!((scene.anchors().len(), scene.count_rows()), (0, 0));
    }
}
