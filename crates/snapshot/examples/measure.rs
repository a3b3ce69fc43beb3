//! How long do clones and extent differences take here?
//!
//! `cargo run --release -p evenkeel-snapshot --example measure -- DIRECTORY [MIB]` in an empty
//! directory on XFS or btrfs with room for five times MIB (2048 when not given). As root, it drops
//! the kernel's caches to measure cold.

use evenkeel_snapshot::{Changed, Layout, Method, Opened, Sealed, Settings, SourceFile, open};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const PAGE: u64 = 16384;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory is needed"));
    let directory = directory.canonicalize().expect("a directory that exists");
    let mib = arguments
        .next()
        .map_or(2048, |mib| mib.parse().expect("MIB is a number"));
    for count in [1_000, 10_000] {
        clones(&directory.join(format!("tables-{count}")), count);
    }
    differences(&directory.join("fragmented"), mib);
}

fn layout(datadir: &Path) -> Layout {
    Layout {
        datadir: datadir.to_owned(),
        dirs: vec![],
        server_running: true,
        page_bytes: 16384,
        volumes: Vec::new(),
    }
}

fn begin(datadir: &Path, token: Option<&str>) -> Opened {
    open(
        Method::Reflink,
        &layout(datadir),
        &Settings::default(),
        token,
    )
    .expect("a clone")
}

fn made(directory: &Path, count: usize, bytes: u64) -> Vec<SourceFile> {
    fs::create_dir(directory).expect("an empty directory");
    let buffer: Vec<u8> = (0..1 << 20)
        .map(|i: u32| i.wrapping_mul(2_654_435_761) as u8)
        .collect();
    let make = |number| {
        let path = directory.join(format!("t{number}.ibd"));
        let file = File::create(&path).expect("a file");
        for at in (0..bytes).step_by(buffer.len()) {
            let length = (bytes - at).min(buffer.len() as u64) as usize;
            file.write_all_at(&buffer[..length], at).expect("room");
        }
        SourceFile {
            name: format!("data/t{number}.ibd"),
            path,
        }
    };
    (0..count).map(make).collect()
}

/// Many small files: what `take` costs, prepared and not.
fn clones(directory: &Path, count: usize) {
    let files = made(directory, count, 6 * PAGE);
    rustix::fs::sync();
    for prepared in [false, true, false, true] {
        let mut run = begin(directory, None);
        if prepared {
            run.prepare(&files);
        }
        let start = Instant::now();
        run.take(&files).expect("to clone");
        let took = start.elapsed();
        println!(
            "clone {count} files, prepared {prepared}: {took:.1?}, {:.1?} each",
            took / count as u32
        );
        run.abandon().expect("to clean up");
    }
}

/// 16 files whose pages were overwritten at random between clones: what `changed` costs.
fn differences(directory: &Path, mib: u64) {
    let files = made(directory, 16, (mib << 20) / 16);
    let pages = (mib << 20) / 16 / PAGE;
    let mut random = 1u64;
    for round in 0..5 {
        let token = round.to_string();
        let before = (round > 0).then(|| (round - 1).to_string());
        rustix::fs::sync();
        let mut run = begin(directory, before.as_deref());
        run.prepare(&files);
        let start = Instant::now();
        run.take(&files).expect("to clone");
        println!(
            "round {round}: clone 16 files of {} MiB: {:.1?}",
            mib / 16,
            start.elapsed()
        );
        let made = run.instant().expect("clones");
        let run = run.seal(made).expect("to sync");
        if round > 0 {
            difference(&run, &files, "cold", true);
            difference(&run, &files, "warm", false);
        }
        run.check()
            .expect("clones")
            .commit(&token)
            .expect("to commit");
        for file in &files {
            let live = OpenOptions::new()
                .write(true)
                .open(&file.path)
                .expect("a file");
            for _ in 0..pages / 16 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let page = [random as u8; PAGE as usize];
                live.write_all_at(&page, (random >> 20) % pages * PAGE)
                    .expect("room");
            }
        }
    }
}

fn difference(run: &Sealed, files: &[SourceFile], what: &str, cold: bool) {
    if cold {
        rustix::fs::sync();
        let _ = fs::write("/proc/sys/vm/drop_caches", "3");
    }
    let start = Instant::now();
    let (mut ranges, mut bytes) = (0, 0);
    for file in files {
        if let Changed::Ranges(found) = run.changed(file).expect("to compare") {
            ranges += found.len();
            bytes += found
                .iter()
                .map(|range| range.end - range.start)
                .sum::<u64>();
        }
    }
    let took = start.elapsed();
    println!(
        "  difference, {what}: {took:.1?}, {ranges} ranges, {} MiB",
        bytes >> 20
    );
}
