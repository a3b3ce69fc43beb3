//! Is a clone that is brought forward equal to the live file, page by page while that is written to,
//! and is every change since the base told, also after runs that came to nothing?

mod edits;
mod ground;

use edits::{FILES, Random, compare, edit};
use evenkeel_snapshot::{Changed, Layout, Method, Sealed, SourceFile, open};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::effort::{Part, rounds, share};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn layout(datadir: &Path) -> Layout {
    Layout {
        datadir: datadir.to_owned(),
        dirs: vec![datadir.to_owned()],
        server_running: true,
        page_bytes: PAGE as u64,
        volumes: Vec::new(),
    }
}

fn source(datadir: &Path, name: &str) -> SourceFile {
    SourceFile {
        name: format!("data/{name}"),
        path: datadir.join(name),
    }
}

/// Ends a run in one of the three ways. Returns whether it became the base.
fn end(run: Sealed, token: &str, way: u64) -> bool {
    match way {
        0 => run.abandon().unwrap(),
        1 => drop(run),
        _ => run.check().unwrap().commit(token).unwrap(),
    }
    way > 1
}

fn every_edit(fs: &LoopFs, seed: u64) {
    println!("{} seed {seed:#x}", fs.kind());
    let mut random = Random(seed);
    let datadir = fs.join(format!("live-{seed}"));
    edits::make(&datadir, fs.kind() == "btrfs", &mut random);
    let mut base: HashMap<String, Vec<u8>> = HashMap::new();
    let mut token = "none".to_owned();
    let (mut reported_bytes, mut all_bytes) = (0, 0);
    for round in 0..24 {
        let done: Vec<_> = (0..random.below(12))
            .map(|_| edit(&datadir, &mut random))
            .collect();
        let reported = format!("{} seed {seed:#x} round {round}: {done:#?}", fs.kind());
        let files: Vec<_> = (0..FILES)
            .map(|number| source(&datadir, &number.to_string()))
            .filter(|file| file.path.exists())
            .collect();
        let mut run = open(
            Method::Reflink,
            &layout(&datadir),
            &ground::settings(),
            Some(&token),
        )
        .unwrap();
        if random.below(2) == 0 {
            run.prepare(&files);
            edit(&datadir, &mut random);
        }
        // The edit may have removed one.
        let files: Vec<_> = files
            .into_iter()
            .filter(|file| file.path.exists())
            .collect();
        run.take(&files).unwrap();
        let made = run.instant().unwrap();
        let run = run.seal(made).unwrap();
        let mut now = HashMap::new();
        for file in &files {
            let bytes = fs::read(run.frozen_path(file)).unwrap();
            assert!(
                bytes == fs::read(&file.path).unwrap(),
                "{} {reported}",
                file.name
            );
            if let Changed::Ranges(ranges) = run.changed(file).unwrap() {
                let reported = format!("{} {reported}", file.name);
                let former = base
                    .get(&file.name)
                    .unwrap_or_else(|| panic!("no base of {reported}"));
                compare(former, &bytes, &ranges, &reported);
                reported_bytes += ranges
                    .iter()
                    .map(|range| range.end - range.start)
                    .sum::<u64>();
                all_bytes += bytes.len() as u64;
            }
            now.insert(file.name.clone(), bytes);
        }
        if end(run, &round.to_string(), random.below(4)) {
            (base, token) = (now, round.to_string());
        }
    }
    assert!(
        reported_bytes < all_bytes,
        "everything is told as changed, seed {seed:#x}"
    );
}

#[test]
fn after_any_edit_on_xfs() {
    let fs = ground::xfs();
    let seeds = [1, 2, 3, 4, 5, 6];
    let seeds = share("seeds of edits on XFS", &seeds, Part::new(0, 3));
    seeds.into_iter().for_each(|seed| every_edit(&fs, seed));
}

