//! Receivers that do not fetch.

use super::Seen;
use super::catalogue::{Class, Failure};
use super::donor_log::says_purged;
use super::donors::{donors, incomplete};
use super::finding::{Finding, Subject};
use super::greeting::Greeting;
use crate::topology::address;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::replication::{Positioning, ThreadState};

const NETWORK: [u32; 12] = [
    1040, 1042, 1129, 1158, 1159, 1160, 1161, 2002, 2003, 2005, 2006, 2013,
];
const LOGIN: [u32; 9] = [1044, 1045, 1130, 1142, 1227, 1698, 1862, 2059, 2061];

/// Names why a receiver does not fetch; nothing when it does.
pub(super) fn find(subject: &Subject<'_>, seen: &Seen<'_>) -> Vec<Finding> {
    let channel = subject.channel;
    let found = match &channel.receiver_error {
        Some((number, text)) => {
            let finding = of_error(subject, *number, text, seen);
            Some(finding.seen(format!("IO thread, error {number}: {text}")))
        }
        None => quiet(subject, seen),
    };
    let mut all: Vec<Finding> = found.into_iter().collect();
    all.extend(at_risk(subject, seen));
    all.extend(incomplete(subject, seen));
    all
}

fn of_error(subject: &Subject<'_>, number: u32, text: &str, seen: &Seen<'_>) -> Finding {
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    if has("same server_uuid") || has("same server_id") {
        return twice(subject);
    }
    if (number == 1593 || number == 13117) && has("equal m") {
        return subject.finding(Failure::ServerIdOfSource).step(
            subject.name,
            "give it another server_id (or remove auto.cnf for another UUID), and restart it",
        );
    }
    match number {
        1236 | 13114 => log(subject, &text, seen),
        number if LOGIN.contains(&number) => login(subject),
        number if NETWORK.contains(&number) => unreachable(subject, seen),
        1802 => super::quiet::gaps(subject),
        _ => subject.other_error(subject.order("START", "IO_THREAD")),
    }
}

/// The source's log does not have what comes next: it was purged, or never there.
fn log(subject: &Subject<'_>, text: &str, seen: &Seen<'_>) -> Finding {
    let never = [
        "not in the master's binlog",
        "not in the source's binlog",
        "could not find next log",
        "has more gtids than",
        "impossible position",
        "> file size",
        "no such file",
        "truncated",
    ];
    if never.iter().any(|part| text.contains(part)) {
        return subject
            .finding(Failure::HistoryDiffers)
            .step(
                &address(subject.channel),
                "find out which history is true: was the source reset, restored, or replaced?",
            )
            .step(
                subject.name,
                "then rebuild this replica from the server that has it",
            );
    }
    if !says_purged(text) {
        return subject.other_error(subject.order("START", "IO_THREAD"));
    }
    let finding = subject.finding(Failure::LogPurged);
    let finding = donors(subject, finding, seen);
    finding
        .step(
            subject.name,
            "if an archive has these binary logs (evenkeel binlog list REPOSITORY): apply what is missing here with \
             mariadb-binlog or mysqlbinlog, and have it continue behind that",
        )
        .step(
            subject.name,
            "if nobody has them: rebuild this replica from another replica or a backup (evenkeel restore)",
        )
}

fn login(subject: &Subject<'_>) -> Finding {
    let finding = subject.finding(Failure::LoginRefused).step(
        subject.name,
        format!(
            "compare the account '{}' and its password with those of a replica that is let in, and correct them with \
             CHANGE MASTER if this one is wrong",
            subject.channel.user
        ),
    );
    let finding = finding.step(
        &address(subject.channel),
        format!(
            "else correct the account '{}' there: its host, REPLICATION SLAVE, TLS as it requires, or its password, which \
             every replica with that account needs then",
            subject.channel.user
        ),
    );
    match subject.channel.receiver {
        ThreadState::Stopped => finding.sql(
            subject.name,
            subject.order("START", "IO_THREAD"),
            "it has given up trying",
        ),
        _ => finding.step(subject.name, "nothing: it tries again by itself"),
    }
}

