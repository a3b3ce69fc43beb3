//! Whether another replica's binary log has every transaction that one lacks. MariaDB's positions do not tell: they are
//! the last transaction, and what was loaded without the log before it is in no log.

use super::domains::Domains;
use super::finding::Subject;
use crate::survey::{Facts, Target};
use evenkeel_binlog::{Gtid, GtidSet};
use evenkeel_op::Result;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::connect::{Ask, RowLimit, quote};
use evenkeel_wire::BoundedSession;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Events that are read at once, and how many bytes their statements may have.
const PAGE: RowLimit = RowLimit {
    rows: 1000,
    bytes: 64 << 20,
};
/// The list of GTIDs before a file is one of its first events.
const FIRST_EVENTS: usize = 5;
/// How long the whole way through a log may take.
const WITHIN: Duration = Duration::from_secs(20);

/// Whether an IO thread's error says that the source has purged what comes next; the text is in lower case.
pub(super) fn says_purged(text: &str) -> bool {
    let purged = [
        "first log file",
        "purged",
        "could not find gtid state",
        "too old",
        "missing transactions",
    ];
    purged.iter().any(|part| text.contains(part))
}

/// Whether its source has purged what it needs next.
pub(super) fn lacks_purged_logs(subject: &Subject<'_>) -> bool {
    let error = subject.channel.receiver_error.as_ref();
    error.is_some_and(|(number, text)| {
        let text = text.to_ascii_lowercase();
        matches!(number, 1236 | 13114) && says_purged(&text)
    })
}

/// MariaDB: whether a server has a binary log, and transactions that the replica lacks.
pub(super) fn is_ahead_with_a_log(subject: &Subject<'_>, other: &Facts) -> bool {
    let are_mariadb = [subject.facts, other]
        .iter()
        .all(|facts| facts.gtid_kind() == GtidKind::MariaDb);
    let more = other.applied.without(&subject.facts.applied);
    are_mariadb && other.log_end.is_some() && !more.is_empty()
}

/// What a binary log was found to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// Every transaction from where the replica is up to where the donor is.
    Complete,
    /// Not all of them: what is missing, for people.
    Lacks(String),
    /// That could not be found out, and why.
    Unknown(String),
}

/// Reads the donor's binary log from where the replica is.
pub(super) fn prove(donor: &Target, facts: &Facts, replica: &GtidSet) -> Proof {
    let mut options = donor.options.clone();
    options.connect_timeout = options.connect_timeout.min(WITHIN);
    let read = BoundedSession::open(&options, PAGE).and_then(|mut session| {
        let log = Log {
            session: &mut session,
            files: facts
                .log_files
                .iter()
                .map(|file| file.name.as_str())
                .collect(),
            until: Instant::now() + WITHIN,
        };
        log.compare(&Domains::of(replica), &Domains::of(&facts.applied))
    });
    read.unwrap_or_else(|error| Proof::Unknown(error.chain()))
}

/// A binary log that is read event by event.
struct Log<'a> {
    session: &'a mut BoundedSession,
    /// Oldest first.
    files: Vec<&'a str>,
    until: Instant,
}

