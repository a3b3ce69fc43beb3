//! The pages that a server had in memory: what `ib_buffer_pool` lists, as ranges of files.
//!
//! Each line is `space,page`. The server reads them one page after the other once it is up; here
//! they are sorted, and what lies close together is read in one go.

use evenkeel_innodb::{Probe, SpaceFormat};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Reading a gap of this many bytes costs less than a second read.
const GAP_BYTES: u64 = 128 << 10;

/// A tablespace's files in order, with the number of pages in each, and the size of a page.
#[derive(Debug, Clone)]
pub(super) struct Space {
    page_bytes: u64,
    /// Each file and the number of its first page.
    files: Vec<(Arc<PathBuf>, u64)>,
    pages: u64,
}

/// Reads the list. Returns the pages by space, sorted, and how many lines made no sense.
pub(super) fn parse(text: &str) -> (BTreeMap<u32, Vec<u32>>, usize) {
    let mut pages: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut strange = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let both = line.split_once(',');
        let both = both.and_then(|(s, p)| Some((s.trim().parse().ok()?, p.trim().parse().ok()?)));
        match both {
            Some((space, page)) => pages.entry(space).or_default().push(page),
            None => strange += 1,
        }
    }
    for of_space in pages.values_mut() {
        of_space.sort_unstable();
        of_space.dedup();
    }
    (pages, strange)
}

/// Finds out which tablespace each file is, by its first page. `files` come with their sizes; those
/// of the system tablespace in its order. What is no tablespace, or cannot be read, is none.
pub(super) fn spaces(files: &[(Arc<PathBuf>, u64)]) -> HashMap<u32, Space> {
    let mut spaces: HashMap<u32, Space> = HashMap::new();
    for (path, size) in files {
        let Ok(Probe::Checkable(format)) = probe(path) else {
            // A further file of the system tablespace has no header of its own.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(system) = spaces.get_mut(&0).filter(|_| name.starts_with("ibdata")) {
                system.files.push((Arc::clone(path), system.pages));
                system.pages += size / system.page_bytes;
            }
            continue;
        };
        let page_bytes = format.physical_size() as u64;
        spaces.entry(format.space_id).or_insert_with(|| Space {
            page_bytes,
            files: vec![(Arc::clone(path), 0)],
            pages: size / page_bytes,
        });
    }
    spaces
}

fn probe(path: &Arc<PathBuf>) -> evenkeel_op::Result<Probe> {
    use evenkeel_op::Context;
    let file = File::open(path.as_path()).context(|| "failed to open a tablespace")?;
    SpaceFormat::of_file(&file)
}

impl Space {
    /// Returns the ranges of files that hold these sorted pages: those that are there, and what
    /// lies between them where that is little.
    pub(super) fn ranges(&self, pages: &[u32]) -> Vec<(Arc<PathBuf>, Range<u64>)> {
        let mut ranges: Vec<(Arc<PathBuf>, Range<u64>)> = Vec::new();
        for page in pages.iter().map(|page| u64::from(*page)) {
            let file = self.files.iter().rfind(|(_, first)| *first <= page);
            let Some((path, first)) = file.filter(|_| page < self.pages) else {
                continue;
            };
            let start = (page - first) * self.page_bytes;
            let end = start + self.page_bytes;
            match ranges.last_mut() {
                Some((last, range)) if last == path && start <= range.end + GAP_BYTES => {
                    range.end = end;
                }
                _ => ranges.push((Arc::clone(path), start..end)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_what_is_no_page_is_counted() {
        let (pages, strange) = parse("5,9\n0,3\n5,2\n\n5,9\nnonsense\n1,-2\n4294967294,1\n");
        assert_eq!(pages[&5], [2, 9]);
        assert_eq!(pages[&0], [3]);
        assert_eq!(pages[&4_294_967_294], [1]);
        assert_eq!(strange, 2);
    }

    #[test]
    fn pages_close_together_are_one_range_and_none_is_beyond_a_file() {
        let path = |name: &str| Arc::new(PathBuf::from(name));
        let (one, two) = (path("ibdata1"), path("ibdata2"));
        let space = Space {
            page_bytes: 16384,
            files: vec![(Arc::clone(&one), 0), (Arc::clone(&two), 100)],
            pages: 150,
        };
        let found = space.ranges(&[1, 2, 9, 30, 99, 100, 149, 150, 4000]);
        let page = |from: u64, to: u64| from * 16384..to * 16384;
        assert_eq!(
            found,
            [
                (Arc::clone(&one), page(1, 10)),
                (Arc::clone(&one), page(30, 31)),
                (one, page(99, 100)),
                (Arc::clone(&two), page(0, 1)),
                (two, page(49, 50)),
            ]
        );
    }
}
