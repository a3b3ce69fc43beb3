//! Statements that a server remembers in its performance_schema, asked for again and again.
//!
//! The server keeps the last few: those that are gone before the next look are missed. How many that is, its counters
//! of statements say.

use super::asked::Asked;
use crate::{Command, Coverage, Seen, Statement};
use evenkeel_op::{Cancel, Error, Result};
use evenkeel_server::connect::Row;
use evenkeel_server::options::ConnectOptions;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(50);
/// Statements are looked at again for so long after their end: one that ended may be written a moment later.
const OVERLAP_PS: u64 = 2_000_000_000_000;
/// How much of a text is kept where the server does not say.
const USUAL_TEXT: usize = 1024;

/// The performance_schema of a server.
#[derive(Debug)]
pub struct PerformanceSchema {
    server: Asked,
    table: &'static str,
    own_thread: u64,
    /// The time of day when the server's timer was 0, in nanoseconds since 1970.
    timer_zero_ns: i64,
    text_bytes: usize,
    interval: Duration,
    span: Option<Duration>,
    /// Statements that were seen, and may be seen again: thread and number.
    known: HashSet<(u64, u64)>,
    /// What ended up to here is known, by the server's timer.
    after_ps: u64,
    damage: Option<Error>,
}

impl PerformanceSchema {
    /// Connects, and finds out what the server remembers. Statements are then read for `span`, or until somebody wants
    /// an end, and asked for each `interval`. `is_silent` is called where the server does not answer for some seconds.
    ///
    /// # Errors
    ///
    /// `Refused` where the server remembers none, with how to change that; those of the connection.
    pub fn open(
        options: &ConnectOptions,
        interval: Duration,
        span: Option<Duration>,
        is_silent: &mut dyn FnMut(Duration),
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut is_silent = |waited| {
            is_silent(waited);
            Ok(())
        };
        let mut server = Asked::open(options, &mut is_silent, cancel)?;
        let mut ask = |sql: &str| server.rows(sql, &mut is_silent, cancel);
        let table = table(&mut ask)?;
        let own_thread = number(
            &mut ask,
            "SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()",
        )?;
        let clock = ask(&format!(
            "SELECT TIMER_START, UNIX_TIMESTAMP(SYSDATE(6)) FROM performance_schema.events_statements_current \
             WHERE THREAD_ID = {own_thread} ORDER BY EVENT_ID LIMIT 1"
        ))?;
        let timer_zero_ns = clock.first().and_then(timer_zero).ok_or_else(|| {
            Error::refused("the server's performance_schema does not know this session's statement")
                .hint("it is one that performance_schema.setup_actors leaves out: use another account")
        })?;
        let text = ask(
            "SHOW GLOBAL VARIABLES WHERE Variable_name = 'performance_schema_max_sql_text_length'",
        )?;
        Ok(Self {
            server,
            table,
            own_thread,
            timer_zero_ns,
            text_bytes: { text.first() }
                .and_then(|row| row.at(1)?.parse().ok())
                .unwrap_or(USUAL_TEXT),
            interval,
            span,
            known: HashSet::new(),
            after_ps: 0,
            damage: None,
        })
    }

    /// Returns where the server is.
    #[must_use]
    pub fn place(&self) -> &str {
        self.server.place()
    }