fn unreachable(subject: &Subject<'_>, seen: &Seen<'_>) -> Finding {
    let (failure, says) = match seen.greeting(subject) {
        Some(Greeting::Silent) => (
            Failure::SourceFrozen,
            "from here, the source accepts a connection and says nothing".to_owned(),
        ),
        Some(Greeting::Answers) => (
            Failure::SourceUnreachable,
            "from here, the source answers: look at the network between them, and at max_connections there".to_owned(),
        ),
        Some(Greeting::Refused(why)) => (
            Failure::SourceUnreachable,
            format!(
                "from here, the source is not reached either: {why}; if it runs, the channel may name a wrong host or port"
            ),
        ),
        None => (Failure::SourceUnreachable, String::new()),
    };
    let finding = subject.finding(failure);
    let finding = match says.is_empty() {
        true => finding,
        false => finding.seen(says),
    };
    match subject.channel.receiver {
        ThreadState::Stopped => finding
            .sql(
                subject.name,
                subject.order("START", "IO_THREAD"),
                "once the source answers: it has given up trying",
            )
            .at_least(Class::Automatic),
        _ => finding.step(subject.name, "nothing: it tries again by itself"),
    }
}

fn twice(subject: &Subject<'_>) -> Finding {
    subject.finding(Failure::ServerIdTwice).step(
        subject.name,
        "give one of the two another server_id (or remove its auto.cnf for another UUID), and restart it",
    )
}

/// A receiver without an error.
fn quiet(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let channel = subject.channel;
    let others = seen.servers.iter().enumerate();
    let id = subject.facts.identity.id;
    let uuid = subject.facts.identity.uuid.as_ref();
    let same = others
        .filter(|(at, _)| *at != subject.server && seen.meets_at_source(subject, *at))
        .find_map(|(at, other)| {
            let identity = &other.facts.as_ref().ok()?.identity;
            let is_same = identity.id == id || uuid.is_some() && identity.uuid.as_ref() == uuid;
            is_same.then_some((at, other.name.as_str()))
        });
    if let Some((at, name)) = same {
        let found = match seen.source(subject) == Some(at) {
            true => subject.finding(Failure::ServerIdOfSource),
            false => twice(subject),
        };
        return Some(found.seen(format!(
            "{name} has the number {id} or the UUID of this server too"
        )));
    }
    match channel.receiver {
        ThreadState::Connecting => {
            let finding = unreachable(subject, seen);
            Some(finding.seen(format!(
                "the IO thread is '{}' without an error",
                channel.receiver_word
            )))
        }
        // Its status is green for the first half minute.
        ThreadState::Running => seen.is_frozen(subject).then(|| {
            subject
                .finding(Failure::SourceFrozen)
                .seen("the IO thread's status is green, but the source accepts connections and says nothing")
                .step(subject.name, "nothing: it continues when the source does")
        }),
        ThreadState::Stopped | ThreadState::Unknown => None,
    }
}

/// MariaDB deletes relay logs when both threads of a replica by GTID start.
fn at_risk(subject: &Subject<'_>, seen: &Seen<'_>) -> Option<Finding> {
    let channel = subject.channel;
    let received = channel.received_gtid.as_ref()?.parse().ok();
    let received: evenkeel_binlog::GtidSet = received?;
    let is_mariadb = subject.facts.gtid_kind() == GtidKind::MariaDb;
    let waits = !received.without(&subject.facts.applied).is_empty();
    // While both threads stand, starting either deletes them.
    let is_gone = channel.receiver == ThreadState::Connecting && !seen.answers(subject);
    let stands = channel.applier == ThreadState::Stopped;
    if !(is_mariadb && channel.positioning == Positioning::Gtid && waits && is_gone && stands) {
        return None;
    }
    Some(
        subject
            .finding(Failure::FetchedLogsAtRisk)
            .seen(format!(
                "fetched up to {received}, applied up to {}",
                subject.facts.applied
            ))
            .sql(
                subject.name,
                subject.start_applier(),
                "the SQL thread only: what was fetched is applied",
            ),
    )
}
