//! The receiver against senders that do what none of ours does, and beside old directories that do not hold still.

use super::*;
use crate::clone::list::{BLOCK, END, HERE, HOLE, Hash, ImageEnd, LACKING, LIST, hash, hash_all};
use crate::clone::pack::Step;
use evenkeel_op::{Cancel, Silent};
use evenkeel_repository::store::Existing;
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::coordinates::Coordinates;
use rustix::fs::{FileType, Mode};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn file(name: &str, size: u64) -> FileMeta {
    FileMeta::file(name, size, BLOCK as u32)
}

fn dir(name: &str) -> FileMeta {
    FileMeta {
        kind: FileKind::Dir,
        mode: 0o750,
        ..FileMeta::file(name, 0, 0)
    }
}

fn list(files: Vec<FileMeta>) -> ImageList {
    ImageList {
        source: "db1:/var/lib/mysql".to_owned(),
        version: None,
        settings: BTreeMap::new(),
        roots: [("data".to_owned(), "/var/lib/mysql".to_owned())].into(),
        dirs: vec![dir("data"), dir("data/shop")],
        files,
    }
}

/// A sender that says what it is told to.
struct Sender {
    top: tempfile::TempDir,
    receiver: Receiver,
    listed: Hash,
    packs: std::cell::Cell<u32>,
}

impl Sender {
    fn new() -> Self {
        Self::beside(tempfile::tempdir().unwrap(), None)
    }

    fn beside(top: tempfile::TempDir, like: Option<&str>) -> Self {
        let mut wanted = CloneTarget::new(&top.path().join("new"));
        wanted.like = like.map(|like| top.path().join(like));
        Self {
            receiver: Receiver::begin(&wanted).unwrap(),
            top,
            listed: LACKING,
            packs: std::cell::Cell::new(0),
        }
    }

    fn target(&self) -> PathBuf {
        self.top.path().join("new")
    }

    /// Dies, and another run comes.
    fn again(self, like: Option<&str>) -> Self {
        let Self { top, receiver, .. } = self;
        drop(receiver);
        Self::beside(top, like)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let store = self.receiver.store();
        let mut object = store.create(name, Existing::Refuse)?;
        object.write(bytes)?;
        object.finish()
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let object = self.receiver.store().open(name)?;
        let mut bytes = vec![0; object.size() as usize];
        object.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }

    fn list(&mut self, list: &ImageList) -> io::Result<()> {
        let bytes = serde_json::to_vec(list).unwrap();
        self.listed = hash(&bytes);
        self.put(LIST, &bytes)
    }

    fn steps(&self, steps: &[Step<'_>]) -> io::Result<()> {
        let mut pack = Vec::new();
        for step in steps {
            step.write(&mut pack);
        }
        self.packs.set(self.packs.get() + 1);
        self.put(&format!("put/{}", self.packs.get()), &pack)
    }

    fn end(&self, hashes: &[Hash]) -> io::Result<()> {
        let end = ImageEnd {
            hash: hash_all([&self.listed].into_iter().chain(hashes)),
            coordinates: Coordinates::default(),
            source_coordinates: Vec::new(),
            applier_ms: 0.0,
            pages_checked: 0,
            pages_torn: 0,
        };
        self.put(END, &serde_json::to_vec(&end).unwrap())
    }

    fn finish(&self) -> Result<CloneReport> {
        self.receiver.finish(Run {
            progress: &Silent,
            cancel: &Cancel::new(),
        })
    }

    /// The sender was refused, for what it is, and nothing is left that a server could start on.
    #[track_caller]
    fn assert_refused(&self, outcome: io::Result<()>, what: &str) {
        assert!(outcome.is_err(), "{what}");
        let error = self.receiver.give_up(Error::failed("in its own words"));
        assert_eq!(
            error.kind(),
            ErrorKind::Differs,
            "{what}: {}",
            error.chain()
        );
        assert!(!self.target().exists(), "{what}");
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.top.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn block<'a>(file: u32, number: u64, bytes: &'a [u8]) -> Step<'a> {
    Step::Block {
        file,
        block: number,
        hash: hash(bytes),
        parts: Vec::new(),
        zstd: false,
        bytes,
    }
}

fn end(file: u32, hashes: &[Hash]) -> Step<'static> {
    Step::End {
        file,
        stretch: 0,
        hash: hash_all(hashes),
    }
}

