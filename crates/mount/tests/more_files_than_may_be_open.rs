//! Can more files of a slow directory be read, written, made and removed than this process may have
//! open at once, as a server with very many tables does?

use evenkeel_mount::{Delay, Mounted};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};

/// Beside what the filesystem itself needs.
const OPEN: u64 = 100;
const FILES: usize = 400;

#[test]
fn they_can() {
    let dir = tempfile::tempdir().unwrap();
    let [disk, mnt] = ["disk", "mnt"].map(|name| dir.path().join(name));
    for dir in [&disk, &mnt] {
        fs::create_dir(dir).unwrap();
    }
    let name = |number: usize| format!("t{number}.ibd");
    for number in 0..FILES {
        fs::write(disk.join(name(number)), "old").unwrap();
    }
    let limit = Rlimit {
        current: Some(OPEN),
        ..getrlimit(Resource::Nofile)
    };
    let delayed = Mounted::delayed(&disk, Delay::default(), &mnt).unwrap();
    setrlimit(Resource::Nofile, limit).unwrap();
    for number in 0..FILES {
        let path = mnt.join(name(number));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old", "{number}");
        fs::write(&path, "new").unwrap();
        let made = mnt.join(format!("made{number}"));
        // The kernel remembers that, until it is made.
        assert!(!made.exists());
        fs::write(&made, "made").unwrap();
        assert_eq!(fs::read_to_string(&made).unwrap(), "made");
    }
    // One that has lost its name is there for whoever has it open, and nobody else.
    let path = mnt.join(name(0));
    let mut open = File::options().read(true).write(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    open.write_all(b"now").unwrap();
    open.rewind().unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "now");
    drop(open);
    delayed.unmount().unwrap();
    delayed.join().unwrap();
    assert!(!disk.join(name(0)).exists());
    assert_eq!(
        fs::read_to_string(disk.join(name(FILES - 1))).unwrap(),
        "new"
    );
    assert_eq!(fs::read_to_string(disk.join("made7")).unwrap(), "made");
}
