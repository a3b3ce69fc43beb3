//! All servers as they were seen at one time, and what is known of their sources.

use super::doubts::Doubts;
use super::finding::Subject;
use super::greeting::Greeting;
use crate::survey::{Answered, Facts};
use crate::topology::{address, source_of};
use evenkeel_binlog::GtidSet;
use evenkeel_server::abilities::Flavour;
use evenkeel_server::replication::{Channel, Positioning, ThreadState};

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
            self.later[at].facts.as_ref().ok()
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
                known.is_some() && known == own || address(channel) == address(subject.channel)
            })
        })
    }

    /// Returns how the source took a connection from here, where that was tried.
    pub(super) fn greeting(&self, subject: &Subject<'_>) -> Option<&Greeting> {
        self.doubts.greetings.get(&address(subject.channel))
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

    /// Returns what the source says about where the applier is by file and position.
    pub(super) fn gtid_at(&self, subject: &Subject<'_>) -> Option<&GtidSet> {
        let at = subject.channel.executed.as_ref()?;
        let known = self
            .doubts
            .gtids
            .get(&(subject.server, subject.channel.name.clone()))?;
        (known.at == *at).then_some(&known.gtids)
    }

    /// Says what about a channel could not be checked, because its source was not asked.
    pub(super) fn not_seen(&self, subject: &Subject<'_>) -> Option<String> {
        if self.source(subject).is_some() {
            return None;
        }
        let by_position = subject.facts.flavour() == Flavour::MariaDb
            && subject.channel.positioning == Positioning::File;
        let position = if by_position {
            ", gtid-position-ahead"
        } else {
            ""
        };
        Some(format!(
            "{}: its source {} was not asked; not checked: own-transactions{position}",
            subject.name,
            address(subject.channel)
        ))
    }
}
