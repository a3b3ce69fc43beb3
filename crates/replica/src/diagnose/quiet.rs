//! What no error number says.

use super::Seen;
use super::catalogue::Failure;
use super::domains::Domains;
use super::finding::{Finding, Subject};
use crate::lag::intervals;
use crate::survey::{Busy, Facts};
use evenkeel_binlog::{Gtid, GtidSet};
use evenkeel_op::units;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::replication::{Positioning, ThreadState};
use std::time::Duration;

/// What a thread says that waits for another session's lock.
const LOCKS: [&str; 7] = [
    "waiting for table metadata lock",
    "waiting for schema metadata lock",
    "waiting for backup lock",
    "waiting for global read lock",
    "waiting for commit lock",
    "waiting for table flush",
    "waiting for table level lock",
];
/// A shorter wait for a row is nothing: workers of one applier wait for each other, too.
const ROW_WAIT_S: u64 = 2;
/// Sessions that are named as those that may hold a lock.
const SUSPECTS_MAX: usize = 3;

/// Names what is wrong with a channel that has no error.
pub(super) fn find(subject: &Subject<'_>, seen: &Seen<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if has_gaps(subject) {
        found.push(gaps(subject));
    } else {
        found.extend(stopped(subject, seen));
    }
    found.extend(blocked(subject));
    found
}

/// Names what is wrong with its data and positions, whatever its threads say.
pub(super) fn of_data(subject: &Subject<'_>, seen: &Seen<'_>) -> Vec<Finding> {
    let own = own_transactions(subject, seen).into_iter();
    own.chain(position_ahead(subject, seen)).collect()
}

/// Names what is wrong with a server, whatever it replicates.
pub(super) fn of_server(server: usize, name: &str, facts: &Facts) -> Option<Finding> {
    if !facts.is_out_of_space {
        return None;
    }
    let waits = facts.busy.iter().filter(|thread| thread.is_out_of_space());
    let mut finding = Finding::new(server, None, Failure::DiskFull);
    for thread in waits {
        finding = finding.seen(format!(
            "thread {} ({}): {}",
            thread.id, thread.user, thread.does
        ));
    }
    Some(finding.step(
        name,
        "free some space: it goes on by itself within a minute",
    ))
}

/// Whether parallel workers left gaps: only where nothing runs, as gaps are normal while they work.
fn has_gaps(subject: &Subject<'_>) -> bool {
    let facts = subject.facts;
    if facts.gtid_kind() == GtidKind::MariaDb
        || facts.workers == 0
        || subject.channel.applier != ThreadState::Stopped
    {
        return false;
    }
    let Some(uuid) = &subject.channel.source_uuid else {
        return false;
    };
    let of_source = intervals(&facts.applied).filter(|(server, ..)| server == uuid);
    // A gap at the source is one here too: what was fetched says which were meant to come.
    let fetched: Option<GtidSet> = subject
        .channel
        .received_gtid
        .as_ref()
        .and_then(|set| set.parse().ok());
    let last = of_source.map(|(_, _, last)| last).max().unwrap_or(0);
    let missing = fetched.map(|fetched| fetched.without(&facts.applied));
    let mut missing = missing.iter().flat_map(intervals);
    missing.any(|(server, first, _)| server == *uuid && first < last)
}

pub(super) fn gaps(subject: &Subject<'_>) -> Finding {
    let finding = subject
        .finding(Failure::AppliedWithGaps)
        .seen(format!("applied: {}", subject.facts.applied));
    finding
        .sql(
            subject.name,
            subject.order("START", "SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS"),
            "applies what is missing, and stops",
        )
        .sql(subject.name, subject.start_applier(), "go on")
}

fn stopped(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let channel = subject.channel;
    let receiver = channel.receiver == ThreadState::Stopped && channel.receiver_error.is_none();
    let applier = channel.applier == ThreadState::Stopped && channel.applier_error.is_none();
    let mut gone = subject.facts.relay_logs_gone.iter();
    if let Some((_, why)) = gone.find(|(name, _)| *name == channel.name) {
        return Some(relay_log_gone(subject, why));
    }
    let what = match (receiver, applier) {
        (true, true) => "",
        (true, false) => "IO_THREAD",
        (false, true) => "SQL_THREAD",
        (false, false) => return None,
    };
    let finding = subject.finding(Failure::Stopped);
    let finding = match channel.until {
        true => finding.seen("it was started with UNTIL: it stopped by itself there"),
        false => finding,
    };
    if receiver && applier && loses_relay_logs(subject) && !seen.answers(subject) {
        return Some(
            finding
                .seen("the source does not answer, and a start of either thread would delete the relay logs")
                .step(
                    subject.name,
                    "start nothing before the source answers; copy the relay logs if it may never do so",
                ),
        );
    }
    Some(finding.sql(
        subject.name,
        subject.order("START", what),
        "unless it was stopped on purpose",
    ))
}