#[test]
fn after_any_edit_on_btrfs() {
    let fs = ground::btrfs();
    let seeds = [101, 102, 103, 104, 105, 106];
    let seeds = share("seeds of edits on btrfs", &seeds, Part::new(0, 3));
    seeds.into_iter().for_each(|seed| every_edit(&fs, seed));
}

const PAGE: usize = 16384;
const PAGES: usize = 96;

#[repr(align(4096))]
struct Page([u8; PAGE]);

/// Writes pages that hold one number all over, larger each time, until told to stop.
fn write_on_and_on(path: &Path, direct: bool, seed: u64, done: &[AtomicU64], stop: &AtomicBool) {
    let direct = if direct {
        OFlags::DIRECT
    } else {
        OFlags::empty()
    };
    let file = rustix::fs::open(path, OFlags::WRONLY | direct, Mode::empty()).unwrap();
    let file = File::from(file);
    let mut random = Random(seed);
    let mut page = Box::new(Page([0; PAGE]));
    for number in 1u64.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for bytes in page.0.chunks_exact_mut(8) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let at = random.below(PAGES as u64) as usize;
        file.write_all_at(&page.0, (at * PAGE) as u64).unwrap();
        done[at].store(number, Ordering::Release);
    }
}

/// Returns the number in every page of a clone; panics if a page holds more than one.
fn numbers(path: &Path, reported: &str) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    bytes
        .chunks_exact(PAGE)
        .enumerate()
        .map(|(at, page)| {
            let first = number(&page[..8]);
            let whole = page.chunks_exact(8).all(|bytes| number(bytes) == first);
            assert!(whole, "page {at} is torn: {reported}");
            first
        })
        .collect()
}

fn while_written_to(fs: &LoopFs, direct: bool, seed: u64) {
    let reported = format!("{} direct {direct} seed {seed:#x}", fs.kind());
    println!("{reported}");
    let datadir = fs.join(format!("live-{direct}"));
    fs::create_dir(&datadir).unwrap();
    let file = source(&datadir, "t.ibd");
    fs::write(&file.path, vec![0; PAGES * PAGE]).unwrap();
    let done: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let (mut random, mut base, mut token) = (Random(seed), vec![0; PAGES], String::new());
    std::thread::scope(|scope| {
        // Stops the writer also when an assertion fails.
        let _stopper = Stopper(&stop);
        scope.spawn(|| write_on_and_on(&file.path, direct, seed, &done, &stop));
        for round in 0..rounds("clones beside a writer", 30, 120) {
            let reported = format!("{reported} round {round}");
            let files = [file.clone()];
            let mut run = open(
                Method::Reflink,
                &layout(&datadir),
                &ground::settings(),
                Some(&token),
            )
            .unwrap();
            let floor: Vec<u64> = done.iter().map(|d| d.load(Ordering::Acquire)).collect();
            run.take(&files).unwrap();
            let made = run.instant().unwrap();
            let run = run.seal(made).unwrap();
            let now = numbers(&run.frozen_path(&file), &reported);
            for (at, (now, floor)) in now.iter().zip(&floor).enumerate() {
                assert!(
                    now >= floor,
                    "page {at} is of {now}, before {floor}: {reported}"
                );
            }
            match run.changed(&file).unwrap() {
                Changed::Unknown => assert!(token.is_empty(), "{reported}"),
                Changed::Ranges(ranges) => {
                    for at in (0..PAGES).filter(|at| base[*at] != now[*at]) {
                        let page = (at * PAGE) as u64;
                        let is_reported = ranges.iter().any(|r| r.start <= page && page < r.end);
                        assert!(is_reported, "a change of page {at} is not told: {reported}");
                    }
                }
            }
            if end(run, &round.to_string(), random.below(4)) {
                (base, token) = (now, round.to_string());
            }
        }
    });
    assert!(
        base.iter().any(|number| *number > 0),
        "nothing was written: {reported}"
    );
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn while_the_file_is_written_to() {
    for fs in [ground::xfs(), ground::btrfs()] {
        for (direct, seed) in [(true, 7), (false, 8)] {
            while_written_to(&fs, direct, seed);
        }
    }
}