const SIZE: u64 = 3 * BLOCK + 100;
static ONE: [u8; BLOCK as usize] = [1; BLOCK as usize];
static TWO: [u8; BLOCK as usize] = [2; BLOCK as usize];
const TAIL: [u8; 100] = [3; 100];

/// What a file of `SIZE` has in these tests: a block, a hole, a block, and a short one.
fn hashes() -> [Hash; 4] {
    [hash(&ONE), HOLE, hash(&TWO), hash(&TAIL)]
}

fn content() -> Vec<u8> {
    [&ONE[..], &[0; BLOCK as usize], &TWO, &TAIL].concat()
}

fn holes(file: u32, blocks: std::ops::Range<u64>) -> Step<'static> {
    Step::Holes { file, blocks }
}

#[test]
fn a_directory_appears_with_what_was_sent() {
    let mut sender = Sender::new();
    let files = vec![
        file("data/shop/a.ibd", SIZE),
        file("data/shop/empty", 0),
        file("data/ibdata1", BLOCK),
    ];
    sender.list(&list(files)).unwrap();
    assert_eq!(sender.get(HERE).unwrap(), [0, 0, 0]);
    let staging = sender.top.path().join("new.evenkeel-restoring");
    assert_eq!(fs::metadata(&staging).unwrap().mode() & 0o777, 0o700);
    let packed = zstd::bulk::compress(&TWO, 1).unwrap();
    let mut sparse = ONE;
    sparse[8192..16384].fill(0);
    sender
        .steps(&[
            block(0, 0, &ONE),
            holes(0, 1..2),
            Step::Block {
                file: 0,
                block: 2,
                hash: hash(&TWO),
                parts: Vec::new(),
                zstd: true,
                bytes: &packed,
            },
            block(0, 3, &TAIL),
            end(0, &hashes()),
            Step::Block {
                file: 2,
                block: 0,
                hash: hash(&sparse),
                parts: vec![0..8192, 16384..BLOCK as u32],
                zstd: false,
                bytes: &sparse,
            },
            end(2, &[hash(&sparse)]),
        ])
        .unwrap();
    sender
        .end(&[hash_all(&hashes()), hash_all(&[hash(&sparse)])])
        .unwrap();
    assert!(!sender.target().exists());
    let report = sender.finish().unwrap();
    assert_eq!((report.blocks_sent, report.blocks_reused), (4, 0));
    assert_eq!(sender.names(), ["new"]);
    let target = sender.target();
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o750);
    let table = target.join("shop/a.ibd");
    assert_eq!(fs::read(&table).unwrap(), content());
    assert_eq!(fs::metadata(&table).unwrap().mode() & 0o777, 0o600);
    assert!(fs::metadata(&table).unwrap().blocks() * 512 < SIZE);
    assert_eq!(fs::read(target.join("ibdata1")).unwrap(), sparse);
    assert_eq!(fs::read(target.join("shop/empty")).unwrap(), b"");
}

#[test]
fn no_name_leads_out_of_the_target() {
    for name in [
        "data/../precious",
        "../precious",
        "/etc/precious",
        "data//etc/precious",
        "data/\\x2e\\x2e/precious",
        "elsewhere/precious",
        "schema-../precious",
        "data",
        "data/",
        "",
        "data/auto.cnf",
    ] {
        let mut sender = Sender::new();
        let outcome = sender.list(&list(vec![file(name, 1)]));
        sender.assert_refused(outcome, name);
        assert!(sender.names().is_empty(), "{name}");
    }
}

#[test]
fn no_root_leads_out_of_the_target() {
    for id in [
        "../x",
        "/etc",
        "etc",
        "schema-..",
        "schema-a/b",
        "volume",
        "",
    ] {
        let mut sender = Sender::new();
        let mut strange = list(Vec::new());
        strange.roots.insert(id.to_owned(), "/".to_owned());
        let outcome = sender.list(&strange);
        sender.assert_refused(outcome, id);
    }
    let mut sender = Sender::new();
    let mut none = list(Vec::new());
    none.roots.clear();
    none.dirs.clear();
    let outcome = sender.list(&none);
    sender.assert_refused(outcome, "no root at all");
}

