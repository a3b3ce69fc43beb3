//! From what was found out about all servers to the facts of one failure.

use super::beside::Beside;
use super::case::{HealCase, PastCase, SiblingCase, SourceCase};
use super::past::{AppliedPlace, Past};
use crate::diagnose::seen::has_next;
use crate::diagnose::{Class, Diagnosis, Failure, Finding};
use crate::survey::{Answered, Facts};
use crate::topology::source_of;
use evenkeel_server::abilities::GtidKind;
use evenkeel_server::replication::{Channel, Positioning, ThreadState};
use std::collections::BTreeSet;

/// A replica that is further behind is not healthy.
const LAG_S: u64 = 300;

/// Returns what tells a server from all others, across its restarts.
pub(super) fn key_of(facts: &Facts) -> String {
    let identity = &facts.identity;
    match &identity.uuid {
        Some(uuid) => uuid.clone(),
        None => format!("{}@{}:{}", identity.id, identity.hostname, identity.port),
    }
}

/// Returns how far a channel has applied.
pub(super) fn place_of(facts: &Facts, channel: &Channel) -> AppliedPlace {
    let executed = channel.executed.as_ref();
    AppliedPlace {
        executed: executed.map(|at| format!("{}:{}", at.file, at.position)),
        gtid: facts.applied.to_string(),
        by_gtid: channel.positioning == Positioning::Gtid,
    }
}

/// Everything that was found out about all servers.
pub(super) struct Known<'a> {
    pub(super) diagnosis: &'a Diagnosis,
    /// By server.
    pub(super) beside: &'a [Beside],
    pub(super) past: &'a Past,
    /// Servers that are out of use.
    pub(super) out: &'a BTreeSet<usize>,
}

