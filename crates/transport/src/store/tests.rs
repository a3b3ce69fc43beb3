//! Two ends of a link in one process, and how often one has to wait for the other.

use super::calls::Calls;
use super::server::StoreServer;
use super::{Access, LinkStore};
use crate::link::{Carrier, Link, LinkTimeouts};
use crate::message::{self, Lane};
use evenkeel_repository::store::{Existing, LocalStore, LockMode, Store};
use evenkeel_repository::{
    Begin, Create, FileBuilder, FileMeta, FileRecord, Repository, RunKind, Worker, Writer,
};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

const BLOCK: u32 = 512;
/// Blocks of a file: more than one leaf, so that there is a node above them.
const BLOCKS: u64 = 600;

/// A directory seen from the other end of a link.
struct Linked {
    links: [Link; 2],
    calls: Arc<Calls>,
    threads: Vec<JoinHandle<()>>,
}

fn carrier(stream: UnixStream) -> Carrier {
    Carrier {
        reader: Box::new(stream.try_clone().unwrap()),
        writer: Box::new(stream.try_clone().unwrap()),
        pushed: 0,
        cut: Box::new(move || drop(stream.shutdown(std::net::Shutdown::Both))),
    }
}

impl Linked {
    fn to(dir: &Path, access: Access) -> Self {
        let link = || Link::new([7; 16], LinkTimeouts::default());
        let (near, far) = (link(), link());
        let (a, b) = UnixStream::pair().unwrap();
        near.attach(carrier(a));
        far.attach(carrier(b));
        let calls = Arc::new(Calls::new(far.clone()));
        let store = Arc::new(LocalStore::new(dir));
        let server = StoreServer::start(store, access, &near).unwrap();
        let (asks, replies, answered) = (near.clone(), far.clone(), calls.clone());
        let threads = vec![
            std::thread::spawn(move || {
                while let Ok(Some(bytes)) = asks.receive() {
                    let (lane, head, body) = message::split(&bytes).unwrap();
                    assert_eq!(lane, Lane::Ask);
                    server.ask(head, body).unwrap();
                }
                server.end();
            }),
            std::thread::spawn(move || {
                while let Ok(Some(bytes)) = replies.receive() {
                    let (_, head, body) = message::split(&bytes).unwrap();
                    answered.reply(head, body).unwrap();
                }
                answered.end();
            }),
        ];
        Self {
            links: [near, far],
            calls,
            threads,
        }
    }

    fn store(&self) -> LinkStore {
        LinkStore::new(self.calls.clone(), "there".to_owned())
    }

