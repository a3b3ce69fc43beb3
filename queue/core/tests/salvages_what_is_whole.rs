//! Does salvage keep every row whose frame is whole, invent none, bring none back whose removal is
//! whole, and leave the damaged files as they are?

mod scene;

use evenkeel_queue::io::Disk;
use evenkeel_queue::salvage::{self, Checked};
use evenkeel_queue::{Copied, Error, Queue, Store};
use scene::{rows, small};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

type Rows = BTreeMap<u64, Vec<u8>>;

/// A table on a real disk, and what was done to it.
struct Site {
    dir: TempDir,
    /// Every row that ever was.
    ever: Rows,
    /// Those that are there.
    live: Rows,
}

/// A frame of a whole file, found by what the format's page says and nothing else.
#[derive(Debug)]
struct Frame {
    file: PathBuf,
    bytes: Range<usize>,
    rows: Vec<u64>,
    removes: Vec<Range<u64>>,
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Site {
    /// Several segments behind a part; statements of one row and of many.
    fn new(closed: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Arc::new(Disk), &dir.path().join("#sqlqueue")).unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let anchor = dir.path().join("shop/jobs.QUE");
        store.create(&anchor, b"layout").unwrap();
        let (table, _) = store.open(&anchor, small()).unwrap();
        let (mut ever, mut live) = (Rows::new(), Rows::new());
        for round in 0..24u64 {
            let next = ever.len() as u64 + 1;
            let row = |id: u64| format!("row {id} {}", "x".repeat(30 + id as usize % 40));
            let new: Rows = (next..next + 1 + round % 6)
                .map(|id| (id, row(id).into_bytes()))
                .collect();
            table.append(new.values().cloned().collect(), None).unwrap();
            live.extend(new.clone());
            ever.extend(new);
            let some = table.take(1, None, 1 + round as usize % 3).unwrap();
            table.remove(1, &some).unwrap();
            live.retain(|id, _| !some.contains(id));
            if round == 9 {
                table.compact(true).unwrap();
            }
        }
        if closed {
            table.close().unwrap();
        }
        Self { dir, ever, live }
    }

    /// A copy that ALTER TABLE made of a table of which rows had been consumed at both ends and in between, and one
    /// more while it was copied; statements behind it.
    fn altered(closed: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Arc::new(Disk), &dir.path().join("#sqlqueue")).unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let [anchor, other] = ["jobs", "#sql-alter"].map(|name| {
            let anchor = dir.path().join(format!("shop/{name}.QUE"));
            store.create(&anchor, b"layout").unwrap();
            anchor
        });
        let (old, _) = store.open(&anchor, small()).unwrap();
        let (new, _) = store.open(&other, small()).unwrap();
        let row = |id: u64| format!("row {id} {}", "x".repeat(30 + id as usize % 40)).into_bytes();
        let consume = |table: &Queue, ids: &[u64]| {
            assert!(ids.iter().all(|id| table.own(*id, 1)));
            table.remove(1, ids).unwrap();
        };
        old.append((1..=60).map(row).collect(), None).unwrap();
        let gone = [1, 2, 3, 17, 30, 31, 32, 59, 60];
        consume(&old, &gone);
        let mut live: Rows = (1..=60).map(|id| (id, row(id))).collect();
        live.retain(|id, _| !gone.contains(id));
        let all: Vec<(u64, Vec<u8>)> = live.clone().into_iter().collect();
        for some in all.chunks(7) {
            let copied = some.iter().map(|(id, bytes)| Copied {
                id: *id,
                came: 0,
                bytes: bytes.clone(),
            });
            new.adopt(copied.collect()).unwrap();
        }
        consume(&old, &[20]);
        live.remove(&20);
        old.hand_over(&new, || store.rename(&other, &anchor))
            .unwrap();
        store.remove_rows(old.id());
        for id in (61..=90).step_by(3) {
            new.append((id..id + 3).map(row).collect(), None).unwrap();
            live.extend((id..id + 3).map(|id| (id, row(id))));
        }
        consume(&new, &[62, 4]);
        live.retain(|id, _| ![62, 4].contains(id));
        if closed {
            new.close().unwrap();
        }
        let ever = (1..=90).map(|id| (id, row(id))).collect();
        Self { dir, ever, live }
    }

    fn anchor(&self) -> PathBuf {
        self.dir.path().join("shop/jobs.QUE")
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("#sqlqueue")
    }

    /// Its files of frames, in the order of their names.
    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let table = fs::read_dir(self.root()).unwrap().next().unwrap();
        let entries = fs::read_dir(table.unwrap().path()).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.to_string_lossy().ends_with(kind));
        paths.sort();
        paths
    }

    fn frames(&self) -> Vec<Frame> {
        let mut found = Vec::new();
        for file in [self.files(".part"), self.files(".seg")].concat() {
            let bytes = fs::read(&file).unwrap();
            let mut at = 64;
            // Behind the frames there may be space that was filled with zeros.
            while at < bytes.len() && word(&bytes, at) > 0 {
                found.push(Frame::read(&file, &bytes, at));
                at = found.last().unwrap().bytes.end.next_multiple_of(8);
            }
        }
        found
    }

    fn check(&self) -> Checked {
        salvage::check(&self.anchor(), &self.root()).unwrap()
    }

    /// Salvages into a new place, and opens what is there.
    fn salvage(&self) -> (Checked, Rows) {
        let before = image(self.dir.path());
        let new = tempfile::tempdir().unwrap();
        let (anchor, root) = (new.path().join("jobs.QUE"), new.path().join("#sqlqueue"));
        let reported = salvage::salvage(&self.anchor(), &self.root(), &anchor, &root).unwrap();
        assert_eq!(reported, self.check(), "check finds what salvage finds");
        assert_eq!(before, image(self.dir.path()), "nothing was written there");
        let again = salvage::salvage(&self.anchor(), &self.root(), &anchor, &root);
        assert!(
            matches!(again, Err(Error::Foreign { .. })),
            "never over another"
        );
        let store = Store::new(Arc::new(Disk), &root).unwrap();
        let (table, report) = store.open(&anchor, small()).unwrap();
        assert_eq!((report.torn_bytes, report.damage), (0, vec![]));
        let found: Rows = rows(&table).unwrap().into_iter().collect();
        assert_eq!(reported.rows, found.len() as u64);
        continues(&table, found.keys().last().copied().unwrap_or(0));
        (reported, found)
    }
}

