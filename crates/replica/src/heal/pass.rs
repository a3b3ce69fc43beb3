//! One look at all servers, and one repair after the other: before each, all servers are looked at again.

use super::beside::{self, Beside};
use super::class::HealClass;
use super::decide::{Decision, Forbidden, HealRule, decide};
use super::journal::{HealEvent, HealJournal, HealOutcome, SeenFailure, now, read_history};
use super::known::{Known, channel_of, key_of};
use super::lease::SourceLease;
use super::past::Past;
use super::prove::is_stop;
use super::release::put_back;
use super::repair::{Job, heal_one, not_begun};
use super::treated::{Healed, Treated};
use super::{Fence, HealRequest, prove};
use crate::diagnose::{Diagnosis, Failure, Finding, Request, Step, diagnose};
use crate::survey::Target;
use crate::topology::source_of;
use evenkeel_op::{ErrorKind, Result, Run};
use evenkeel_server::replication::ThreadState;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What was found and done.
#[derive(Debug)]
pub struct HealPass {
    /// The servers, as they were seen last, and what could not be checked.
    pub diagnosis: Diagnosis,
    /// Failures: those that were treated first, then those that are left.
    pub treated: Vec<Treated>,
    /// Servers that were put back into use.
    pub released: Vec<String>,
    /// Servers that stay out of use, because something is wrong with them.
    pub kept_out: Vec<String>,
}

/// What was found by comparing rows.
#[derive(Debug, Default)]
struct Drift {
    /// How they differ, by server and channel; `None` where they are the source's.
    found: BTreeMap<(usize, String), Option<String>>,
    /// What could not be compared.
    unchecked: Vec<String>,
}

/// Which failure it is.
type Key = (usize, Option<String>, Failure);

fn key(one: &Treated) -> Key {
    let finding = &one.finding;
    (finding.server, finding.channel.clone(), finding.failure)
}

