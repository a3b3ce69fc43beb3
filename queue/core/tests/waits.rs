//! Does a session that waits get a row as soon as there is one, and is it told of everything else at once?

use evenkeel_queue::io::Disk;
use evenkeel_queue::{Append, Condition, Options, Queue, Session, Store, Sync, Waited, Wanted};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any wait that is meant to end otherwise.
const LONG: Duration = Duration::from_secs(60);

struct Scene {
    dir: tempfile::TempDir,
    store: Store,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Arc::new(Disk), &dir.path().join("queue")).unwrap();
        Self { dir, store }
    }

    fn anchor(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn table(&self, name: &str) -> Arc<Queue> {
        self.store.create(&self.anchor(name), b"").unwrap();
        let options = Options {
            rows: Sync::Never,
            removals: Sync::Never,
            segment_bytes: 1 << 16,
            compact_from: 1 << 17,
            ..Options::default()
        };
        self.store.open(&self.anchor(name), options).unwrap().0
    }
}

fn any(table: &Arc<Queue>) -> Wanted {
    Wanted {
        table: table.clone(),
        condition: None,
    }
}

fn only(table: &Arc<Queue>, byte: u8) -> Wanted {
    Wanted {
        table: table.clone(),
        condition: Some(Condition::new(move |row| row[0] == byte)),
    }
}

fn put(table: &Queue, byte: u8) -> u64 {
    match table.append(vec![vec![byte]], None).unwrap() {
        Append::First(id) => id,
        Append::Repeated => panic!("it has no source"),
    }
}

/// Waits in another thread; returns when it is asleep.
fn wait_elsewhere(
    wanted: Vec<Wanted>,
    timeout: Duration,
) -> (mpsc::Receiver<Waited>, evenkeel_queue::Killer) {
    let before: usize = wanted.iter().map(|one| one.table.stats().waiters).sum();
    let (say, hear) = mpsc::channel();
    let mut session = Session::new();
    let killer = session.killer();
    let tables = wanted.clone();
    thread::spawn(move || {
        let waited = session.wait(&wanted, 1, timeout, &|| false).unwrap();
        session.end().unwrap();
        say.send(waited)
    });
    let deadline = Instant::now() + LONG;
    while tables
        .iter()
        .map(|one| one.table.stats().waiters)
        .sum::<usize>()
        < before + tables.len()
    {
        assert!(Instant::now() < deadline, "it does not wait");
        thread::yield_now();
    }
    (hear, killer)
}

#[test]
fn for_the_first_of_several_tables() {
    let scene = Scene::new();
    let (a, b) = (scene.table("a"), scene.table("b"));
    let mut session = Session::new();
    let (in_b, in_a) = (put(&b, 1), put(&a, 1));
    let both = [any(&a), any(&b)];
    let mut next = || session.wait(&both, 1, Duration::ZERO, &|| false).unwrap();
    assert_eq!(
        next(),
        Waited::Rows(0, vec![in_a]),
        "the first is preferred"
    );
    assert_eq!(next(), Waited::Rows(1, vec![in_b]));
    assert_eq!(next(), Waited::TimedOut);
    assert_eq!(
        (a.stats().rows, b.stats().rows),
        (0, 0),
        "each wait removes what was owned"
    );
    let (heard, _) = wait_elsewhere(both.to_vec(), LONG);
    let id = put(&b, 2);
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Waited::Rows(1, vec![id]));
    assert_eq!((a.stats().waiters, b.stats().waiters), (0, 0));
}

