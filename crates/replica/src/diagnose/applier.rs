//! Appliers that stopped with an error.

use super::Seen;
use super::catalogue::{Class, Failure};
use super::domains::Domains;
use super::finding::{Finding, Subject, quoted};
use crate::survey::table_in_error;
use crate::topology::address;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::connect::quote;
use evenkeel_server::replication::Positioning;

/// Numbers of errors that say that a table, column or database is not as it should be.
const DEFINITIONS: [u32; 20] = [
    1007, 1008, 1049, 1050, 1051, 1054, 1060, 1061, 1072, 1091, 1136, 1146, 1304, 1305, 1359, 1360,
    1535, 1677, 13146, 1537,
];
const RELAY_LOG: [u32; 5] = [1593, 1594, 13117, 13121, 13122];

/// Names what an applier's error is.
pub(super) fn find(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let (number, text) = cause(subject)?;
    if text.starts_with("Coordinator stopped because") {
        return Some(
            subject
                .finding(Failure::OtherError)
                .seen(format!("SQL thread, error {number}: {text}"))
                .seen("a worker's error is the cause, and the server did not say which")
                .step(
                    subject.name,
                    "GRANT SELECT ON performance_schema.replication_applier_status_by_worker to the account, and ask again",
                ),
        );
    }
    let finding = match number {
        1032 => missing_row(subject, &text),
        1062 => row_in_the_way(subject, &text, seen),
        1205 | 1213 => lock_wait(subject),
        1802 => super::quiet::gaps(subject),
        1950 => super::quiet::own(
            subject,
            "its next transaction would be out of order (error 1950)",
        ),
        1034 | 1712 | 126 | 1194 | 1195 => damaged(subject, number, &text),
        _ if DEFINITIONS.contains(&number) => definition(subject, number),
        _ if is_relay_log(number, &text) => relay_log(subject, seen),
        _ => subject.other_error(subject.start_applier()),
    };
    Some(finding.seen(format!("SQL thread, error {number}: {text}")))
}

/// Returns the error that is the cause: with parallel workers, the coordinator only says that one of them failed.
fn cause(subject: &Subject<'_>) -> Option<(u32, String)> {
    let (number, text) = subject.channel.applier_error.clone()?;
    let of_channel = |error: &&crate::survey::WorkerError| error.channel == subject.channel.name;
    let mut workers = subject.facts.worker_errors.iter().filter(of_channel);
    // A worker that stopped because another one did says 3030 or 1964.
    let worker = workers.find(|error| !matches!(error.number, 3030 | 1964));
    match worker {
        Some(worker) => Some((worker.number, worker.text.clone())),
        None => Some((number, text)),
    }
}

/// Whether an error is about reading a relay log. 1593 and 13117 are any that is fatal: MySQL may say no more than what
/// its reader found.
fn is_relay_log(number: u32, text: &str) -> bool {
    const READING: [&str; 5] = [
        "relay log",
        "event too big",
        "event truncated",
        "bogus data",
        "crc check",
    ];
    let text = text.to_ascii_lowercase();
    RELAY_LOG.contains(&number) && READING.iter().any(|part| text.contains(part))
}

/// Says where the transaction that failed is in the source's binary log.
fn place(subject: &Subject<'_>, text: &str) -> String {
    let at = subject.channel.executed.as_ref();
    let begin = at.map_or_else(
        || "an unknown position".to_owned(),
        |at| format!("{}:{}", at.file, at.position),
    );
    let end = text.split("end_log_pos ").nth(1);
    let end = end.and_then(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next());
    match end {
        Some(end) if !end.is_empty() => format!("{begin} to {end}"),
        _ => begin,
    }
}

