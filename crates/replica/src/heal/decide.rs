//! What may be done about a failure without asking a person: facts in, decision out. Nothing here asks a server, and no
//! clock is read.
//!
//! Every rule that forbids it is named, not only the first: an operator sees all that is in the way.

use super::case::HealCase;
use super::class::{HandOver, HealClass, class_of, hand_over, why_none};
use crate::diagnose::{Class, Failure};
use evenkeel_server::replication::ThreadState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the operator wants.
#[derive(Debug, Clone, Default)]
pub struct HealPolicy {
    /// Which repairs are allowed.
    pub allow: BTreeSet<HealClass>,
    /// More repairs of one replica within an hour are not made.
    pub repairs_max: u32,
    /// Replicas are taken out of use before they are repaired.
    pub drains: bool,
    /// Programs of others that run here and repair no replicas.
    pub beside: Vec<String>,
}

/// A rule that forbids a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealRule {
    /// No repair of this failure is safe without a person.
    NeedsPerson,
    /// Its class was not allowed.
    NotAllowed,
    /// It runs on the replica's host only.
    OnItsHost,
    /// The source does not answer, or was not asked.
    SourceUnreachable,
    /// It is not known whether the source still has what comes next, or it does not.
    LogNotProved,
    /// The replica is behind on purpose.
    Delayed,
    /// Clients can write on the replica, or on another replica of the source.
    Writable,
    /// Something about it could not be checked.
    Unknown,
    /// Something else is wrong with it that a person looks at first.
    OtherFailure,
    /// Other replicas have the same failure.
    CommonCause,
    /// No other replica of the source is healthy.
    LastHealthy,
    /// It was repaired too often.
    RateLimit,
    /// Another program repairs here.
    OtherTool,
    /// The server was restarted since a repair was interrupted.
    RestartedSince,
    /// The repair would start a thread that somebody has stopped.
    StoppedThread,
    /// Another healer is at work on the replicas of the source.
    Busy,
}

/// Why a repair is not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forbidden {
    /// The rule.
    pub rule: HealRule,
    /// What makes it apply.
    pub why: String,
}

/// What would be done, and what forbids it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The class of the repair; `None` where there is none.
    pub class: Option<HealClass>,
    /// Rules that forbid it; none if it may be done.
    pub forbidden: Vec<Forbidden>,
    /// Who does it, if it is not healed.
    pub hands_over: HandOver,
}

impl Decision {
    /// Returns the class of a repair that may be made.
    #[must_use]
    pub fn allowed(&self) -> Option<HealClass> {
        self.class.filter(|_| self.forbidden.is_empty())
    }
}

/// Decides.
#[must_use]
pub fn decide(case: &HealCase, policy: &HealPolicy) -> Decision {
    let class = class_of(case);
    let mut forbidden = Vec::new();
    match class {
        None => forbidden.push(forbid(HealRule::NeedsPerson, why_none(case))),
        Some(class) => {
            let asked = Asked {
                case,
                policy,
                class,
            };
            for rule in RULES {
                forbidden.extend(rule(&asked));
            }
        }
    }
    Decision {
        class,
        forbidden,
        hands_over: hand_over(case),
    }
}

/// What rules look at.
struct Asked<'a> {
    case: &'a HealCase,
    policy: &'a HealPolicy,
    class: HealClass,
}