/// MariaDB with GTIDs fetches everything again when it starts, and deletes what it had.
fn loses_relay_logs(subject: &Subject<'_>) -> bool {
    subject.facts.gtid_kind() == GtidKind::MariaDb
        && subject.channel.positioning == Positioning::Gtid
}

fn relay_log_gone(subject: &Subject<'_>, why: &str) -> Finding {
    let finding = subject
        .finding(Failure::RelayLogGone)
        .seen(format!("the relay log is not there: {why}"));
    let is_mariadb = subject.facts.gtid_kind() == GtidKind::MariaDb;
    let has_gtid = !subject.facts.applied.is_empty();
    let by_gtid = subject.channel.positioning == Positioning::Gtid;
    let source = crate::topology::address(subject.channel);
    let place = subject.channel.executed.as_ref();
    let place = place.map(|at| format!("{}:{}", at.file, at.position));
    let finding = match (is_mariadb, by_gtid && has_gtid, place) {
        (true, true, _) => finding
            .seen(format!("gtid_slave_pos survives: {}", subject.facts.applied))
            .sql(
                subject.name,
                subject.order("RESET", "ALL"),
                "forgets the source and the relay logs",
            )
            .step(
                subject.name,
                format!("CHANGE MASTER TO with the source {source}, its account and MASTER_USE_GTID = slave_pos"),
            ),
        (true, false, Some(place)) => finding
            .seen(format!("the SQL thread is at {place} of the source"))
            .sql(
                subject.name,
                subject.order("RESET", "ALL"),
                "forgets the source and the relay logs: note the place first",
            )
            .step(
                subject.name,
                format!("CHANGE MASTER TO with the source {source}, its account, {place} and MASTER_USE_GTID = no"),
            ),
        (false, true, _) => finding.sql(
            subject.name,
            subject.order("RESET", ""),
            "deletes the relay logs; GTIDs say what is missing",
        ),
        (false, false, Some(place)) => {
            let finding = finding
                .seen(format!("the SQL thread is at {place} of the source"))
                .sql(
                    subject.name,
                    subject.order("RESET", ""),
                    "deletes the relay logs: note the place first",
                );
            match subject.fetch_again() {
                Some(sql) => finding.sql(subject.name, sql, "fetch again from where the SQL thread is"),
                None => finding,
            }
        }
        (_, _, None) => finding.step(
            subject.name,
            "rebuild this replica: its position is not known",
        ),
    };
    finding.sql(subject.name, subject.order("START", ""), "go on")
}

/// An applier that waits for a lock of another session.
fn blocked(subject: &Subject<'_>) -> Option<Finding> {
    if subject.channel.applier != ThreadState::Running {
        return None;
    }
    let waits = |does: &str| LOCKS.contains(&does.to_ascii_lowercase().as_str());
    // With several channels, nobody says whose worker it is.
    let is_only = subject.facts.channels.len() == 1;
    let of_applier = |thread: &&Busy| is_only && thread.user == "system user";
    let mut workers = subject.facts.busy.iter().filter(of_applier);
    if let Some(seconds) = workers.clone().filter_map(|one| one.row_wait_s).max()
        && seconds >= ROW_WAIT_S
    {
        return Some(waits_for_a_row(subject, seconds));
    }
    let does = match workers.find(|thread| waits(&thread.does)) {
        Some(thread) => &thread.does,
        None if waits(&subject.channel.applier_does) => &subject.channel.applier_does,
        None => return None,
    };
    let mut finding = subject
        .finding(Failure::ApplierBlocked)
        .seen(format!("the SQL thread says: {does}"));
    for suspect in suspects(subject.facts) {
        finding = finding.seen(suspect);
    }
    let finding = finding.step(subject.name, "wait until that session ends");
    let mut suspects = oldest(subject.facts);
    // Who holds a global lock sleeps, and is not among them.
    let is_of_a_table = does.to_ascii_lowercase().contains("metadata lock");
    Some(match (is_of_a_table, suspects.next(), suspects.next()) {
        (true, Some(thread), None) => finding.sql(
            subject.name,
            format!("KILL {}", thread.id),
            "or end it: no other session is at anything",
        ),
        _ => finding.step(
            subject.name,
            "or find out which session holds the lock, and end that",
        ),
    })
}

/// Before the server gives up and tries the transaction again, it may wait for minutes without an error.
fn waits_for_a_row(subject: &Subject<'_>, seconds: u64) -> Finding {
    let seconds = units::duration(Duration::from_secs(seconds));
    let mut finding = subject.finding(Failure::ApplierBlocked).seen(format!(
        "the SQL thread has been waiting for {seconds} for a row that another transaction has locked"
    ));
    let has_one = |thread: &&Busy| thread.transaction_s.is_some();
    let mut holders = oldest(subject.facts).filter(has_one);
    for holder in holders.clone().take(SUSPECTS_MAX) {
        finding = finding.seen(suspect(holder));
    }
    let finding = finding.step(subject.name, "wait until that session ends its transaction");
    match (holders.next(), holders.next()) {
        (Some(holder), None) => finding.sql(
            subject.name,
            format!("KILL {}", holder.id),
            "or end it: no other client has an open transaction",
        ),
        _ => finding.step(
            subject.name,
            "or find out which session holds the lock, and end that",
        ),
    }
}

