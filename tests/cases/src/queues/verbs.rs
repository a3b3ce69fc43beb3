//! How tests speak to queues, whatever they are made of: the same questions go to the engine and to every
//! other form.
//!
//! A queue's rows are a table of its name in each form: tests INSERT, SELECT, COUNT and DELETE there as
//! in any. All else goes through here.

use super::QueueSite;
use super::over_innodb::OverInnoDb;
use evenkeel_server::connect::{Session, quote};
use evenkeel_testkit::servers::{mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::until;

/// What went wrong, in the server's words.
pub type Reported<T> = Result<T, String>;

/// What not each form can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// `SELECT … FROM t WHERE queue_wait('t')`: to wait and to read in one statement.
    OneStatement,
    /// `KILL QUERY` and the queue's end wake whoever waits at once, and not with its next look.
    WakesAtOnce,
    /// A statement of many rows whose source has sent it before is passed over as a whole.
    Sources,
    /// Rows are read and consumed while a queue is compacted.
    CompactsBeside,
    /// A server that was killed has lost nothing that was acknowledged, and brings nothing back.
    Durable,
    /// Columns are added, changed and dropped while rows are owned, and their owners keep them.
    AltersOwned,
    /// To truncate it leaves rows that somebody owns.
    TruncatesAround,
    /// `ALTER TABLE`, `RENAME TABLE` and `TRUNCATE` are plain statements.
    IsTable,
}

/// A started server with queues of one form.
pub trait Queues: Sync {
    /// What it is called when a test of it fails.
    fn form(&self) -> String;

    /// Whether it can do what not each form can.
    fn can(&self, ability: Ability) -> bool;

    /// A session in a database, which is made if it is not there.
    fn open(&self, database: &str) -> Session;

    /// Makes a queue. The columns are as in CREATE TABLE.
    fn create(&self, session: &mut Session, name: &str, columns: &str) -> Reported<()>;

    /// Drops a queue.
    fn discard(&self, session: &mut Session, name: &str) -> Reported<()>;

    /// Removes all rows.
    fn truncate(&self, session: &mut Session, name: &str) -> Reported<()>;

    /// Gives a queue another name.
    fn rename(&self, session: &mut Session, from: &str, to: &str) -> Reported<()>;

    /// Changes a queue; `change` is what stands behind `ALTER TABLE name`.
    fn alter(&self, session: &mut Session, name: &str, change: &str) -> Reported<()>;

    /// Consumes what is owned, then waits for a row of the first of these, `[database.]name[:condition]`,
    /// that has one. The number of the one that gave it, from 1; 0 when the time is over; `None` where there is
    /// no such queue.
    fn wait(&self, session: &mut Session, what: &[&str], seconds: f64) -> Reported<Option<i64>>;

    /// The same, for up to so many rows of one queue.
    fn wait_n(
        &self,
        session: &mut Session,
        what: &str,
        most: u64,
        seconds: f64,
    ) -> Reported<Option<i64>>;

    /// Consumes what is owned. Refused when the session has not waited.
    fn end(&self, session: &mut Session) -> Reported<i64>;

    /// Gives back what is owned. Refused when the session has not waited.
    fn abort(&self, session: &mut Session) -> Reported<i64>;

    /// Which row is owned; `None` for none. Refused when the session has not waited.
    fn row_id(&self, session: &mut Session) -> Reported<Option<i64>>;

    /// Says what the next INSERT comes from. `mode` is `a` or `w`.
    fn set_source(&self, session: &mut Session, slot: i64, mode: &str, id: i64) -> Reported<i64>;

    /// Gives back the space of rows that are gone.
    fn compact(&self, session: &mut Session, name: &str) -> Reported<Option<i64>>;

    /// A line for each number: `name: number`. `None` where there is no such queue.
    fn stats(&self, session: &mut Session, name: &str) -> Reported<Option<String>>;

    /// One of those numbers.
    fn stat(&self, session: &mut Session, name: &str, number: &str) -> u64 {
        let stats = self.stats(session, name).expect("numbers");
        let stats = stats.expect("there is such a queue");
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix(number)?.strip_prefix(": "));
        let value = line.unwrap_or_else(|| panic!("no {number} in {stats}"));
        value.parse().expect("a number")
    }

    /// How many sessions wait for rows of it.
    fn waiters(&self, session: &mut Session, name: &str) -> u64 {
        self.stat(session, name, "waiters")
    }
}

impl dyn Queues + '_ {
    /// Returns when so many sessions wait for rows of a queue.
    ///
    /// # Panics
    ///
    /// They do not within the test's patience.
    pub fn until_waiting(&self, session: &mut Session, name: &str, many: u64) {
        until("they wait", || self.waiters(session, name) == many);
    }
}

