//! Does each row reach exactly one of many consumers, while others write, forward and compact, and however
//! large it is?

use evenkeel_cases::queues::verbs::{Ability, Queues, each, numbers};
use evenkeel_server::connect::Session;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn in_each_form() {
    each(|queues| {
        many_producers_and_consumers(queues);
        rows_that_are_there_already(queues);
        if queues.can(Ability::CompactsBeside) {
            compaction_beside_them(queues);
        }
        a_forwarder_that_is_interrupted_sends_each_row_once(queues);
        rows_of_four_megabytes(queues);
    });
}

/// Rows that somebody consumed.
#[derive(Default)]
struct Consumed(Mutex<Vec<i64>>);

impl Consumed {
    /// Consumes until none comes for a moment after `ended`.
    fn until(&self, queues: &dyn Queues, mut session: Session, ended: &AtomicBool) {
        loop {
            let was_ended = ended.load(Ordering::Acquire);
            match queues.wait(&mut session, &["t"], 0.2).unwrap() {
                Some(1) => {
                    let id = numbers(&mut session, "SELECT id FROM t");
                    assert_eq!(id.len(), 1);
                    self.0.lock().unwrap().extend(id);
                }
                _ if was_ended => break,
                _ => {}
            }
        }
        queues.end(&mut session).unwrap();
    }

    fn check(self, rows: i64) {
        let mut all = self.0.into_inner().unwrap();
        all.sort_unstable();
        assert_eq!(all, (1..=rows).collect::<Vec<i64>>());
    }
}

fn create(queues: &dyn Queues, database: &str) -> Session {
    let mut session = queues.open(database);
    let columns = "id INT NOT NULL, what VARCHAR(200)";
    queues.create(&mut session, "t", columns).unwrap();
    session
}

/// Q4M's have 32 clients of 200 rows; 16 of 25 are enough for them to meet.
fn many_producers_and_consumers(queues: &dyn Queues) {
    const EACH: i64 = 25;
    const MANY: i64 = 16;
    create(queues, "many");
    let consumed = Consumed::default();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (consumed, ended) = (&consumed, &ended);
        for _ in 0..MANY {
            let session = queues.open("many");
            scope.spawn(move || consumed.until(queues, session, ended));
        }
        let producers: Vec<_> = (0..MANY)
            .map(|number| {
                let mut session = queues.open("many");
                scope.spawn(move || {
                    for id in number * EACH + 1..=(number + 1) * EACH {
                        let sql = format!("INSERT INTO t VALUES ({id}, 'row')");
                        session.run(&sql).unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        ended.store(true, Ordering::Release);
    });
    consumed.check(MANY * EACH);
}

fn rows_that_are_there_already(queues: &dyn Queues) {
    let mut session = create(queues, "there");
    insert(&mut session, 1, 400, 20);
    let consumed = Consumed::default();
    let ended = AtomicBool::new(true);
    thread::scope(|scope| {
        for _ in 0..16 {
            let session = queues.open("there");
            scope.spawn(|| consumed.until(queues, session, &ended));
        }
    });
    consumed.check(400);
    assert_eq!(queues.stat(&mut session, "t", "rows"), 0);
}

fn insert(session: &mut Session, first: i64, last: i64, bytes: u32) {
    let values: Vec<String> = (first..=last)
        .map(|id| format!("({id}, REPEAT('x', {bytes}))"))
        .collect();
    let sql = format!("INSERT INTO t VALUES {}", values.join(","));
    session.run(&sql).unwrap();
}

/// Twenty consumers and two producers, and a table that is compacted all the time.
fn compaction_beside_them(queues: &dyn Queues) {
    let mut session = create(queues, "compacted");
    insert(&mut session, 1, 400, 200);
    let consumed = Consumed::default();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (consumed, ended) = (&consumed, &ended);
        for _ in 0..20 {
            let session = queues.open("compacted");
            scope.spawn(move || consumed.until(queues, session, ended));
        }
        let producers = [401, 501].map(|first| {
            let mut session = queues.open("compacted");
            scope.spawn(move || {
                for first in (first..first + 100).step_by(5) {
                    insert(&mut session, first, first + 4, 150);
                }
            })
        });
        for _ in 0..20 {
            assert!(queues.compact(&mut session, "t").unwrap().is_some());
        }
        for producer in producers {
            producer.join().unwrap();
        }
        ended.store(true, Ordering::Release);
    });
    consumed.check(600);
}

/// Each row is sent under its id. The forwarder loses its mind between sending and consuming again and again:
/// then it sends the row a second time, and that is passed over.
fn a_forwarder_that_is_interrupted_sends_each_row_once(queues: &dyn Queues) {
    if !queues.can(Ability::Sources) {
        return;
    }
    let mut from = create(queues, "sender");
    let mut to = create(queues, "receiver");
    insert(&mut from, 1, 150, 30);
    let mut sent = 0;
    while queues.wait(&mut from, &["t"], 0.0).unwrap() == Some(1) {
        let id = queues.row_id(&mut from).unwrap().unwrap();
        let row = numbers(&mut from, "SELECT id FROM t")[0];
        queues.set_source(&mut to, 7, "a", id).unwrap();
        let sql = format!("INSERT INTO t VALUES ({row}, 'forwarded')");
        to.run(&sql).unwrap();
        sent += 1;
        if sent % 3 == 0 {
            // It forgets that it has sent it.
            queues.abort(&mut from).unwrap();
        }
        if sent % 40 == 0 {
            queues.compact(&mut to, "t").unwrap();
            let mut other = queues.open("sender");
            queues.compact(&mut other, "t").unwrap();
        }
    }
    assert!(sent > 200, "{sent}");
    let mut received = Vec::new();
    while queues.wait(&mut to, &["t"], 0.0).unwrap() == Some(1) {
        received.extend(numbers(&mut to, "SELECT id FROM t"));
    }
    assert_eq!(received, (1..=150).collect::<Vec<i64>>());
    queues.end(&mut from).unwrap();
    queues.end(&mut to).unwrap();
}

/// Q4M's has 513 of them, 2 GiB; a dozen are 48 MiB, three files' worth.
fn rows_of_four_megabytes(queues: &dyn Queues) {
    const ROWS: i64 = 12;
    let mut session = queues.open("large");
    let columns = "id INT NOT NULL, what LONGTEXT NOT NULL";
    queues.create(&mut session, "t", columns).unwrap();
    for id in 1..=ROWS {
        let bytes = (4 << 20) + id;
        let sql = format!("INSERT INTO t VALUES ({id}, RPAD('{id}.', {bytes}, '{id}.'))");
        session.run(&sql).unwrap();
    }
    let whole = "SELECT LENGTH(what) + (what <> RPAD(CONCAT(id, '.'), 4194304 + id, CONCAT(id, '.'))) FROM t";
    let lengths: Vec<i64> = (1..=ROWS).map(|id| (4 << 20) + id).collect();
    assert_eq!(numbers(&mut session, whole), lengths);
    for length in &lengths {
        assert_eq!(queues.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
        assert_eq!(numbers(&mut session, whole), [*length]);
        if length % 5 == 0 {
            let mut other = queues.open("large");
            queues.compact(&mut other, "t").unwrap();
        }
    }
    queues.end(&mut session).unwrap();
    assert_eq!(queues.stat(&mut session, "t", "rows"), 0);
}
