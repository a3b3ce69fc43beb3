//! Does the kernel keep what was read of a slow directory, over closing and reopening, as it keeps
//! what it read of a disk; and do direct reads go to the disk each time?

use evenkeel_mount::{Delay, Mounted, Reads};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

const LENGTH: usize = 1 << 20;

/// Memory as direct I/O wants it.
#[repr(align(4096))]
struct Aligned([u8; 16_384]);

#[test]
fn it_does() {
    let dir = tempfile::tempdir().unwrap();
    let [disk, mnt] = ["disk", "mnt"].map(|name| dir.path().join(name));
    for dir in [&disk, &mnt] {
        fs::create_dir(dir).unwrap();
    }
    fs::create_dir(disk.join("shop")).unwrap();
    let name = Path::new("shop/t.ibd");
    fs::write(disk.join(name), vec![7; LENGTH]).unwrap();
    let delay = Delay {
        read: Duration::from_micros(200),
        write: Duration::from_micros(200),
    };
    let delayed = Mounted::delayed(&disk, delay, &mnt).unwrap();
    assert_eq!(delayed.reads(), Reads::default());

    // By the kernel: each byte once.
    assert_eq!(fs::read(mnt.join(name)).unwrap(), vec![7; LENGTH]);
    let once = delayed.reads_of(name);
    assert_eq!(once.bytes, LENGTH as u64);
    assert!(once.requests > 0);
    assert_eq!(fs::read(mnt.join(name)).unwrap(), vec![7; LENGTH]);
    let new = mnt.join("shop/moved.ibd");
    fs::rename(mnt.join(name), &new).unwrap();
    assert_eq!(fs::read(&new).unwrap(), vec![7; LENGTH]);
    let moved = delayed.reads_of(Path::new("shop/moved.ibd"));
    assert_eq!(moved, once);
    assert_eq!(delayed.reads_of(name), Reads::default());

    // What is written goes through to the disk, and is kept too.
    let file = File::options().read(true).write(true).open(&new).unwrap();
    file.write_all_at(&[9; 100], 5_000).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let written = fs::read(&new).unwrap();
    assert_eq!(written[5_000..5_100], [9; 100]);
    assert_eq!(written, fs::read(disk.join("shop/moved.ibd")).unwrap());
    assert_eq!(delayed.reads(), once);

    // Past the kernel: each time.
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let mut options = File::options();
    let file = options.read(true).custom_flags(direct).open(&new).unwrap();
    let mut buffer = Aligned([0; 16_384]);
    for _ in 0..3 {
        file.read_exact_at(&mut buffer.0, 65_536).unwrap();
    }
    drop(file);
    let reads = delayed.reads();
    assert_eq!(
        (reads.requests, reads.bytes),
        (once.requests + 3, once.bytes + 3 * 16_384)
    );

    // A new mount knows nothing.
    delayed.unmount().unwrap();
    delayed.join().unwrap();
    let delayed = Mounted::delayed(&disk, delay, &mnt).unwrap();
    fs::read(&new).unwrap();
    assert_eq!(delayed.reads().bytes, LENGTH as u64);
    delayed.unmount().unwrap();
    delayed.join().unwrap();
}
