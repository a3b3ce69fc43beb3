//! Those who produce and those who consume.

use super::shared::{Lost, QUEUES, Soak};
use crate::queues::ledger::{LOOK, Seen, text};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::traffic::Random;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

/// Rows that wait while producers go on.
const AHEAD: u64 = 600;

pub(super) fn produce(soak: &Soak, options: &ConnectOptions, who: u64, mut random: Random) {
    while let Some(mut session) = soak.session(options, who) {
        while soak.continues() {
            if soak.ledger().waiting() > AHEAD {
                sleep(Duration::from_millis(5));
            } else if insert(soak, &mut session, who, &mut random).is_err() {
                break;
            }
        }
    }
}

fn insert(soak: &Soak, session: &mut Session, who: u64, random: &mut Random) -> Result<(), Lost> {
    let queue = random.below(3) as usize;
    let way = random.below(4);
    let count = if way < 2 {
        1
    } else {
        u64::from(1 + random.below(8))
    };
    let ids = soak.ledger().sends(who, queue, count);
    let into = format!("INSERT INTO {} (id, producer, prio, what)", QUEUES[queue]);
    let row = |id: &str| format!("{id}, {who}, {id} % 10, {}", text(id));
    let sql = match way {
        3 => {
            let row = row(&format!("({} + n)", ids.start));
            format!("{into} SELECT {row} FROM digits WHERE n < {count} ORDER BY n")
        }
        _ => {
            let rows: Vec<String> = ids
                .clone()
                .map(|id| format!("({})", row(&id.to_string())))
                .collect();
            format!("{into} VALUES {}", rows.join(", "))
        }
    };
    let done = soak.done(session, &sql);
    match done {
        Ok(()) => soak.ledger().acknowledges(&ids),
        Err(()) => soak.ledger().doubts_insert(&ids),
    }
    done
}

pub(super) fn consume(soak: &Soak, options: &ConnectOptions, who: u64, mut random: Random) {
    while let Some(session) = soak.session(options, who) {
        let mut consumer = Consumer {
            soak,
            session,
            owned: Vec::new(),
        };
        while soak.continues() && consumer.work(&mut random).is_ok() {}
    }
}

struct Consumer<'a> {
    soak: &'a Soak,
    session: Session,
    /// What the next wait, or an end, consumes.
    owned: Vec<u64>,
}

impl Consumer<'_> {
    /// Waits, looks, and does one of the things that may be done then. Errors: the session is of no more use.
    fn work(&mut self, random: &mut Random) -> Result<(), Lost> {
        if !self.take(random)? {
            return Ok(());
        }
        match random.below(20) {
            0..=10 => self.consumes("SELECT queue_end()").map(drop),
            11 => {
                self.owned.clear();
                self.soak
                    .value(&mut self.session, "SELECT queue_abort()")
                    .map(drop)
            }
            12 => Err(()),
            13 => self.begins_anew(|session| session.raw().reset()),
            14 => self.begins_anew(|session| session.raw().change_user(Default::default())),
            // The next wait consumes it.
            _ => Ok(()),
        }
    }

    /// A call that consumes what is owned.
    fn consumes(&mut self, sql: &str) -> Result<Option<String>, Lost> {
        let owned = std::mem::take(&mut self.owned);
        let reported = self.soak.value(&mut self.session, sql);
        match reported {
            Ok(Some(_)) => {
                let ended = self.soak.ledger().ends(&owned);
                self.soak.check(sql, ended);
            }
            Ok(None) => self.soak.fails(format!("{sql}: NULL")),
            Err(()) => self.soak.ledger().doubts_ends(&owned),
        }
        reported
    }

    /// Returns whether it was given a row.
    fn take(&mut self, random: &mut Random) -> Result<bool, Lost> {
        let (first, second) = (random.below(3) as usize, random.below(3) as usize);
        let [one, two] = [first, second].map(|at| QUEUES[at]);
        let most = 1 + random.below(5);
        let kind = random.below(5);
        let queues = match kind {
            0 | 1 | 4 => vec![first],
            _ => vec![first, first, second],
        };
        let sql = match kind {
            0 | 1 => format!("SELECT queue_wait('{one}', 0.3)"),
            2 => format!("SELECT queue_wait('{one}:prio > 6', '{one}:prio > 3', '{two}', 0.2)"),
            3 => format!(
                "SELECT queue_wait('{one}:prio IN (1, 8)', '{one}:prio IS NOT NULL', '{two}:prio < 5', 0.1)"
            ),
            _ => format!("SELECT queue_wait_n('{one}', {most}, 0.2)"),
        };
        let given = self.consumes(&sql)?.unwrap_or_default();
        let given: usize = given.parse().unwrap_or_default();
        if given == 0 {
            return Ok(false);
        }
        let most = if kind == 4 { most } else { 1 };
        let queue = if kind == 4 { first } else { queues[given - 1] };
        self.look(queue, most)?;
        Ok(true)
    }

    fn look(&mut self, queue: usize, most: u32) -> Result<(), Lost> {
        let sql = format!("{LOOK} {}", QUEUES[queue]);
        self.soak.counts.statements.fetch_add(1, Ordering::Relaxed);
        let rows = self.session.rows(&sql);
        let rows = rows.map_err(|why| self.soak.allow(&sql, &why))?;
        if rows.is_empty() || rows.len() > most as usize {
            self.soak
                .fails(format!("{sql}: {} rows for {most}", rows.len()));
        }
        for row in &rows {
            let seen = Seen::of(row);
            let reported = seen.and_then(|seen| {
                self.owned.push(seen.id);
                self.soak.ledger().sees(queue, seen)
            });
            if let Err(why) = reported {
                // Who was killed behind its look owns nothing any more, and another may have been quicker.
                self.soak.value(&mut self.session, "SELECT queue_rowid()")?;
                self.soak.fails(format!("{sql}: {why}"));
            }
        }
        Ok(())
    }

    fn begins_anew<E>(
        &mut self,
        begins: impl FnOnce(&mut Session) -> Result<(), E>,
    ) -> Result<(), Lost> {
        self.owned.clear();
        self.soak.counts.resets.fetch_add(1, Ordering::Relaxed);
        // Only its connection can have been lost.
        begins(&mut self.session).map_err(drop)?;
        self.soak.done(&mut self.session, "USE shop")
    }
}
