//! The classes of repairs that an operator allows, and which failures are of which.

use super::case::HealCase;
use crate::diagnose::{Class, Failure};
use evenkeel_op::{Error, Result};
use evenkeel_server::replication::ThreadState;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What an operator allows to be done without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealClass {
    /// Start a thread that stopped for a reason that is over.
    Restart,
    /// Delete the relay logs, and fetch them again from where the SQL thread is.
    RelayReset,
    /// Make rows those of the source.
    RowRepair,
    /// Replace all files by a sibling's.
    Resync,
}

impl HealClass {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Restart,
        Self::RelayReset,
        Self::RowRepair,
        Self::Resync,
    ];

    /// Returns its word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::RelayReset => "relay-reset",
            Self::RowRepair => "row-repair",
            Self::Resync => "resync",
        }
    }
}

impl FromStr for HealClass {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|class| class.word() == text).ok_or_else(|| {
            let words = Self::ALL.map(Self::word).join(", ");
            Error::usage(format!("'{text}' is not a class of repairs"))
                .hint(format!("classes: {words}"))
        })
    }
}

/// Who does what is not healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOver {
    /// Nobody: it repairs itself.
    Wait,
    /// Whoever promotes: the source is gone. A healer never does that.
    Promotion,
    /// The host of the replica: its files are to be replaced.
    Resync,
    /// A person.
    Person,
}

impl HandOver {
    /// Returns its word, which is a contract.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Promotion => "promotion",
            Self::Resync => "resync",
            Self::Person => "person",
        }
    }
}

/// Returns what repairs a failure, if something does.
pub(super) fn class_of(case: &HealCase) -> Option<HealClass> {
    let receiver_gave_up = case.receiver == Some(ThreadState::Stopped);
    match case.failure {
        Failure::LockWait | Failure::AppliedWithGaps => Some(HealClass::Restart),
        Failure::LoginRefused | Failure::SourceUnreachable if receiver_gave_up => {
            Some(HealClass::Restart)
        }
        // Left by a run of ours that was killed, with its watchdog and its host.
        Failure::Stopped if case.past.interrupted.is_some() => Some(HealClass::Restart),
        Failure::RelayLogDamaged => Some(HealClass::RelayReset),
        // Elsewhere the place, or the password for the source, would be lost for a moment.
        Failure::RelayLogGone if case.by_gtid && !case.is_mariadb => Some(HealClass::RelayReset),
        Failure::RowsDiffer => Some(HealClass::RowRepair),
        Failure::MissingRowUpdated
        | Failure::MissingRowDeleted
        | Failure::KeyTaken
        | Failure::UniqueValueTaken
            if case.class != Class::Never =>
        {
            Some(HealClass::RowRepair)
        }
        Failure::LogPurged | Failure::TableDamaged | Failure::MissingRowWithoutKey => {
            Some(HealClass::Resync)
        }
        _ => None,
    }
}

/// Returns why nothing repairs a failure.
pub(super) fn why_none(case: &HealCase) -> String {
    let text = match (case.failure, case.class) {
        (Failure::Stopped, _) => {
            "it was stopped without an error, perhaps on purpose: for a backup, or for maintenance"
        }
        (Failure::RelayLogGone, _) => {
            "a kill in the middle would lose its place, or the password for its source: a person runs these steps"
        }
        (
            Failure::MissingRowUpdated
            | Failure::MissingRowDeleted
            | Failure::KeyTaken
            | Failure::UniqueValueTaken,
            _,
        ) => {
            "the row has to be made as it was before the event, and which one it is cannot be told"
        }
        (Failure::ApplierBlocked, _) => "ending another session is not a repair of the replica",
        (Failure::FetchedLogsAtRisk, _) => "nothing is done while the source does not answer",
        (_, Class::Wait) => "it repairs itself",
        (_, Class::Never) => "only a person can know what is right",
        _ => "a person looks at the plan first",
    };
    text.to_owned()
}

/// Returns who does what is not healed.
pub(super) fn hand_over(case: &HealCase) -> HandOver {
    let source_is_gone = case.source.as_ref().is_some_and(|source| !source.answers);
    match (case.failure, case.class) {
        // A server that others replicate from.
        (Failure::NoAnswer, _) if case.has_replicas => HandOver::Promotion,
        (Failure::SourceUnreachable | Failure::FetchedLogsAtRisk, _) if source_is_gone => {
            HandOver::Promotion
        }
        (Failure::LogPurged | Failure::TableDamaged | Failure::MissingRowWithoutKey, _) => {
            HandOver::Resync
        }
        (_, Class::Wait) => HandOver::Wait,
        _ => HandOver::Person,
    }
}
