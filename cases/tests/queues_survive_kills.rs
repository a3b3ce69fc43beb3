//! After kill -9, is every message there that an INSERT has acknowledged, and none that a consumer has
//! ended?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::traffic::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const EACH: usize = 3;

/// What clients know.
#[derive(Default)]
struct Ledger {
    next: AtomicU64,
    /// Messages whose INSERT has returned.
    acknowledged: Mutex<BTreeSet<u64>>,
    /// Messages whose `queue_end()` has returned.
    ended: Mutex<BTreeSet<u64>>,
    /// Messages that a consumer was about to end when it lost its server.
    doubtful: Mutex<BTreeSet<u64>>,
    twice: Mutex<Vec<u64>>,
}

impl Ledger {
    fn produce(&self, mut session: Session) {
        loop {
            let id = self.next.fetch_add(2, Ordering::Relaxed);
            let sql = format!(
                "INSERT INTO q VALUES ({id}, REPEAT('x', {})), ({}, 'second')",
                id % 3000,
                id + 1
            );
            if session.run(&sql).is_err() {
                return;
            }
            self.acknowledged.lock().unwrap().extend([id, id + 1]);
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
                return;
            }
            self.ended.lock().unwrap().insert(id);
        }
    }
}

fn nothing_is_lost_and_nothing_comes_back(host: Host, rounds: u64) {
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
            let acknowledged = || ledger.acknowledged.lock().unwrap().len();
            let before = acknowledged();
            evenkeel_testkit::until("there is work", || acknowledged() > before + 100);
            thread::sleep(Duration::from_millis(u64::from(random.below(200))));
            let server = Pid::from_raw(site.running.pid()).unwrap();
            kill_process(server, Signal::KILL).unwrap();
        });
        site = site.again(|running| running.kill());
        let rows = site.session().rows("SELECT id FROM q").unwrap();
        let there: BTreeSet<u64> = rows
            .iter()
            .map(|row| row.at(0).unwrap().parse().unwrap())
            .collect();
        assert_eq!(
            there.len(),
            rows.len(),
            "round {round}: a row is there twice"
        );
        let ended = ledger.ended.lock().unwrap();
        let doubtful = ledger.doubtful.lock().unwrap();
        let back: Vec<_> = there.intersection(&ended).collect();
        assert!(
            back.is_empty(),
            "round {round}: ended, and there again: {back:?}"
        );
        let acknowledged = ledger.acknowledged.lock().unwrap();
        let lost: Vec<_> = acknowledged
            .iter()
            .filter(|id| !there.contains(id) && !ended.contains(id) && !doubtful.contains(id))
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
        println!(
            "round {round}: {} acknowledged, {} ended, {} in doubt",
            acknowledged.len(),
            ended.len(),
            doubtful.len()
        );
    }
    assert!(ledger.twice.lock().unwrap().is_empty());
    assert!(!ledger.ended.lock().unwrap().is_empty());
}

#[test]
fn on_mariadb_10_11() {
    nothing_is_lost_and_nothing_comes_back(Host::MariaDb10, 6);
}

#[test]
fn on_mariadb_11_8() {
    nothing_is_lost_and_nothing_comes_back(Host::MariaDb11, 2);
}

#[test]
fn on_mysql_9() {
    nothing_is_lost_and_nothing_comes_back(Host::MySql9, 2);
}