/// Rows that come now get new ids.
fn continues(table: &Queue, last: u64) {
    table.append(vec![b"new".to_vec()], None).unwrap();
    let newest = rows(table).unwrap().pop().unwrap();
    assert!(newest.0 > last && newest.1 == b"new");
}

impl Frame {
    fn read(file: &Path, bytes: &[u8], at: usize) -> Self {
        let (len, first, count) = (word(bytes, at), long(bytes, at + 8), word(bytes, at + 16));
        let body = at + 32;
        let mut this = Self {
            file: file.to_owned(),
            bytes: at..body + len,
            rows: Vec::new(),
            removes: Vec::new(),
        };
        match bytes[at + 20] {
            1 => this.rows.extend(first..first + count as u64),
            2 => {
                let ranges = (0..count).map(|number| body + number * 16);
                this.removes.extend(ranges.map(|at| {
                    let first = long(bytes, at);
                    first..first + long(bytes, at + 8)
                }));
            }
            5 => {
                let mut here = body;
                for _ in 0..count {
                    this.rows.push(long(bytes, here));
                    here += 16 + word(bytes, here + 8);
                }
            }
            other => assert!([3, 6].contains(&other), "a state, or times"),
        }
        this
    }

    fn is_hit(&self, file: &Path, hit: &Range<usize>) -> bool {
        self.file == file && self.bytes.start < hit.end && hit.start < self.bytes.end
    }
}

