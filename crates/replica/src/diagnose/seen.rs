//! All servers as they were seen at one time, and what is known of their sources.

use super::donor_log::Proof;
use super::doubts::Doubts;
use super::finding::Subject;
use super::greeting::Greeting;
use crate::survey::{Answered, Facts, LoggedFile};
use crate::topology::{address, is_local, source_of};
use evenkeel_binlog::GtidSet;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::replication::{Channel, Position, Positioning, ThreadState};

/// One look at all servers.
pub(super) struct Seen<'a> {
    pub(super) servers: &'a [Answered],
    /// As they answered last.
    later: &'a [Answered],
    doubts: &'a Doubts,
}

impl<'a> Seen<'a> {
    pub(super) fn new(servers: &'a [Answered], later: &'a [Answered], doubts: &'a Doubts) -> Self {
        Self {
            servers,
            later,
            doubts,
        }
    }

    /// Returns which of the servers is the source.
    pub(super) fn source(&self, subject: &Subject<'_>) -> Option<usize> {
        source_of(self.servers, subject.server, subject.channel)
            // It may answer only once.
            .or_else(|| source_of(self.later, subject.server, subject.channel))
    }

    /// Returns all sources of a server as they answered last; `None` if one of them did not.
    pub(super) fn sources_later(&self, server: usize) -> Option<Vec<&'a Facts>> {
        let facts = self.servers[server].facts.as_ref().ok()?;
        let of = |channel: &Channel| {
            let at = source_of(self.later, server, channel)?;
            let source = self.later[at].facts.as_ref().ok()?;
            // In a ring, what is written here gets there in a moment.
            let is_ring = |channel: &Channel| source_of(self.later, at, channel) == Some(server);
            let is_ring = source.channels.iter().any(is_ring);
            (source.knows_gtids && !is_ring && source.gtid_kind() == facts.gtid_kind())
                .then_some(source)
        };
        facts.channels.iter().map(of).collect()
    }

    /// Returns whether a server replicates from the same source, or is the source.
    pub(super) fn meets_at_source(&self, subject: &Subject<'_>, other: usize) -> bool {
        let own = self.source(subject);
        if own == Some(other) {
            return true;
        }
        let facts = self.servers[other].facts.as_ref();
        facts.is_ok_and(|facts| {
            facts.channels.iter().any(|channel| {
                let known = source_of(self.servers, other, channel);
                let is_same = address(channel) == address(subject.channel);
                // A loopback address is another server on each host.
                let is_local = is_local(&channel.host);
                let hosts = (&facts.identity.hostname, &subject.facts.identity.hostname);
                known.is_some() && known == own || is_same && (!is_local || hosts.0 == hosts.1)
            })
        })
    }

    /// Returns how the source took a connection from here, where that was tried.
    pub(super) fn greeting(&self, subject: &Subject<'_>) -> Option<&Greeting> {
        self.doubts.greetings.get(&address(subject.channel))
    }

    /// Returns whether another server's binary log has what a replica lacks, where that was looked at.
    pub(super) fn donor(&self, subject: &Subject<'_>, other: usize) -> Option<&Proof> {
        self.doubts.donors.get(&(subject.server, other))
    }

    /// Whether the source accepts connections and says nothing.
    pub(super) fn is_frozen(&self, subject: &Subject<'_>) -> bool {
        self.greeting(subject) == Some(&Greeting::Silent)
    }

    /// Whether the source answers, as far as can be told from here.
    pub(super) fn answers(&self, subject: &Subject<'_>) -> bool {
        let fetches = subject.channel.receiver == ThreadState::Running;
        let asked = self.source(subject).map(|at| self.later[at].facts.is_ok());
        match (asked, self.greeting(subject)) {
            (Some(answered), _) => answered,
            (None, Some(greeting)) => *greeting == Greeting::Answers,
            (None, None) => fetches,
        }
    }

    /// Returns whether the source still has what the SQL thread needs next; `None` where that is not known.
    pub(super) fn has_what_comes_next(&self, subject: &Subject<'_>) -> Option<bool> {
        let source = self.later[self.source(subject)?].facts.as_ref().ok()?;
        has_next(source, subject.facts, subject.channel)
    }

    /// Returns what the source says about where the applier is by file and position.
    pub(super) fn gtid_at(&self, subject: &Subject<'_>) -> Option<&GtidSet> {
        let at = subject.channel.executed.as_ref()?;
        let known = self
            .doubts
            .gtids
            .get(&(subject.server, subject.channel.name.clone()))?;
        (known.at == *at).then_some(&known.gtids)
    }

    /// Says what about a channel could not be checked.
    pub(super) fn not_seen(&self, subject: &Subject<'_>) -> Vec<String> {
        let (name, channel) = (subject.name, subject.channel);
        let place = address(channel);
        let mut not = Vec::new();
        for (what, state) in [("IO", channel.receiver), ("SQL", channel.applier)] {
            if state == ThreadState::Unknown {
                not.push(format!(
                    "{name}: the server does not say what its {what} thread does"
                ));
            }
        }
        let by_position = subject.facts.gtid_kind() == GtidKind::MariaDb
            && channel.positioning == Positioning::File;
        let stands = channel.applier != ThreadState::Running;
        if by_position && stands && self.gtid_at(subject).is_none() {
            not.push(format!(
                "{name}: its source {place} did not say which GTIDs are applied; not checked: gtid-position-ahead, \
                 applied-already"
            ));
        }
        if self.sources_later(subject.server).is_none()
            && subject.facts.gtid_kind() != GtidKind::None
        {
            let why = match self.source(subject) {
                None => "was not asked",
                Some(_) => {
                    "did not say its GTIDs, has GTIDs of another kind, or replicates from it"
                }
            };
            not.push(format!(
                "{name}: its source {place} {why}; not checked: own-transactions"
            ));
        }
        not
    }
}