#[test]
fn with_conditions_and_in_batches() {
    let scene = Scene::new();
    let table = scene.table("a");
    let (sevens, _) = wait_elsewhere(vec![only(&table, 7)], LONG);
    let (nines, _) = wait_elsewhere(vec![only(&table, 9)], LONG);
    let other = put(&table, 1);
    let nine = put(&table, 9);
    let seven = put(&table, 7);
    assert_eq!(
        nines.recv_timeout(LONG).unwrap(),
        Waited::Rows(0, vec![nine])
    );
    assert_eq!(
        sevens.recv_timeout(LONG).unwrap(),
        Waited::Rows(0, vec![seven])
    );
    let more: Vec<u64> = (0..200).map(|at| put(&table, at % 2)).collect();
    let mut session = Session::new();
    let waited = session
        .wait(&[only(&table, 0)], 3, LONG, &|| false)
        .unwrap();
    assert_eq!(waited, Waited::Rows(0, vec![more[0], more[2], more[4]]));
    session.abort();
    let waited = session.wait(&[any(&table)], 2, LONG, &|| false).unwrap();
    assert_eq!(waited, Waited::Rows(0, vec![other, more[0]]));
}

/// Rows that come together, from a statement or from whoever gives them back.
#[test]
fn for_what_it_wants_most() {
    let scene = Scene::new();
    let table = scene.table("a");
    let wants = || vec![only(&table, 9), only(&table, 0)];
    let (first, _) = wait_elsewhere(wants(), LONG);
    let (second, _) = wait_elsewhere(wants(), LONG);
    let rows = [0, 9, 7, 9, 0].map(|byte| vec![byte]);
    table.append(rows.to_vec(), None).unwrap();
    let waited = |heard: mpsc::Receiver<Waited>| heard.recv_timeout(LONG).unwrap();
    assert_eq!(waited(first), Waited::Rows(0, vec![2]));
    assert_eq!(waited(second), Waited::Rows(0, vec![4]));
    let mut owner = Session::new();
    let all = owner.wait(&[any(&table)], 5, Duration::ZERO, &|| false);
    assert_eq!(all, Ok(Waited::Rows(0, vec![1, 3, 5])));
    let wants = vec![only(&table, 7), only(&table, 0)];
    let (third, _) = wait_elsewhere(wants, LONG);
    owner.abort();
    assert_eq!(waited(third), Waited::Rows(0, vec![3]));
}

#[test]
fn and_owns_nothing_once_the_table_is_truncated() {
    let scene = Scene::new();
    let table = scene.table("a");
    for ends in [true, false] {
        put(&table, 1);
        let mut owner = Session::new();
        let waited = owner.wait(&[any(&table)], 1, Duration::ZERO, &|| false);
        assert!(matches!(waited, Ok(Waited::Rows(0, _))), "{waited:?}");
        table.truncate().unwrap();
        assert_eq!(table.stats().rows, 0);
        match ends {
            true => owner.end().unwrap(),
            false => owner.abort(),
        }
        assert_eq!((table.stats().rows, table.stats().owned), (0, 0));
        assert_eq!(table.stats().back_by_abort, 0);
        assert_eq!(table.take(owner.owner(), None, 1), Ok(vec![]));
    }
}

#[test]
fn for_a_row_that_somebody_gives_back_or_leaves_behind() {
    let scene = Scene::new();
    let table = scene.table("a");
    let id = put(&table, 7);
    for leaves in [false, true] {
        let mut first = Session::new();
        first.wait(&[any(&table)], 1, LONG, &|| false).unwrap();
        let (heard, killer) = wait_elsewhere(vec![only(&table, 7)], LONG);
        let (wrong, wrong_killer) = wait_elsewhere(vec![only(&table, 8)], LONG);
        if leaves {
            drop(first);
        } else {
            first.abort();
        }
        let waited = heard.recv_timeout(LONG).unwrap();
        killer.kill();
        wrong_killer.kill();
        assert_eq!(wrong.recv_timeout(LONG).unwrap(), Waited::Killed);
        if leaves {
            assert_ne!(waited, Waited::Rows(0, vec![id]));
        } else {
            assert_eq!(waited, Waited::Rows(0, vec![id]));
            put(&table, 7);
        }
    }
}