fn image(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(image(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// Holds what was salvaged against the frames that nothing hit.
fn holds(site: &Site, whole: &[Frame], found: &Rows, context: &str) {
    let removed = |id: u64| {
        let ranges = whole.iter().flat_map(|frame| &frame.removes);
        ranges.into_iter().any(|range| range.contains(&id))
    };
    let kept: BTreeSet<u64> = whole.iter().flat_map(|frame| frame.rows.clone()).collect();
    for id in kept.iter().filter(|id| !removed(**id)) {
        assert!(found.contains_key(id), "{context}: row {id} is gone");
    }
    for (id, row) in found {
        assert_eq!(site.ever.get(id), Some(row), "{context}: row {id}");
        assert!(!removed(*id), "{context}: row {id} was removed");
    }
}

#[test]
fn of_a_sound_table_all() {
    for closed in [true, false] {
        let site = Site::new(closed);
        let (reported, found) = site.salvage();
        assert_eq!(found, site.live);
        assert!(
            reported.is_sound() && reported.torn_bytes == 0 && !reported.may_repeat,
            "{reported:?}"
        );
        assert_eq!((reported.rows_missing, reported.missing), (0, vec![]));
    }
}

/// What was consumed before it was copied is not missing.
#[test]
fn of_an_altered_table_all() {
    for closed in [true, false] {
        let site = Site::altered(closed);
        assert!(site.files(".seg").len() >= 3, "it goes on in other files");
        let (reported, found) = site.salvage();
        assert_eq!(found, site.live);
        assert!(
            reported.is_sound() && reported.torn_bytes == 0,
            "{reported:?}"
        );
        assert_eq!((reported.rows_missing, reported.missing), (0, vec![]));
    }
}

/// The log of a copy leaves ids out, but not those of what is lost.
#[test]
fn of_an_altered_table_what_is_missing_is_reported() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..120 {
        let site = Site::altered(true);
        let mut whole = site.frames();
        let segments = site.files(".seg");
        let at = random.usize(..segments.len());
        let (file, is_newest) = (&segments[at], at + 1 == segments.len());
        let mut bytes = fs::read(file).unwrap();
        let from = random.usize(..bytes.len());
        match random.u8(..if is_newest { 2 } else { 4 }) {
            0 => bytes[from] ^= 1 << random.u8(..8),
            1 => {
                let hit = from..(from + random.usize(1..600)).min(bytes.len());
                bytes[hit].fill_with(|| random.u8(..));
            }
            2 => bytes.truncate(from),
            _ => bytes.clear(),
        }
        let before = fs::read(file).unwrap();
        let is_hit = |frame: &Frame| {
            let range = frame.bytes.clone();
            frame.file == *file && before.get(range.clone()) != bytes.get(range)
        };
        whole.retain(|frame| !is_hit(frame));
        match bytes.is_empty() {
            true => fs::remove_file(file).unwrap(),
            false => fs::write(file, &bytes).unwrap(),
        }
        let context = format!("seed {seed}, round {round}");
        let (reported, found) = site.salvage();
        holds(&site, &whole, &found, &context);
        let lost = site.live.keys().filter(|id| !found.contains_key(id));
        let lost = lost.count() as u64;
        assert!(
            lost <= reported.rows_missing || reported.torn_bytes > 0,
            "{context}: {lost} are lost: {reported:?}"
        );
    }
}

#[test]
fn behind_random_damage() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..120 {
        let site = Site::new(true);
        let mut whole = site.frames();
        let newest = site.files(".seg").pop().unwrap();
        let files = [
            site.files(".part"),
            site.files(".seg"),
            site.files("CHECKPOINT"),
        ]
        .concat();
        for _ in 0..random.usize(1..4) {
            let file = &files[random.usize(..files.len())];
            let mut bytes = fs::read(file).unwrap_or_default();
            if bytes.is_empty() {
                continue;
            }
            let at = random.usize(..bytes.len());
            // Of the newest nobody else says that it was there, nor how long it was.
            let kinds = if *file == newest { 2 } else { 4 };
            let hit = match random.u8(..kinds) {
                0 => {
                    bytes[at] ^= 1 << random.u8(..8);
                    at..at + 1
                }
                1 => {
                    let hit = at..(at + random.usize(1..600)).min(bytes.len());
                    bytes[hit.clone()].fill_with(|| random.u8(..));
                    hit
                }
                2 => {
                    bytes.truncate(at);
                    at..usize::MAX
                }
                _ => {
                    fs::remove_file(file).unwrap();
                    whole.retain(|frame| frame.file != *file);
                    continue;
                }
            };
            fs::write(file, &bytes).unwrap();
            whole.retain(|frame| !frame.is_hit(file, &hit));
        }
        let context = format!("seed {seed}, round {round}");
        let (reported, found) = site.salvage();
        holds(&site, &whole, &found, &context);
        let is_reported = !reported.is_sound() || reported.torn_bytes > 0;
        assert!(is_reported || found == site.live, "{context}: {reported:?}");
        let back = found.keys().any(|id| !site.live.contains_key(id));
        assert!(
            !back || reported.may_repeat || reported.torn_bytes > 0,
            "{context}"
        );
    }
}

#[test]
fn of_a_broken_statement_the_rows_that_are_whole() {
    let site = Site::new(true);
    let frames = site.frames();
    let many = frames.iter().rfind(|frame| frame.rows.len() == 6).unwrap();
    let mut bytes = fs::read(&many.file).unwrap();
    // In the text of its third row.
    let text = format!("row {} ", many.rows[2]).into_bytes();
    let mut places = many.bytes.clone();
    let at = places.find(|at| bytes[*at..].starts_with(&text)).unwrap();
    bytes[at] = b'R';
    fs::write(&many.file, &bytes).unwrap();
    let (reported, found) = site.salvage();
    let mut expected = site.live.clone();
    expected.remove(&many.rows[2]).unwrap();
    assert_eq!(found, expected);
    assert_eq!(reported.rows_out_of_broken_frames, 5);
    assert_eq!(reported.missing, [(many.rows[2], 1)]);
    assert!(!reported.may_repeat);
    let [damage] = &reported.damage[..] else {
        panic!("{reported:?}");
    };
    assert_eq!(
        (&damage.file, damage.offset),
        (&many.file, many.bytes.start as u64)
    );
}

#[test]
fn without_a_segment_in_the_middle() {
    let site = Site::new(true);
    let segments = site.files(".seg");
    assert!(segments.len() >= 4, "{segments:?}");
    let lost = &segments[1];
    let gone: Vec<Frame> = site
        .frames()
        .into_iter()
        .filter(|one| one.file == *lost)
        .collect();
    let bytes = fs::metadata(lost).unwrap().len();
    fs::remove_file(lost).unwrap();
    let (reported, found) = site.salvage();
    holds(&site, &site.frames(), &found, "without it");
    assert_eq!(
        (&reported.damage[0].file, reported.damage[0].bytes),
        (lost, bytes)
    );
    assert!(reported.may_repeat, "its removals are lost");
    // What it held and nothing removed is known to be missing.
    let gone: BTreeSet<u64> = gone.iter().flat_map(|frame| frame.rows.clone()).collect();
    let missing = reported.missing.iter();
    let missing: BTreeSet<u64> = missing
        .flat_map(|(first, count)| *first..first + count)
        .collect();
    assert!(missing.is_subset(&gone));
    let lived = gone.iter().filter(|id| site.live.contains_key(id));
    assert!(
        lived
            .copied()
            .collect::<BTreeSet<u64>>()
            .is_subset(&missing)
    );
    assert_eq!(reported.rows_missing, missing.len() as u64);
}

#[test]
fn a_row_whose_removal_is_lost_comes_again() {
    let site = Site::new(true);
    let frames = site.frames();
    let removal = frames
        .iter()
        .rfind(|frame| !frame.removes.is_empty())
        .unwrap();
    let mut bytes = fs::read(&removal.file).unwrap();
    bytes[removal.bytes.start + 33] ^= 1;
    fs::write(&removal.file, &bytes).unwrap();
    let (reported, found) = site.salvage();
    assert!(
        reported.may_repeat && reported.rows_missing == 0,
        "{reported:?}"
    );
    let again: Vec<&u64> = found
        .keys()
        .filter(|id| !site.live.contains_key(id))
        .collect();
    let removed = removal.removes.iter().cloned().flatten();
    assert_eq!(
        again.into_iter().copied().collect::<Vec<_>>(),
        removed.collect::<Vec<_>>()
    );
}

#[test]
fn a_torn_tail_is_no_damage() {
    let site = Site::new(false);
    let newest = site.files(".seg").pop().unwrap();
    let last = site.frames().pop().unwrap();
    let bytes = fs::read(&newest).unwrap();
    let mut whole = site.frames();
    whole.pop();
    for cut in [
        last.bytes.start + 1,
        last.bytes.start + 40,
        last.bytes.end - 1,
    ] {
        fs::write(&newest, &bytes[..cut]).unwrap();
        let (reported, found) = site.salvage();
        assert!(reported.is_sound(), "{reported:?}");
        assert_eq!(reported.torn_bytes, (cut - last.bytes.start) as u64);
        assert_eq!(reported.rows_missing, 0);
        holds(&site, &whole, &found, &format!("cut at {cut}"));
    }
}

#[test]
fn an_anchor_that_is_broken_is_refused() {
    let site = Site::new(true);
    let mut bytes = fs::read(site.anchor()).unwrap();
    bytes[34] ^= 1;
    fs::write(site.anchor(), &bytes).unwrap();
    let refused = salvage::check(&site.anchor(), &site.root());
    assert!(matches!(refused, Err(Error::Foreign { .. })), "{refused:?}");
}
