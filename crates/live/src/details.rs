//! What one server says beside its counters of statements: its replication, and which statements it runs.

use crate::rates::Own;
use crate::status::Status;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Ask, Row};
use evenkeel_server::replication::{Replication, ThreadState};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Classes that are kept of each interval: those that took the most time.
const DIGESTS: usize = 50;
/// Of a class's text, so many letters are fetched.
const TEXT_LETTERS: usize = 300;
/// Classes that ran since the last time are asked for with this much more: clocks are rounded.
const OVERLAP_S: u64 = 2;
/// A server that replicates from nobody is asked whether it does each time that so much has passed; MySQL also for its
/// history.
const SLOW: Duration = Duration::from_secs(5);
/// The server's clock for statements, in picoseconds.
const PER_SECOND: f64 = 1e12;

/// Names of gauges and counters besides those of statements.
pub const NAMES: &[&str] = &[
    "Threads_connected",
    "Threads_running",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_total",
    "Innodb_data_reads",
    "Innodb_row_lock_waits",
    HISTORY,
];

/// MariaDB has it in its status, MySQL among the metrics of InnoDB.
pub const HISTORY: &str = "Innodb_history_list_length";

/// What a server says beside its counters.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// One for each source that it replicates from.
    pub sources: Vec<Source>,
    /// Undo records that are not purged yet.
    pub history: Option<u64>,
    /// Which statements ran.
    pub digests: Digests,
    /// What could not be asked, and why.
    pub refused: Vec<String>,
}

/// A source that a server replicates from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Channel or connection; empty for the default one.
    pub name: String,
    /// Where it is.
    pub host: String,
    /// How far behind, in seconds, as the server says.
    pub lag_s: Option<u64>,
    /// Both threads run.
    pub is_running: bool,
}

/// Which statements ran since the sample before.
#[derive(Debug, Clone, Default)]
pub enum Digests {
    /// There is nothing yet to compare with, or nobody looks at this server.
    #[default]
    Unknown,
    /// The server does not count them.
    Off,
    /// These, by the time that they took.
    Ran(Vec<Ran>),
}

impl Digests {
    /// Adds what ran before: in an interval that has two answers, a late one and one in time.
    pub(crate) fn add(&mut self, before: &Self) {
        let (Self::Ran(ran), Self::Ran(before)) = (self, before) else {
            return;
        };
        for one in before {
            let is_same = |it: &&mut Ran| it.schema == one.schema && it.text == one.text;
            match ran.iter_mut().find(is_same) {
                Some(same) => {
                    same.count = same.count.saturating_add(one.count);
                    same.seconds += one.seconds;
                    same.errors = same.errors.saturating_add(one.errors);
                }
                None => ran.push(one.clone()),
            }
        }
        costliest_first(ran);
    }
}

fn costliest_first(ran: &mut Vec<Ran>) {
    ran.sort_by(|a, b| {
        let by_time = b.seconds.total_cmp(&a.seconds);
        by_time.then_with(|| a.text.cmp(&b.text))
    });
    ran.truncate(DIGESTS);
}

/// A class of statements that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The default schema.
    pub schema: Option<String>,
    /// The statement without its values.
    pub text: String,
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub seconds: f64,
    /// How many of them failed.
    pub errors: u64,
}

/// Asks one server for them, sample by sample.
pub(crate) struct Asker {
    abilities: Abilities,
    counts_digests: bool,
    before: Option<Before>,
    /// What is asked now and then only, and when that was.
    slow: Slow,
    slow_at: Option<Instant>,
}

/// What hardly changes from one second to the next.
#[derive(Default)]
struct Slow {
    sources: Vec<Source>,
    history: Option<u64>,
    refused: Vec<String>,
}

/// What asking has added to the server's counters.
#[derive(Default)]
pub(crate) struct Spent {
    pub(crate) own: Own,
    /// There may be more: the server has to be asked.
    pub(crate) is_unsure: bool,
}

