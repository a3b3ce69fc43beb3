//! One look at all servers, and one repair after the other: before each, all servers are looked at again.

use super::beside::{self, Beside};
use super::class::HealClass;
use super::decide::{Decision, decide};
use super::journal::{HealEvent, HealJournal, HealOutcome, SeenFailure, now, read_history};
use super::known::Known;
use super::past::Past;
use super::prove::is_stop;
use super::repair::{Job, heal_one};
use super::treated::Treated;
use super::{Fence, HealRequest, prove};
use crate::diagnose::{Diagnosis, Failure, Finding, Request, Step, diagnose};
use crate::survey::Target;
use crate::topology::source_of;
use evenkeel_op::{Result, Run};
use std::collections::{BTreeMap, BTreeSet};

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

/// What was found by comparing rows, by server and channel.
type Drift = BTreeMap<(usize, String), String>;

/// Looks, and says what would be done. Nothing is changed.
///
/// Errors: those of [`diagnose`]; those of reading the journal, where one is named.
pub fn plan_heal(targets: &[Target], request: &HealRequest, run: Run<'_>) -> Result<HealPass> {
    let records = match &request.journal {
        Some(directory) => read_history(directory)?,
        None => Vec::new(),
    };
    let past = Past::of(&records, now());
    let mut drift = Drift::new();
    let mut looked = look(targets, request, &past, &drift, run)?;
    if request.finds_drift {
        find_drift(targets, request, &looked.diagnosis, &mut drift, run)?;
        looked = look(targets, request, &past, &drift, run)?;
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
/// Errors: those of [`diagnose`] and of the journal; `Busy` while another healer has the lease of a source.
pub fn heal(
    targets: &[Target],
    request: &HealRequest,
    journal: &mut HealJournal,
    mut fence: Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<HealPass> {
    let mut tried: BTreeSet<(usize, Option<String>, Failure)> = BTreeSet::new();
    let mut done: Vec<Treated> = Vec::new();
    let mut drift = Drift::new();
    let mut finds_drift = request.finds_drift;
    loop {
        let past = Past::of(journal.records(), now());
        let looked = look(targets, request, &past, &drift, run)?;
        if std::mem::take(&mut finds_drift) {
            find_drift(targets, request, &looked.diagnosis, &mut drift, run)?;
            continue;
        }
        note_seen(journal, &looked.treated)?;
        let key = |one: &Treated| {
            let finding = &one.finding;
            (finding.server, finding.channel.clone(), finding.failure)
        };
        let is_next =
            |one: &&Treated| one.decision.allowed().is_some() && !tried.contains(&key(one));
        let Some(next) = looked.treated.iter().find(is_next) else {
            let (released, kept_out) = put_back(&looked, journal, &mut fence, run)?;
            return Ok(report(looked, done, released, kept_out));
        };
        tried.insert(key(next));
        let mut next = next.clone();
        let job = Job {
            targets,
            request,
            diagnosis: &looked.diagnosis,
            treated: &next,
        };
        let healed = heal_one(&job, journal, &mut fence, run)?;
        let place = (
            next.finding.server,
            next.finding.channel.clone().unwrap_or_default(),
        );
        match healed.outcome {
            HealOutcome::Differs => {
                drift.insert(place, healed.why.clone());
            }
            HealOutcome::Repaired if next.decision.class == Some(HealClass::RowRepair) => {
                drift.remove(&place);
            }
            _ => {}
        }
        next.healed = Some(healed);
        done.push(next);
    }
}

/// One look, and what was decided.
struct Looked {
    diagnosis: Diagnosis,
    treated: Vec<Treated>,
}

fn look(
    targets: &[Target],
    request: &HealRequest,
    past: &Past,
    drift: &Drift,
    run: Run<'_>,
) -> Result<Looked> {
    let asks = Request {
        timeout: request.timeout,
        check_tables: Vec::new(),
    };
    let mut diagnosis = diagnose(targets, &asks, run.cancel)?;
    for ((server, channel), why) in drift {
        diagnosis.findings.push(drifted(*server, channel, why));
    }
    let beside = ask_beside(targets, &mut diagnosis);
    let known = Known {
        diagnosis: &diagnosis,
        beside: &beside,
        past,
    };
    let treated = diagnosis.findings.iter().map(|finding| {
        let case = known.case(finding);
        let decision = decide(&case, &request.policy);
        Treated {
            server: diagnosis.servers[finding.server].name.clone(),
            steps: steps(finding, &decision, &diagnosis),
            finding: finding.clone(),
            decision,
            healed: None,
        }
    });
    Ok(Looked {
        treated: treated.collect(),
        diagnosis,
    })
}

/// Asks the servers that a repair would touch. What one does not say is not checked.
fn ask_beside(targets: &[Target], diagnosis: &mut Diagnosis) -> Vec<Beside> {
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
        if diagnosis.servers[at].facts.is_err() {
            continue;
        }
        match beside::ask(&targets[at]) {
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

/// Compares every replica with nothing wrong with its source.
fn find_drift(
    targets: &[Target],
    request: &HealRequest,
    diagnosis: &Diagnosis,
    drift: &mut Drift,
    run: Run<'_>,
) -> Result<()> {
    for (server, answered) in diagnosis.servers.iter().enumerate() {
        let Ok(facts) = &answered.facts else { continue };
        if diagnosis.findings.iter().any(|one| one.server == server) {
            continue;
        }
        for channel in &facts.channels {
            let Some(source) = source_of(&diagnosis.servers, server, channel) else {
                continue;
            };
            run.progress
                .note(format!("comparing {} with its source", answered.name));
            let compared = prove::compare(
                &targets[server],
                &targets[source],
                &channel.name,
                request,
                run,
            );
            match compared {
                Ok(found) if found.outcome == HealOutcome::Differs => {
                    drift.insert((server, channel.name.clone()), found.why);
                }
                Ok(found) if found.outcome == HealOutcome::Repaired => {}
                Ok(found) => run
                    .progress
                    .warn(format!("{}: {}", answered.name, found.why)),
                Err(error) if is_stop(error.kind()) => return Err(error),
                Err(error) => run.progress.warn(format!(
                    "{} was not compared: {}",
                    answered.name,
                    error.chain()
                )),
            }
        }
    }
    Ok(())
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

/// Puts servers back into use with which nothing is wrong any more; returns those, and those that stay out.
fn put_back(
    looked: &Looked,
    journal: &mut HealJournal,
    fence: &mut Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut released, mut kept) = (Vec::new(), Vec::new());
    for (id, server) in journal.drained() {
        let servers = &looked.diagnosis.servers;
        let is_here = servers
            .iter()
            .any(|one| one.name == server && one.facts.is_ok());
        let is_well = is_here && looked.treated.iter().all(|one| one.server != server);
        match fence {
            Some(fence) if is_well => {
                if let Err(error) = fence.release(&server, &id) {
                    run.progress
                        .warn(format!("{server} is still drained: {}", error.chain()));
                    kept.push(server);
                    continue;
                }
                // Or it is drained by somebody else by now.
                journal.add(HealEvent::Released {
                    id,
                    server: server.clone(),
                })?;
                released.push(server);
            }
            _ => kept.push(server),
        }
    }
    Ok((released, kept))
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
