//! Does a mounted scratch behave as a plain directory, whatever is done to it? Does one that is slow?

use evenkeel_mount::{Claim, Delay, Delayed, Mounted, Origin, Overlay, Owner, Scratch};
use proptest::prelude::*;
use rustix::fs::FallocateFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const FILES: [(&str, u64); 4] = [
    ("data/big", 700_000),
    ("data/small", 100),
    ("data/shop/t.ibd", 262_144),
    ("data/empty", 0),
];

struct Bytes;

fn byte(file: u64, at: u64) -> u8 {
    (at % 253) as u8 ^ (file as u8) << 4 | 1
}

impl Origin for Bytes {
    fn read_at(&self, file: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        for (at, into) in (offset..).zip(buffer) {
            *into = byte(file, at);
        }
        Ok(())
    }
}

/// A directory that is shown at `mnt`.
trait Shown {
    fn show(dir: &Path) -> Self;
    fn unmount(&self) -> evenkeel_op::Result<()>;
}

/// A scratch whose files are fetched.
struct Fetched {
    mounted: Mounted,
    overlay: Arc<Overlay>,
    scratch: Scratch,
}

impl Shown for Fetched {
    fn show(dir: &Path) -> Self {
        let owner = Owner {
            of: "test".into(),
            kept: true,
        };
        let scratch = match Scratch::claim(&dir.join("scratch"), owner).unwrap() {
            Claim::Resumed(scratch) => scratch,
            Claim::Fresh(mut scratch) => {
                for (number, (name, length)) in (0..).zip(FILES) {
                    let path = scratch.files().join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    File::create(&path).unwrap().set_len(length).unwrap();
                    scratch.adopt(&path, number, length).unwrap();
                }
                scratch.ready().unwrap();
                scratch
            }
        };
        let overlay = Overlay::open(&scratch, Arc::new(Bytes)).unwrap();
        let mounted = Mounted::overlay(overlay.clone(), &dir.join("mnt")).unwrap();
        Self {
            mounted,
            overlay,
            scratch,
        }
    }

    fn unmount(&self) -> evenkeel_op::Result<()> {
        self.mounted.unmount()
    }
}

impl Shown for Delayed {
    fn show(dir: &Path) -> Self {
        let disk = dir.join("disk");
        if !disk.exists() {
            lay_out(&disk);
        }
        let delay = Delay {
            read: Duration::from_micros(300),
            write: Duration::from_micros(300),
        };
        Mounted::delayed(&disk, delay, &dir.join("mnt")).unwrap()
    }

    fn unmount(&self) -> evenkeel_op::Result<()> {
        self.unmount()
    }
}

/// Writes the files.
fn lay_out(top: &Path) {
    for (number, (name, length)) in (0..).zip(FILES) {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = (0..length).map(|at| byte(number, at)).collect();
        fs::write(path, bytes).unwrap();
    }
}

/// Something mounted and a plain directory with the same files.
struct Pair<S: Shown> {
    dir: tempfile::TempDir,
    shown: Option<S>,
}

impl<S: Shown> Pair<S> {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        lay_out(&dir.path().join("plain"));
        let shown = Some(S::show(dir.path()));
        Self { dir, shown }
    }

    fn mount(&mut self) {
        self.shown = Some(S::show(self.dir.path()));
    }

    fn unmount(&mut self) -> S {
        let shown = self.shown.take().unwrap();
        shown.unmount().unwrap();
        shown
    }

    fn top(&self, mounted: bool) -> PathBuf {
        self.dir.path().join(if mounted { "mnt" } else { "plain" })
    }

    /// Does something in both; both must say the same.
    fn both<R: PartialEq + std::fmt::Debug>(&self, what: impl Fn(&Path) -> io::Result<R>) {
        let kinds = [true, false].map(|mounted| {
            what(&self.top(mounted)).map_err(|error| error.raw_os_error().unwrap_or(0))
        });
        assert_eq!(kinds[0], kinds[1]);
    }
}

impl<S: Shown> Drop for Pair<S> {
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            let _ = shown.unmount();
        }
    }
}

/// Everything below a directory: content of files, targets of links.
fn tree(top: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let (entry, path) = entry
                .map(|entry| (entry.file_type().unwrap(), entry.path()))
                .unwrap();
            let content = match entry.is_dir() {
                true => None,
                false => Some(fs::read(&path).unwrap()),
            };
            found.insert(path.strip_prefix(top).unwrap().to_owned(), content);
            if entry.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, u64, usize, u8),
    WriteDirect(usize, u64, u8),
    Read(usize, u64, usize),
    Create(usize),
    SetLen(usize, u64),
    Punch(usize, u64, u64),
    Allocate(usize, u64),
    Rename(usize, usize),
    Remove(usize),
    MakeDir(usize),
    RemoveDir(usize),
    WriteUnlinked(usize, u64),
    Remount,
}

