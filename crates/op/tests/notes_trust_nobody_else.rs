//! Is a directory of notes of use only where nobody else can have written into it?

use evenkeel_op::notes::Notes;
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

/// Any account that is neither root's nor ours.
const STRANGER: u32 = 4242;

#[test]
fn what_it_made_it_opens() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("a/b");
    let notes = Notes::make(&path, 0o755).unwrap();
    let name = OsStr::new("note");
    let file = notes.claim(name, "busy").unwrap();
    assert!(notes.has(&file, name));
    let again = Notes::open(&path).unwrap();
    assert_eq!(again.names(), [name]);
    assert!(again.has(&again.read(name).unwrap(), name));
    again.remove(name);
    assert!(!notes.has(&file, name));
    assert!(Notes::make(&path, 0o755).is_ok());
}

/// Whoever opens a note, for reading too, can hold the lock on it.
#[test]
fn nobody_else_opens_a_note() {
    let room = tempfile::tempdir().unwrap();
    let notes = Notes::make(room.path(), 0o755).unwrap();
    let mode = |name: &str| {
        let found = fs::metadata(room.path().join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    drop(notes.claim(OsStr::new("new"), "busy").unwrap());
    assert_eq!(mode("new"), 0o600);
    fs::write(room.path().join("old"), "").unwrap();
    fs::set_permissions(room.path().join("old"), Permissions::from_mode(0o644)).unwrap();
    drop(notes.claim(OsStr::new("old"), "busy").unwrap());
    assert_eq!(mode("old"), 0o600);
}

#[test]
fn empty_notes_of_the_dead_go() {
    let room = tempfile::tempdir().unwrap();
    let notes = Notes::make(room.path(), 0o755).unwrap();
    let [lives, died, reported] = ["lives", "died", "told"].map(OsStr::new);
    let living = notes.claim(lives, "busy").unwrap();
    drop(notes.claim(died, "busy").unwrap());
    fs::write(room.path().join(reported), "x").unwrap();
    for name in [lives, died, reported] {
        notes.remove_empty(&notes.read(name).unwrap(), name);
    }
    let mut names = notes.names();
    names.sort();
    assert_eq!(names, [lives, reported]);
    drop(living);
}

#[test]
fn others_may_not_write_into_it() {
    let room = tempfile::tempdir().unwrap();
    for open_to in [0o770, 0o757, 0o1777] {
        let path = room.path().join(format!("{open_to:o}"));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(open_to)).unwrap();
        assert!(Notes::open(&path).is_none(), "{open_to:o}");
        let error = Notes::make(&path, 0o755).unwrap_err().to_string();
        assert!(error.contains("writable by other users"), "{error}");
    }
}

#[test]
fn links_are_not_followed() {
    let room = tempfile::tempdir().unwrap();
    let (real, link) = (room.path().join("real"), room.path().join("link"));
    let notes = Notes::make(&real, 0o700).unwrap();
    symlink(&real, &link).unwrap();
    assert!(Notes::open(&link).is_none());
    assert!(Notes::make(&link, 0o700).is_err());
    let victim = room.path().join("victim");
    fs::write(&victim, "kept").unwrap();
    symlink(&victim, real.join("note")).unwrap();
    assert!(notes.read(OsStr::new("note")).is_none());
    assert!(notes.claim(OsStr::new("note"), "busy").is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
}

#[test]
fn what_belongs_to_others_does_not_count() {
    assert!(geteuid().is_root(), "only root can give files away");
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("notes");
    let notes = Notes::make(&path, 0o700).unwrap();
    let note = path.join("note");
    fs::write(&note, "").unwrap();
    assert!(notes.read(OsStr::new("note")).is_some());
    chown(&note, Some(STRANGER), None).unwrap();
    assert!(notes.read(OsStr::new("note")).is_none());
    chown(&path, Some(STRANGER), None).unwrap();
    assert!(Notes::open(&path).is_none());
    let error = Notes::make(&path, 0o700).unwrap_err().to_string();
    assert!(error.contains("another user"), "{error}");
}