    /// How often somebody waited while `does` was done.
    fn turns(&self, does: impl FnOnce(LinkStore)) -> u64 {
        let before = self.calls.turns();
        does(self.store());
        self.calls.turns() - before
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        for link in &self.links {
            link.abort("the test is over");
        }
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn content(file: u64, block: u64, version: u64) -> Vec<u8> {
    let mut state = file << 40 | block << 20 | version | 1;
    let mut bytes = Vec::new();
    while bytes.len() < BLOCK as usize {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

fn give(builder: &FileBuilder, worker: &mut Worker, leaf: u64, file: u64, version: u64) {
    let mut leaf = builder.leaf(leaf).unwrap();
    for block in leaf.blocks() {
        leaf.put(worker, block, &content(file, block, version))
            .unwrap();
    }
    builder.set_leaf(leaf).unwrap();
}

/// Adds a generation of `files` files: `leaves` of each are given, as they are in `version`.
fn back_up(repository: &Repository, files: u64, leaves: &[u64], version: u64) {
    let writer: Writer = repository
        .begin(Begin::new(RunKind::Incremental, "test"))
        .unwrap();
    let mut worker = writer.worker().unwrap();
    for file in 0..files {
        let meta = FileMeta::file(format!("f{file:05}"), BLOCKS * u64::from(BLOCK), BLOCK);
        let base = writer.base_file(&meta.name).unwrap();
        let builder = writer.file_builder(meta, base).unwrap();
        for leaf in leaves {
            give(&builder, &mut worker, *leaf, file, version);
        }
        builder.finish().unwrap();
    }
    worker.finish().unwrap();
    writer.commit(0.into(), 0.into()).unwrap();
}

/// A repository with a full generation and increments on it.
fn repository(files: u64, increments: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let repository = Repository::create(dir.path(), Create::default()).unwrap();
    back_up(&repository, files, &[0, 1, 2], 0);
    for version in 1..=increments {
        back_up(&repository, files, &[version % 3], version);
    }
    dir
}

fn open(store: LinkStore) -> Repository {
    Repository::open_on(Arc::new(store)).unwrap()
}

#[test]
fn an_increment_does_not_ask_more_often_the_more_files_there_are() {
    for (what, leaves) in [
        ("nothing", &[][..]),
        ("one leaf of each", &[1]),
        ("all", &[0, 1, 2]),
    ] {
        let [few, many] = [20, 200].map(|files| {
            let dir = repository(files, 1);
            let linked = Linked::to(dir.path(), Access::Append);
            let turns = linked.turns(|store| back_up(&open(store), files, leaves, 9));
            let local = Repository::open(dir.path()).unwrap();
            assert_eq!(local.generations().unwrap().len(), 3);
            turns
        });
        eprintln!("{what} given: {few} and {many} turns");
        assert!(
            many <= few + 8,
            "{what} given: {few} turns, and {many} with more files"
        );
        assert!(few <= 24, "{what} given: {few} turns");
    }
}

#[test]
fn an_increment_does_not_ask_more_often_the_more_generations_there_are() {
    let [few, many] = [2, 40].map(|increments| {
        let dir = repository(3, increments);
        let linked = Linked::to(dir.path(), Access::Append);
        linked.turns(|store| back_up(&open(store), 3, &[], 99))
    });
    eprintln!("{few} and {many} turns");
    assert!(
        many <= few + 4,
        "{few} turns, and {many} with more generations"
    );
}

fn read_all(repository: &Repository, files: u64) {
    let reader = repository.reader(2).unwrap();
    let records: Vec<FileRecord> = reader.files().map(Result::unwrap).collect();
    assert_eq!(records.len() as u64, files);
    for (number, record) in (0..).zip(&records) {
        let file = reader.open_file(record).unwrap();
        for leaf in 0..file.leaf_count() {
            let read = file.read_leaf(leaf, |block, read| {
                let version = u64::from(block / 256 == 1);
                let wanted = content(number, block, version);
                assert_eq!(read, evenkeel_repository::BlockContent::Data(&wanted));
                Ok(())
            });
            read.unwrap();
        }
    }
}

#[test]
fn what_is_restored_comes_in_large_pieces() {
    let [few, many] = [10, 100].map(|files| {
        let dir = repository(files, 1);
        let linked = Linked::to(dir.path(), Access::Read);
        linked.turns(|store| read_all(&open(store), files))
    });
    // 27 MB more of content, of which a megabyte at most is waited for at a time.
    eprintln!("{few} and {many} turns");
    assert!(many <= few + 40, "{few} turns, and {many} with more files");
}

#[test]
fn any_read_gives_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let local = LocalStore::new(dir.path());
    let linked = Linked::to(dir.path(), Access::Append);
    let mut state = 0x5eed_u64;
    eprintln!("seed {state:#x}");
    let mut below = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % end
    };
    for size in [0, 1, 65_535, 65_536, 65_537, 131_073, 200_000, 5_000_000] {
        let bytes: Vec<u8> = (0..size).map(|_| below(256) as u8).collect();
        let name = format!("o{size}");
        let mut new = local.create(&name, Existing::Refuse).unwrap();
        new.write(&bytes).unwrap();
        new.finish().unwrap();
        let object = linked.store().open(&name).unwrap();
        assert_eq!(object.size(), size);
        for _ in 0..100 {
            let start = below(size + 1);
            let most = [100, 90_000, 3_000_000][below(3) as usize];
            let length = below((size - start).min(most) + 1);
            let mut read = vec![0; length as usize];
            object.read_exact_at(start, &mut read).unwrap();
            assert_eq!(read, bytes[start as usize..(start + length) as usize]);
        }
        let beyond = object.read_exact_at(size, &mut [0]).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn many_are_opened_and_listed_in_one_turn() {
    let dir = tempfile::tempdir().unwrap();
    let linked = Linked::to(dir.path(), Access::Append);
    let store = linked.store();
    let held = store.try_lock("writer.lock", LockMode::Exclusive).unwrap();
    assert!(held.is_some());
    store.make_folder("generations").unwrap();
    store.make_folder("generations/1").unwrap();
    let mut new = store
        .create("generations/1/maps", Existing::Refuse)
        .unwrap();
    new.write(b"content").unwrap();
    new.finish().unwrap();
    let names = ["generations/1/maps", "generations/1/none"].map(str::to_owned);
    let turns = linked.turns(|store| {
        let opened = store.open_all(&names);
        let mut read = [0; 7];
        opened[0]
            .as_ref()
            .unwrap()
            .read_exact_at(0, &mut read)
            .unwrap();
        assert_eq!(&read, b"content");
        let missing = opened[1].as_ref().err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    });
    assert_eq!(turns, 1);
    let folders = ["generations/1", "generations/2"].map(str::to_owned);
    let listed = store.list_all(&folders);
    assert_eq!(listed[0].as_ref().unwrap()[0].name, "maps");
    assert_eq!(
        listed[1].as_ref().unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn what_could_not_be_begun_is_said_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let linked = Linked::to(dir.path(), Access::Append);
    let store = linked.store();
    let held = store.try_lock("writer.lock", LockMode::Exclusive).unwrap();
    assert!(held.is_some());
    let mut new = store
        .create("generations/1/maps", Existing::Refuse)
        .unwrap();
    new.write(b"content").unwrap();
    assert_eq!(new.finish().unwrap_err().kind(), io::ErrorKind::NotFound);
    let denied = store.create("repository", Existing::Replace).unwrap();
    let denied = denied.finish().unwrap_err();
    assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
    // What was begun is there for whoever looks next.
    for number in 0..50 {
        let name = format!("maps{number}");
        let new = store.create(&name, Existing::Refuse).unwrap();
        let listed = store.list("").unwrap();
        assert!(listed.iter().any(|one| one.name == format!("{name}.tmp")));
        drop(new);
    }
    let lock = store.try_lock("reader.lock", LockMode::Exclusive).unwrap();
    assert!(lock.is_some());
}

#[test]
fn a_lock_that_is_given_back_can_be_taken_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let linked = Linked::to(dir.path(), Access::Append);
    let store = linked.store();
    for round in 0..500 {
        let lock = store.try_lock("writer.lock", LockMode::Exclusive).unwrap();
        assert!(lock.is_some(), "round {round}");
        drop(lock);
    }
}

/// A database host that was taken over sends heads of its own.
#[test]
fn a_head_that_forgets_generations_is_not_taken() {
    let dir = repository(3, 2);
    let now = std::fs::read(dir.path().join("head")).unwrap();
    let linked = Linked::to(dir.path(), Access::Append);
    let store = linked.store();
    let send = |bytes: &[u8]| {
        let mut new = store.create("head", Existing::Replace).unwrap();
        // What it is called until it is whole is not to be had.
        let mut other = store.create("head.tmp", Existing::Refuse).unwrap();
        let _ = other.write(b"{}");
        assert!(other.finish().is_err());
        let _ = new.write(bytes);
        new.finish().unwrap_err()
    };
    // As it is, too: it is not its successor.
    let error = send(&now);
    assert!(error.to_string().contains("without its lock"), "{error}");
    let _lock = store.try_lock("writer.lock", LockMode::Exclusive).unwrap();
    let error = send(&now);
    assert!(error.to_string().contains("its number"), "{error}");
    assert_eq!(std::fs::read(dir.path().join("head")).unwrap(), now);
    let local = Repository::open(dir.path()).unwrap();
    assert_eq!(local.generations().unwrap().len(), 3);
}