/// Returns whether a source still has what a replica's SQL thread needs next; `None` where that is not known.
pub(crate) fn has_next(source: &Facts, replica: &Facts, channel: &Channel) -> Option<bool> {
    if channel.positioning == Positioning::Gtid
        && replica.gtid_kind() == GtidKind::MySql
        && !source.logged.is_empty()
    {
        if !source.purged.is_subset(&replica.applied) {
            return Some(false);
        }
        return has_what_it_sent(channel.received_gtid.as_deref(), &source.logged).then_some(true);
    }
    let files = &source.log_files;
    let lacks = |at: &Position| is_in(files, at) != Some(true);
    // One that lacks what it has sent was put back. While it sends, it has it, and more than when it was asked.
    let was_put_back =
        channel.receiver != ThreadState::Running && channel.received.as_ref().is_some_and(lacks);
    is_in(files, channel.executed.as_ref()?).filter(|has| !has || !was_put_back)
}

/// Whether a source has all that it has sent: one that was put back lacks some of it.
fn has_what_it_sent(received: Option<&str>, logged: &GtidSet) -> bool {
    match received.map(str::parse::<GtidSet>) {
        None => true,
        Some(Ok(received)) => received.is_subset(logged),
        Some(Err(_)) => false,
    }
}

/// Returns whether a place is in files of a binary log; `None` where that is not known.
fn is_in(files: &[LoggedFile], at: &Position) -> Option<bool> {
    if files.is_empty() {
        return None;
    }
    match files.iter().find(|file| file.name == at.file) {
        // Or it was shorter when it was asked.
        Some(file) => (at.position <= file.bytes).then_some(true),
        None => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_lacks_what_it_has_sent_was_put_back() {
        let server = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let set = |last: u32| format!("{server}:1-{last}");
        let logged: GtidSet = set(10).parse().unwrap();
        assert!(has_what_it_sent(Some(&set(10)), &logged));
        assert!(has_what_it_sent(Some(""), &logged));
        assert!(has_what_it_sent(None, &logged));
        assert!(!has_what_it_sent(Some(&set(11)), &logged));
        assert!(!has_what_it_sent(Some("no set"), &logged));
    }

    #[test]
    fn a_place_is_in_a_file_up_to_its_end() {
        let at = |file: &str, position| Position {
            file: file.to_owned(),
            position,
        };
        let files = [LoggedFile {
            name: "binlog.000002".to_owned(),
            bytes: 100,
        }];
        assert_eq!(is_in(&files, &at("binlog.000002", 100)), Some(true));
        assert_eq!(is_in(&files, &at("binlog.000002", 101)), None);
        assert_eq!(is_in(&files, &at("binlog.000001", 4)), Some(false));
        assert_eq!(is_in(&[], &at("binlog.000002", 4)), None);
    }
}