/// Looks, and says what would be done. Nothing is changed.
///
/// Errors: those of [`diagnose`]; those of reading the journal, where one is named.
pub fn plan_heal(
    targets: &[Target],
    request: &HealRequest,
    mut fence: Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<HealPass> {
    let records = match &request.journal {
        Some(directory) => read_history(directory)?,
        None => Vec::new(),
    };
    let past = Past::of(&records, now());
    let mut drift = Drift::default();
    let looks = Looks {
        targets,
        request,
        run,
    };
    let mut looked = looks.look(&past, &drift, &mut fence)?;
    if request.finds_drift {
        looks.find_drift(&looked.diagnosis, &mut drift)?;
        looked = looks.look(&past, &drift, &mut fence)?;
    }
    Ok(HealPass {
        treated: looked.treated,
        diagnosis: looked.diagnosis,
        released: Vec::new(),
        kept_out: Vec::new(),
    })
}

/// Looks, and repairs what may be repaired, one replica at a time.
///
/// Errors: those of [`diagnose`] and of the journal.
pub fn heal(
    targets: &[Target],
    request: &HealRequest,
    journal: &mut HealJournal,
    mut fence: Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<HealPass> {
    let looks = Looks {
        targets,
        request,
        run,
    };
    let mut tried: BTreeSet<Key> = BTreeSet::new();
    let mut done: Vec<Treated> = Vec::new();
    let mut drift = Drift::default();
    let mut finds_drift = request.finds_drift;
    loop {
        let past = Past::of(journal.records(), now());
        let looked = looks.look(&past, &drift, &mut fence)?;
        note_running(&looked.diagnosis, &past, journal)?;
        if std::mem::take(&mut finds_drift) {
            looks.find_drift(&looked.diagnosis, &mut drift)?;
            note_equal(&looked.diagnosis, &past, &drift, journal)?;
            continue;
        }
        note_seen(journal, &looked.treated)?;
        let is_next =
            |one: &&Treated| one.decision.allowed().is_some() && !tried.contains(&key(one));
        let Some(next) = looked.treated.iter().find(is_next) else {
            let is_well = |server: &str| looked.is_well(server);
            let (released, kept_out) = put_back(&is_well, journal, &mut fence, run)?;
            return Ok(report(looked, done, released, kept_out));
        };
        tried.insert(key(next));
        let Some(healed) = looks.heal_next(&looked, next, &drift, journal, &mut fence)? else {
            continue;
        };
        let place = (
            next.finding.server,
            next.finding.channel.clone().unwrap_or_default(),
        );
        // The journal has what was found after it.
        let is_newer = |healed: &Healed| {
            matches!(healed.outcome, HealOutcome::Repaired | HealOutcome::Differs)
        };
        if healed.healed.as_ref().is_some_and(is_newer) {
            drift.found.remove(&place);
        }
        done.push(healed);
    }
}

/// One look, and what was decided.
struct Looked {
    diagnosis: Diagnosis,
    treated: Vec<Treated>,
}

impl Looked {
    /// Whether a server answers, and nothing is wrong with it.
    fn is_well(&self, server: &str) -> bool {
        let mut all = self.diagnosis.servers.iter();
        all.any(|one| one.name == server && one.facts.is_ok())
            && self.treated.iter().all(|one| one.server != server)
    }
}

/// Whom to look at, and how.
struct Looks<'a> {
    targets: &'a [Target],
    request: &'a HealRequest,
    run: Run<'a>,
}

impl Looks<'_> {
    fn look(
        &self,
        past: &Past,
        drift: &Drift,
        fence: &mut Option<&mut dyn Fence>,
    ) -> Result<Looked> {
        let asks = Request {
            timeout: self.request.timeout,
            check_tables: Vec::new(),
        };
        let mut diagnosis = diagnose(self.targets, &asks, self.run.cancel)?;
        add_drift(&mut diagnosis, past, drift);
        let beside = ask_beside(self.targets, &mut diagnosis, self.request.timeout);
        let out = out_of_use(&diagnosis, fence);
        let known = Known {
            diagnosis: &diagnosis,
            beside: &beside,
            past,
            out: &out,
        };
        let treated = diagnosis.findings.iter().map(|finding| {
            let case = known.case(finding);
            let decision = decide(&case, &self.request.policy);
            Treated {
                server: diagnosis.servers[finding.server].name.clone(),
                steps: steps(finding, &decision, &diagnosis),
                finding: finding.clone(),
                decision,
                healed: None,
            }
        });
        let treated = treated.collect();
        // No rule asks for these.
        diagnosis.unchecked.extend(drift.unchecked.iter().cloned());
        Ok(Looked { diagnosis, treated })
    }

    /// Repairs one failure, if it is there and allowed once no other healer is at work there; else `None`.
    fn heal_next(
        &self,
        before: &Looked,
        next: &Treated,
        drift: &Drift,
        journal: &mut HealJournal,
        fence: &mut Option<&mut dyn Fence>,
    ) -> Result<Option<Treated>> {
        let source = |looked: &Looked| {
            let servers = &looked.diagnosis.servers;
            let facts = servers[next.finding.server].facts.as_ref().ok()?;
            let channel = channel_of(facts, &next.finding)?;
            source_of(servers, next.finding.server, channel)
        };
        let Some(at) = source(before) else {
            return Ok(None);
        };
        let mut next = next.clone();
        let lease = match SourceLease::take(&self.targets[at].options) {
            Ok(lease) => lease,
            Err(error) if is_stop(error.kind()) => return Err(error),
            Err(error) if error.kind() == ErrorKind::Busy => {
                next.decision.forbidden.push(Forbidden {
                    rule: HealRule::Busy,
                    why: error.chain(),
                });
                return Ok(Some(next));
            }
            Err(error) => {
                next.healed = Some(not_begun(&error, journal)?);
                return Ok(Some(next));
            }
        };
        // What was seen before may have been another healer's work.
        let past = Past::of(journal.records(), now());
        let looked = self.look(&past, drift, fence)?;
        let is_it = |one: &&Treated| key(one) == key(&next) && one.decision.allowed().is_some();
        let Some(found) = looked.treated.iter().find(is_it) else {
            return Ok(None);
        };
        if source(&looked) != Some(at) {
            return Ok(None);
        }
        let job = Job {
            targets: self.targets,
            request: self.request,
            diagnosis: &looked.diagnosis,
            treated: found,
        };
        let healed = heal_one(&job, lease, journal, fence, self.run)?;
        let mut found = found.clone();
        found.healed = Some(healed);
        Ok(Some(found))
    }

    /// Compares every replica with nothing else wrong with its source.
    fn find_drift(&self, diagnosis: &Diagnosis, drift: &mut Drift) -> Result<()> {
        for (server, answered) in diagnosis.servers.iter().enumerate() {
            let Ok(facts) = &answered.facts else { continue };
            let is_wrong =
                |one: &Finding| one.server == server && one.failure != Failure::RowsDiffer;
            if diagnosis.findings.iter().any(is_wrong) {
                continue;
            }
            for channel in &facts.channels {
                let Some(source) = source_of(&diagnosis.servers, server, channel) else {
                    continue;
                };
                let name = &answered.name;
                self.run
                    .progress
                    .note(format!("comparing {name} with its source"));
                let (replica, source) = (&self.targets[server], &self.targets[source]);
                let compared =
                    prove::compare(replica, source, &channel.name, self.request, self.run);
                let place = (server, channel.name.clone());
                match compared {
                    Ok(found) if found.outcome == HealOutcome::Differs => {
                        drift.found.insert(place, Some(found.why));
                    }
                    Ok(found) if found.outcome == HealOutcome::Repaired => {
                        drift.found.insert(place, None);
                    }
                    Ok(found) => drift.unchecked.push(format!("{name}: {}", found.why)),
                    Err(error) if is_stop(error.kind()) => return Err(error),
                    Err(error) => drift.unchecked.push(format!(
                        "{name}: its rows were not compared: {}",
                        error.chain()
                    )),
                }
            }
        }
        Ok(())
    }
}

