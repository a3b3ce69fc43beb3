//! Does the difference of two extent lists ever miss a changed byte, on XFS and on btrfs?
//!
//! Random edits of all sorts, a clone after each round, and a comparison of every byte. The previous
//! clone is kept, so that what the edits free is never reused at an address that it still has; the
//! one before that is deleted, so that its extents are reused all the time.

use evenkeel_snapshot::extents;
use evenkeel_testkit::LoopFs;
use rustix::fs::{
    FallocateFlags, IFlags, fallocate, ioctl_ficlone, ioctl_getflags, ioctl_setflags,
};
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

const FILES: u64 = 6;
const ROUNDS: u64 = 12;
const SIZE_MAX: u64 = 3 << 20;

/// SplitMix64: small, and the same everywhere for a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Up to `limit` bytes.
    fn some_bytes(&mut self, limit: u64) -> Vec<u8> {
        let count = self.below(limit) + 1;
        self.bytes(count)
    }

    /// So many bytes; every other time easily compressed ones.
    fn bytes(&mut self, count: u64) -> Vec<u8> {
        if self.below(2) == 0 {
            return vec![self.below(256) as u8; count as usize];
        }
        (0..count.div_ceil(8))
            .flat_map(|_| self.next().to_le_bytes())
            .take(count as usize)
            .collect()
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .unwrap()
}

/// Does one random edit to one of the files of a directory, and says which.
fn edit(live: &Path, random: &mut Random) -> String {
    let path = live.join(random.below(FILES).to_string());
    let file = open(&path);
    let size = file.metadata().unwrap().len();
    // Pages, blocks, and odd positions.
    let unit = [16384, 4096, 1][random.below(3) as usize];
    let at = random.below(size.max(1)) / unit * unit;
    let length = ((1 + random.below(8)) * 4096).min(SIZE_MAX);
    let what = random.below(12);
    match what {
        0..=2 => file.write_all_at(&random.bytes(length), at).unwrap(),
        3 => file.write_all_at(&random.some_bytes(600), at).unwrap(),
        4 => file.write_all_at(&random.bytes(length), size).unwrap(),
        5 => {
            // The same bytes again.
            let mut same = vec![0; length.min(size - at) as usize];
            file.read_exact_at(&mut same, at).unwrap();
            file.write_all_at(&same, at).unwrap();
        }
        6 => file.set_len(random.below(size + 1)).unwrap(),
        7 => file
            .set_len((size + random.below(65536)).min(SIZE_MAX))
            .unwrap(),
        8 => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&file, flags, at, length).unwrap();
        }
        9 => {
            let flags = [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE];
            fallocate(&file, flags[random.below(2) as usize], at, length).unwrap();
            // Into the middle of what was just allocated, sometimes.
            if random.below(2) == 0 {
                file.write_all_at(&random.bytes(5000), at + 4096).unwrap();
            }
        }
        10 => {
            let other = live.join(random.below(FILES).to_string());
            fs::rename(&path, live.join("aside")).unwrap();
            let _ = fs::rename(&other, &path);
            fs::rename(live.join("aside"), &other).unwrap();
        }
        _ => {
            // A new file of the same name: the space of the old one is free for anybody. Small ones
            // are kept among the metadata by btrfs.
            let limit = [SIZE_MAX, 1500][random.below(2) as usize];
            fs::remove_file(&path).unwrap();
            open(&path)
                .write_all_at(&random.some_bytes(limit), 0)
                .unwrap();
        }
    }
    format!("{what} on {} at {at} for {length}", path.display())
}

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

/// Panics if a byte outside `ranges` differs; returns how many bytes differ at all.
fn compare(base: &[u8], now: &[u8], ranges: &[Range<u64>], told: &str) -> u64 {
    let mut changed = 0;
    let mut ranges = ranges.iter().peekable();
    for (at, byte) in now.iter().enumerate() {
        while ranges.next_if(|range| range.end <= at as u64).is_some() {}
        if base.get(at) != Some(byte) {
            let inside = ranges.peek().is_some_and(|range| range.start <= at as u64);
            assert!(inside, "byte {at} changed and was not reported: {told}");
            changed += 1;
        }
    }
    changed
}

/// How many bytes there were, were reported, and differed.
#[derive(Default)]
struct Totals {
    bytes: u64,
    reported: u64,
    changed: u64,
}

fn compare_all(base: &Path, now: &Path, totals: &mut Totals, told: &str) {
    for entry in fs::read_dir(now).unwrap() {
        let name = entry.unwrap().file_name();
        let (old, new) = (base.join(&name), now.join(&name));
        if !old.exists() {
            continue;
        }
        let ranges =
            extents::changed(&File::open(&old).unwrap(), &File::open(&new).unwrap()).unwrap();
        for pair in ranges.windows(2) {
            assert!(pair[0].end < pair[1].start, "{pair:?} touch: {told}");
        }
        let (old, new) = (fs::read(&old).unwrap(), fs::read(&new).unwrap());
        assert!(
            ranges
                .last()
                .is_none_or(|last| last.end <= new.len() as u64)
        );
        let told = format!("{told}, file {name:?}");
        totals.changed += compare(&old, &new, &ranges, &told);
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
    fs::create_dir(&live).unwrap();
    for number in 0..FILES {
        let file = open(&live.join(number.to_string()));
        if fs.kind() == "btrfs" {
            // One that is overwritten in place when not shared, one that is compressed.
            let own = ioctl_getflags(&file).unwrap();
            match number {
                0 => ioctl_setflags(&file, own | IFlags::NOCOW).unwrap(),
                1 => ioctl_setflags(&file, own | IFlags::COMPRESSED).unwrap(),
                _ => {}
            }
        }
        file.write_all_at(&random.bytes(SIZE_MAX / 2), 0).unwrap();
    }
    clone_all(&live, &base);
    let mut totals = Totals::default();
    for round in 0..ROUNDS {
        let edits: Vec<_> = (0..1 + random.below(20))
            .map(|_| edit(&live, &mut random))
            .collect();
        clone_all(&live, &now);
        let told = format!(
            "{} seed {seed:#x} round {round}, edits {edits:#?}",
            fs.kind()
        );
        compare_all(&base, &now, &mut totals, &told);
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
