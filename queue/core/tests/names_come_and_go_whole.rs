//! Is a table that is made, renamed or dropped there as a whole or not at all, whatever happens meanwhile?

mod scene;

use evenkeel_queue::io::simulated::{Fault, Simulated};
use evenkeel_queue::io::{Disk, File, Io};
use evenkeel_queue::{Error, Queue, Store};
use scene::{rows, small, store};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// What is done to the table `/a/one.que`; the second is where it is then.
type Step = (
    &'static str,
    fn(&Store) -> evenkeel_queue::Result<()>,
    Option<&'static str>,
);

const ONE: &str = "/a/one.que";
const ROWS: usize = 3;

fn steps() -> [Step; 5] {
    let create = |store: &Store| store.create(Path::new("/a/two.que"), b"layout");
    let rename = |store: &Store| store.rename(Path::new(ONE), Path::new("/a/new.que"));
    let moves = |store: &Store| store.rename(Path::new(ONE), Path::new("/b/one.que"));
    let columns = |store: &Store| store.set_layout(Path::new(ONE), b"other");
    let drops = |store: &Store| {
        let id = store.drop_table(Path::new(ONE), None)?;
        store.remove_rows(id);
        Ok(())
    };
    [
        ("create", create, Some(ONE)),
        ("rename", rename, Some("/a/new.que")),
        ("move", moves, Some("/b/one.que")),
        ("columns", columns, Some(ONE)),
        ("drop", drops, None),
    ]
}

/// A disk with two databases and a table in one of them.
fn disk() -> Simulated {
    let disk = Simulated::new();
    for database in ["/a", "/b"] {
        disk.make_dir(Path::new(database)).unwrap();
    }
    disk.sync_dir(Path::new("/")).unwrap();
    let store = store(&disk);
    store.create(Path::new(ONE), b"layout").unwrap();
    let (table, _) = store.open(Path::new(ONE), small()).unwrap();
    table.append(vec![vec![7; 10]; ROWS], None).unwrap();
    table.close().unwrap();
    disk
}

/// Starts as a server does after a crash. Which tables there are; each is whole, and there is nothing else.
fn start(disk: &Simulated, what: &str) -> Vec<String> {
    let store = store(disk);
    let files = disk.files().into_iter();
    let anchors: Vec<_> = files
        .map(|(path, _)| path)
        .filter(|path| path.extension().is_some_and(|kind| kind == "que"))
        .collect();
    let ids: Vec<u128> = anchors
        .iter()
        .map(|anchor| store.anchor(anchor).unwrap().id)
        .collect();
    store.sweep(&ids).unwrap();
    assert_eq!(
        disk.list(Path::new("/queue")).unwrap().len(),
        ids.len(),
        "{what}"
    );
    for anchor in &anchors {
        let (table, _) = store
            .open(anchor, small())
            .unwrap_or_else(|why| panic!("{what}: {}: {why}", anchor.display()));
        let expected = if anchor.ends_with("two.que") { 0 } else { ROWS };
        assert_eq!(rows(&table).unwrap().len(), expected, "{what}");
    }
    let names = anchors.iter().map(|path| path.display().to_string());
    names.collect()
}

#[test]
fn when_power_goes_between_any_two_calls() {
    for (name, step, then) in steps() {
        let disk = disk();
        let before = disk.calls();
        step(&store(&disk)).unwrap();
        let after = disk.calls();
        for calls in before..=after {
            for seed in 0..8 {
                let what = format!("{name}, {calls} of {before} to {after}, seed {seed}");
                let cut = disk.power_cut(calls, &mut fastrand::Rng::with_seed(seed));
                let there = start(&cut, &what);
                let one = there.iter().filter(|name| !name.ends_with("two.que"));
                let one: Vec<&str> = one.map(String::as_str).collect();
                let is_done = calls == after;
                match name {
                    "create" => assert_eq!(one, [ONE], "{what}"),
                    _ if is_done => assert_eq!(one, then.as_slice(), "{what}"),
                    "drop" => assert!(one.len() < 2, "{what}"),
                    _ => assert_eq!(one.len(), 1, "{what}"),
                }
                assert!(name != "create" || !is_done || there.len() == 2, "{what}");
            }
        }
    }
}

/// The server takes what failed for not done, and continues with what it had.
#[test]
fn when_any_call_fails() {
    for (name, step, _) in steps() {
        for failing in 0.. {
            let disk = disk();
            let store = store(&disk);
            disk.fail_after(failing, Fault::Refused, false);
            let done = step(&store);
            disk.heal();
            let what = format!("{name}, call {failing}: {done:?}");
            // A server drops a database only when it knows all files in its directory.
            let lists = ["/a", "/b"].map(|database| disk.list(Path::new(database)).unwrap());
            let half = lists.iter().flatten().find(|name| name.ends_with(".new"));
            assert_eq!(half, None, "{what}");
            let there = start(&disk, &what);
            match (name, &done) {
                // What could not be made durable may be gone all the same.
                ("drop", Err(_)) => assert!(there.len() < 2, "{what}"),
                (_, Err(_)) => assert_eq!(there, [ONE], "{what}"),
                _ => {}
            }
            if done.is_ok() && failing > 40 {
                break;
            }
        }
    }
}