type RuleOf = fn(&Asked<'_>) -> Option<Forbidden>;

const RULES: [RuleOf; 14] = [
    allowed,
    on_its_host,
    source_answers,
    log_is_there,
    not_delayed,
    not_writable,
    nothing_unknown,
    nothing_else_wrong,
    no_common_cause,
    not_the_last_healthy,
    not_too_often,
    no_other_tool,
    not_restarted,
    no_thread_was_stopped,
];

fn forbid(rule: HealRule, why: impl Into<String>) -> Forbidden {
    let why = why.into();
    Forbidden { rule, why }
}

fn allowed(asked: &Asked<'_>) -> Option<Forbidden> {
    let word = asked.class.word();
    (!asked.policy.allow.contains(&asked.class))
        .then(|| forbid(HealRule::NotAllowed, format!("--allow {word} is not given")))
}

fn on_its_host(asked: &Asked<'_>) -> Option<Forbidden> {
    (asked.class == HealClass::Resync).then(|| {
        forbid(
            HealRule::OnItsHost,
            "its files are replaced by 'evenkeel replica resync', on its own host",
        )
    })
}

fn source_answers(asked: &Asked<'_>) -> Option<Forbidden> {
    let why = match &asked.case.source {
        Some(source) if source.answers => return None,
        Some(source) => format!("the source {} does not answer", source.name),
        None => "its source was not asked: name it too".to_owned(),
    };
    Some(forbid(HealRule::SourceUnreachable, why))
}

/// A relay log is deleted only if all of it can be fetched again.
fn log_is_there(asked: &Asked<'_>) -> Option<Forbidden> {
    let case = asked.case;
    let both_stand =
        case.receiver == Some(ThreadState::Stopped) && case.applier == Some(ThreadState::Stopped);
    // MariaDB by GTID deletes relay logs when a thread starts while both stand.
    let deletes = asked.class == HealClass::RelayReset
        || asked.class == HealClass::Restart && case.is_mariadb && case.by_gtid && both_stand;
    let has_next = case.source.as_ref().and_then(|source| source.has_next);
    let why = match has_next {
        _ if !deletes => return None,
        Some(true) => return None,
        Some(false) => {
            "the relay logs would be deleted, and the source does not have what comes next any more"
        }
        None => {
            "the relay logs would be deleted, and whether the source still has what comes next is not known"
        }
    };
    Some(forbid(HealRule::LogNotProved, why))
}

fn not_delayed(asked: &Asked<'_>) -> Option<Forbidden> {
    let delay_s = asked.case.delay_s;
    (delay_s > 0).then(|| {
        let why = format!("it is {delay_s} s behind on purpose: its data are a copy of the past");
        forbid(HealRule::Delayed, why)
    })
}

fn not_writable(asked: &Asked<'_>) -> Option<Forbidden> {
    let why = match &asked.case.writable[..] {
        [] => return None,
        names => format!(
            "clients can write on {}: set read_only there first, or find out why it is off",
            names.join(", ")
        ),
    };
    Some(forbid(HealRule::Writable, why))
}

fn nothing_unknown(asked: &Asked<'_>) -> Option<Forbidden> {
    let first = asked.case.unchecked.first()?;
    let why = format!("something could not be checked: {first}");
    Some(forbid(HealRule::Unknown, why))
}

fn nothing_else_wrong(asked: &Asked<'_>) -> Option<Forbidden> {
    let is_first = |(failure, class): &&(Failure, Class)| {
        *class == Class::Never
            || matches!(
                failure,
                Failure::DiskFull | Failure::LogPurged | Failure::IndexDamaged
            )
    };
    let (failure, _) = asked.case.others.iter().find(is_first)?;
    let why = format!(
        "{} was found there, too: a person looks at that first",
        failure.name()
    );
    Some(forbid(HealRule::OtherFailure, why))
}

/// What breaks most replicas of a source at once is no accident of one of them.
fn no_common_cause(asked: &Asked<'_>) -> Option<Forbidden> {
    let siblings = &asked.case.siblings;
    let broken = siblings.same + 1;
    (siblings.same > 0 && broken * 2 > siblings.all + 1).then(|| {
        let (all, name) = (siblings.all + 1, asked.case.failure.name());
        let why =
            format!("{broken} of {all} replicas of the source have {name}: that has one cause");
        forbid(HealRule::CommonCause, why)
    })
}

fn not_the_last_healthy(asked: &Asked<'_>) -> Option<Forbidden> {
    let case = asked.case;
    let serves =
        case.receiver == Some(ThreadState::Running) && case.applier == Some(ThreadState::Running);
    ((serves || asked.policy.drains) && case.siblings.healthy == 0).then(|| {
        let why = "no other replica of its source that was asked is healthy";
        forbid(HealRule::LastHealthy, why)
    })
}

fn not_too_often(asked: &Asked<'_>) -> Option<Forbidden> {
    let (past, most) = (&asked.case.past, asked.policy.repairs_max);
    (past.last_hour >= most).then(|| {
        let why = format!(
            "{} repairs of it within the last hour, and {most} may be: find out what breaks it",
            past.last_hour
        );
        forbid(HealRule::RateLimit, why)
    })
}

fn no_other_tool(asked: &Asked<'_>) -> Option<Forbidden> {
    let is_meant = |tool: &&String| !asked.policy.beside.contains(tool);
    let tool = asked.case.tools.iter().find(is_meant)?;
    let why = format!(
        "{tool} is at work here, and may repair replicas, too: if it does not, give --beside {tool}"
    );
    Some(forbid(HealRule::OtherTool, why))
}

fn not_restarted(asked: &Asked<'_>) -> Option<Forbidden> {
    let case = asked.case;
    let begun_s = case.past.interrupted.as_ref()?.ago_s;
    let is_ours = matches!(
        case.failure,
        Failure::Stopped | Failure::AppliedWithGaps | Failure::RelayLogGone
    );
    let stayed = case.uptime_s.is_some_and(|uptime_s| uptime_s > begun_s);
    (is_ours && !stayed).then(|| {
        let why = "a repair was interrupted, and the server was restarted since: it may be meant not to replicate";
        forbid(HealRule::RestartedSince, why)
    })
}

/// What starts both threads would undo the stop of one.
fn no_thread_was_stopped(asked: &Asked<'_>) -> Option<Forbidden> {
    let case = asked.case;
    let was_stopped = match case.failure {
        Failure::RelayLogDamaged | Failure::RelayLogGone => {
            case.receiver_was_stopped || case.applier_was_stopped
        }
        // What starts the SQL thread alone would leave the other one stopped, or, MariaDB by GTID, delete relay logs.
        Failure::AppliedWithGaps => case.receiver_was_stopped,
        Failure::MissingRowUpdated
        | Failure::MissingRowDeleted
        | Failure::KeyTaken
        | Failure::UniqueValueTaken => case.receiver == Some(ThreadState::Stopped),
        _ => false,
    };
    (was_stopped && case.past.interrupted.is_none()).then(|| {
        let why = "the repair would start a thread that stands without an error, perhaps on purpose: start it first";
        forbid(HealRule::StoppedThread, why)
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::{Interrupted, PastCase, SiblingCase, SourceCase};
    use super::*;

    /// A failure that nothing forbids to repair, of the second of three replicas.
    fn case(failure: Failure) -> HealCase {
        HealCase {
            failure,
            class: failure.entry().class,
            receiver: Some(ThreadState::Running),
            applier: Some(ThreadState::Stopped),
            receiver_was_stopped: false,
            applier_was_stopped: false,
            is_mariadb: true,
            by_gtid: true,
            delay_s: 0,
            writable: Vec::new(),
            unchecked: Vec::new(),
            others: Vec::new(),
            source: Some(SourceCase {
                name: "db1".to_owned(),
                answers: true,
                has_next: Some(true),
            }),
            siblings: SiblingCase {
                all: 2,
                healthy: 2,
                same: 0,
            },
            has_replicas: false,
            past: PastCase::default(),
            uptime_s: Some(10_000),
            tools: Vec::new(),
        }
    }

    fn policy() -> HealPolicy {
        HealPolicy {
            allow: HealClass::ALL.into_iter().collect(),
            repairs_max: 1,
            ..HealPolicy::default()
        }
    }

    fn rules(case: &HealCase) -> Vec<HealRule> {
        let decision = decide(case, &policy());
        decision.forbidden.iter().map(|one| one.rule).collect()
    }

    #[track_caller]
    fn forbids(rule: HealRule, change: impl FnOnce(&mut HealCase)) {
        let mut case = case(Failure::RelayLogDamaged);
        assert_eq!(rules(&case), []);
        change(&mut case);
        assert_eq!(rules(&case), [rule], "{case:?}");
    }

    #[test]
    fn each_rule_forbids_by_itself() {
        use HealRule as Rule;
        forbids(Rule::SourceUnreachable, |case| {
            case.source.as_mut().unwrap().answers = false;
        });
        forbids(Rule::LogNotProved, |case| {
            case.source.as_mut().unwrap().has_next = Some(false);
        });
        forbids(Rule::LogNotProved, |case| {
            case.source.as_mut().unwrap().has_next = None;
        });
        forbids(Rule::Delayed, |case| case.delay_s = 3600);
        forbids(Rule::Writable, |case| case.writable.push("db2".to_owned()));
        forbids(Rule::Unknown, |case| {
            case.unchecked.push("db2: refused".to_owned());
        });
        forbids(Rule::OtherFailure, |case| {
            let class = Failure::OwnTransactions.entry().class;
            case.others.push((Failure::OwnTransactions, class));
        });
        forbids(Rule::OtherFailure, |case| {
            case.others.push((Failure::DiskFull, Class::Planned));
        });
        forbids(Rule::CommonCause, |case| case.siblings.same = 1);
        forbids(Rule::LastHealthy, |case| {
            case.applier = Some(ThreadState::Running);
            case.siblings.healthy = 0;
        });
        forbids(Rule::RateLimit, |case| case.past.last_hour = 1);
        forbids(Rule::OtherTool, |case| {
            case.tools.push("orchestrator".to_owned());
        });
        forbids(Rule::StoppedThread, |case| case.receiver_was_stopped = true);
        forbids(Rule::StoppedThread, |case| case.applier_was_stopped = true);
        let mut unasked = case(Failure::LockWait);
        unasked.source = None;
        assert_eq!(rules(&unasked), [HealRule::SourceUnreachable]);
    }

    #[test]
    fn only_allowed_classes_are_repaired() {
        let classes = [
            (Failure::LockWait, HealClass::Restart),
            (Failure::AppliedWithGaps, HealClass::Restart),
            (Failure::RelayLogDamaged, HealClass::RelayReset),
            (Failure::RowsDiffer, HealClass::RowRepair),
            (Failure::MissingRowUpdated, HealClass::RowRepair),
            (Failure::MissingRowDeleted, HealClass::RowRepair),
            (Failure::KeyTaken, HealClass::RowRepair),
            (Failure::UniqueValueTaken, HealClass::RowRepair),
        ];
        for (failure, class) in classes {
            let case = case(failure);
            assert_eq!(decide(&case, &policy()).allowed(), Some(class));
            let mut others = policy();
            others.allow.remove(&class);
            let decision = decide(&case, &others);
            assert_eq!(decision.allowed(), None);
            assert_eq!(decision.forbidden[0].rule, HealRule::NotAllowed);
        }
    }

    #[test]
    fn what_needs_a_person_is_never_repaired() {
        for failure in [
            Failure::DefinitionDiffers,
            Failure::HistoryDiffers,
            Failure::DonorIncomplete,
            Failure::OwnTransactions,
            Failure::GtidPositionAhead,
            Failure::AppliedAlready,
            Failure::FetchedLogsAtRisk,
            Failure::ServerIdTwice,
            Failure::ServerIdOfSource,
            Failure::DiskFull,
            Failure::IndexDamaged,
            Failure::ApplierBlocked,
            Failure::Stopped,
            Failure::OtherError,
            Failure::NoAnswer,
            Failure::SourceFrozen,
        ] {
            let decision = decide(&case(failure), &policy());
            assert_eq!(decision.allowed(), None, "{failure:?}");
            assert_eq!(decision.forbidden[0].rule, HealRule::NeedsPerson);
        }
        // Whether the table has a key is not known.
        let mut doubtful = case(Failure::MissingRowUpdated);
        doubtful.class = Class::Never;
        assert_eq!(rules(&doubtful), [HealRule::NeedsPerson]);
        for failure in [Failure::LogPurged, Failure::TableDamaged] {
            let decision = decide(&case(failure), &policy());
            assert_eq!(decision.allowed(), None, "{failure:?}");
            assert_eq!(decision.hands_over, HandOver::Resync);
        }
    }

    #[test]
    fn threads_that_gave_up_are_started_and_those_that_try_are_left() {
        for failure in [Failure::LoginRefused, Failure::SourceUnreachable] {
            let mut case = case(failure);
            case.receiver = Some(ThreadState::Connecting);
            assert_eq!(decide(&case, &policy()).class, None);
            case.receiver = Some(ThreadState::Stopped);
            case.applier = Some(ThreadState::Running);
            assert_eq!(decide(&case, &policy()).allowed(), Some(HealClass::Restart));
        }
    }

    #[test]
    fn a_start_that_deletes_relay_logs_needs_the_sources() {
        let mut case = case(Failure::LoginRefused);
        (case.receiver, case.applier) = (Some(ThreadState::Stopped), Some(ThreadState::Stopped));
        case.source.as_mut().unwrap().has_next = None;
        assert_eq!(rules(&case), [HealRule::LogNotProved]);
        // Elsewhere, and while one of them runs, nothing is deleted.
        for change in [
            |case: &mut HealCase| case.is_mariadb = false,
            |case: &mut HealCase| case.by_gtid = false,
            |case: &mut HealCase| case.applier = Some(ThreadState::Running),
        ] {
            let mut other = case.clone();
            change(&mut other);
            assert_eq!(rules(&other), []);
        }
    }

    #[test]
    fn a_stop_is_undone_only_if_it_was_ours() {
        let mut stopped = case(Failure::Stopped);
        stopped.receiver = Some(ThreadState::Stopped);
        assert_eq!(decide(&stopped, &policy()).class, None);
        stopped.past.interrupted = Some(Interrupted {
            id: "x".to_owned(),
            ago_s: 60,
        });
        assert_eq!(
            decide(&stopped, &policy()).allowed(),
            Some(HealClass::Restart)
        );
        for uptime_s in [Some(60), None] {
            stopped.uptime_s = uptime_s;
            assert_eq!(rules(&stopped), [HealRule::RestartedSince]);
        }
    }

    #[test]
    fn a_thread_that_somebody_stopped_is_not_started_along() {
        let mut gaps = case(Failure::AppliedWithGaps);
        gaps.applier_was_stopped = true;
        assert_eq!(rules(&gaps), []);
        gaps.receiver_was_stopped = true;
        assert_eq!(rules(&gaps), [HealRule::StoppedThread]);
        gaps.past.interrupted = Some(Interrupted {
            id: "x".to_owned(),
            ago_s: 60,
        });
        assert_eq!(rules(&gaps), [], "it was a repair that stopped it");
        gaps.uptime_s = Some(60);
        assert_eq!(rules(&gaps), [HealRule::RestartedSince]);
    }

    #[test]
    fn the_last_healthy_one_is_not_drained() {
        let mut alone = case(Failure::RelayLogDamaged);
        alone.siblings.healthy = 0;
        assert_eq!(rules(&alone), [], "it does not serve");
        let drains = HealPolicy {
            drains: true,
            ..policy()
        };
        let decision = decide(&alone, &drains);
        assert_eq!(decision.forbidden[0].rule, HealRule::LastHealthy);
    }

    #[test]
    fn programs_that_repair_nothing_may_be_beside() {
        let mut case = case(Failure::LockWait);
        case.tools = ["maxscale", "orchestrator"].map(str::to_owned).into();
        let mut policy = policy();
        policy.beside.push("maxscale".to_owned());
        let decision = decide(&case, &policy);
        assert!(decision.forbidden[0].why.contains("orchestrator"));
        policy.beside.push("orchestrator".to_owned());
        assert!(decide(&case, &policy).allowed().is_some());
    }

    #[test]
    fn half_of_the_replicas_are_no_common_cause() {
        let mut case = case(Failure::LockWait);
        (case.siblings.all, case.siblings.same) = (3, 1);
        assert_eq!(rules(&case), []);
        case.siblings.same = 2;
        assert_eq!(rules(&case), [HealRule::CommonCause]);
    }

    #[test]
    fn a_source_that_is_gone_is_handed_to_who_promotes() {
        let mut case = case(Failure::NoAnswer);
        assert_eq!(decide(&case, &policy()).hands_over, HandOver::Person);
        case.has_replicas = true;
        assert_eq!(decide(&case, &policy()).hands_over, HandOver::Promotion);
        let mut case = self::case(Failure::SourceUnreachable);
        assert_eq!(decide(&case, &policy()).hands_over, HandOver::Wait);
        case.source.as_mut().unwrap().answers = false;
        assert_eq!(decide(&case, &policy()).hands_over, HandOver::Promotion);
    }
}
