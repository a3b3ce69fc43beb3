//! What is asked of a server, step by step, the simplest first: where the answers end says what is wrong.

use super::answers::{counters, is_set, role};
use super::failure::{NotAllowed, reason_at};
use super::step::{SIMPLE, Step, Steps};
use super::{Checks, Observed, TableName};
use crate::reason::{Cause, Reason};
use evenkeel_op::{Error, ErrorKind, Result, units};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Ask, Row, RowLimit};
use evenkeel_server::replication::{Channel, ThreadState};
use evenkeel_wire::BoundedSession;
use rustix::io::Errno;
use std::path::PathBuf;
use std::time::Duration;

/// No answer to a check is longer; the operator's statement may return as much.
pub(super) const MOST: RowLimit = RowLimit {
    rows: 10_000,
    bytes: 4 << 20,
};
/// Clocks of two hosts may differ by so many seconds.
const CLOCKS_S: i64 = 2;
/// What else keeps clients from writing, where a server has it: the first of the two names of the same.
const ALSO: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                    ('transaction_read_only', 'tx_read_only', 'offline_mode')";
pub(super) const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', \
                      'wsrep_ready', 'wsrep_local_state', 'wsrep_local_state_comment', 'wsrep_cluster_status')";

/// One session, and what is known about its server.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) session: BoundedSession,
    known: ServerKnown,
    abilities: Option<Abilities>,
    /// It replicates from somewhere, as of this probe.
    has_sources: bool,
}

/// What is found out once in a session.
#[derive(Debug)]
pub(super) struct ServerKnown {
    datadir: Option<PathBuf>,
    /// What is asked first.
    pub(super) simple: String,
    /// What else this server has that keeps clients from writing, by name.
    also: Option<Vec<String>>,
    /// What it calls itself to its replicas.
    server_id: Option<u64>,
}

impl ServerKnown {
    /// Returns what else is on, of what was asked first.
    pub(super) fn on(&self, row: Option<&Row>) -> Vec<String> {
        let names = self.also.iter().flatten().zip(3..);
        let on = names.filter(|(_, at)| row.and_then(|row| row.at(*at)).is_some_and(is_set));
        on.map(|(name, _)| name.clone()).collect()
    }
}

impl Asked {
    /// Takes a new session.
    pub(super) fn new(session: BoundedSession) -> Self {
        Self {
            session,
            known: ServerKnown {
                datadir: None,
                simple: SIMPLE.to_owned(),
                also: None,
                server_id: None,
            },
            abilities: None,
            has_sources: false,
        }
    }

    /// Takes it apart.
    pub(super) fn apart(self) -> (BoundedSession, ServerKnown) {
        (self.session, self.known)
    }

    /// Returns whether all is known that plain checks need.
    pub(super) fn stands(&self) -> bool {
        self.known.also.is_some() && !self.session.is_lost()
    }

    /// Looks at everything. What is wrong is in `seen`.
    ///
    /// Errors: the connection is lost.
    pub(super) fn look(
        &mut self,
        checks: &Checks,
        steps: &Steps,
        seen: &mut Observed,
    ) -> Result<()> {
        self.has_sources = false;
        let step = steps.now(Step::Simple);
        self.check(&step, seen, |asked, seen| asked.role(checks, steps, seen))?;
        let step = steps.now(Step::Counters);
        self.check(&step, seen, |asked, seen| asked.counters(checks, seen))?;
        if checks.disk_min.is_some() && checks.datadir.is_none() {
            let step = steps.now(Step::Disk);
            self.check(&step, seen, |asked, seen| asked.disk(checks, seen))?;
        }
        if checks.wants_replication() {
            let step = steps.now(Step::Abilities);
            self.check(&step, seen, |asked, _| asked.find_abilities())?;
            let step = steps.now(Step::Sources);
            self.check(&step, seen, |asked, seen| asked.sources(checks, seen))?;
        }
        if let Some(table) = &checks.write_table {
            self.write(table, checks, steps, seen)?;
        }
        if let (true, Some(most)) = (self.has_sources, checks.lag_max) {
            lag(most, seen);
        }
        for table in &checks.tables {
            let statement = table.statement();
            let step = steps.now(Step::Table(statement.clone()));
            self.check(&step, seen, |asked, _| {
                asked.session.rows(&statement).map(drop)
            })?;
        }
        if let Some(query) = &checks.query {
            let step = steps.now(Step::Query);
            self.check(&step, seen, |asked, _| asked.session.run(query))?;
            // If it began a transaction, that ends here.
            self.check(&step, seen, |asked, _| asked.session.run("ROLLBACK"))?;
        }
        Ok(())
    }

