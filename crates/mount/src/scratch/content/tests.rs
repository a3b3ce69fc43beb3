//! A file that is fetched piece by piece behaves as one that was there from the beginning.

use super::*;
use crate::scratch::map;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file whose bytes tell where they are from; every fourth granule is all zeros.
struct Pattern {
    bytes: Vec<u8>,
    reads: AtomicU64,
}

impl Pattern {
    fn new(length: u64) -> Self {
        let byte = |at: u64| match at / GRANULE % 4 {
            3 => 0,
            granule => (at % 251) as u8 ^ granule as u8 | 1,
        };
        Self {
            bytes: (0..length).map(byte).collect(),
            reads: AtomicU64::new(0),
        }
    }
}

impl Origin for Pattern {
    fn read_at(&self, file: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        assert_eq!(file, 42);
        self.reads.fetch_add(1, Ordering::Relaxed);
        let from = offset as usize;
        buffer.copy_from_slice(&self.bytes[from..from + buffer.len()]);
        Ok(())
    }
}

/// A file of a scratch, and the table of maps.
struct Fixture {
    dir: tempfile::TempDir,
    table: Arc<File>,
}

impl Fixture {
    fn new(length: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let table = options.open(dir.path().join("maps")).unwrap();
        table.set_len(7 + map::granules(length)).unwrap();
        let file = options.open(dir.path().join("file")).unwrap();
        file.set_len(length).unwrap();
        if length > 0 {
            map::adopt(&dir.path().join("file"), 7, 42, length).unwrap();
        }
        Self {
            dir,
            table: Arc::new(table),
        }
    }

    /// As after a kill: what is known is what lies in the files.
    fn load(&self) -> (Content, File) {
        let path = self.dir.path().join("file");
        let file = open_file(&path).unwrap();
        let length = file.metadata().unwrap().len();
        let map = Map::load(&self.table, &path, length).unwrap();
        (Content::new(map), file)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Read(u64, usize),
    Write(u64, usize, u8),
    SetLen(u64),
    Punch(u64, u64),
    Fill(u64),
    Kill,
}

const LENGTH: u64 = 6 * GRANULE + 1234;

fn step() -> impl Strategy<Value = Step> {
    // Edges of granules are where it would go wrong.
    let place = prop_oneof![
        0..LENGTH + GRANULE,
        (0u64..8).prop_map(|granule| granule * GRANULE),
    ];
    let length = prop_oneof![
        1..200_000u64,
        Just(GRANULE),
        Just(2 * GRANULE),
        Just(16_384)
    ];
    prop_oneof![
        (place.clone(), length.clone()).prop_map(|(at, n)| Step::Read(at, n as usize)),
        (place.clone(), length.clone(), 1u8..)
            .prop_map(|(at, n, b)| Step::Write(at, n as usize, b)),
        place.clone().prop_map(Step::SetLen),
        (place, length).prop_map(|(at, n)| Step::Punch(at, n)),
        (0u64..7).prop_map(Step::Fill),
        Just(Step::Kill),
    ]
}

fn write_model(model: &mut Vec<u8>, at: usize, data: &[u8]) {
    if model.len() < at + data.len() {
        model.resize(at + data.len(), 0);
    }
    model[at..at + data.len()].copy_from_slice(data);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn it_reads_as_a_plain_file(steps in prop::collection::vec(step(), 1..24)) {
        let origin = Pattern::new(LENGTH);
        let fixture = Fixture::new(LENGTH);
        let (mut content, mut file) = fixture.load();
        let mut model = origin.bytes.clone();
        for step in &steps {
            match *step {
                Step::Read(at, length) => {
                    let mut buffer = vec![7; length];
                    let found = content.read(&file, &origin, at, &mut buffer).unwrap();
                    let from = (at as usize).min(model.len());
                    let to = (from + length).min(model.len());
                    prop_assert!(buffer[..found] == model[from..to], "{step:?}");
                }
                Step::Write(at, length, byte) => {
                    let data = vec![byte; length];
                    content.write(&file, &origin, at, &data).unwrap();
                    write_model(&mut model, at as usize, &data);
                }
                Step::SetLen(length) => {
                    content.set_len(&file, &origin, length).unwrap();
                    model.resize(length as usize, 0);
                }
                Step::Punch(at, length) => {
                    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                    content.allocate(&file, &origin, mode, at..at + length).unwrap();
                    let from = (at as usize).min(model.len());
                    let to = ((at + length) as usize).min(model.len());
                    model[from..to].fill(0);
                }
                Step::Fill(granule) => content.fill(&file, &origin, granule).unwrap(),
                Step::Kill => (content, file) = fixture.load(),
            }
            prop_assert_eq!(file.metadata().unwrap().len(), model.len() as u64);
        }
        let mut all = vec![7; model.len()];
        prop_assert_eq!(content.read(&file, &origin, 0, &mut all).unwrap(), model.len());
        prop_assert!(all == model, "{:?}", steps);
    }
}

#[test]
fn what_is_overwritten_whole_is_never_fetched_and_nothing_is_fetched_twice() {
    let (origin, fixture) = (Pattern::new(LENGTH), Fixture::new(LENGTH));
    let (content, file) = fixture.load();
    let data = vec![9; 2 * GRANULE as usize];
    content.write(&file, &origin, GRANULE, &data).unwrap();
    assert_eq!(origin.reads.load(Ordering::Relaxed), 0);
    let mut all = vec![0; LENGTH as usize];
    for _ in 0..2 {
        content.read(&file, &origin, 0, &mut all).unwrap();
    }
    assert_eq!(origin.reads.load(Ordering::Relaxed), 5);
    assert_eq!(content.missing(), 0);
}

#[test]
fn threads_that_read_and_write_the_same_granules_lose_nothing() {
    let (origin, fixture) = (Pattern::new(64 * GRANULE), Fixture::new(64 * GRANULE));
    let (content, file) = fixture.load();
    // Each writes its own 4 KiB of every granule, whole or not, while others fetch them.
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (content, file, origin) = (&content, &file, &origin);
            scope.spawn(move || {
                for granule in 0..64 {
                    let at = granule * GRANULE + thread * 4096;
                    let data = [thread as u8 + 100; 4096];
                    content.write(file, origin, at, &data).unwrap();
                    content.fill(file, origin, 63 - granule).unwrap();
                }
            });
        }
    });
    let mut all = vec![0; 64 * GRANULE as usize];
    content.read(&file, &origin, 0, &mut all).unwrap();
    for (at, byte) in all.iter().enumerate() {
        let within = at as u64 % GRANULE;
        let expected = match within / 4096 {
            thread @ 0..4 => thread as u8 + 100,
            _ => origin.bytes[at],
        };
        assert_eq!(*byte, expected, "byte {at}");
    }
}

#[test]
fn fetching_leaves_the_time_of_a_file_alone() {
    let (origin, fixture) = (Pattern::new(LENGTH), Fixture::new(LENGTH));
    let (content, file) = fixture.load();
    let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    file.set_modified(before).unwrap();
    content.read(&file, &origin, 0, &mut [0; 100_000]).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), before);
    content.write(&file, &origin, 5, b"x").unwrap();
    assert_ne!(file.metadata().unwrap().modified().unwrap(), before);
}
