//! Questions that come up once the servers have answered.

use super::donor_log::{self, Proof};
use super::finding::Subject;
use super::greeting::{Greeting, greeting};
use crate::survey::{Answered, Target};
use crate::topology::{address, is_local, source_of};
use evenkeel_binlog::GtidSet;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::connect::{Ask, RowLimit, quote};
use evenkeel_server::replication::{Position, Positioning, ThreadState};
use evenkeel_wire::BoundedSession;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a source may take for one more answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An answer is one row.
const FEW: RowLimit = RowLimit {
    rows: 10,
    bytes: 1 << 20,
};

/// What the answers are.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// How sources took a connection from here, by address, where there was a reason to try.
    pub(super) greetings: BTreeMap<String, Greeting>,
    /// MariaDB: which GTIDs the source has before the place where an applier is, by server and channel.
    pub(super) gtids: BTreeMap<(usize, String), Known>,
    /// MariaDB: whether another server has in its binary log what a replica lacks and its source has purged; by the
    /// replica and the other.
    pub(super) donors: BTreeMap<(usize, usize), Proof>,
}

/// A place in the source's binary log, in both forms.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) at: Position,
    pub(super) gtids: GtidSet,
}

/// Asks them.
pub(super) fn ask(targets: &[Target], servers: &[Answered]) -> Doubts {
    let mut doubts = Doubts::default();
    let mut wanted: BTreeMap<String, (String, u16)> = BTreeMap::new();
    // A server that is silent may be the source of any that it does not say to be.
    let one_is_silent = servers.iter().any(|server| server.facts.is_err());
    for subject in Subject::all(servers) {
        let source = source_of(servers, subject.server, subject.channel);
        let is_silent = source.map_or(one_is_silent, |at| servers[at].facts.is_err());
        // Who was stopped on purpose says nothing about its source.
        let tries = subject.channel.receiver == ThreadState::Connecting
            || subject.channel.receiver_error.is_some();
        let reached = servers[subject.server].address.as_ref();
        // A loopback address of another host is none of ours.
        let is_ours = reached.is_none_or(|(host, _)| is_local(host));
        if (tries || is_silent) && (is_ours || !is_local(&subject.channel.host)) {
            let port = subject.channel.port.unwrap_or(3306);
            wanted.insert(
                address(subject.channel),
                (subject.channel.host.clone(), port),
            );
        }
        let by_position = subject.channel.positioning == Positioning::File;
        let stands = subject.channel.applier != ThreadState::Running;
        if let (GtidKind::MariaDb, true, true, Some(source), Some(at)) = (
            subject.facts.gtid_kind(),
            by_position,
            stands,
            source.filter(|_| !is_silent),
            &subject.channel.executed,
        ) && let Some(gtids) = gtids_at(&targets[source], at)
        {
            let key = (subject.server, subject.channel.name.clone());
            let at = at.clone();
            doubts.gtids.insert(key, Known { at, gtids });
        }
    }
    doubts.greetings = greet(wanted);
    doubts.donors = donors(targets, servers);
    doubts
}

/// Reads the binary logs of those that could give a replica what its source has purged.
fn donors(targets: &[Target], servers: &[Answered]) -> BTreeMap<(usize, usize), Proof> {
    let mut proofs = BTreeMap::new();
    for subject in Subject::all(servers).filter(donor_log::lacks_purged_logs) {
        let source = source_of(servers, subject.server, subject.channel);
        for (at, other) in servers.iter().enumerate() {
            let is_other = at != subject.server && Some(at) != source;
            let Some(facts) = other.facts.as_ref().ok().filter(|_| is_other) else {
                continue;
            };
            if donor_log::is_ahead_with_a_log(&subject, facts) {
                let proof = donor_log::prove(&targets[at], facts, &subject.facts.applied);
                proofs.insert((subject.server, at), proof);
            }
        }
    }
    proofs
}

/// Connects to all of them at once: one that does not answer takes seconds.
fn greet(wanted: BTreeMap<String, (String, u16)>) -> BTreeMap<String, Greeting> {
    std::thread::scope(|scope| {
        let each = wanted
            .into_iter()
            .map(|(place, (host, port))| (place, scope.spawn(move || greeting(&host, port))));
        let each: Vec<_> = each.collect();
        let joined = each.into_iter().map(|(place, thread)| {
            let failed = || Greeting::Refused("it could not be tried".to_owned());
            (place, thread.join().unwrap_or_else(|_| failed()))
        });
        joined.collect()
    })
}

/// Asks a source which GTIDs come before a place in its binary log; `None` where it does not say.
fn gtids_at(source: &Target, at: &Position) -> Option<GtidSet> {
    let mut options = source.options.clone();
    options.connect_timeout = options.connect_timeout.min(TIMEOUT);
    let mut session = BoundedSession::open(&options, FEW).ok()?;
    let file = quote(&at.file);
    let sql = format!(
        "SET STATEMENT max_statement_time = 5 FOR SELECT BINLOG_GTID_POS({file}, {})",
        at.position
    );
    session.value(&sql).ok()??.parse().ok()
}