/// Sessions that may hold a lock, the oldest transaction first.
fn oldest(facts: &Facts) -> impl Iterator<Item = &Busy> + Clone {
    let age = |thread: &Busy| {
        thread
            .transaction_s
            .unwrap_or(0)
            .max(match thread.command.as_str() {
                "Sleep" => 0,
                _ => thread.seconds,
            })
    };
    let is_client = |thread: &&Busy| {
        thread.user != "system user"
            && thread.user != "event_scheduler"
            && !thread.command.starts_with("Binlog Dump")
            && !LOCKS.contains(&thread.does.to_ascii_lowercase().as_str())
    };
    let mut threads: Vec<&Busy> = facts.busy.iter().filter(is_client).collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(age(thread)));
    threads.into_iter()
}

/// Says which sessions may hold a lock.
pub(super) fn suspects(facts: &Facts) -> Vec<String> {
    oldest(facts).take(SUSPECTS_MAX).map(suspect).collect()
}

fn suspect(thread: &Busy) -> String {
    let open = thread.transaction_s.map(|age| {
        let age = units::duration(Duration::from_secs(age));
        format!(", in a transaction that has been open for {age}")
    });
    let statement: String = thread.statement.chars().take(100).collect();
    let statement = match statement.is_empty() {
        true => String::new(),
        false => format!(": {statement}"),
    };
    format!(
        "session {} of {} may hold it ({}{}){statement}",
        thread.id,
        thread.user,
        thread.command,
        open.unwrap_or_default()
    )
}

/// Transactions that were first written here.
fn own_transactions(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let sources: Option<Vec<&Facts>> = seen.sources_later(subject.server);
    let mut more = subject.facts.logged.clone();
    // Without one of its sources, its transactions could not be told from the replica's own.
    for source in sources? {
        if source.gtid_kind() != subject.facts.gtid_kind() {
            return None;
        }
        // A server that was set up from a copy may know of older ones only as applied.
        more = more.without(&source.logged).without(&source.applied);
    }
    let own: Vec<String> = match subject.facts.gtid_kind() {
        GtidKind::None => Vec::new(),
        GtidKind::MySql if more.is_empty() => Vec::new(),
        GtidKind::MySql => vec![more.to_string()],
        GtidKind::MariaDb => {
            let lasts = all_of_mariadb(&more);
            let own = lasts
                .iter()
                .filter(|gtid| is_own(gtid, subject.facts.identity.id));
            own.map(ToString::to_string).collect()
        }
    };
    if own.is_empty() {
        return None;
    }
    Some(self::own(
        subject,
        &format!(
            "{} is in its binary log, and not in its source's",
            own.join(",")
        ),
    ))
}

/// Returns each server's last transaction of each domain.
fn all_of_mariadb(set: &GtidSet) -> Vec<Gtid> {
    let text = set.to_string();
    text.split(',')
        .filter_map(|gtid| gtid.trim().parse().ok())
        .collect()
}

/// Whether a transaction of MariaDB was first written on the server with this number.
pub(super) fn is_own(gtid: &Gtid, id: u64) -> bool {
    matches!(gtid, Gtid::MariaDb { server, .. } if u64::from(*server) == id)
}

pub(super) fn own(subject: &Subject<'_>, evidence: &str) -> Finding {
    let finding = subject.finding(Failure::OwnTransactions).seen(evidence);
    let finding = match subject.facts.identity.is_read_only {
        true => finding,
        false => finding.seen("read_only is OFF here: clients can write"),
    };
    finding
        .step(subject.name, "find out in its binary log what was written, and by whom")
        .step(
            subject.name,
            "undo these rows here after SET sql_log_bin=0, or rebuild this replica; then set read_only=ON",
        )
}

/// MariaDB, by file and position: `gtid_slave_pos` says more than was applied.
fn position_ahead(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let applied = seen.gtid_at(subject)?;
    if subject.channel.applier == ThreadState::Running {
        return None;
    }
    let position = Domains::of(&subject.facts.applied);
    if !position.is_ahead_of(&Domains::of(applied)) {
        return None;
    }
    let at = subject.channel.executed.as_ref()?;
    Some(
        subject
            .finding(Failure::GtidPositionAhead)
            .seen(format!(
                "gtid_slave_pos is {}, and {}:{}, where the SQL thread is, is {applied}",
                subject.facts.applied, at.file, at.position
            ))
            .step(
                subject.name,
                "nothing, as long as it replicates by file and position",
            )
            .sql(
                subject.name,
                format!(
                    "SET GLOBAL gtid_slave_pos = '{}'",
                    position.with(&Domains::of(applied))
                ),
                "before a switch to GTID, after STOP ALL SLAVES",
            ),
    )
}
