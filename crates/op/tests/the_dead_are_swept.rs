//! Does what killed runs left go, and nothing else?

use evenkeel_op::living::{Living, sweep};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

/// Any account that is neither root's nor ours.
const STRANGER: u32 = 4242;

fn sweep_ours(room: &Path) {
    let is_named = |name: &OsStr| name.to_string_lossy().starts_with("evenkeel-");
    sweep(room, is_named, |_, _| true);
}

fn fill(path: &Path) {
    fs::create_dir_all(path.join("in/deep")).unwrap();
    fs::write(path.join("in/file"), "x").unwrap();
}

#[test]
fn what_is_held_stays_and_what_its_run_lost_goes() {
    let room = tempfile::tempdir().unwrap();
    let (lives, died) = (
        room.path().join("evenkeel-1"),
        room.path().join("evenkeel-2"),
    );
    let living = Living::make(&lives).unwrap().unwrap();
    assert_eq!(
        fs::metadata(&lives).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(Living::make(&lives).unwrap().is_none());
    fill(&lives);
    // A run that was killed holds nothing.
    fs::create_dir(&died).unwrap();
    fill(&died);
    sweep_ours(room.path());
    assert!(lives.join("in/file").exists(), "it is in use");
    assert!(!died.exists());
    drop(living);
    assert!(!lives.exists());
}

#[test]
fn what_is_not_meant_or_not_ours_stays() {
    assert!(geteuid().is_root(), "only root can give files away");
    let room = tempfile::tempdir().unwrap();
    let at = |name: &str| room.path().join(name);
    for name in ["others", "precious", "evenkeel-strangers", "evenkeel-open"] {
        fill(&at(name));
    }
    chown(at("evenkeel-strangers"), Some(STRANGER), None).unwrap();
    fs::set_permissions(at("evenkeel-open"), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(at("precious"), at("evenkeel-link")).unwrap();
    sweep_ours(room.path());
    for name in ["others", "precious", "evenkeel-strangers", "evenkeel-open"] {
        assert!(at(name).join("in/file").exists(), "{name}");
    }
}
