//! A data directory that is a mount point cannot be exchanged: its entries are, one by one.
//!
//! Each step can be done again. An entry has left when it is in `replaced`, and has arrived when it
//! is no longer in `coming`; what leaves and has the name of something that arrives is distinguished
//! by that. From the first step to the last no server starts on what is there: see `guard`.

use super::guard::{self, SYSTEM_SPACE, held};
use super::store::Store;
use super::swap::coming;
use super::tree;
use evenkeel_op::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The schema without which no server starts.
const SYSTEM_SCHEMA: &str = "mysql";

/// Where what leaves goes.
pub(super) fn replaced(store: &Store) -> PathBuf {
    store.place.work("replaced")
}

/// Returns the names that should leave a data directory: all but our own, the filesystem's, and the
/// server's logs for people.
pub(super) fn leaving(store: &Store, logs: &[PathBuf]) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in tree::entries(&store.datadir)? {
        let name = entry.file_name();
        if !tree::is_no_part(&name) && name != SYSTEM_SPACE && !logs.contains(&entry.path()) {
            names.push(name);
        }
    }
    // Without it no server starts.
    names.sort_by_key(|name| name != SYSTEM_SCHEMA);
    Ok(names)
}

/// Moves what leaves and what arrives, as far as that was not done.
pub(super) fn move_all(store: &Store, leaving: &[OsString]) -> Result<()> {
    let (datadir, coming, replaced) = (&store.datadir, coming(store), replaced(store));
    if replaced.exists() && !guard::is_up(datadir) && tree::entries(&coming)?.is_empty() {
        // All of it was done: the guard comes down last.
        return Ok(());
    }
    guard::put_up(&store.place, datadir)?;
    fail::fail_point!("baseline::inside::guarded");
    match fs::create_dir(&replaced) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context(|| format!("failed to create {}", replaced.display()));
        }
        _ => {}
    }
    move_if_there(&held(&store.place), &replaced.join(SYSTEM_SPACE))?;
    for name in leaving {
        // What has left once may have arrived since.
        if !is_there(&replaced.join(name)) {
            move_if_there(&datadir.join(name), &replaced.join(name))?;
        }
        fail::fail_point!("baseline::inside::left");
    }
    tree::sync(datadir)?;
    let mut arriving: Vec<OsString> = tree::entries(&coming)?
        .into_iter()
        .map(|entry| entry.file_name())
        .filter(|name| name != SYSTEM_SPACE)
        .collect();
    arriving.sort_by_key(|name| name == SYSTEM_SCHEMA);
    for name in &arriving {
        move_if_there(&coming.join(name), &datadir.join(name))?;
        fail::fail_point!("baseline::inside::arrived");
    }
    tree::sync(datadir)?;
    guard::take_down(datadir, &coming.join(SYSTEM_SPACE))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn move_if_there(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("failed to move {}", from.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(dir: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
            fs::write(dir.join(name), text).unwrap();
        }
    }

    #[test]
    fn what_leaves_first_is_what_no_server_starts_without() {
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().canonicalize().unwrap().join("data");
        fill(
            &datadir,
            &[
                ("ibdata1", "old"),
                ("bank/a.ibd", "old"),
                ("mysql/x", "old"),
                ("host.err", "log"),
                (".evenkeel-baselines/x", ""),
                ("lost+found/x", ""),
            ],
        );
        let mut store = Store::open(&datadir).unwrap();
        let names = leaving(&store, &[datadir.join("host.err")]).unwrap();
        assert_eq!(names, ["mysql", "bank"]);

        store.place.inside = true;
        fill(
            &coming(&store),
            &[
                ("ibdata1", "new"),
                ("mysql/x", "new"),
                ("shop/a.ibd", "new"),
            ],
        );
        for _ in 0..2 {
            move_all(&store, &names).unwrap();
        }
        let text = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(text(datadir.join("ibdata1")), "new");
        assert_eq!(text(datadir.join("mysql/x")), "new");
        assert_eq!(text(datadir.join("shop/a.ibd")), "new");
        assert_eq!(text(datadir.join("host.err")), "log");
        assert!(!datadir.join("bank").exists());
        assert_eq!(text(replaced(&store).join("ibdata1")), "old");
        assert_eq!(text(replaced(&store).join("bank/a.ibd")), "old");
    }
}