    /// Does one of it. An error is a reason, unless the connection is lost.
    fn check(
        &mut self,
        step: &Step,
        seen: &mut Observed,
        look: impl FnOnce(&mut Self, &mut Observed) -> Result<()>,
    ) -> Result<()> {
        match look(self, seen) {
            Err(error) if error.kind() == ErrorKind::Unreachable => Err(error),
            Err(error) => {
                seen.fails(reason_at(step, &error), &error);
                // The rest of an answer that was too long is still to come.
                match self.session.is_lost() {
                    true => Err(error),
                    false => Ok(()),
                }
            }
            Ok(()) => Ok(()),
        }
    }

    fn role(&mut self, checks: &Checks, steps: &Steps, seen: &mut Observed) -> Result<()> {
        let row = self.session.one(&self.known.simple)?;
        let on = match &self.known.also {
            Some(_) => self.known.on(row.as_ref()),
            None => {
                steps.now(Step::Abilities);
                self.find_also()?
            }
        };
        role(row.as_ref(), &on, checks, seen)
    }

    /// Finds out what else there is that keeps clients from writing. Returns what of it is on.
    fn find_also(&mut self) -> Result<Vec<String>> {
        let rows = self.session.rows(ALSO)?;
        let pairs = rows.iter().filter_map(|row| Some((row.at(0)?, row.at(1)?)));
        let mut found: Vec<(String, bool)> = pairs
            .map(|(name, value)| (name.to_ascii_lowercase(), is_set(value)))
            // They become part of a statement: no others than were asked for.
            .filter(|(name, _)| ALSO.contains(&format!("'{name}'")))
            .collect();
        if found
            .iter()
            .any(|(name, _)| name == "transaction_read_only")
        {
            found.retain(|(name, _)| name != "tx_read_only");
        }
        let columns = found.iter().map(|(name, _)| format!(", @@GLOBAL.{name}"));
        self.known.simple = format!("{SIMPLE}{}", columns.collect::<String>());
        self.known.also = Some(found.iter().map(|(name, _)| name.clone()).collect());
        let on = found.into_iter().filter(|(_, is_on)| *is_on);
        Ok(on.map(|(name, _)| name).collect())
    }

