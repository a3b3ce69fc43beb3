//! Are the loop filesystems what they say, and are they gone afterwards?

use evenkeel_testkit::LoopFs;
use std::path::Path;
use std::process::Command;

fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1).map(Path::new) == Some(path))
}

fn can_reflink(dir: &Path) -> bool {
    std::fs::write(dir.join("a"), vec![7; 1 << 20]).unwrap();
    Command::new("cp")
        .arg("--reflink=always")
        .args([dir.join("a"), dir.join("b")])
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn xfs_and_btrfs_share_blocks_and_ext4_does_not() {
    assert!(can_reflink(LoopFs::xfs(300 << 20).path()));
    assert!(can_reflink(LoopFs::btrfs(128 << 20).path()));
    assert!(!can_reflink(LoopFs::ext4(32 << 20).path()));
}

#[test]
fn a_small_filesystem_gets_full() {
    let small = LoopFs::ext4(16 << 20);
    let error = std::fs::write(small.join("big"), vec![1; 20 << 20]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_panicking_test_leaves_nothing_even_with_a_file_open() {
    let mut path = None;
    let mut open = None;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let fs = LoopFs::ext4(16 << 20);
        path = Some(fs.path().to_owned());
        open = Some(std::fs::File::create(fs.join("held")).unwrap());
        panic!("as a failing test does");
    }));
    assert!(result.is_err());
    let path = path.unwrap();
    assert!(!is_mounted(&path));
    assert!(!path.exists());
}

#[test]
fn remounting_keeps_what_was_written() {
    let fs = LoopFs::ext4(16 << 20);
    std::fs::write(fs.join("kept"), "x").unwrap();
    fs.remount();
    assert_eq!(std::fs::read(fs.join("kept")).unwrap(), b"x");
    fs.set_read_only(true);
    assert!(std::fs::write(fs.join("no"), "x").is_err());
    fs.set_read_only(false);
    std::fs::write(fs.join("yes"), "x").unwrap();
}
