//! What is wrong with replicas, by name, with the evidence, what repairs it, and what must not be tried.
//!
//! Every server is asked twice. What may be over in a moment counts if both answers show it.

mod applier;
mod catalogue;
mod domains;
mod donor_log;
mod donors;
mod doubts;
mod finding;
mod greeting;
mod quiet;
mod receiver;
pub(crate) mod seen;
mod tables;

pub use catalogue::{Class, Entry, Failure};
pub use finding::{Finding, Step};

use crate::survey::{Answered, Questions, Target, survey};
use evenkeel_op::{Cancel, Result};
use finding::Subject;
use seen::Seen;
use std::time::{Duration, Instant};

/// The time between the two questions.
const BETWEEN: Duration = Duration::from_secs(1);
/// How often a request to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What is to be diagnosed.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// How long a server may take for its answers.
    pub timeout: Duration,
    /// Tables, quoted, that are read whole on each replica.
    pub check_tables: Vec<String>,
}

/// What was found.
#[derive(Debug)]
pub struct Diagnosis {
    /// The servers, as they were seen last.
    pub servers: Vec<Answered>,
    /// What is wrong, by server.
    pub findings: Vec<Finding>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

/// Asks all servers twice, and names what is wrong.
///
/// # Errors
///
/// `Interrupted` or `Terminated` once a stop was asked for, `Failed` where the system gives no threads.
pub fn diagnose(targets: &[Target], request: &Request, cancel: &Cancel) -> Result<Diagnosis> {
    let questions = Questions::default();
    let first = survey(targets, &questions, request.timeout, cancel)?;
    pause(cancel)?;
    let second = survey(targets, &questions, request.timeout, cancel)?;
    let doubts = doubts::ask(targets, &second);
    let (before, _) = found(&Seen::new(&first, &second, &doubts));
    let (now, mut unchecked) = found(&Seen::new(&second, &second, &doubts));
    for (before, after) in first.iter().zip(&second) {
        if before.facts.is_ok() != after.facts.is_ok() {
            unchecked.push(format!(
                "{}: it answered only once of two times",
                after.name
            ));
        }
    }
    let was = |finding: &Finding| {
        before.iter().any(|other| {
            (other.server, &other.channel, other.failure)
                == (finding.server, &finding.channel, finding.failure)
        })
    };
    // Transactions of its own must be looked for in answers that are older than the source's.
    let own = |finding: &&Finding| finding.failure == Failure::OwnTransactions;
    let mut findings: Vec<Finding> = before.iter().filter(own).cloned().collect();
    for finding in now {
        if finding.failure == Failure::OwnTransactions {
            continue;
        }
        match finding.failure.is_momentary() && !was(&finding) {
            true => unchecked.push(format!(
                "{}: {} was seen only once of two times",
                second[finding.server].name,
                finding.failure.name()
            )),
            false => findings.push(finding),
        }
    }
    for table in &request.check_tables {
        let checked = tables::check(targets, &second, table, cancel)?;
        findings.extend(checked.findings);
        unchecked.extend(checked.unchecked);
    }
    findings
        .sort_by(|a, b| (a.server, &a.channel, a.failure).cmp(&(b.server, &b.channel, b.failure)));
    findings
        .dedup_by(|a, b| (a.server, &a.channel, a.failure) == (b.server, &b.channel, b.failure));
    Ok(Diagnosis {
        servers: second,
        findings,
        unchecked,
    })
}

fn pause(cancel: &Cancel) -> Result<()> {
    let until = Instant::now() + BETWEEN;
    while Instant::now() < until {
        cancel.check()?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Applies all rules to one look at the servers.
fn found(seen: &Seen<'_>) -> (Vec<Finding>, Vec<String>) {
    let mut findings = Vec::new();
    let mut unchecked = Vec::new();
    for (at, server) in seen.servers.iter().enumerate() {
        match &server.facts {
            Ok(facts) => {
                findings.extend(quiet::of_server(at, &server.name, facts));
                let refused = facts.refused.iter();
                unchecked.extend(refused.map(|why| format!("{}: {why}", server.name)));
            }
            Err(error) => findings.push(
                Finding::new(at, None, Failure::NoAnswer)
                    .seen(error.chain())
                    .step(
                        &server.name,
                        "look at the host and at the server's error log",
                    ),
            ),
        }
    }
    for subject in Subject::all(seen.servers) {
        let of_applier = applier::find(&subject, seen);
        let has_error = of_applier.is_some();
        findings.extend(of_applier);
        findings.extend(receiver::find(&subject, seen));
        if !has_error {
            findings.extend(quiet::find(&subject, seen));
        }
        findings.extend(quiet::of_data(&subject, seen));
        unchecked.extend(seen.not_seen(&subject));
    }
    (findings, unchecked)
}