impl Log<'_> {
    fn compare(mut self, replica: &Domains, donor: &Domains) -> Result<Proof> {
        let Some(first) = self.file_that_reaches_back_to(replica, donor)? else {
            return Ok(Proof::Lacks("its oldest file begins later".to_owned()));
        };
        let mut sequence = Sequence::from(replica);
        for file in self.files.split_off(first) {
            let mut position = 4;
            loop {
                if Instant::now() > self.until {
                    let limit = WITHIN.as_secs();
                    return Ok(Proof::Unknown(format!(
                        "its log was not read within {limit} s"
                    )));
                }
                let sql = format!(
                    "SHOW BINLOG EVENTS IN {} FROM {position} LIMIT {}",
                    quote(file),
                    PAGE.rows
                );
                let rows = self.session.rows(&sql)?;
                for row in &rows {
                    let gtid = row.get("Info").and_then(gtid_in);
                    let is_gtid = row.get("Event_type") == Some("Gtid");
                    if let Some(gap) = gtid
                        .filter(|_| is_gtid)
                        .and_then(|gtid| sequence.gap_before(gtid))
                    {
                        return Ok(Proof::Lacks(gap));
                    }
                }
                let end = rows
                    .last()
                    .and_then(|row| row.get("End_log_pos")?.parse().ok());
                match end.filter(|end| *end > position && rows.len() == PAGE.rows) {
                    Some(end) => position = end,
                    None => break,
                }
            }
        }
        Ok(match sequence.end_before(donor) {
            Some(missing) => Proof::Lacks(missing),
            None => Proof::Complete,
        })
    }

    /// Returns the newest file before which there is nothing that the replica lacks.
    fn file_that_reaches_back_to(
        &mut self,
        replica: &Domains,
        donor: &Domains,
    ) -> Result<Option<usize>> {
        for (at, file) in self.files.iter().enumerate().rev() {
            let sql = format!("SHOW BINLOG EVENTS IN {} LIMIT {FIRST_EVENTS}", quote(file));
            let rows = self.session.rows(&sql)?;
            let list = rows
                .iter()
                .find(|row| row.get("Event_type") == Some("Gtid_list"));
            let before = list.and_then(|row| list_in(row.get("Info")?));
            let had = Sequence::from(replica);
            // What it has of its own, in other domains, is nothing that the replica needs.
            let reaches = |before: GtidSet| {
                had.end_before(&Domains::of(&before).only_of(donor))
                    .is_none()
            };
            if before.is_some_and(reaches) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// How far the transactions of each domain are known without a gap.
struct Sequence(BTreeMap<u32, u64>);

impl From<&Domains> for Sequence {
    fn from(domains: &Domains) -> Self {
        Self(domains.sequences().collect())
    }
}

impl Sequence {
    /// Takes the next transaction of the log; returns what is missing before it.
    fn gap_before(&mut self, gtid: Gtid) -> Option<String> {
        let Gtid::MariaDb {
            domain, sequence, ..
        } = gtid
        else {
            return None;
        };
        let had = self.0.entry(domain).or_default();
        if sequence > *had + 1 {
            return Some(format!(
                "behind number {had} of domain {domain}, {gtid} comes next"
            ));
        }
        *had = sequence.max(*had);
        None
    }

    /// Returns which domain of the donor's position is not reached.
    fn end_before(&self, donor: &Domains) -> Option<String> {
        donor.sequences().find_map(|(domain, wanted)| {
            let had = self.0.get(&domain).copied().unwrap_or_default();
            (had < wanted).then(|| {
                format!(
                    "numbers {} to {wanted} of domain {domain} are not in it",
                    had + 1
                )
            })
        })
    }
}

/// Returns the GTID that a Gtid event shows: `BEGIN GTID 0-1-3 cid=12`.
fn gtid_in(info: &str) -> Option<Gtid> {
    let (_, rest) = info.rsplit_once("GTID ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the set that a Gtid_list event shows: `[0-1-3,1-2-4]`.
fn list_in(info: &str) -> Option<GtidSet> {
    info.trim()
        .strip_prefix('[')?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(text: &str) -> Domains {
        Domains::of(&text.parse().expect("a set"))
    }

    fn through(from: &str, log: &[&str], donor: &str) -> Option<String> {
        let mut sequence = Sequence::from(&domains(from));
        let mut each = log.iter().map(|info| gtid_in(info).expect("a GTID"));
        each.find_map(|gtid| sequence.gap_before(gtid))
            .or_else(|| sequence.end_before(&domains(donor)))
    }

    #[test]
    fn a_log_without_a_gap_is_complete() {
        let log = [
            "BEGIN GTID 0-1-4",
            "GTID 0-1-5",
            "BEGIN GTID 0-1-6 cid=77",
            "GTID 0-2-7",
            "XA START X'61',X'',1 GTID 0-2-8",
        ];
        assert_eq!(through("0-1-5", &log, "0-2-8"), None);
    }

    #[test]
    fn a_gap_is_seen() {
        let log = ["GTID 0-1-5", "GTID 0-1-7"];
        assert!(
            through("0-1-5", &log, "0-1-7").is_some_and(|why| why.contains("0-1-7 comes next"))
        );
        assert!(through("0-1-4", &log[1..], "0-1-7").is_some());
    }

    #[test]
    fn an_end_before_the_servers_is_seen() {
        assert!(through("0-1-5", &["GTID 0-1-6"], "0-1-7").is_some());
        assert!(through("0-1-5", &["GTID 0-1-6"], "0-1-6,3-1-1").is_some());
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(
            list_in("[0-1-3,1-2-4]").map(|set| set.to_string()),
            Some("0-1-3,1-2-4".to_owned())
        );
        assert_eq!(
            list_in("[]").map(|set| set.to_string()),
            Some(String::new())
        );
        assert_eq!(list_in("garbage"), None);
    }
}
