//! What is not covered, and therefore refused: a backup that lacks part of the data, or that could
//! not recover, is worse than none.

use crate::connect::Session;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// An engine, how its files show in the top of a data directory, and the variable that names a
/// directory of its own.
struct Engine {
    name: &'static str,
    shows: fn(&str) -> bool,
    directory: &'static str,
}

const ENGINES: [Engine; 4] = [
    Engine {
        name: "RocksDB",
        shows: |name| matches!(name, "#rocksdb" | ".rocksdb"),
        directory: "rocksdb_datadir",
    },
    Engine {
        name: "TokuDB",
        shows: |name| name.starts_with("tokudb.") || name.ends_with(".tokudb"),
        directory: "tokudb_data_dir",
    },
    Engine {
        name: "Mroonga",
        shows: |name| name.ends_with(".mrn"),
        directory: "",
    },
    Engine {
        name: "NDB",
        shows: |name| name == "ndbinfo",
        directory: "",
    },
];

/// Refuses a data directory with files of an engine whose consistency nobody has proven here.
pub(super) fn other_engines(datadir: &Path, variables: &BTreeMap<String, String>) -> Result<()> {
    for engine in &ENGINES {
        let named = variables.get(engine.directory).map(|dir| datadir.join(dir));
        if let Some(path) = named.filter(|path| path != datadir && path.is_dir()) {
            return Err(refused(engine.name, &path));
        }
    }
    // A directory that cannot be read fails in the walk, with the reason.
    for entry in std::fs::read_dir(datadir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if let Some(engine) = ENGINES.iter().find(|engine| (engine.shows)(&name)) {
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
            "the InnoDB redo log is switched off, so no image of the server could recover",
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

        for (engine, name) in [
            ("RocksDB", "#rocksdb"),
            ("TokuDB", "tokudb.environment"),
            ("Mroonga", "shop.mrn"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join(name)).unwrap();
            let error = other_engines(dir.path(), &none).unwrap_err();
            assert!(error.to_string().contains(engine) && error.to_string().contains(name));
        }
    }
}