const NAMES: [&str; 8] = [
    "data/big",
    "data/small",
    "data/shop/t.ibd",
    "data/empty",
    "data/new",
    "data/shop/new.ibd",
    "data/shop",
    "data/other",
];

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let at = prop_oneof![0u64..800_000, (0u64..12).prop_map(|n| n * 65_536)];
    prop_oneof![
        (name.clone(), at.clone(), 1usize..150_000, any::<u8>())
            .prop_map(|(n, at, l, b)| Step::Write(n, at, l, b)),
        (name.clone(), 0u64..150, any::<u8>()).prop_map(|(n, at, b)| Step::WriteDirect(n, at, b)),
        (name.clone(), at.clone(), 1usize..200_000).prop_map(|(n, at, l)| Step::Read(n, at, l)),
        name.clone().prop_map(Step::Create),
        (name.clone(), at.clone()).prop_map(|(n, l)| Step::SetLen(n, l)),
        (name.clone(), at.clone(), 1u64..200_000).prop_map(|(n, at, l)| Step::Punch(n, at, l)),
        (name.clone(), at.clone()).prop_map(|(n, l)| Step::Allocate(n, l + 1)),
        (name.clone(), name.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        name.clone().prop_map(Step::Remove),
        name.clone().prop_map(Step::MakeDir),
        name.clone().prop_map(Step::RemoveDir),
        (name, at).prop_map(|(n, at)| Step::WriteUnlinked(n, at)),
        Just(Step::Remount),
    ]
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Memory as direct I/O wants it.
#[repr(align(4096))]
struct Aligned([u8; 16_384]);

fn read(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; length];
    let mut done = 0;
    loop {
        match file.read_at(&mut buffer[done..], at + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    buffer.truncate(done);
    Ok(buffer)
}

fn perform<S: Shown>(pair: &mut Pair<S>, step: &Step) {
    match *step {
        Step::Write(n, at, length, byte) => {
            pair.both(|top| open(&top.join(NAMES[n]))?.write_all_at(&vec![byte; length], at))
        }
        Step::WriteDirect(n, page, byte) => pair.both(|top| {
            let mut options = File::options();
            let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
            let file = options
                .write(true)
                .custom_flags(flags)
                .open(top.join(NAMES[n]))?;
            let data = Aligned([byte; 16_384]);
            file.write_all_at(&data.0, page * 16_384)?;
            file.sync_data()
        }),
        Step::Read(n, at, length) => {
            pair.both(|top| read(&open(&top.join(NAMES[n]))?, at, length));
        }
        Step::Create(n) => pair.both(|top| {
            let file = File::create_new(top.join(NAMES[n]))?;
            file.write_all_at(b"new", 3)?;
            file.sync_all()
        }),
        Step::SetLen(n, length) => pair.both(|top| open(&top.join(NAMES[n]))?.set_len(length)),
        Step::Punch(n, at, length) => pair.both(|top| {
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let file = open(&top.join(NAMES[n]))?;
            Ok(rustix::fs::fallocate(file, mode, at, length)?)
        }),
        Step::Allocate(n, length) => pair.both(|top| {
            let file = open(&top.join(NAMES[n]))?;
            Ok(rustix::fs::fallocate(
                file,
                FallocateFlags::empty(),
                0,
                length,
            )?)
        }),
        Step::Rename(a, b) => pair.both(|top| fs::rename(top.join(NAMES[a]), top.join(NAMES[b]))),
        Step::Remove(n) => pair.both(|top| fs::remove_file(top.join(NAMES[n]))),
        Step::MakeDir(n) => pair.both(|top| fs::create_dir(top.join(NAMES[n]))),
        Step::RemoveDir(n) => pair.both(|top| fs::remove_dir(top.join(NAMES[n]))),
        Step::WriteUnlinked(n, at) => pair.both(|top| {
            let file = open(&top.join(NAMES[n]))?;
            fs::remove_file(top.join(NAMES[n]))?;
            file.write_all_at(b"still here", at)?;
            let length = file.metadata()?.len();
            Ok((length, read(&file, at.saturating_sub(70_000), 80_000)?))
        }),
        Step::Remount => {
            // Without putting it away first: as after a kill.
            pair.unmount();
            pair.mount();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn it_does(steps in prop::collection::vec(step(), 1..30)) {
        let mut pair = Pair::<Fetched>::new();
        for step in &steps {
            perform(&mut pair, step);
        }
        prop_assert!(tree(&pair.top(true)) == tree(&pair.top(false)), "{:?}", steps);
        // And so it is when it has become an ordinary directory.
        let shown = pair.shown.as_ref().unwrap();
        shown.overlay.fill(&mut |_| Ok(())).unwrap();
        prop_assert_eq!(shown.overlay.missing(), 0);
        let Fetched { mounted, overlay, scratch } = pair.unmount();
        mounted.join().unwrap();
        drop(overlay);
        scratch.settle().unwrap();
        let settled = tree(&pair.dir.path().join("scratch"));
        prop_assert!(settled == tree(&pair.top(false)), "{:?}", steps);
    }

    #[test]
    fn a_slow_one_does(steps in prop::collection::vec(step(), 1..30)) {
        let mut pair = Pair::<Delayed>::new();
        for step in &steps {
            perform(&mut pair, step);
        }
        prop_assert!(tree(&pair.top(true)) == tree(&pair.top(false)), "{:?}", steps);
        // What it shows is what lies below it.
        pair.unmount().join().unwrap();
        prop_assert!(tree(&pair.dir.path().join("disk")) == tree(&pair.top(false)), "{:?}", steps);
    }
}

#[test]
fn files_can_be_locked() {
    locks::<Fetched>();
    locks::<Delayed>();
}

fn locks<S: Shown>() {
    let pair = Pair::<S>::new();
    let first = open(&pair.top(true).join("data/big")).unwrap();
    let second = open(&pair.top(true).join("data/big")).unwrap();
    use rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&first, NonBlockingLockExclusive).unwrap();
    assert!(rustix::fs::flock(&second, NonBlockingLockExclusive).is_err());
    // As mariadbd holds its Aria log control file.
    rustix::fs::fcntl_lock(&first, NonBlockingLockExclusive).unwrap();
}

#[test]
fn many_names_are_listed_once_each() {
    lists::<Fetched>();
    lists::<Delayed>();
}

fn lists<S: Shown>() {
    let pair = Pair::<S>::new();
    let dir = pair.top(true).join("data/shop");
    for number in 0..2_000 {
        File::create(dir.join(format!("table_{number:05}.ibd"))).unwrap();
    }
    let mut names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!((count, names.len()), (2_001, 2_001));
}
