//! Does the difference of two extent lists ever miss a changed byte, on XFS and on btrfs?
//!
//! Random edits of all sorts, a clone after each round, and a comparison of every byte. The previous
//! clone is kept, so that what the edits free is never reused at an address that it still has; the
//! one before that is deleted, so that its extents are reused all the time.

mod edits;

use edits::{Random, compare, edit, open};
use evenkeel_snapshot::extents;
use evenkeel_testkit::LoopFs;
use rustix::fs::{
    FallocateFlags, IFlags, fallocate, ioctl_ficlone, ioctl_getflags, ioctl_setflags,
};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const ROUNDS: u64 = 12;

fn clone_all(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let source = File::open(entry.path()).unwrap();
        let target = File::create(to.join(entry.file_name())).unwrap();
        let flags = ioctl_getflags(&source).unwrap();
        if flags.contains(IFlags::NOCOW) {
            ioctl_setflags(&target, ioctl_getflags(&target).unwrap() | IFlags::NOCOW).unwrap();
        }
        ioctl_ficlone(&target, &source).unwrap();
    }
}

/// How many bytes there were, were reported, and differed.
#[derive(Default)]
struct Totals {
    bytes: u64,
    reported: u64,
    changed: u64,
}

fn compare_all(base: &Path, now: &Path, totals: &mut Totals, noted: &str) {
    for entry in fs::read_dir(now).unwrap() {
        let name = entry.unwrap().file_name();
        let (old, new) = (base.join(&name), now.join(&name));
        if !old.exists() {
            continue;
        }
        let ranges =
            extents::changed(&File::open(&old).unwrap(), &File::open(&new).unwrap()).unwrap();
        for pair in ranges.windows(2) {
            assert!(pair[0].end < pair[1].start, "{pair:?} touch: {noted}");
        }
        let (old, new) = (fs::read(&old).unwrap(), fs::read(&new).unwrap());
        assert!(
            ranges
                .last()
                .is_none_or(|last| last.end <= new.len() as u64)
        );
        let noted = format!("{noted}, file {name:?}");
        totals.changed += compare(&old, &new, &ranges, &noted);
        totals.reported += ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum::<u64>();
        totals.bytes += new.len() as u64;
    }
}

fn miss_nothing(fs: &LoopFs, seed: u64) {
    let (live, base, now) = (fs.join("live"), fs.join("base"), fs.join("now"));
    for old in [&live, &base, &now] {
        let _ = fs::remove_dir_all(old);
    }
    let mut random = Random(seed);
    edits::make(&live, fs.kind() == "btrfs", &mut random);
    clone_all(&live, &base);
    let mut totals = Totals::default();
    for round in 0..ROUNDS {
        let edits: Vec<_> = (0..1 + random.below(20))
            .map(|_| edit(&live, &mut random))
            .collect();
        clone_all(&live, &now);
        let noted = format!(
            "{} seed {seed:#x} round {round}, edits {edits:#?}",
            fs.kind()
        );
        compare_all(&base, &now, &mut totals, &noted);
        fs::remove_dir_all(&base).unwrap();
        fs::rename(&now, &base).unwrap();
    }
    // Neither of these can hold if everything, or nothing, is reported.
    assert!(totals.changed > 0);
    let Totals {
        bytes,
        reported,
        changed,
    } = totals;
    println!(
        "{} seed {seed:#x}: {bytes} bytes, {reported} reported, {changed} changed",
        fs.kind()
    );
    assert!(
        reported < bytes * 3 / 4,
        "{reported} of {bytes} reported, seed {seed:#x}"
    );
}

#[test]
fn on_xfs() {
    let fs = LoopFs::xfs(320 << 20);
    (1..=8).for_each(|seed| miss_nothing(&fs, seed));
}

#[test]
fn on_btrfs() {
    let fs = LoopFs::btrfs(400 << 20);
    (101..=108).for_each(|seed| miss_nothing(&fs, seed));
}

#[test]
fn equal_holes_and_unwritten_extents_are_not_reported() {
    for fs in [LoopFs::xfs(320 << 20), LoopFs::btrfs(400 << 20)] {
        let (base, now) = (open(&fs.join("base")), open(&fs.join("now")));
        // Unwritten in one, a hole in the other: zeros in both.
        fallocate(&base, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        now.set_len(1 << 20).unwrap();
        assert_eq!(extents::changed(&base, &now).unwrap(), []);
        // Written and not yet on disk when asked for, into a hole and into an unwritten extent,
        // which some filesystems go on calling unwritten until then.
        for (at, allocate) in [(500_000, false), (900_000, true)] {
            if allocate {
                fallocate(&now, FallocateFlags::empty(), 800_000, 1 << 18).unwrap();
            }
            now.write_all_at(&[1], at).unwrap();
            let ranges = extents::changed(&base, &now).unwrap();
            assert!(
                ranges.iter().any(|range| range.contains(&at)),
                "{} {at}",
                fs.kind()
            );
            assert!(
                ranges
                    .iter()
                    .map(|range| range.end - range.start)
                    .sum::<u64>()
                    <= 65536
            );
        }
    }
}

#[test]
fn more_extents_than_a_batch_holds() {
    for fs in [LoopFs::xfs(320 << 20), LoopFs::btrfs(400 << 20)] {
        let live = open(&fs.join("live"));
        const BLOCKS: u64 = 6000;
        // Every other block a hole: no two extents can merge.
        for block in 0..BLOCKS {
            live.write_all_at(&[block as u8; 4096], block * 8192)
                .unwrap();
        }
        let clone = |name: &str| {
            let target = open(&fs.join(name));
            ioctl_ficlone(&target, &live).unwrap();
            target
        };
        let base = clone("base");
        assert_eq!(extents::changed(&base, &clone("same")).unwrap(), []);
        let edited: Vec<u64> = (0..BLOCKS).step_by(977).collect();
        for block in &edited {
            live.write_all_at(b"x", block * 8192 + 17).unwrap();
        }
        let expected: Vec<_> = edited.iter().map(|b| b * 8192..b * 8192 + 4096).collect();
        assert_eq!(
            extents::changed(&base, &clone("now")).unwrap(),
            expected,
            "{}",
            fs.kind()
        );
    }
}