#[test]
fn until_it_is_killed_or_the_table_goes() {
    let scene = Scene::new();
    let (a, b) = (scene.table("a"), scene.table("b"));
    let (heard, killer) = wait_elsewhere(vec![any(&a), any(&b)], LONG);
    killer.kill();
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Waited::Killed);
    let mut session = Session::new();
    let waited = session.wait(&[any(&a)], 1, LONG, &|| true).unwrap();
    assert_eq!(waited, Waited::Killed, "killed before it slept");
    // Nobody else ends it.
    let looks = Cell::new(0);
    let is_killed = || looks.replace(looks.get() + 1) > 0;
    let waited = session.wait(&[any(&a), any(&b)], 1, LONG, &is_killed);
    assert_eq!(waited.unwrap(), Waited::Killed, "killed while it slept");
    assert_eq!(a.stats().waiters, 0);
    let (heard, _) = wait_elsewhere(vec![any(&a), any(&b)], LONG);
    scene
        .store
        .drop_table(&scene.anchor("b"), Some(&b))
        .unwrap();
    assert_eq!(heard.recv_timeout(LONG).unwrap(), Waited::Dropped(1));
    assert!(b.append(vec![vec![1]], None).is_err());
    assert_eq!(a.stats().waiters, 0);
    assert!(!Path::new(&scene.anchor("b")).exists());
}

/// Takes rows and tells of them, until one of a single byte comes.
fn consume(consumer: usize, tables: &[Arc<Queue>; 2], say: &mpsc::Sender<Vec<u8>>) {
    let mut session = Session::new();
    let wanted = [any(&tables[consumer % 2]), any(&tables[1 - consumer % 2])];
    let mut waits = 0;
    loop {
        let waited = session
            .wait(&wanted, 1 + consumer, LONG, &|| false)
            .unwrap();
        let Waited::Rows(_, ids) = waited else {
            panic!("no row came: {waited:?}");
        };
        waits += 1;
        if waits % 10 == 0 {
            session.abort();
            continue;
        }
        let table = session.held().unwrap().0.clone();
        let rows: Vec<Vec<u8>> = ids
            .iter()
            .map(|id| table.read(*id).unwrap().unwrap())
            .collect();
        session.end().unwrap();
        if rows.iter().any(|row| row.len() == 1) {
            return;
        }
        rows.into_iter().for_each(|row| say.send(row).unwrap());
    }
}

#[test]
fn and_every_row_goes_to_one_of_many_while_compaction_runs() {
    const PRODUCERS: u64 = 4;
    const ROWS: u64 = 1500;
    let scene = Scene::new();
    let tables = [scene.table("a"), scene.table("b")];
    let (say, hear) = mpsc::channel();
    thread::scope(|scope| {
        for consumer in 0..6 {
            let (say, tables) = (say.clone(), tables.clone());
            scope.spawn(move || {
                consume(consumer, &tables, &say);
            });
        }
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let tables = tables.clone();
                scope.spawn(move || {
                    for row in 0..ROWS {
                        let bytes = [producer.to_le_bytes(), row.to_le_bytes()].concat();
                        tables[(row % 2) as usize]
                            .append(vec![[bytes, vec![0; 100]].concat()], None)
                            .unwrap();
                        if row % 50 == 0 {
                            let _ = tables[(producer % 2) as usize].compact(row % 100 == 0);
                        }
                    }
                })
            })
            .collect();
        producers.into_iter().for_each(|one| one.join().unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..PRODUCERS * ROWS {
            let row = hear.recv_timeout(LONG).expect("a row was lost");
            assert!(seen.insert(row), "a row came twice");
        }
        // Each consumer ends when it gets one of these; none takes another's with it.
        while tables
            .iter()
            .map(|table| table.stats().waiters)
            .sum::<usize>()
            > 0
        {
            put(&tables[0], 0);
        }
    });
    assert!(hear.try_recv().is_err());
}