/// Adds the rows that differ: by a comparison of this run, else by what a repair has left.
fn add_drift(diagnosis: &mut Diagnosis, past: &Past, drift: &Drift) {
    let mut findings = Vec::new();
    for (server, answered) in diagnosis.servers.iter().enumerate() {
        let Ok(facts) = &answered.facts else { continue };
        for channel in &facts.channels {
            let why = match drift.found.get(&(server, channel.name.clone())) {
                Some(found) => found.as_deref(),
                None => past.differs(&key_of(facts), &channel.name),
            };
            findings.extend(why.map(|why| drifted(server, &channel.name, why)));
        }
    }
    diagnosis.findings.extend(findings);
}

/// Returns servers that get no clients. What does not say so counts as one.
fn out_of_use(diagnosis: &Diagnosis, fence: &mut Option<&mut dyn Fence>) -> BTreeSet<usize> {
    let Some(fence) = fence else {
        return BTreeSet::new();
    };
    let servers = diagnosis.servers.iter().enumerate();
    let out = servers.filter(|(_, one)| fence.is_out(&one.name, None).unwrap_or(true));
    out.map(|(at, _)| at).collect()
}

/// Writes down that what a repair has stopped was seen running: a later stop is somebody else's.
fn note_running(diagnosis: &Diagnosis, past: &Past, journal: &mut HealJournal) -> Result<()> {
    let facts = diagnosis.servers.iter();
    for facts in facts.filter_map(|one| one.facts.as_ref().ok()) {
        let key = key_of(facts);
        for channel in &facts.channels {
            let runs = channel.receiver == ThreadState::Running
                && channel.applier == ThreadState::Running
                && !channel.until;
            if let Some(id) = past.standing(&key, &channel.name).filter(|_| runs) {
                let id = id.to_owned();
                journal.add(HealEvent::Running { id })?;
            }
        }
    }
    Ok(())
}

/// Writes down that rows which differed after a repair are equal again.
fn note_equal(
    diagnosis: &Diagnosis,
    past: &Past,
    drift: &Drift,
    journal: &mut HealJournal,
) -> Result<()> {
    for ((server, channel), _) in drift.found.iter().filter(|(_, why)| why.is_none()) {
        let Ok(facts) = &diagnosis.servers[*server].facts else {
            continue;
        };
        let (key, channel) = (key_of(facts), channel.clone());
        if past.differs(&key, &channel).is_some() {
            journal.add(HealEvent::Equal { key, channel })?;
        }
    }
    Ok(())
}

/// Asks the servers that a repair would touch. What one does not say is not checked.
fn ask_beside(targets: &[Target], diagnosis: &mut Diagnosis, limit: Duration) -> Vec<Beside> {
    let mut touched = BTreeSet::new();
    for finding in &diagnosis.findings {
        let servers = &diagnosis.servers;
        let Ok(facts) = &servers[finding.server].facts else {
            continue;
        };
        touched.insert(finding.server);
        let sources = facts.channels.iter();
        touched.extend(sources.filter_map(|one| source_of(servers, finding.server, one)));
    }
    let mut all = vec![Beside::default(); targets.len()];
    for at in touched {
        let facts = &diagnosis.servers[at].facts;
        // One whose disk is full would hang.
        if !facts.as_ref().is_ok_and(|facts| !facts.is_out_of_space) {
            continue;
        }
        match beside::ask(&targets[at], limit) {
            Ok(beside) => all[at] = beside,
            Err(error) => {
                let name = &targets[at].name;
                diagnosis.unchecked.push(format!(
                    "{name}: whether another program repairs here: {}",
                    error.chain()
                ));
            }
        }
    }
    all
}

