//! Do the reads of a slow directory wait side by side, and each for as long as it should?

use evenkeel_mount::{Delay, Mounted};
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

const READERS: usize = 200;
const PAGE: usize = 4096;

/// Memory as direct I/O wants it.
#[repr(align(4096))]
struct Aligned([u8; PAGE]);

#[test]
fn they_do() {
    let dir = tempfile::tempdir().unwrap();
    let [disk, mnt] = ["disk", "mnt"].map(|name| dir.path().join(name));
    for dir in [&disk, &mnt] {
        std::fs::create_dir(dir).unwrap();
    }
    let bytes: Vec<u8> = (0..READERS * PAGE).map(|at| (at / PAGE) as u8).collect();
    std::fs::write(disk.join("file"), bytes).unwrap();
    let delay = Delay {
        read: Duration::from_secs(1),
        write: Duration::ZERO,
    };
    let delayed = Mounted::delayed(&disk, delay, &mnt).unwrap();
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = File::options()
        .read(true)
        .custom_flags(direct)
        .open(mnt.join("file"))
        .unwrap();
    std::thread::scope(|scope| {
        for page in 0..READERS {
            let file = &file;
            scope.spawn(move || {
                let mut buffer = Aligned([0; PAGE]);
                let begun = Instant::now();
                file.read_exact_at(&mut buffer.0, (page * PAGE) as u64)
                    .unwrap();
                assert!(begun.elapsed() >= delay.read);
                assert!(buffer.0.iter().all(|byte| *byte == page as u8));
            });
        }
    });
    // Were they held by threads, it would be as many as there are threads.
    assert!(
        delayed.most_waiting() > READERS / 2,
        "{} at once",
        delayed.most_waiting()
    );
    assert_eq!(delayed.reads().requests, READERS as u64);
    drop(file);
    delayed.unmount().unwrap();
    delayed.join().unwrap();
}