#[test]
fn what_a_sender_calls_itself_is_one_line_and_leads_nowhere() {
    type Change = fn(&mut ImageList);
    let strange: [(&str, Change); 6] = [
        ("lines of its own", |list| {
            list.source = "db1:/x cloned\n  run: x".to_owned()
        }),
        ("text that turns", |list| {
            list.source = "db1:\u{202E}/x".to_owned()
        }),
        ("a version with colours", |list| {
            list.version = Some("\u{1b}[31m8".to_owned())
        }),
        ("a setting of two lines", |list| {
            list.settings
                .insert("datadir".to_owned(), "/x\n/y".to_owned());
        }),
        ("a root that was nowhere", |list| {
            list.roots.insert("redo".to_owned(), String::new());
        }),
        ("a name without an end", |list| {
            list.files = vec![file(&format!("data/{}", "a/".repeat(10_000)), 1)]
        }),
    ];
    for (what, change) in strange {
        let mut sender = Sender::new();
        let mut list = list(Vec::new());
        change(&mut list);
        let outcome = sender.list(&list);
        sender.assert_refused(outcome, what);
    }
}

#[test]
fn a_sender_keeps_no_more_answers_than_it_needs() {
    let mut sender = Sender::new();
    sender
        .list(&list(vec![file("data/a", BLOCK * 1024)]))
        .unwrap();
    let store = sender.receiver.store();
    // 16 KiB each.
    let mut kept = Vec::new();
    let refused = (0..5000).find_map(|_| store.open("have/0-0").map(|one| kept.push(one)).err());
    assert!(refused.is_some() && kept.len() == 4096, "{}", kept.len());
    drop(kept);
}

#[test]
fn lists_that_make_no_sense_are_refused() {
    let link = |kind| FileMeta {
        kind,
        ..file("data/a", 1)
    };
    for (what, files) in [
        ("twice", vec![file("data/a", 1), file("data/a", 1)]),
        ("a directory and a file", vec![file("data/shop", 1)]),
        ("a link", vec![link(FileKind::Symlink)]),
        ("a directory of files", vec![link(FileKind::Dir)]),
        ("endless", vec![file("data/a", u64::MAX)]),
        (
            "endless together",
            vec![file("data/a", 1 << 62), file("data/b", 1 << 62)],
        ),
        (
            "one file of two names",
            vec![
                file("data/ibdata1", 1),
                file("data/ibdata1.evenkeel-held", 1),
            ],
        ),
    ] {
        let mut sender = Sender::new();
        let outcome = sender.list(&list(files));
        sender.assert_refused(outcome, what);
    }
    let mut sender = Sender::new();
    let outcome = sender.put(LIST, b"nonsense");
    assert!(outcome.is_err() && sender.names().is_empty());
    sender.list(&list(Vec::new())).unwrap();
    let outcome = sender.list(&list(Vec::new()));
    sender.assert_refused(outcome, "two lists");
}

#[test]
#[allow(clippy::single_range_in_vec_init)]
fn blocks_that_are_not_what_they_are_said_to_be_are_refused() {
    let bomb = zstd::bulk::compress(&vec![0; 1 << 26], 1).unwrap();
    let sent = |hash, zstd, bytes| Step::Block {
        file: 0,
        block: 0,
        hash,
        parts: Vec::new(),
        zstd,
        bytes,
    };
    let sparse = |parts| Step::Block {
        file: 0,
        block: 0,
        hash: hash(&ONE),
        parts,
        zstd: false,
        bytes: &ONE,
    };
    let whole = BLOCK as u32;
    for (what, step) in [
        ("another hash", sent(hash(&TWO), false, &ONE[..])),
        ("the hash of nothing", sent(LACKING, false, &ONE)),
        ("the hash of a hole", sent(HOLE, false, &ONE)),
        ("too short", sent(hash(&TAIL), false, &TAIL)),
        ("a bomb", sent(hash(&ONE), true, &bomb)),
        ("no zstd", sent(hash(&ONE), true, &TAIL)),
        ("behind the end", block(0, 4, &ONE)),
        ("far behind the end", block(0, u64::MAX, &ONE)),
        ("the last one too long", block(0, 3, &ONE)),
        ("of no file", block(7, 0, &ONE)),
        ("holes behind the end", holes(0, 3..5)),
        ("no holes", holes(0, 1..1)),
        ("a gap that is full", sparse(vec![0..4096])),
        ("parts out of order", sparse(vec![4096..whole, 0..4096])),
        ("a part that is none", sparse(vec![0..whole, whole..whole])),
        ("a part behind the end", sparse(vec![0..whole + 1])),
        ("an end without a beginning", end(0, &hashes())),
        (
            "an end of no stretch",
            Step::End {
                file: 0,
                stretch: 9,
                hash: LACKING,
            },
        ),
    ] {
        let mut sender = Sender::new();
        sender.list(&list(vec![file("data/a", SIZE)])).unwrap();
        let outcome = sender.steps(&[step]);
        sender.assert_refused(outcome, what);
        assert!(sender.names().is_empty(), "{what}: {:?}", sender.names());
    }
}