/// Counters of all classes at the sample before.
struct Before {
    at: Instant,
    classes: HashMap<(String, String), [u64; 3]>,
}

impl Asker {
    /// Finds out what the server can say. Errors: those of the session.
    pub(crate) fn new(session: &mut dyn Ask) -> Result<Self> {
        let abilities = Abilities::probe(session)?;
        let is_on = |value: Option<String>| value.is_some_and(|value| value != "0");
        let counts_digests = is_on(session.value("SELECT @@GLOBAL.performance_schema")?);
        Ok(Self {
            abilities,
            counts_digests,
            before: None,
            slow: Slow::default(),
            slow_at: None,
        })
    }

    /// Asks; for classes of statements, with `digests`. What the server refuses is left out and named.
    /// Errors: a lost connection.
    pub(crate) fn ask(
        &mut self,
        session: &mut dyn Ask,
        status: &Status,
        digests: bool,
    ) -> Result<(Details, Spent)> {
        let mut spent = Spent::default();
        let is_due = self.slow_at.is_none_or(|at| at.elapsed() >= SLOW);
        if is_due || !self.slow.sources.is_empty() {
            self.slow = self.slow(session, status, &mut spent)?;
            self.slow_at = Some(Instant::now());
        }
        let mut details = Details {
            sources: self.slow.sources.clone(),
            history: status.get(HISTORY).or(self.slow.history),
            digests: Digests::Unknown,
            refused: self.slow.refused.clone(),
        };
        if !self.counts_digests {
            details.digests = Digests::Off;
        } else if !digests {
            // Whoever looks at it next wants to see that second, not all since the last one.
            self.before = None;
        } else {
            spent.select();
            let ran = self.digests(session);
            if let Some(ran) = spent.or_refused("statements", ran, &mut details.refused)? {
                details.digests = ran;
            }
        }
        Ok((details, spent))
    }

    fn slow(&self, session: &mut dyn Ask, status: &Status, spent: &mut Spent) -> Result<Slow> {
        let mut slow = Slow::default();
        spent.own.statements += 1;
        let read = Replication::read(session, &self.abilities);
        if let Some(replication) = spent.or_refused("replication", read, &mut slow.refused)? {
            // Of a replica it asks more.
            spent.is_unsure |= !replication.channels.is_empty();
            slow.sources = replication.channels.into_iter().map(Source::of).collect();
        }
        if status.get(HISTORY).is_none() {
            spent.select();
            let read = history(session);
            let read = spent.or_refused("the history list's length", read, &mut slow.refused)?;
            slow.history = read.flatten();
        }
        Ok(slow)
    }

    /// The first time, the counters of all classes are fetched; after that, those of classes that ran since.
    fn digests(&mut self, session: &mut dyn Ask) -> Result<Digests> {
        let at = Instant::now();
        let since = self.before.as_ref().map(|before| {
            let seconds = at.duration_since(before.at).as_secs() + 1 + OVERLAP_S;
            format!("AND LAST_SEEN >= NOW() - INTERVAL {seconds} SECOND")
        });
        let text = match since {
            Some(_) => format!("LEFT(DIGEST_TEXT, {TEXT_LETTERS})"),
            None => "NULL".to_owned(),
        };
        let rows = session.rows(&format!(
            "SELECT IFNULL(SCHEMA_NAME, ''), DIGEST, COUNT_STAR, SUM_TIMER_WAIT, SUM_ERRORS, {text} \
             FROM performance_schema.events_statements_summary_by_digest \
             WHERE DIGEST IS NOT NULL {}",
            since.as_deref().unwrap_or_default()
        ))?;
        let now = rows.iter().filter_map(class);
        let Some(before) = &mut self.before else {
            let classes = now.map(|(key, counts, _)| (key, counts)).collect();
            self.before = Some(Before { at, classes });
            return Ok(Digests::Unknown);
        };
        before.at = at;
        let mut ran = Vec::new();
        for (key, counts, text) in now {
            let schema = Some(key.0.clone()).filter(|schema| !schema.is_empty());
            let then = before.classes.insert(key, counts).unwrap_or_default();
            ran.extend(grown(then, counts).map(|[count, time, errors]| Ran {
                schema,
                text,
                count,
                seconds: time as f64 / PER_SECOND,
                errors,
            }));
        }
        costliest_first(&mut ran);
        Ok(Digests::Ran(ran))
    }
}

