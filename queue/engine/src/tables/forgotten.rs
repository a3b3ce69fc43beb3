//! Queues that their server has forgotten. MariaDB without the engine drops a queue by removing its own file of it, and
//! leaves the anchor.

use super::{Tables, anchors, unread};
use crate::fault::Fault;
use evenkeel_queue::place::is_anchor;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The end of MariaDB's own file of a table.
const OWN: &str = ".frm";

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

    /// Says which queues MariaDB has forgotten, for the error log; nothing where there are none. Nothing is removed: a file
    /// of the server's may only be missing, as in a restore that is not done yet, and the rows cannot be had again.
    ///
    /// # Errors
    ///
    /// The data directory cannot be read.
    pub(crate) fn forgotten(&self) -> Result<String, Fault> {
        let mut all = anchors(&self.datadir).map_err(|error| unread(&self.datadir, &error))?;
        all.files
            .retain(|anchor| !super::names::is_for_now(anchor) && is_forgotten(anchor));
        let names = all.files.iter().map(|anchor| anchor.display().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        Ok(match names.is_empty() {
            true => names,
            false => format!(
                "the server has no table for {names}: dropped while the engine was not loaded? The rows are kept until the \
                 database is dropped or a table of that name is created"
            ),
        })
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
    fn what_is_forgotten_is_named_and_stays() {
        let scene = scene(&["known", "a", "#sql-backup-1"], 1);
        let said = scene.tables.forgotten().unwrap();
        assert!(
            said.contains("no table for ") && said.contains("shop/a.QUE: "),
            "{said}"
        );
        assert_eq!(scene.anchors(), ["#sql-backup-1", "a", "known"]);
        assert_eq!(scene.count_rows(), 3);
        // A new one in its place has none of its rows.
        let path = scene.shop().join("a");
        scene.tables.create(&path, b"0\0").unwrap();
        fs::write(own_file(&path), b"").unwrap();
        assert_eq!(scene.tables.forgotten().unwrap(), "");
        let table = scene.tables.table(&path).unwrap();
        assert_eq!(table.stats().rows, 0);
    }
}
