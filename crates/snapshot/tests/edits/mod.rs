//! Random edits of all sorts to the files of a directory.
#![allow(dead_code)] // Each test file uses a part of it.

use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags, ioctl_setflags};
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(crate) const FILES: u64 = 6;
pub(crate) const SIZE_MAX: u64 = 3 << 20;

/// SplitMix64: small, and the same everywhere for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Up to `limit` bytes.
    fn some_bytes(&mut self, limit: u64) -> Vec<u8> {
        let count = self.below(limit) + 1;
        self.bytes(count)
    }

    /// So many bytes; every other time easily compressed ones.
    pub(crate) fn bytes(&mut self, count: u64) -> Vec<u8> {
        if self.below(2) == 0 {
            return vec![self.below(256) as u8; count as usize];
        }
        (0..count.div_ceil(8))
            .flat_map(|_| self.next().to_le_bytes())
            .take(count as usize)
            .collect()
    }
}

pub(crate) fn open(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .unwrap()
}

/// Does one random edit to one of the files of a directory, and says which.
pub(crate) fn edit(live: &Path, random: &mut Random) -> String {
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

/// Panics if a byte outside `ranges` differs; returns how many bytes differ at all.
pub(crate) fn compare(base: &[u8], now: &[u8], ranges: &[Range<u64>], noted: &str) -> u64 {
    let mut changed = 0;
    let mut ranges = ranges.iter().peekable();
    for (at, byte) in now.iter().enumerate() {
        while ranges.next_if(|range| range.end <= at as u64).is_some() {}
        if base.get(at) != Some(byte) {
            let inside = ranges.peek().is_some_and(|range| range.start <= at as u64);
            assert!(inside, "byte {at} changed and was not reported: {noted}");
            changed += 1;
        }
    }
    changed
}

/// Makes the files; on btrfs, one that is overwritten in place when not shared, one compressed.
pub(crate) fn make(live: &Path, btrfs: bool, random: &mut Random) {
    fs::create_dir(live).unwrap();
    for number in 0..FILES {
        let file = open(&live.join(number.to_string()));
        if btrfs {
            let own = ioctl_getflags(&file).unwrap();
            match number {
                0 => ioctl_setflags(&file, own | IFlags::NOCOW).unwrap(),
                1 => ioctl_setflags(&file, own | IFlags::COMPRESSED).unwrap(),
                _ => {}
            }
        }
        file.write_all_at(&random.bytes(SIZE_MAX / 2), 0).unwrap();
    }
}