fn drifted(server: usize, channel: &str, why: &str) -> Finding {
    Finding {
        server,
        channel: Some(channel.to_owned()),
        failure: Failure::RowsDiffer,
        class: Failure::RowsDiffer.entry().class,
        evidence: vec![why.to_owned()],
        repair: Vec::new(),
    }
}

/// Returns the steps of a repair: the diagnosis has those that are statements.
fn steps(finding: &Finding, decision: &Decision, diagnosis: &Diagnosis) -> Vec<Step> {
    let on = diagnosis.servers[finding.server].name.clone();
    let says = |says: &str| Step {
        on: on.clone(),
        sql: None,
        says: says.to_owned(),
    };
    match decision.class {
        Some(HealClass::RowRepair) if finding.failure != Failure::RowsDiffer => {
            let mut all = vec![says(
                "read the event that failed from the source's binary log; put missing rows back as they were before it, or \
                 take rows out of its way, in one transaction that is in no binary log",
            )];
            let starts = finding.repair.iter().filter(|step| step.sql.is_some());
            all.extend(starts.cloned());
            all
        }
        Some(HealClass::RowRepair) => vec![
            says(
                "compare it with its source, and write down the rows that differ, as they are on both sides",
            ),
            says(
                "make them the source's in one transaction that is in no binary log, and compare again",
            ),
        ],
        Some(HealClass::Resync) => {
            let mut all = finding.repair.clone();
            let command = "evenkeel replica resync --datadir DIR --ssh HOST --execute";
            all.push(says(&match sibling(finding, diagnosis) {
                Some(name) => format!("on its own host, with the host of {name}: {command}"),
                None => format!("on its own host, with that of a healthy sibling: {command}"),
            }));
            all
        }
        _ => finding.repair.clone(),
    }
}

/// Returns a replica of the same source with nothing wrong.
fn sibling<'a>(finding: &Finding, diagnosis: &'a Diagnosis) -> Option<&'a str> {
    let servers = &diagnosis.servers;
    let sources = |at: usize| -> BTreeSet<usize> {
        let facts = servers[at].facts.as_ref().ok();
        let channels = facts.into_iter().flat_map(|facts| facts.channels.iter());
        channels
            .filter_map(|one| source_of(servers, at, one))
            .collect()
    };
    let own = sources(finding.server);
    let is_one = |at: &usize| {
        *at != finding.server
            && !sources(*at).is_disjoint(&own)
            && diagnosis.findings.iter().all(|one| one.server != *at)
    };
    let found = (0..servers.len()).find(is_one);
    found.map(|at| servers[at].name.as_str())
}

/// Writes down what is seen, if it is not what was seen before.
fn note_seen(journal: &mut HealJournal, treated: &[Treated]) -> Result<()> {
    let seen = |one: &Treated| SeenFailure {
        server: one.server.clone(),
        channel: one.finding.channel.clone(),
        failure: one.finding.failure.name().to_owned(),
        repair: one.decision.class,
        forbidden_by: one.decision.forbidden.clone(),
    };
    let findings: Vec<SeenFailure> = treated.iter().map(seen).collect();
    // Numbers in reasons change from look to look.
    let same = |a: &SeenFailure, b: &SeenFailure| {
        let rules =
            |one: &SeenFailure| -> Vec<_> { one.forbidden_by.iter().map(|one| one.rule).collect() };
        (&a.server, &a.channel, &a.failure) == (&b.server, &b.channel, &b.failure)
            && rules(a) == rules(b)
    };
    let last = journal.last_seen();
    let is_same =
        last.len() == findings.len() && last.iter().zip(&findings).all(|(a, b)| same(a, b));
    match is_same {
        true => Ok(()),
        false => journal.add(HealEvent::Seen { findings }),
    }
}

/// What was treated, and what is left. A failure that was treated in vain is not named twice.
fn report(
    looked: Looked,
    done: Vec<Treated>,
    released: Vec<String>,
    kept_out: Vec<String>,
) -> HealPass {
    let mut treated = done;
    for left in looked.treated {
        let is_same = |one: &Treated| {
            (
                one.finding.server,
                &one.finding.channel,
                one.finding.failure,
            ) == (
                left.finding.server,
                &left.finding.channel,
                left.finding.failure,
            )
        };
        if !treated.iter().any(is_same) {
            treated.push(left);
        }
    }
    HealPass {
        diagnosis: looked.diagnosis,
        treated,
        released,
        kept_out,
    }
}