impl Known<'_> {
    /// Returns the case of a finding.
    pub(super) fn case(&self, finding: &Finding) -> HealCase {
        let servers = &self.diagnosis.servers;
        let facts = servers[finding.server].facts.as_ref().ok();
        let channel = facts.and_then(|facts| channel_of(facts, finding));
        let source = channel.and_then(|one| source_of(servers, finding.server, one));
        let siblings = source.map_or_else(Vec::new, |at| self.replicas_of(at));
        let own = finding.server;
        let is_writable = |at: &usize| {
            let facts = servers[*at].facts.as_ref();
            facts.is_ok_and(|facts| !facts.identity.is_read_only)
        };
        let mut unchecked = self.unchecked(own);
        unchecked.extend(source.map_or_else(Vec::new, |at| self.unchecked(at)));
        let beside = |at: usize| self.beside.get(at).cloned().unwrap_or_default();
        let mut tools = beside(own).tools;
        tools.extend(source.map_or_else(Vec::new, |at| beside(at).tools));
        tools.sort_unstable();
        tools.dedup();
        let mut cluster = siblings.clone();
        cluster.push(own);
        let writable = cluster.iter().filter(|at| is_writable(at));
        HealCase {
            failure: finding.failure,
            class: finding.class,
            receiver: channel.map(|one| one.receiver),
            applier: channel.map(|one| one.applier),
            receiver_was_stopped: channel.is_some_and(|one| {
                one.receiver == ThreadState::Stopped && one.receiver_error.is_none()
            }),
            applier_was_stopped: channel.is_some_and(|one| {
                one.applier == ThreadState::Stopped && one.applier_error.is_none()
            }),
            is_mariadb: facts.is_some_and(|facts| facts.gtid_kind() == GtidKind::MariaDb),
            by_gtid: channel.is_some_and(|one| one.positioning == Positioning::Gtid),
            delay_s: channel.map_or(0, |one| one.delay_s),
            writable: writable.map(|at| servers[*at].name.clone()).collect(),
            unchecked,
            others: self.others(finding),
            source: source.map(|at| source_case(&servers[at], facts, channel)),
            siblings: self.sibling_case(finding, &siblings, own),
            has_replicas: self.is_source(own),
            past: facts.map_or_else(PastCase::default, |facts| {
                let name = finding.channel.as_deref().unwrap_or_default();
                let place = channel.map_or_else(AppliedPlace::default, |one| place_of(facts, one));
                let past = self.past.for_replica(&key_of(facts), name, &place);
                PastCase {
                    last_hour: past.last_hour,
                    interrupted: past.interrupted,
                }
            }),
            uptime_s: beside(own).uptime_at(self.past.read_s),
            tools,
        }
    }

    /// Returns who replicates from a server.
    fn replicas_of(&self, source: usize) -> Vec<usize> {
        let servers = &self.diagnosis.servers;
        let follows = |at: &usize| {
            let facts = servers[*at].facts.as_ref();
            facts.is_ok_and(|facts| {
                let mut each = facts.channels.iter();
                each.any(|channel| source_of(servers, *at, channel) == Some(source))
            })
        };
        (0..servers.len()).filter(follows).collect()
    }

    /// Whether others replicate from a server, by what they say: it may not answer itself.
    fn is_source(&self, server: usize) -> bool {
        !self.replicas_of(server).is_empty() || {
            let servers = &self.diagnosis.servers;
            let reached = servers[server].address.as_ref();
            let each = servers.iter().filter_map(|one| one.facts.as_ref().ok());
            let mut channels = each.flat_map(|facts| facts.channels.iter());
            channels.any(|channel| {
                reached.is_some_and(|(host, port)| {
                    *host == channel.host && Some(*port) == channel.port
                })
            })
        }
    }

    fn sibling_case(&self, finding: &Finding, all: &[usize], own: usize) -> SiblingCase {
        let others: Vec<usize> = all.iter().copied().filter(|at| *at != own).collect();
        let findings = &self.diagnosis.findings;
        let is_healthy = |at: &&usize| {
            let facts = self.diagnosis.servers[**at].facts.as_ref();
            let runs = |channel: &Channel| {
                channel.receiver == ThreadState::Running
                    && channel.applier == ThreadState::Running
                    && channel.lag_s.is_some_and(|lag_s| lag_s <= LAG_S)
            };
            facts.is_ok_and(|facts| facts.channels.iter().all(runs))
                && !self.out.contains(*at)
                && !findings.iter().any(|one| one.server == **at)
        };
        let has_same = |at: &&usize| {
            let mut each = findings.iter();
            each.any(|one| one.server == **at && one.failure == finding.failure)
        };
        SiblingCase {
            all: others.len(),
            healthy: others.iter().filter(is_healthy).count(),
            same: others.iter().filter(has_same).count(),
        }
    }

    fn others(&self, finding: &Finding) -> Vec<(Failure, Class)> {
        let each = self.diagnosis.findings.iter();
        let is_other = |one: &&Finding| {
            one.server == finding.server
                && (one.failure, &one.channel) != (finding.failure, &finding.channel)
        };
        each.filter(is_other)
            .map(|one| (one.failure, one.class))
            .collect()
    }

    fn unchecked(&self, server: usize) -> Vec<String> {
        let prefix = format!("{}: ", self.diagnosis.servers[server].name);
        let each = self.diagnosis.unchecked.iter();
        each.filter(|text| text.starts_with(&prefix))
            .cloned()
            .collect()
    }
}

/// Returns the channel that a finding is of.
pub(super) fn channel_of<'a>(facts: &'a Facts, finding: &Finding) -> Option<&'a Channel> {
    let name = finding.channel.as_deref()?;
    facts.channels.iter().find(|one| one.name == name)
}

fn source_case(source: &Answered, facts: Option<&Facts>, channel: Option<&Channel>) -> SourceCase {
    let said = source.facts.as_ref().ok();
    let all = said.zip(facts).zip(channel);
    SourceCase {
        name: source.name.clone(),
        answers: said.is_some(),
        has_next: all.and_then(|((source, facts), channel)| has_next(source, facts, channel)),
    }
}