#[test]
fn what_is_not_all_is_refused() {
    let begun = || {
        let mut sender = Sender::new();
        sender.list(&list(vec![file("data/a", SIZE)])).unwrap();
        sender
    };
    let sender = begun();
    let outcome = sender.end(&[]);
    sender.assert_refused(outcome, "ended at once");
    let sender = begun();
    let outcome = sender.steps(&[block(0, 0, &ONE), holes(0, 1..2), end(0, &hashes())]);
    sender.assert_refused(outcome, "two blocks are lacking");
    let all = [
        block(0, 0, &ONE),
        holes(0, 1..2),
        block(0, 2, &TWO),
        block(0, 3, &TAIL),
        end(0, &hashes()),
    ];
    let sender = begun();
    sender.steps(&all).unwrap();
    let outcome = sender.steps(&all[..1]);
    sender.assert_refused(outcome, "a block after the end");
    let sender = begun();
    sender.steps(&all).unwrap();
    assert!(sender.get("have/0-0").is_err());
    let sender = begun();
    sender.steps(&all).unwrap();
    let outcome = sender.end(&[LACKING]);
    sender.assert_refused(outcome, "another whole");
    let sender = begun();
    sender.steps(&all).unwrap();
    assert_eq!(sender.finish().unwrap_err().kind(), ErrorKind::Differs);
    assert!(!sender.target().exists());
}

#[test]
fn there_is_nothing_else_to_do() {
    let mut sender = Sender::new();
    for name in [HERE, "have/0-0"] {
        assert!(sender.get(name).is_err(), "{name}: nothing was listed");
    }
    let outcome = sender.steps(&[block(0, 0, &ONE)]);
    assert!(outcome.is_err(), "nothing was listed");
    sender.list(&list(vec![file("data/a", SIZE)])).unwrap();
    for name in [
        "have/0-1",
        "have/1-0",
        "have/x-0",
        "have/0",
        "have/0-18446744073709551615",
        "list",
        "x",
    ] {
        assert!(sender.get(name).is_err(), "{name}");
    }
    for name in ["put/x", "put/-1", "here", "have/0-0", "x", "list/1", ""] {
        assert!(sender.put(name, b"").is_err(), "{name}");
    }
    let store = sender.receiver.store();
    assert!(store.remove("list").is_err() && store.make_folder("x").is_err());
    assert!(store.list("").is_err() && store.remove_folder("put").is_err());
    let mut object = store.create("put/1", Existing::Refuse).unwrap();
    let piece = vec![0; 1 << 20];
    assert!(
        (0..9).any(|_| object.write(&piece).is_err()),
        "it has no end"
    );
}

/// What an interrupted run sent is not sent again; what is not to be there goes.
#[test]
fn an_interrupted_run_is_taken_up() {
    let mut sender = Sender::new();
    let both = vec![file("data/a", SIZE), file("data/shop/dropped", BLOCK)];
    sender.list(&list(both)).unwrap();
    sender
        .steps(&[block(0, 0, &ONE), block(0, 2, &ONE), block(1, 0, &ONE)])
        .unwrap();
    let mut sender = sender.again(None);
    assert!(!sender.target().exists());
    let files = vec![file("data/a", SIZE), file("data/shop/new", 0)];
    sender.list(&list(files)).unwrap();
    assert_eq!(sender.get(HERE).unwrap(), [1, 0]);
    let have = sender.get("have/0-0").unwrap();
    let expected = [hash(&ONE), LACKING, hash(&ONE), LACKING];
    assert_eq!(have, expected.concat());
    sender
        .steps(&[
            holes(0, 1..2),
            block(0, 2, &TWO),
            block(0, 3, &TAIL),
            end(0, &hashes()),
        ])
        .unwrap();
    sender.end(&[hash_all(&hashes())]).unwrap();
    let report = sender.finish().unwrap();
    assert!(report.taken_up);
    assert_eq!((report.blocks_sent, report.blocks_reused), (2, 1));
    assert_eq!(fs::read(sender.target().join("a")).unwrap(), content());
    assert!(!sender.target().join("shop/dropped").exists());
    assert_eq!(sender.names(), ["new"]);
}