fn missing_row(subject: &Subject<'_>, text: &str) -> Finding {
    let table = table_in_error(text);
    let keys = table.as_ref().and_then(|table| {
        let known = subject.facts.unique_keys.iter();
        known.into_iter().find(|(name, _)| name == table)
    });
    let is_without_key =
        keys.is_some_and(|(_, keys)| keys.is_empty()) || text.contains("HA_ERR_END_OF_FILE");
    let shown = table
        .as_ref()
        .map_or_else(|| "the table".to_owned(), quoted);
    let place = place(subject, text);
    if is_without_key {
        return subject
            .finding(Failure::MissingRowWithoutKey)
            .seen(format!("{shown} has no unique key"))
            .step(
                subject.name,
                format!(
                    "replace all rows of {shown} with those that the source had at the SQL thread's position, not with \
                     newer ones: what came later would be applied a second time; if you do not have them, rebuild the \
                     replica. Then give the table a primary key at the source"
                ),
            );
    }
    let failure = match text.contains("Delete_rows") {
        true => Failure::MissingRowDeleted,
        false => Failure::MissingRowUpdated,
    };
    let finding = subject.finding(failure);
    let finding = match keys {
        Some(_) => finding,
        // The account may not see the table.
        None => finding
            .seen("whether the table has a unique key is not known")
            .at_least(Class::Never),
    };
    finding
        .step(
            &address(subject.channel),
            format!(
                "read the row as it was before the event, at {place}: mariadb-binlog or mysqlbinlog with \
                 --base64-output=DECODE-ROWS -v shows it"
            ),
        )
        .step(
            subject.name,
            format!(
                "in one transaction after SET sql_log_bin=0, foreign_key_checks=0, insert that row into {shown}: not if \
                 the event lacks columns (binlog_row_image), or {shown} has triggers"
            ),
        )
        .sql(
            subject.name,
            subject.start_applier(),
            "the event applies itself, and so does the rest of its transaction",
        )
}

fn row_in_the_way(subject: &Subject<'_>, text: &str, seen: &Seen<'_>) -> Finding {
    if let Some(finding) = applied_already(subject, seen) {
        return finding;
    }
    let key = text.split("for key '").nth(1);
    let key = key
        .and_then(|rest| rest.split('\'').next())
        .unwrap_or_default();
    let value = text.split("Duplicate entry '").nth(1);
    let value = value
        .and_then(|rest| rest.split("' for key").next())
        .unwrap_or("?");
    let is_primary = key == "PRIMARY" || key.ends_with(".PRIMARY");
    let failure = match is_primary {
        true => Failure::KeyTaken,
        false => Failure::UniqueValueTaken,
    };
    let shown = table_in_error(text).map_or_else(|| "the table".to_owned(), |table| quoted(&table));
    let name = key.rsplit('.').next().unwrap_or(key);
    let finding = subject.finding(failure);
    let delete = match is_primary {
        true => {
            "after SET sql_log_bin=0, foreign_key_checks=0, delete that row: not if the table has triggers"
        }
        // The source may have it, with another value.
        false => {
            "after SET sql_log_bin=0, foreign_key_checks=0: if the source has a row with its primary key, give it all \
             values that the source's has; delete it only if the source does not have it; nothing of that if the \
             table has triggers"
        }
    };
    let is_decided =
        subject.channel.positioning == Positioning::Gtid || seen.gtid_at(subject).is_some();
    let finding = match is_decided {
        true => finding,
        false => finding.step(
            subject.name,
            "compare that row with the event's: if they are equal, the position is older than the data \
             (applied-already), and nothing may be deleted",
        ),
    };
    finding
        .seen(format!("{shown} has a row with '{value}' in its key '{name}' already"))
        .step(
            subject.name,
            format!("save the row of {shown} with '{value}' in key '{name}'; look for others in its other unique keys"),
        )
        .step(subject.name, delete)
        .sql(subject.name, subject.start_applier(), "the event applies itself")
        .step(subject.name, format!("compare {shown} with the source's: evenkeel replica checksum"))
}

/// Whether this replica's own binary log has what comes next.
fn applied_already(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let channel = subject.channel;
    if subject.facts.gtid_kind() != GtidKind::MariaDb || channel.positioning != Positioning::File {
        return None;
    }
    let at = Domains::of(seen.gtid_at(subject)?);
    let logged = Domains::of(&subject.facts.logged).only_of(&at);
    if !logged.is_ahead_of(&at) {
        return None;
    }
    let position = Domains::of(&subject.facts.applied).with(&logged);
    Some(
        subject
            .finding(Failure::AppliedAlready)
            .seen(format!(
                "its own binary log has {logged}, and the source says that the SQL thread is at {at}"
            ))
            .sql(subject.name, "STOP ALL SLAVES", "nothing may run")
            .sql(
                subject.name,
                format!("SET GLOBAL gtid_slave_pos = '{position}'"),
                "its own binary log is the witness of what was applied",
            )
            .step(
                subject.name,
                format!(
                    "switch to GTID: CHANGE MASTER{} TO MASTER_USE_GTID = slave_pos",
                    match subject.channel.name.as_str() {
                        "" => String::new(),
                        name => format!(" {}", quote(name)),
                    }
                ),
            )
            .sql(subject.name, subject.order("START", ""), "go on"),
    )
}