    /// Writes a row where clients can write. Elsewhere, the row that came from there says how far behind it is.
    fn write(
        &mut self,
        table: &TableName,
        checks: &Checks,
        steps: &Steps,
        seen: &mut Observed,
    ) -> Result<()> {
        if seen.is_writable == Some(true) {
            if self.known.server_id.is_none() {
                let step = steps.now(Step::Abilities);
                self.check(&step, seen, |asked, _| {
                    let id = asked.session.value("SELECT @@GLOBAL.server_id")?;
                    asked.known.server_id = id.and_then(|id| id.parse().ok());
                    Ok(())
                })?;
            }
            let statement = table.writes(self.known.server_id.unwrap_or_default());
            let step = steps.now(Step::Write(statement.clone()));
            return self.check(&step, seen, |asked, _| asked.session.run(&statement));
        }
        if seen.is_writable == Some(false) && checks.wants_replication() {
            let statement = table.age();
            let step = steps.now(Step::Write(statement.clone()));
            self.check(&step, seen, |asked, seen| {
                let age = asked.session.value(&statement)?;
                let age = age.and_then(|age| age.parse::<i64>().ok());
                by_newest_row(age, checks, seen);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn counters(&mut self, checks: &Checks, seen: &mut Observed) -> Result<()> {
        let rows = self.session.rows(STATUS)?;
        counters(&rows, checks, seen)
    }

    fn disk(&mut self, checks: &Checks, seen: &mut Observed) -> Result<()> {
        if self.known.datadir.is_none() {
            let path = self.session.value("SELECT @@GLOBAL.datadir")?;
            self.known.datadir = path.map(PathBuf::from);
        }
        let datadir = self.known.datadir.as_ref();
        let datadir = datadir.ok_or_else(|| Error::failed("the server has no data directory"))?;
        free_space(datadir, checks, seen)
    }

    fn find_abilities(&mut self) -> Result<()> {
        if self.abilities.is_none() {
            self.abilities = Some(Abilities::probe(&mut self.session)?);
        }
        Ok(())
    }

    fn sources(&mut self, checks: &Checks, seen: &mut Observed) -> Result<()> {
        let Some(abilities) = &self.abilities else {
            // Why is known already.
            return Ok(());
        };
        let channels = Channel::all(&mut self.session, abilities)?;
        self.has_sources = !channels.is_empty();
        replication(&channels, checks, seen);
        Ok(())
    }
}

/// Looks at free space below a directory.
pub(super) fn free_space(
    datadir: &std::path::Path,
    checks: &Checks,
    seen: &mut Observed,
) -> Result<()> {
    let found = rustix::fs::statvfs(datadir).map_err(|error| {
        let shown = datadir.display();
        let failed = Error::failed(format!("failed to ask for free space below {shown}"))
            .because(std::io::Error::from(error));
        match error {
            Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR => {
                failed.stating(NotAllowed)
            }
            _ => failed,
        }
    })?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    seen.disk_free = Some(free);
    if let Some(least) = checks.disk_min
        && free < least
    {
        let text = format!(
            "{} are free below {}, less than {}",
            units::bytes(free),
            datadir.display(),
            units::bytes(least)
        );
        seen.reasons.push(Reason::new(Cause::Disk, text));
    }
    Ok(())
}

/// What is missing is never taken for well.
fn replication(channels: &[Channel], checks: &Checks, seen: &mut Observed) {
    let runs = |thread| thread == ThreadState::Running;
    let stopped: Vec<&Channel> = channels
        .iter()
        .filter(|channel| !runs(channel.receiver) || !runs(channel.applier))
        .collect();
    seen.replicates = Some(!channels.is_empty() && stopped.is_empty());
    let lags: Option<Vec<u64>> = channels.iter().map(|channel| channel.lag_s).collect();
    seen.lag_s = lags.and_then(|lags| lags.into_iter().max());
    if channels.is_empty() {
        // A writable server that has no source is its own.
        if checks.replicates || seen.is_writable != Some(true) {
            let text = "the server replicates from no source";
            seen.reasons.push(Reason::new(Cause::Replication, text));
        }
        return;
    }
    for channel in stopped {
        let error = channel.receiver_error.as_ref();
        let why = error.or(channel.applier_error.as_ref());
        let why = why.map_or(String::new(), |(number, text)| {
            format!(": error {number}, {text}")
        });
        let text = format!(
            "replication from {} does not run (IO thread {}, SQL thread {}){why}",
            channel.host,
            word(channel.receiver),
            word(channel.applier)
        );
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        seen.reasons.push(Reason::new(Cause::Replication, text));
    }
}

/// Takes how old the newest row is. One of the future would hide every lag.
fn by_newest_row(age: Option<i64>, checks: &Checks, seen: &mut Observed) {
    let is_future = age.is_some_and(|age| age < -CLOCKS_S);
    seen.lag_s = match age.filter(|_| !is_future) {
        Some(age) => seen.lag_s.max(Some(u64::try_from(age).unwrap_or_default())),
        None => None,
    };
    if let (true, Some(age), Some(_)) = (is_future, age, checks.lag_max) {
        let early = age.unsigned_abs();
        let text = format!("the newest row is {early} s of the future: clocks differ");
        seen.reasons.push(Reason::new(Cause::Lag, text));
    }
}

/// Judges how far behind it is.
fn lag(most: Duration, seen: &mut Observed) {
    let text = match seen.lag_s {
        Some(lag) if lag <= most.as_secs() => return,
        // Why is known already.
        None if seen.reasons.iter().any(|it| it.cause == Cause::Lag) => return,
        Some(lag) => format!(
            "replication is {lag} s behind, more than {} s",
            most.as_secs()
        ),
        None => "nobody knows how far its replication is behind".to_owned(),
    };
    seen.reasons.push(Reason::new(Cause::Lag, text));
}

fn word(thread: ThreadState) -> &'static str {
    match thread {
        ThreadState::Running => "running",
        ThreadState::Connecting => "connecting",
        ThreadState::Stopped => "stopped",
        ThreadState::Unknown => "unknown",
    }
}