#[test]
fn two_clones_do_not_write_in_one_directory() {
    let mut one = Sender::new();
    one.list(&list(Vec::new())).unwrap();
    let wanted = CloneTarget::new(&one.target());
    let receiver = Receiver::begin(&wanted).unwrap();
    let bytes = serde_json::to_vec(&list(Vec::new())).unwrap();
    let mut object = receiver.store().create(LIST, Existing::Refuse).unwrap();
    object.write(&bytes).unwrap();
    assert!(object.finish().is_err());
    let error = receiver.give_up(Error::failed("in its own words"));
    assert_eq!(error.kind(), ErrorKind::Busy);
    one.end(&[]).unwrap();
    one.finish().unwrap();
}

/// An old directory with a file of `SIZE`, of which the third block is another.
fn old() -> tempfile::TempDir {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir_all(top.path().join("old/shop")).unwrap();
    let mut bytes = content();
    bytes[2 * BLOCK as usize..3 * BLOCK as usize].copy_from_slice(&ONE);
    bytes.extend([9; 4096]);
    fs::write(top.path().join("old/shop/a"), bytes).unwrap();
    top
}

#[test]
fn equal_blocks_of_an_old_directory_are_used() {
    let top = old();
    let path = top.path().join("old/shop/a");
    let before = fs::read(&path).unwrap();
    let mut sender = Sender::beside(top, Some("old"));
    sender.list(&list(vec![file("data/shop/a", SIZE)])).unwrap();
    assert_eq!(sender.get(HERE).unwrap(), [1]);
    let have = sender.get("have/0-0").unwrap();
    assert_eq!(have[..16], hash(&ONE));
    assert_eq!(have[48..], hash(&TAIL));
    // Whoever uses it after all does no harm.
    let changed = File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&changed, &[7; 4096], 0).unwrap();
    sender
        .steps(&[holes(0, 1..2), block(0, 2, &TWO), end(0, &hashes())])
        .unwrap();
    sender.end(&[hash_all(&hashes())]).unwrap();
    let report = sender.finish().unwrap();
    assert_eq!((report.blocks_sent, report.blocks_reused), (1, 2));
    assert_eq!(fs::read(sender.target().join("shop/a")).unwrap(), content());
    // It is only read.
    let after = fs::read(&path).unwrap();
    assert_eq!(after[4096..], before[4096..]);
}

#[test]
fn an_old_directory_leads_nowhere() {
    let top = old();
    let at = |name: &str| top.path().join("old/shop").join(name);
    fs::write(top.path().join("secret"), content()).unwrap();
    symlink("../../secret", at("link")).unwrap();
    symlink("..", at("up")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    fs::create_dir(at("dir")).unwrap();
    let names = ["link", "pipe", "dir", "up/shop/a", "a"];
    let files = names.map(|name| file(&format!("data/shop/{name}"), SIZE));
    let mut names = vec!["a", "dir", "link", "pipe"];
    if rustix::process::geteuid().is_root() {
        fs::write(at("other"), content()).unwrap();
        std::os::unix::fs::chown(at("other"), Some(12), None).unwrap();
        names.push("other");
    }
    let mut files = files.to_vec();
    if names.contains(&"other") {
        files.push(file("data/shop/other", SIZE));
    }
    let mut sender = Sender::beside(top, Some("old"));
    sender.list(&list(files)).unwrap();
    let here = sender.get(HERE).unwrap();
    assert_eq!(here[..5], [0, 0, 0, 0, 1]);
    assert!(here[5..].iter().all(|one| *one == 0), "{here:?}");
}

#[test]
fn a_target_that_is_used_or_within_the_old_directory_is_refused() {
    let top = old();
    let begin = |target: &str, like: Option<&str>| {
        let mut wanted = CloneTarget::new(&top.path().join(target));
        wanted.like = like.map(|like| top.path().join(like));
        Receiver::begin(&wanted)
            .map(drop)
            .map_err(|error| error.kind())
    };
    assert_eq!(begin("old", None), Err(ErrorKind::Usage));
    assert_eq!(begin("old/new", Some("old")), Err(ErrorKind::Usage));
    assert_eq!(begin("new", Some("nowhere")).unwrap_err().exit_code(), 2);
    assert_eq!(begin("new", Some("old")), Ok(()));
    let closed = top.path().join("old");
    let mode = fs::metadata(&closed).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "it is only looked at");
}