    /// Returns why the server could not be asked to the end.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Asks for what has ended since the last look; returns how many statements that were, those inside of others
    /// included.
    fn look(
        &mut self,
        coverage: &mut Coverage,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<u64> {
        let sql = format!(
            "SELECT e.THREAD_ID, e.EVENT_ID, e.EVENT_NAME, e.TIMER_START, e.TIMER_END, e.TIMER_WAIT, e.LOCK_TIME, \
             e.SQL_TEXT, e.CURRENT_SCHEMA, e.MYSQL_ERRNO, e.ROWS_AFFECTED, e.ROWS_SENT, e.ROWS_EXAMINED, \
             e.WARNINGS, e.NESTING_EVENT_TYPE, t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST \
             FROM performance_schema.{} e LEFT JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID \
             WHERE e.THREAD_ID <> {} AND e.TIMER_END >= {} ORDER BY e.TIMER_START",
            self.table,
            self.own_thread,
            self.after_ps.saturating_sub(OVERLAP_PS)
        );
        let is_silent = &mut |waited| each(Seen::Silent(waited));
        let rows = self.server.rows(&sql, is_silent, cancel)?;
        let mut known = HashSet::with_capacity(rows.len());
        let mut new = 0;
        for row in &rows {
            let Some(end) = figure(row, "TIMER_END") else {
                continue;
            };
            let key = (figure(row, "THREAD_ID"), figure(row, "EVENT_ID"));
            let (Some(thread), Some(event)) = key else {
                continue;
            };
            self.after_ps = self.after_ps.max(end);
            // With a join, a row may come twice.
            if !known.insert((thread, event)) || self.known.contains(&(thread, event)) {
                continue;
            }
            new += 1;
            let is_inner = row.get("NESTING_EVENT_TYPE") == Some("STATEMENT");
            if !is_inner {
                coverage.statements += 1;
                each(Seen::Statement(&self.statement(row, thread)))?;
            }
        }
        self.known = known;
        Ok(new)
    }

    fn statement<'a>(&self, row: &'a Row, thread: u64) -> Statement<'a> {
        let at = figure(row, "TIMER_START").map_or(0, |ps| i64::try_from(ps / 1000).unwrap_or(0));
        let text = row.get("SQL_TEXT").unwrap_or_default().as_bytes();
        // The server ends what it has cut with dots.
        let is_cut = text.len() + 3 >= self.text_bytes;
        let name = row.get("EVENT_NAME").unwrap_or_default();
        let command = match name {
            "statement/com/Execute" => Command::Execute,
            // MySQL leaves out of SQL's PREPARE what is prepared.
            "statement/com/Prepare" | "statement/sql/prepare_sql" => Command::Prepare,
            "statement/com/Quit" => Command::Quit,
            "statement/com/Query" => Command::Query,
            other if other.starts_with("statement/sql/") => Command::Query,
            _ => Command::Other(u8::MAX),
        };
        let nanoseconds = |name: &str| figure(row, name).map(|ps| ps / 1000);
        let session = figure(row, "PROCESSLIST_ID");
        Statement {
            at_ns: self.timer_zero_ns.saturating_add(at),
            connection: thread,
            session: session.and_then(|id| u32::try_from(id).ok()),
            user: row.get("PROCESSLIST_USER"),
            host: row.get("PROCESSLIST_HOST"),
            schema: row.get("CURRENT_SCHEMA"),
            command,
            sql: text,
            sql_bytes: text.len() as u64 + u64::from(is_cut),
            // Of a prepared statement the values are not remembered.
            is_unseen: command == Command::Execute,
            first_ns: None,
            total_ns: nanoseconds("TIMER_WAIT"),
            lock_ns: nanoseconds("LOCK_TIME"),
            rows_sent: figure(row, "ROWS_SENT"),
            rows_examined: figure(row, "ROWS_EXAMINED"),
            rows_affected: figure(row, "ROWS_AFFECTED"),
            bytes_in: None,
            bytes_out: None,
            warnings: figure(row, "WARNINGS"),
            error: figure(row, "MYSQL_ERRNO")
                .and_then(|error| u16::try_from(error).ok())
                .filter(|error| *error > 0),
            checksum: None,
            statement: None,
            values: None,
        }
    }

    /// Hands out statements as the server is asked for them, until the time is up, `cancel` is set or `each` fails.
    /// Where the server can no longer be asked, that is the end as well, and the damage says why.
    ///
    /// # Errors
    ///
    /// When the server cannot be asked at all, and what `each` fails with.
    pub fn watch(
        &mut self,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let mut coverage = Coverage::default();
        // What ended before is not asked for.
        let mut nothing = |seen: Seen<'_>| match seen {
            Seen::Statement(_) => Ok(()),
            seen => each(seen),
        };
        self.look(&mut Coverage::default(), &mut nothing, cancel)?;
        let before = self.ended(each, cancel)?;
        let mut is_refused = false;
        let mut each = |seen: Seen<'_>| each(seen).inspect_err(|_| is_refused = true);
        match self.watch_from(before, &mut coverage, &mut each, cancel) {
            Err(error) if is_refused => return Err(error),
            Err(error) => self.damage = Some(error),
            Ok(()) => {}
        }
        Ok(coverage)
    }

    /// Hands out what ends from now on; so many statements have ended `before`.
    fn watch_from(
        &mut self,
        before: u64,
        coverage: &mut Coverage,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<()> {
        let until = self.span.map(|span| Instant::now() + span);
        let is_over =
            || cancel.is_cancelled() || until.is_some_and(|until| Instant::now() >= until);
        let mut seen = 0;
        while !is_over() {
            let next = Instant::now() + self.interval;
            let next = until.map_or(next, |until| until.min(next));
            while let Some(left) = next.checked_duration_since(Instant::now())
                && !is_over()
            {
                std::thread::sleep(left.min(LOOK));
            }
            seen += self.look(coverage, each, cancel)?;
            each(Seen::Pause)?;
        }
        let after = self.ended(each, cancel)?;
        seen += self.look(coverage, each, cancel)?;
        coverage.unseen = after.saturating_sub(before).saturating_sub(seen);
        Ok(())
    }

    /// Returns how many statements others have ended since the server counts.
    fn ended(
        &mut self,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<u64> {
        let own_thread = self.own_thread;
        let mut ask = |sql: &str| {
            let is_silent = &mut |waited| each(Seen::Silent(waited));
            self.server.rows(sql, is_silent, cancel)
        };
        let all = "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_global_by_event_name";
        let all = number(&mut ask, all)?;
        let own = number(
            &mut ask,
            &format!(
                "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_by_thread_by_event_name \
                 WHERE THREAD_ID = {own_thread}"
            ),
        )?;
        // The first of the two had not ended for the one, and has for the other.
        Ok(all.saturating_sub(own.saturating_sub(1)))
    }
}

/// Asks the server.
type Ask<'a> = dyn FnMut(&str) -> Result<Vec<Row>> + 'a;

fn figure(row: &Row, name: &str) -> Option<u64> {
    row.get(name)?.parse().ok()
}

fn number(ask: &mut Ask<'_>, sql: &str) -> Result<u64> {
    let rows = ask(sql)?;
    let value = rows.first().and_then(|row| row.at(0)?.parse().ok());
    value.ok_or_else(|| {
        Error::refused("the server's performance_schema does not know this session")
            .hint("see performance_schema.setup_actors: it leaves sessions out")
    })
}

fn timer_zero(row: &Row) -> Option<i64> {
    let timer_ns = i64::try_from(row.at(0)?.parse::<u64>().ok()? / 1000).ok()?;
    let (seconds, fraction) = row.at(1)?.split_once('.').unwrap_or((row.at(1)?, "0"));
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let seconds_ns = seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?;
    seconds_ns.checked_add(micros * 1000)?.checked_sub(timer_ns)
}

/// Returns the table with the most history that the server keeps.
fn table(ask: &mut Ask<'_>) -> Result<&'static str> {
    let is_on = ask("SELECT @@GLOBAL.performance_schema")?;
    if is_on.first().and_then(|row| row.at(0)) != Some("1") {
        return Err(Error::refused("the server's performance_schema is off")
            .hint("switch it on: performance_schema = ON in the server's option file, below [mysqld], and a restart; MariaDB has it off unless told otherwise")
            .hint("without a restart: evenkeel capture --interface any, or its slow query log with long_query_time = 0"));
    }
    let enabled = ask("SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'YES'")?;
    let is_enabled = |name: &str| enabled.iter().any(|row| row.at(0) == Some(name));
    let basics = [
        "global_instrumentation",
        "thread_instrumentation",
        "events_statements_current",
    ];
    let tables = [
        "events_statements_history_long",
        "events_statements_history",
    ];
    let table = { tables.into_iter() }.find(|table| is_enabled(table));
    match table.filter(|_| basics.iter().all(|basic| is_enabled(basic))) {
        Some(table) => Ok(table),
        None => Err(Error::refused(
            "the server's performance_schema keeps no history of statements",
        )
        .hint(
            "switch it on, until the next restart: UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
             WHERE NAME LIKE '%instrumentation' OR NAME LIKE 'events\\_statements%'",
        )),
    }
}
