//! Are rows that an earlier version wrote found where it had them, whatever a server made of that place and
//! wherever moving them ends?

use evenkeel_queue::io::{Disk, File, Io};
use evenkeel_queue::place::{ROOT, root_of, settle};
use evenkeel_queue::{Options, Store};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Real files, of which a process that is killed sees only so many calls.
struct Stops(AtomicUsize);

impl Stops {
    fn step(&self) -> io::Result<()> {
        let left = |left: usize| left.checked_sub(1);
        let step = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        step.map(|_| ()).map_err(|_| io::Error::other("killed"))
    }
}

impl Io for Stops {
    fn create(&self, _: &Path) -> io::Result<Box<dyn File>> {
        unreachable!("no file is written")
    }
    fn open(&self, _: &Path) -> io::Result<Box<dyn File>> {
        unreachable!("no file is read")
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().and_then(|()| Disk.rename(from, to))
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Disk.unlink(path))
    }
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Disk.make_dir(path))
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Disk.remove_dir(path))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| Disk.sync_dir(path))
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Disk.list(path)
    }
}

/// A data directory with tables `shop/0`, `shop/1`, … of one row each, in these places.
fn datadir(places: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("shop")).unwrap();
    for (at, place) in places.iter().enumerate() {
        let store = Store::new(Arc::new(Disk), &dir.path().join(place)).unwrap();
        let anchor = anchor(dir.path(), at);
        store.create(&anchor, b"layout").unwrap();
        let (table, _) = store.open(&anchor, Options::default()).unwrap();
        table.append(vec![vec![at as u8; 10]], None).unwrap();
        table.close().unwrap();
        if *place == "@0023queue" {
            fs::write(dir.path().join(place).join("db.opt"), "latin1").unwrap();
        }
    }
    dir
}

fn anchor(datadir: &Path, at: usize) -> PathBuf {
    datadir.join(format!("shop/{at}.QUE"))
}

/// All tables have their rows where they belong, and nothing else is in the data directory.
fn assert_settled(datadir: &Path, tables: usize, what: &str) {
    let store = Store::new(Arc::new(Disk), &datadir.join(ROOT)).unwrap();
    for at in 0..tables {
        let (table, _) = store
            .open(&anchor(datadir, at), Options::default())
            .unwrap_or_else(|why| panic!("{what}: {why}"));
        assert_eq!(table.read(1).unwrap(), Some(vec![at as u8; 10]), "{what}");
    }
    let mut names = Disk.list(datadir).unwrap();
    names.sort();
    assert_eq!(names, [ROOT, "shop"], "{what}");
    assert_eq!(
        Disk.list(&datadir.join(ROOT)).unwrap().len(),
        tables,
        "{what}"
    );
}

#[test]
fn whatever_there_is_and_wherever_it_is_killed() {
    let cases: [&[&str]; 6] = [
        &[ROOT],
        &["#queue"],
        &["@0023queue"],
        &["@0023queue", "#queue", "#queue"],
        &[ROOT, "#queue", "@0023queue"],
        &[ROOT, "#sqlqueue-old", "#queue"],
    ];
    // One that has no place of these: it only reads anchors.
    let aside = tempfile::tempdir().unwrap();
    let reader = Store::new(Arc::new(Disk), &aside.path().join("rows")).unwrap();
    for places in cases {
        for calls in 0.. {
            let dir = datadir(places);
            let what = format!("{places:?}, {calls} calls");
            let ended = settle(&Stops(AtomicUsize::new(calls)), dir.path());
            for at in 0..places.len() {
                let anchor = anchor(dir.path(), at);
                let known = reader.anchor(&anchor).unwrap();
                let rows = root_of(dir.path(), &anchor).join(format!("{:032x}", known.id));
                assert!(rows.is_dir(), "{what}: {}", rows.display());
            }
            assert_eq!(
                settle(&Disk, dir.path()),
                Ok(dir.path().join(ROOT)),
                "{what}"
            );
            assert_settled(dir.path(), places.len(), &what);
            if ended.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn an_empty_one_is_taken_away_and_a_database_of_that_name_is_not() {
    let dir = datadir(&[ROOT]);
    fs::create_dir(dir.path().join("#queue")).unwrap();
    settle(&Disk, dir.path()).unwrap();
    assert_settled(dir.path(), 1, "empty");
    let database = dir.path().join("@0023queue");
    fs::create_dir(&database).unwrap();
    settle(&Disk, dir.path()).unwrap();
    assert!(database.is_dir());
    fs::write(database.join("db.opt"), "").unwrap();
    fs::write(database.join("people.frm"), "").unwrap();
    fs::create_dir(database.join(format!("{:032x}", 5))).unwrap();
    settle(&Disk, dir.path()).unwrap();
    let mut left = Disk.list(&database).unwrap();
    left.sort();
    assert_eq!(left, ["db.opt", "people.frm"]);
    assert!(dir.path().join(ROOT).join(format!("{:032x}", 5)).is_dir());
}

#[test]
fn the_same_table_in_two_places_is_refused_and_nothing_is_moved() {
    let dir = datadir(&["#queue", "@0023queue"]);
    let id = Disk.list(&dir.path().join("#queue")).unwrap().remove(0);
    fs::create_dir(dir.path().join("@0023queue").join(&id)).unwrap();
    let refused = settle(&Disk, dir.path()).unwrap_err().to_string();
    assert!(
        refused.contains("#queue") && refused.contains(&id),
        "{refused}"
    );
    assert!(dir.path().join("#queue").join(&id).is_dir());
    assert!(!dir.path().join(ROOT).exists());
}
