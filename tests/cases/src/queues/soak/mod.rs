//! Clients of all kinds that use a server's queues at once, and write down what they know.

mod client;
mod ddl;
mod kills;
mod shared;

pub use ddl::Own;
pub use shared::{Counts, QUEUES, Soak};

use super::QueueSite;
use super::ledger::{LOOK, Seen};
use evenkeel_testkit::traffic::Random;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Clients that produce, and that consume.
const CLIENTS: u64 = 15;

impl Soak {
    /// Runs all clients until they are told to end; `ends` decides when, and how.
    pub fn run(&self, site: &QueueSite, own: &mut Own, seed: u64, ends: impl FnOnce(&Self)) {
        self.is_over.store(false, Ordering::SeqCst);
        // A restarted server gives the numbers of old connections again.
        self.connections.lock().expect("no client panics").clear();
        let options = site.running.connect_options();
        let random = |who: u64| Random::new(seed.wrapping_mul(1000) + who);
        std::thread::scope(|scope| {
            for who in 0..CLIENTS {
                let options = &options;
                scope.spawn(move || client::produce(self, options, who, random(who)));
                let who = who + CLIENTS;
                scope.spawn(move || client::consume(self, options, who, random(who)));
            }
            scope.spawn(|| kills::kill(self, &options, random(100)));
            scope.spawn(|| ddl::change(self, &options, random(101)));
            scope.spawn(|| own.work(self, &options));
            ends(self);
        });
    }

    /// Makes the shared queues.
    ///
    /// # Panics
    ///
    /// The server refuses.
    pub fn make(site: &QueueSite) {
        let mut session = site.session();
        for queue in QUEUES {
            let columns =
                "id BIGINT NOT NULL, producer INT NOT NULL, prio INT NOT NULL, what MEDIUMTEXT";
            let sql = format!("CREATE TABLE {queue} ({columns}) ENGINE=QUEUE");
            session.run(&sql).expect("a queue");
        }
        session
            .run("CREATE TABLE digits (n BIGINT PRIMARY KEY)")
            .expect("a table");
        session
            .run("INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7)")
            .expect("digits");
    }

    /// Compares what is there with what is known, while no client is there. Errors: what is wrong.
    ///
    /// # Panics
    ///
    /// The server cannot be asked.
    pub fn compare(&self, site: &QueueSite) -> Result<(), String> {
        let mut session = site.session();
        let mut queues = Vec::new();
        for queue in QUEUES {
            let rows = session.rows(&format!("{LOOK} {queue}")).expect("rows");
            queues.push(rows.iter().map(Seen::of).collect::<Result<Vec<_>, _>>()?);
        }
        self.ledger().compare(&queues)
    }

    /// Consumes all that is left, by one consumer. Errors: a row that cannot be, or another order than that of its
    /// producer.
    ///
    /// # Panics
    ///
    /// The server cannot be asked.
    pub fn drain(&self, site: &QueueSite) -> Result<(), String> {
        let mut session = site.session();
        for (at, queue) in QUEUES.iter().enumerate() {
            let mut last = BTreeMap::new();
            let wait = format!("SELECT queue_wait_n('{queue}', 50, 0)");
            let mut owned = Vec::new();
            loop {
                let given = session.value(&wait).expect("an answer");
                self.ledger().ends(&std::mem::take(&mut owned))?;
                if given.as_deref() == Some("0") {
                    break;
                }
                for row in session.rows(&format!("{LOOK} {queue}")).expect("rows") {
                    let seen = Seen::of(&row)?;
                    self.ledger().sees(at, seen)?;
                    let before = last.insert(seen.producer, seen.id);
                    if before.is_some_and(|before| before > seen.id) {
                        return Err(format!("{seen:?} comes behind {before:?}"));
                    }
                    owned.push(seen.id);
                }
            }
        }
        drop(session);
        self.compare(site)
    }
}
