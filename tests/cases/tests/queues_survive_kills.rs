//! After kill -9, is every message there that an INSERT has acknowledged, and none that a consumer has
//! ended?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::{Row, Session};
use evenkeel_testkit::effort::rounds;
use evenkeel_testkit::traffic::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const EACH: usize = 3;

/// Messages that wait while producers go on. More would make each look at all of them slower.
const AHEAD: usize = 3000;

/// What clients know.
#[derive(Default)]
struct Ledger {
    next: AtomicU64,
    /// Messages that have to be there unless they were ended: their INSERT has returned, or they were seen.
    acknowledged: Mutex<BTreeSet<u64>>,
    /// Messages whose `queue_end()` has returned, or that were gone after a doubtful one.
    ended: Mutex<BTreeSet<u64>>,
    /// Messages that a consumer was about to end when it lost its server.
    doubtful: Mutex<BTreeSet<u64>>,
    twice: Mutex<Vec<u64>>,
    inserts: AtomicU64,
    ends: AtomicU64,
    doubts: AtomicU64,
}

impl Ledger {
    fn produce(&self, mut session: Session) {
        loop {
            if self.acknowledged.lock().unwrap().len() > AHEAD {
                thread::sleep(Duration::from_millis(1));
                if session.value("SELECT 1").is_err() {
                    return;
                }
                continue;
            }
            let id = self.next.fetch_add(2, Ordering::Relaxed);
            let sql = format!(
                "INSERT INTO q VALUES ({id}, REPEAT('x', {})), ({}, 'second')",
                length(id),
                id + 1
            );
            if session.run(&sql).is_err() {
                return;
            }
            // A consumer may have ended them by now.
            let ended = self.ended.lock().unwrap();
            let new = [id, id + 1].into_iter().filter(|id| !ended.contains(id));
            self.acknowledged.lock().unwrap().extend(new);
            self.inserts.fetch_add(2, Ordering::Relaxed);
        }
    }

    fn consume(&self, mut session: Session) {
        loop {
            match session.value("SELECT queue_wait('q', 60)") {
                Ok(Some(answer)) if answer == "1" => {}
                _ => return,
            }
            let Ok(Some(id)) = session.value("SELECT id FROM q") else {
                return;
            };
            let id: u64 = id.parse().unwrap();
            if self.ended.lock().unwrap().contains(&id) {
                self.twice.lock().unwrap().push(id);
            }
            if session.value("SELECT queue_end()").is_err() {
                self.doubtful.lock().unwrap().insert(id);
                self.doubts.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let mut ended = self.ended.lock().unwrap();
            ended.insert(id);
            self.acknowledged.lock().unwrap().remove(&id);
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Compares with what is there after a start, and settles what was in doubt.
    fn compare(&self, rows: &[Row], round: u64) {
        let numbers = |row: &Row| {
            let cell = |at| row.at(at).unwrap().parse::<u64>().unwrap();
            (cell(0), cell(1))
        };
        let all: Vec<(u64, u64)> = rows.iter().map(numbers).collect();
        let there: BTreeSet<u64> = all.iter().map(|(id, _)| *id).collect();
        assert_eq!(
            there.len(),
            all.len(),
            "round {round}: a row is there twice"
        );
        let wrong: Vec<_> = all.iter().filter(|(id, len)| *len != length(*id)).collect();
        assert!(
            wrong.is_empty(),
            "round {round}: other rows than were put in: {wrong:?}"
        );
        let mut ended = self.ended.lock().unwrap();
        let mut doubtful = self.doubtful.lock().unwrap();
        let mut acknowledged = self.acknowledged.lock().unwrap();
        let back: Vec<_> = there.intersection(&ended).collect();
        assert!(
            back.is_empty(),
            "round {round}: ended, and there again: {back:?}"
        );
        let lost: Vec<_> = acknowledged
            .iter()
            .filter(|id| !there.contains(id) && !doubtful.contains(id))
            .collect();
        assert!(
            lost.is_empty(),
            "round {round}: acknowledged, and lost: {lost:?}"
        );
        // Rows of one statement are there together, but for those that were consumed.
        let alone = there.iter().filter(|id| {
            let other = *id ^ 1;
            !there.contains(&other) && !ended.contains(&other) && !doubtful.contains(&other)
        });
        assert_eq!(alone.count(), 0, "round {round}: half a statement");
        // From now on: what is there stays until it is ended, what is gone stays gone.
        ended.extend(doubtful.difference(&there));
        doubtful.clear();
        *acknowledged = there;
    }
}

/// Bytes of a message's text.
fn length(id: u64) -> u64 {
    if id.is_multiple_of(2) { id % 3000 } else { 6 }
}

/// A sample, unless `EVENKEEL_ROUNDS` says another number: `benchmarks/queue --kills N` sets it.
fn nothing_is_lost_and_nothing_comes_back(host: Host, sample: u32) {
    let rounds = u64::from(rounds("kills of a server with queues", sample, 200));
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let ledger = Ledger::default();
    let mut site = QueueSite::start_on(host, &[]);
    site.session()
        .run("CREATE TABLE q (id BIGINT NOT NULL, what TEXT) ENGINE=QUEUE")
        .unwrap();
    for round in 0..rounds {
        thread::scope(|scope| {
            for _ in 0..EACH {
                let (producer, consumer) = (site.session(), site.session());
                scope.spawn(|| ledger.produce(producer));
                scope.spawn(|| ledger.consume(consumer));
            }
            let done =
                || ledger.inserts.load(Ordering::Relaxed) + ledger.ends.load(Ordering::Relaxed);
            let before = done();
            evenkeel_testkit::until("there is work", || done() > before + 100);
            thread::sleep(Duration::from_millis(u64::from(random.below(200))));
            let server = Pid::from_raw(site.running.pid()).unwrap();
            kill_process(server, Signal::KILL).unwrap();
        });
        site = site.again(|running| running.kill());
        let rows = site
            .session()
            .rows("SELECT id, LENGTH(what) FROM q")
            .unwrap();
        ledger.compare(&rows, round);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        println!(
            "round {round}: {} acknowledged, {} ended, {} in doubt, {} there",
            of(&ledger.inserts),
            of(&ledger.ends),
            of(&ledger.doubts),
            rows.len()
        );
    }
    assert!(ledger.twice.lock().unwrap().is_empty());
    assert!(!ledger.ended.lock().unwrap().is_empty());
}

#[test]
fn on_mariadb_10_11() {
    nothing_is_lost_and_nothing_comes_back(Host::MariaDb10, 4);
}

#[test]
fn on_mariadb_11_8() {
    nothing_is_lost_and_nothing_comes_back(Host::MariaDb11, 2);
}

#[test]
fn on_mysql_9() {
    nothing_is_lost_and_nothing_comes_back(Host::MySql9, 2);
}
