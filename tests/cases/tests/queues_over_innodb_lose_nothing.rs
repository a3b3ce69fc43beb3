//! Do queues that are SQL over InnoDB lose nothing and repeat nothing, with many consumers, clients that
//! are killed and servers that are killed?

use evenkeel_cases::queues::over_innodb::OverInnoDb;
use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_server::connect::Session;
use evenkeel_testkit::TestServer;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::until;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

const CONSUMERS: u64 = 32;
const PRODUCERS: i64 = 4;
const EACH: i64 = 100;
const ROUNDS: u64 = 2;

/// What clients know, outside of the server.
#[derive(Default)]
struct Ledger {
    next: AtomicI64,
    /// Messages whose INSERT has returned.
    acknowledged: Mutex<BTreeSet<i64>>,
    /// Messages whose `queue_end()` has returned.
    ended: Mutex<BTreeSet<i64>>,
    /// Messages that a consumer was about to end when it lost its server.
    doubtful: Mutex<BTreeSet<i64>>,
    /// Messages that somebody owns.
    owned: Mutex<BTreeSet<i64>>,
}

impl Ledger {
    fn many_ended(&self) -> usize {
        self.ended.lock().unwrap().len()
    }

    /// Takes messages until all are ended. Some are given back, and some consumers just go.
    fn consume_all(&self, site: &OverInnoDb, seed: u64, all: usize) {
        let mut random = Random::new(seed);
        let mut session = site.open("many");
        while self.many_ended() < all {
            let batch = random.below(4) == 0;
            let answer = match batch {
                true => site.wait_n(&mut session, "q", 3, 0.2),
                false => site.wait(&mut session, &["q:id < 200", "q"], 0.2),
            };
            if answer.unwrap() == Some(0) {
                continue;
            }
            let ids = numbers(&mut session, "SELECT id FROM q");
            assert!(!ids.is_empty() && ids.len() <= 3, "{ids:?}");
            {
                let mut owned = self.owned.lock().unwrap();
                for id in &ids {
                    assert!(owned.insert(*id), "{id} is owned by two");
                    assert!(!self.ended.lock().unwrap().contains(id), "{id} twice");
                }
            }
            let leave = |ids: &[i64]| {
                let mut owned = self.owned.lock().unwrap();
                for id in ids {
                    owned.remove(id);
                }
            };
            match random.below(10) {
                0 => {
                    leave(&ids);
                    site.abort(&mut session).unwrap();
                }
                1 => {
                    leave(&ids);
                    session = site.open("many");
                }
                _ => {
                    site.end(&mut session).unwrap();
                    self.ended.lock().unwrap().extend(&ids);
                    leave(&ids);
                }
            }
        }
    }

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

    fn consume(&self, site: &OverInnoDb, mut session: Session) {
        loop {
            if site.wait(&mut session, &["q"], 60.0) != Ok(Some(1)) {
                return;
            }
            let Ok(Some(id)) = session.value("SELECT id FROM q") else {
                return;
            };
            let id: i64 = id.parse().unwrap();
            assert!(!self.ended.lock().unwrap().contains(&id), "{id} twice");
            if site.end(&mut session).is_err() {
                self.doubtful.lock().unwrap().insert(id);
                return;
            }
            self.ended.lock().unwrap().insert(id);
        }
    }

    /// What is there, is what was acknowledged and not ended.
    fn check(&self, there: &[i64], round: u64) {
        let alone: BTreeSet<i64> = there.iter().copied().collect();
        assert_eq!(alone.len(), there.len(), "round {round}: a row twice");
        let (ended, doubtful) = (self.ended.lock().unwrap(), self.doubtful.lock().unwrap());
        let back: Vec<_> = alone.intersection(&ended).collect();
        assert!(back.is_empty(), "round {round}: ended, and back: {back:?}");
        let acknowledged = self.acknowledged.lock().unwrap();
        let lost = acknowledged.iter();
        let lost = lost.filter(|id| !alone.contains(id) && !ended.contains(id));
        let lost: Vec<_> = lost.filter(|id| !doubtful.contains(id)).collect();
        assert!(lost.is_empty(), "round {round}: lost: {lost:?}");
        println!(
            "round {round}: {} acknowledged, {} ended, {} in doubt",
            acknowledged.len(),
            ended.len(),
            doubtful.len()
        );
    }
}

fn many_consumers(site: &OverInnoDb, seed: u64) {
    let ledger = Ledger::default();
    let mut session = site.open("many");
    site.create(&mut session, "q", "id BIGINT NOT NULL, what TEXT")
        .unwrap();
    let all = (PRODUCERS * EACH) as usize;
    thread::scope(|scope| {
        for consumer in 0..CONSUMERS {
            let ledger = &ledger;
            scope.spawn(move || ledger.consume_all(site, seed + consumer, all));
        }
        for producer in 0..PRODUCERS {
            scope.spawn(move || {
                let mut session = site.open("many");
                for id in producer * EACH..(producer + 1) * EACH {
                    let sql = format!("INSERT INTO q VALUES ({id}, 'message')");
                    session.run(&sql).unwrap();
                }
            });
        }
    });
    let ended: Vec<i64> = ledger.ended.lock().unwrap().iter().copied().collect();
    assert_eq!(ended, (0..PRODUCERS * EACH).collect::<Vec<_>>());
    assert!(numbers(&mut session, "SELECT id FROM q").is_empty());
}

fn killed_servers(mut site: OverInnoDb, random: &mut Random) {
    let ledger = Ledger::default();
    let mut session = site.open("killed");
    site.create(&mut session, "q", "id BIGINT NOT NULL, what TEXT")
        .unwrap();
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            let (site, ledger) = (&site, &ledger);
            for _ in 0..3 {
                let (producer, consumer) = (site.open("killed"), site.open("killed"));
                scope.spawn(move || ledger.produce(producer));
                scope.spawn(move || ledger.consume(site, consumer));
            }
            let before = ledger.many_ended();
            let wanted = before + 20 + random.below(100) as usize;
            until("there is work", || ledger.many_ended() > wanted);
            let server = Pid::from_raw(site.running.pid()).unwrap();
            kill_process(server, Signal::KILL).unwrap();
        });
        site = site.again(|running| running.kill());
        let mut session = site.open("killed");
        let there = numbers(&mut session, "SELECT id FROM q");
        ledger.check(&there, round);
    }
    assert!(ledger.many_ended() > 0);
}

fn case(server: TestServer) {
    let seed = u64::from(std::process::id());
    println!("{}, seed {seed}", server.name);
    let durable = "--innodb-flush-log-at-trx-commit=1";
    let site = OverInnoDb::start(server, &[durable]);
    many_consumers(&site, seed);
    killed_servers(site, &mut Random::new(seed));
}

#[test]
fn mariadb() {
    case(mariadb_10_11());
}

#[test]
fn mysql_8() {
    case(mysql_8_0_15());
}

#[test]
fn mysql_5_7() {
    case(mysql_5_7_22());
}
