//! Questions that come up once the servers have answered.

use super::finding::Subject;
use super::greeting::{Greeting, greeting};
use crate::survey::{Answered, Target};
use crate::topology::{address, source_of};
use evenkeel_binlog::GtidSet;
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::replication::{Position, Positioning, ThreadState};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a source may take for one more answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the answers are.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// How sources took a connection from here, by address, where there was a reason to try.
    pub(super) greetings: BTreeMap<String, Greeting>,
    /// MariaDB: which GTIDs the source has before the place where an applier is, by server and channel.
    pub(super) gtids: BTreeMap<(usize, String), Known>,
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
    for subject in Subject::all(servers) {
        let source = source_of(servers, subject.server, subject.channel);
        let is_silent = source.is_some_and(|at| servers[at].facts.is_err());
        let fetches = subject.channel.receiver == ThreadState::Running;
        if !fetches || is_silent {
            let place = address(subject.channel);
            let port = subject.channel.port.unwrap_or(3306);
            let greet = || greeting(&subject.channel.host, port);
            doubts.greetings.entry(place).or_insert_with(greet);
        }
        let by_position = subject.channel.positioning == Positioning::File;
        let stands = subject.channel.applier != ThreadState::Running;
        if let (Flavour::MariaDb, true, true, Some(source), Some(at)) = (
            subject.facts.flavour(),
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
    doubts
}

/// Asks a source which GTIDs come before a place in its binary log; `None` where it does not say.
fn gtids_at(source: &Target, at: &Position) -> Option<GtidSet> {
    let mut options = source.options.clone();
    options.connect_timeout = options.connect_timeout.min(TIMEOUT);
    let mut session = Session::open(&options).ok()?;
    let file = quote(&at.file);
    let sql = format!("SELECT BINLOG_GTID_POS({file}, {})", at.position);
    session.value(&sql).ok()??.parse().ok()
}