/// Statements and rows of some megabytes are sent.
const LARGE: [&str; 1] = ["--max-allowed-packet=64M"];

/// Asks a question of each form of queues that there is here, each on a server of its own.
pub fn each(question: impl Fn(&dyn Queues)) {
    let forms: [fn() -> Box<dyn Queues>; 3] = [
        || Box::new(QueueSite::start(&LARGE)),
        || Box::new(OverInnoDb::start(mysql_8_0_15(), &LARGE)),
        || Box::new(OverInnoDb::start(mysql_5_7_22(), &LARGE)),
    ];
    for start in forms {
        let queues = start();
        println!("{}", queues.form());
        question(&*queues);
    }
}

/// The first column of a SELECT, as numbers.
///
/// # Panics
///
/// The server refuses it, or there are no numbers.
pub fn numbers(session: &mut Session, sql: &str) -> Vec<i64> {
    let rows = session
        .rows(sql)
        .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    rows.iter()
        .map(|row| number(row.at(0)).unwrap_or_else(|| panic!("{sql}: no number")))
        .collect()
}

/// What `SELECT {what}` says.
fn asked(session: &mut Session, what: &str) -> Reported<Option<String>> {
    let value = session.value(&format!("SELECT {what}"));
    value.map_err(|why| why.chain())
}

fn number(session: &mut Session, what: &str) -> Reported<Option<i64>> {
    let value = asked(session, what)?;
    Ok(value.map(|text| text.parse().expect("a number")))
}

fn run(session: &mut Session, sql: &str) -> Reported<()> {
    session.run(sql).map_err(|why| why.chain())
}

impl Queues for QueueSite {
    fn form(&self) -> String {
        "ENGINE=QUEUE".to_owned()
    }

    fn can(&self, ability: Ability) -> bool {
        ability != Ability::TruncatesAround
    }

    fn open(&self, database: &str) -> Session {
        let mut session = self.running.session().expect("a session");
        let make = format!("CREATE DATABASE IF NOT EXISTS {database}");
        session.run(&make).expect("a database");
        session.run(&format!("USE {database}")).expect("it is used");
        session
    }

    fn create(&self, session: &mut Session, name: &str, columns: &str) -> Reported<()> {
        run(
            session,
            &format!("CREATE TABLE {name} ({columns}) ENGINE=QUEUE"),
        )
    }

    fn discard(&self, session: &mut Session, name: &str) -> Reported<()> {
        run(session, &format!("DROP TABLE {name}"))
    }

    fn truncate(&self, session: &mut Session, name: &str) -> Reported<()> {
        run(session, &format!("TRUNCATE TABLE {name}"))
    }

    fn rename(&self, session: &mut Session, from: &str, to: &str) -> Reported<()> {
        run(session, &format!("RENAME TABLE {from} TO {to}"))
    }

    fn alter(&self, session: &mut Session, name: &str, change: &str) -> Reported<()> {
        run(session, &format!("ALTER TABLE {name} {change}"))
    }

    fn wait(&self, session: &mut Session, what: &[&str], seconds: f64) -> Reported<Option<i64>> {
        let quoted: Vec<String> = what.iter().map(|one| quote(one)).collect();
        let quoted = quoted.join(", ");
        number(session, &format!("queue_wait({quoted}, {seconds})"))
    }

    fn wait_n(
        &self,
        session: &mut Session,
        what: &str,
        most: u64,
        seconds: f64,
    ) -> Reported<Option<i64>> {
        let what = quote(what);
        number(session, &format!("queue_wait_n({what}, {most}, {seconds})"))
    }

    fn end(&self, session: &mut Session) -> Reported<i64> {
        Ok(number(session, "queue_end()")?.unwrap_or_default())
    }

    fn abort(&self, session: &mut Session) -> Reported<i64> {
        Ok(number(session, "queue_abort()")?.unwrap_or_default())
    }

    fn row_id(&self, session: &mut Session) -> Reported<Option<i64>> {
        number(session, "queue_rowid()")
    }

    fn set_source(&self, session: &mut Session, slot: i64, mode: &str, id: i64) -> Reported<i64> {
        let call = format!("queue_set_srcid({slot}, {}, {id})", quote(mode));
        Ok(number(session, &call)?.unwrap_or_default())
    }

    fn compact(&self, session: &mut Session, name: &str) -> Reported<Option<i64>> {
        number(session, &format!("queue_compact({})", quote(name)))
    }

    fn stats(&self, session: &mut Session, name: &str) -> Reported<Option<String>> {
        asked(session, &format!("queue_stats({})", quote(name)))
    }
}
