//! What is not covered, and therefore refused: a backup that lacks part of the data, or that could
//! not recover, is worse than none.

use crate::connect::Session;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// An engine, what it is known by at the top of a data directory, and the variable that names a directory of
/// its own.
struct Engine {
    name: &'static str,
    directories: &'static [&'static str],
    files: &'static [&'static str],
    ends: &'static [&'static str],
    variable: &'static str,
}

/// Tables of any engine are judged by the server's own list. These recover by logs of their own when the server
/// starts, also without a table: a copy of their files that is not from one point in time would keep it from
/// starting.
const ENGINES: [Engine; 2] = [
    Engine {
        name: "RocksDB",
        directories: &["#rocksdb", ".rocksdb"],
        files: &[],
        ends: &[],
        variable: "rocksdb_datadir",
    },
    Engine {
        name: "TokuDB",
        directories: &[],
        files: &["tokudb.directory", "tokudb.environment", "tokudb.rollback"],
        ends: &[".tokudb"],
        variable: "tokudb_data_dir",
    },
];

impl Engine {
    fn shows(&self, name: &str, is_dir: bool) -> bool {
        match is_dir {
            true => self.directories.contains(&name),
            false => self.files.contains(&name) || self.ends.iter().any(|end| name.ends_with(end)),
        }
    }
}

/// The names by which engines are known.
pub(super) fn whole_names() -> impl Iterator<Item = &'static str> {
    let names = |engine: &'static Engine| engine.directories.iter().chain(engine.files);
    ENGINES.iter().flat_map(names).copied()
}

/// The ends of such names.
pub(super) fn ends() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().flat_map(|engine| engine.ends).copied()
}

/// Refuses a data directory with files of an engine whose consistency nobody has proven here.
pub(super) fn other_engines(datadir: &Path, variables: &BTreeMap<String, String>) -> Result<()> {
    for engine in &ENGINES {
        let named = variables.get(engine.variable).map(|dir| datadir.join(dir));
        if let Some(path) = named.filter(|path| path != datadir && path.is_dir()) {
            return Err(refused(engine.name, &path));
        }
    }
    // A directory that cannot be read fails in the walk, with the reason.
    for entry in std::fs::read_dir(datadir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_dir = entry.path().is_dir();
        if let Some(engine) = ENGINES.iter().find(|one| one.shows(&name, is_dir)) {
            return Err(refused(engine.name, &entry.path()));
        }
    }
    Ok(())
}

fn refused(engine: &str, path: &Path) -> Error {
    Error::refused(format!(
        "{engine} keeps tables in {}, and evenkeel cannot back up {engine}",
        path.display()
    ))
    .hint(format!(
        "convert its tables to InnoDB and uninstall {engine}, or dump them"
    ))
}

/// Refuses a server that could not recover from a crash now.
pub(super) fn unrecoverable(session: &mut Session) -> Result<()> {
    let status = session.one("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'")?;
    if status.as_ref().and_then(|row| row.at(1)) == Some("OFF") {
        return Err(Error::refused(
            "the InnoDB redo log is disabled, so no image of the server could recover",
        )
        .hint("run ALTER INSTANCE ENABLE INNODB REDO_LOG, then back up"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_engines_are_refused_by_name_and_path() {
        let dir = tempfile::tempdir().unwrap();
        let none = BTreeMap::new();
        other_engines(dir.path(), &none).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let named = elsewhere.path().to_str().unwrap().to_owned();
        let error = other_engines(
            dir.path(),
            &[("rocksdb_datadir".to_owned(), named.clone())].into(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(&named), "{error}");

        for (engine, name, is_dir) in [
            ("RocksDB", "#rocksdb", true),
            ("TokuDB", "tokudb.environment", false),
            ("TokuDB", "_shop_t_main_1.tokudb", false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            let make = |is_dir: bool| match is_dir {
                true => std::fs::create_dir(&path).unwrap(),
                false => std::fs::write(&path, name).unwrap(),
            };
            make(is_dir);
            let error = other_engines(dir.path(), &none).unwrap_err();
            assert!(error.to_string().contains(engine) && error.to_string().contains(name));
            match is_dir {
                true => std::fs::remove_dir(&path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
            // What is called so and is of the other kind is no engine's.
            make(!is_dir);
            other_engines(dir.path(), &none).unwrap();
        }
    }

    #[test]
    fn schemas_and_tablespaces_may_be_called_like_engines() {
        let dir = tempfile::tempdir().unwrap();
        for schema in ["ndbinfo", "rocksdb", "tokudb"] {
            std::fs::create_dir(dir.path().join(schema)).unwrap();
        }
        for file in ["tokudb.sales.ibd", "shop.mrn.ibd", "tokudb.000001"] {
            std::fs::write(dir.path().join(file), file).unwrap();
        }
        other_engines(dir.path(), &BTreeMap::new()).unwrap();
    }
}