/// Reads the class of a row: what it is, its counters, its text.
fn class(row: &Row) -> Option<((String, String), [u64; 3], String)> {
    let number = |index| row.at(index)?.parse::<u64>().ok();
    let key = (row.at(0)?.to_owned(), row.at(1)?.to_owned());
    let counts = [number(2)?, number(3)?, number(4)?];
    let text = row.at(5).unwrap_or_default().to_owned();
    Some((key, counts, text))
}

/// Returns by how much the counters of a class have grown. A table that was truncated counts from 0.
fn grown(then: [u64; 3], now: [u64; 3]) -> Option<[u64; 3]> {
    let then = match now[0] < then[0] {
        true => [0; 3],
        false => then,
    };
    let grown = [0, 1, 2].map(|index| now[index].saturating_sub(then[index]));
    (grown[0] > 0).then_some(grown)
}

fn history(session: &mut dyn Ask) -> Result<Option<u64>> {
    let value = session.value(
        "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'",
    )?;
    Ok(value.and_then(|value| value.parse().ok()))
}

impl Spent {
    fn select(&mut self) {
        self.own.statements += 1;
        self.own.selects += 1;
    }

    /// Lets what a server refuses be missing, and says so. A connection that is lost is an error.
    fn or_refused<T>(
        &mut self,
        what: &str,
        asked: Result<T>,
        refused: &mut Vec<String>,
    ) -> Result<Option<T>> {
        match asked {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
            Err(error) => {
                // The session may have asked which account it has.
                self.is_unsure = true;
                refused.push(format!("{what}: {}", in_short(&error)));
                Ok(None)
            }
        }
    }
}

/// The statement behind it is ours, and known.
fn in_short(error: &Error) -> String {
    let text = error.to_string();
    text.split(", in: ").next().unwrap_or_default().to_owned()
}

impl Source {
    fn of(channel: evenkeel_server::replication::Channel) -> Self {
        let runs = |thread| thread == ThreadState::Running;
        Self {
            is_running: runs(channel.receiver) && runs(channel.applier),
            name: channel.name,
            host: channel.host,
            lag_s: channel.lag_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_answers_say_is_one_list() {
        let ran = |text: &str, count, seconds| Ran {
            schema: None,
            text: text.to_owned(),
            count,
            seconds,
            errors: count,
        };
        let mut now = Digests::Ran(vec![ran("a", 1, 0.5)]);
        now.add(&Digests::Ran(vec![ran("a", 2, 0.25), ran("b", 3, 1.0)]));
        let Digests::Ran(both) = &now else {
            panic!("{now:?}");
        };
        assert_eq!(*both, [ran("b", 3, 1.0), ran("a", 3, 0.75)]);
        now.add(&Digests::Unknown);
        assert!(matches!(now, Digests::Ran(both) if both.len() == 2));
    }

    #[test]
    fn classes_count_from_the_sample_before_and_from_0_when_the_table_was_emptied() {
        assert_eq!(grown([5, 100, 1], [7, 150, 1]), Some([2, 50, 0]));
        assert_eq!(grown([5, 100, 1], [5, 100, 1]), None);
        assert_eq!(grown([5, 100, 1], [2, 30, 0]), Some([2, 30, 0]));
        assert_eq!(grown([0; 3], [3, 9, 0]), Some([3, 9, 0]));
    }
}
