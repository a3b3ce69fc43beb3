//! Other replicas from which one could get what its source has purged.

use super::Seen;
use super::catalogue::Failure;
use super::donor_log::Proof;
use super::finding::{Finding, Subject};
use evenkeel_server::abilities::GtidKind;

/// Looks for a sibling whose binary log has what is missing.
pub(super) fn donors(subject: &Subject<'_>, mut finding: Finding, seen: &Seen<'_>) -> Finding {
    for (at, other) in seen.servers.iter().enumerate() {
        let Ok(facts) = &other.facts else { continue };
        let is_source = seen.source(subject) == Some(at);
        if at == subject.server || is_source || facts.gtid_kind() != subject.facts.gtid_kind() {
            continue;
        }
        let name = &other.name;
        match facts.gtid_kind() {
            GtidKind::MySql if !facts.logged.is_empty() => {
                let source = seen
                    .source(subject)
                    .and_then(|at| seen.servers[at].facts.as_ref().ok());
                let Some(source) = source else { continue };
                let missing = source.purged.without(&subject.facts.applied);
                let is_ahead = missing.is_subset(&facts.logged);
                let gone = facts.purged.without(&subject.facts.applied);
                finding = match (is_ahead, gone.is_empty()) {
                    (true, true) => finding
                        .seen(format!("the binary log of {name} has all that is missing here"))
                        .step(
                            subject.name,
                            format!("let it replicate from {name} until it has caught up, then from its source again"),
                        ),
                    (true, false) => finding.seen(format!("{name} has purged {gone} too")),
                    (false, _) => finding,
                };
            }
            GtidKind::MariaDb => {
                finding = of_mariadb(subject, finding, name, seen.donor(subject, at))
            }
            _ => {}
        }
    }
    finding
}

fn of_mariadb(
    subject: &Subject<'_>,
    finding: Finding,
    name: &str,
    proof: Option<&Proof>,
) -> Finding {
    match proof {
        Some(Proof::Complete) => finding
            .seen(format!("the binary log of {name} has every transaction that is missing here"))
            .step(
                subject.name,
                format!("let it replicate from {name}, by GTID, until it has caught up, then from its source again"),
            ),
        Some(Proof::Lacks(why)) => finding.seen(format!("the binary log of {name} lacks transactions: {why}")),
        Some(Proof::Unknown(why)) => finding.seen(format!(
            "{name} may have in its binary log what is missing here, which was not proved: {why}"
        )),
        None => finding,
    }
}

/// Names those whose binary log lacks what a replica needs.
pub(super) fn incomplete(subject: &Subject<'_>, seen: &Seen<'_>) -> Vec<Finding> {
    let each = seen.servers.iter().enumerate();
    let lacking = each.filter_map(|(at, _)| match seen.donor(subject, at)? {
        Proof::Lacks(why) => Some((at, why)),
        _ => None,
    });
    let finding = |(at, why): (usize, &String)| {
        Finding::new(at, None, Failure::DonorIncomplete)
            .seen(format!(
                "it is ahead of {}, but of what is missing there its binary log lacks some: {why}",
                subject.name
            ))
            .step(
                subject.name,
                "do not let it replicate from there: rebuild it, or take the logs from an archive",
            )
    };
    lacking.map(finding).collect()
}