fn lock_wait(subject: &Subject<'_>) -> Finding {
    let mut finding = subject.finding(Failure::LockWait);
    for thread in super::quiet::suspects(subject.facts) {
        finding = finding.seen(thread);
    }
    finding.sql(
        subject.name,
        subject.start_applier(),
        "once the other session has ended; no data were touched",
    )
}

fn definition(subject: &Subject<'_>, number: u32) -> Finding {
    let finding = subject.finding(Failure::DefinitionDiffers);
    let how = match number {
        1007 | 1050 | 1060 | 1061 | 1304 | 1359 => {
            "it exists here already: find out whether this was applied before, or who made it; if it must go, rename it \
             rather than drop it, after SET sql_log_bin=0"
        }
        1008 | 1049 | 1051 | 1146 => {
            "it is missing here, with its rows: copy it from the source as of this position, or rebuild this replica"
        }
        _ => {
            "compare SHOW CREATE TABLE here and at the source, and change this one, after SET sql_log_bin=0"
        }
    };
    finding
        .step(subject.name, how)
        .sql(subject.name, subject.start_applier(), "go on")
}

fn damaged(subject: &Subject<'_>, number: u32, text: &str) -> Finding {
    let is_index = number == 1712;
    let failure = if is_index {
        Failure::IndexDamaged
    } else {
        Failure::TableDamaged
    };
    let finding = subject.finding(failure);
    match table_in_error(text) {
        Some(table) => finding.step(
            subject.name,
            format!(
                "CHECK TABLE {} tells a damaged index from a damaged table: --check-table does",
                quoted(&table)
            ),
        ),
        None => finding,
    }
}

fn relay_log(subject: &Subject<'_>, seen: &Seen<'_>) -> Finding {
    let finding = subject.finding(Failure::RelayLogDamaged);
    // What is fetched again must still be there.
    if !seen.answers(subject) {
        return finding
            .seen("the source does not answer: nothing can be fetched again now")
            .step(
                subject.name,
                "copy the relay logs, and wait for the source: what they have may be nowhere else",
            )
            .at_least(Class::Never);
    }
    let finding = match (seen.has_what_comes_next(subject), subject.channel.delay_s) {
        (Some(true), 0) => finding,
        (Some(true), _) => finding
            .seen("it is behind on purpose")
            .at_least(Class::Planned),
        (Some(false), _) => {
            return finding
                .seen("the source does not have what comes next any more")
                .step(
                    subject.name,
                    "copy the relay logs, and rebuild this replica from a sibling or a backup: evenkeel restore",
                )
                .at_least(Class::Never);
        }
        (None, _) => finding
            .seen("whether the source still has what comes next is not known")
            .at_least(Class::Planned),
    };
    let by_gtid = subject.channel.positioning == Positioning::Gtid;
    let (stop, start) = (subject.order("STOP", ""), subject.order("START", ""));
    match (subject.facts.gtid_kind(), by_gtid) {
        (GtidKind::MariaDb, true) => finding.sql(subject.name, stop, "").sql(
            subject.name,
            start,
            "the relay logs are deleted and fetched again",
        ),
        (_, true) => finding
            .sql(subject.name, stop, "")
            .sql(
                subject.name,
                subject.order("RESET", ""),
                "deletes the relay logs; GTIDs say what is missing",
            )
            .sql(subject.name, start, "they are fetched again"),
        (_, false) => {
            let finding = finding.sql(subject.name, stop, "");
            match subject.fetch_again() {
                Some(sql) => finding.sql(
                    subject.name,
                    sql,
                    "fetch again from where the SQL thread is",
                ),
                None => finding,
            }
            .sql(subject.name, start, "")
        }
    }
}