/// What a server calls `中…` fifty times is 250 letters on disk.
#[test]
fn when_a_name_is_as_long_as_one_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Arc::new(Disk), &dir.path().join("queue")).unwrap();
    let [one, long, longer] = [1, 251, 252].map(|len| {
        let name = format!("{}.que", "n".repeat(len));
        dir.path().join(name)
    });
    store.create(&one, b"layout").unwrap();
    store.rename(&one, &long).unwrap();
    store.set_layout(&long, b"other").unwrap();
    assert!(store.rename(&long, &longer).is_err());
    assert_eq!(store.anchor(&long).unwrap().layout, b"other");
    assert!(store.create(&longer, b"layout").is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// Something that happens within a call, once.
type Event = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// Real files, and what happens when one is removed and when compaction makes one.
#[derive(Default)]
struct Within {
    at_unlink: Event,
    at_part: Event,
}

fn happen(event: &Event) {
    let act = event.lock().unwrap().take();
    if let Some(act) = act {
        act();
    }
}

#[derive(Clone)]
struct Watched(Arc<Within>);

impl Io for Watched {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        if path.extension().is_some_and(|kind| kind == "part") {
            happen(&self.0.at_part);
        }
        Disk.create(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Disk.open(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        if path.extension().is_some_and(|kind| kind == "seg") {
            happen(&self.0.at_unlink);
        }
        Disk.unlink(path)
    }
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        Disk.make_dir(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Disk.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        Disk.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Disk.list(path)
    }
}

struct Real {
    dir: tempfile::TempDir,
    within: Arc<Within>,
    store: Store,
    table: Arc<Queue>,
}

fn real() -> Real {
    let dir = tempfile::tempdir().unwrap();
    let within = Arc::new(Within::default());
    let store = Store::new(Arc::new(Watched(within.clone())), &dir.path().join("queue")).unwrap();
    let anchor = dir.path().join("one.que");
    store.create(&anchor, b"layout").unwrap();
    let (table, _) = store.open(&anchor, small()).unwrap();
    for _ in 0..60 {
        table.append(vec![vec![7; 100]], None).unwrap();
    }
    // So many are gone that compaction begins by itself, and some are left to copy.
    let mut ids = table.take(1, None, 60).unwrap();
    ids.retain(|id| id % 8 != 0);
    table.remove(1, &ids).unwrap();
    Real {
        dir,
        within,
        store,
        table,
    }
}

impl Real {
    fn left(&self) -> Vec<String> {
        Disk.list(&self.dir.path().join("queue")).unwrap()
    }
}

#[test]
fn when_somebody_compacts_a_table_whose_files_are_being_removed() {
    let real = real();
    let (table, said) = (real.table.clone(), Arc::new(Mutex::new(Vec::new())));
    let reported = said.clone();
    let compact = move || {
        let done = [table.compact_slice().map(|_| ()), table.compact(true)];
        reported.lock().unwrap().extend(done);
    };
    *real.within.at_unlink.lock().unwrap() = Some(Box::new(compact));
    let anchor = real.dir.path().join("one.que");
    let id = real.store.drop_table(&anchor, Some(&real.table)).unwrap();
    real.store.remove_rows(id);
    assert_eq!(real.left(), [""; 0]);
    let dropped = Err(Error::Dropped);
    assert_eq!(said.lock().unwrap()[..], [dropped.clone(), dropped]);
}

#[test]
fn when_it_is_dropped_while_somebody_compacts_it() {
    let real = real();
    let (entered, is_in) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let pause = move || {
        entered.send(()).unwrap();
        may_go.recv().unwrap();
    };
    *real.within.at_part.lock().unwrap() = Some(Box::new(pause));
    let was_early = std::thread::scope(|scope| {
        let compacting = scope.spawn(|| real.table.compact(true));
        is_in.recv().unwrap();
        let (done, is_done) = mpsc::channel();
        let (store, table) = (&real.store, &real.table);
        let anchor = real.dir.path().join("one.que");
        scope.spawn(move || {
            let id = store.drop_table(&anchor, Some(table)).unwrap();
            store.remove_rows(id);
            // Nobody waits for it after that moment.
            let _ = done.send(());
        });
        while !real.table.is_gone() {
            std::thread::yield_now();
        }
        // However long that is: a file is about to be made.
        let was_early = is_done.recv_timeout(Duration::from_millis(50)).is_ok();
        go.send(()).unwrap();
        let _ = compacting.join().unwrap();
        was_early
    });
    assert!(!was_early, "a file was about to be made");
    assert_eq!(real.left(), [""; 0]);
}
