//! What each command answers: the shape is the JSON contract, the text is for people.

mod backup;
mod baseline;
mod bench;
mod binlog;
mod capture;
mod check;
mod clone;
mod copy;
mod demo;
mod digest;
mod doctor;
mod dump;
mod experiment;
mod fleet;
mod forget;
mod generations;
mod health;
mod import;
mod keys;
mod live;
mod load;
mod lock;
mod mount;
mod oltp;
mod plugin;
mod plugin_queue;
mod plugin_queue_sql;
mod prewarm;
mod queue;
mod rebuild;
mod repeated;
mod replay;
mod replica;
mod restore;
mod rounds;
mod settings;
mod showdown;
mod tpcc;
mod url;

pub use backup::BackupAnswer;
pub use binlog::ExtractAnswer;
pub use capture::{CaptureAnswer, SeenBy, not_seen, refused};
pub use copy::CopyAnswer;
pub use digest::{
    DigestAnswer, DigestedFile, ForgetPeriodsAnswer, PeriodsAnswer, ShownHistory, earlier_digest,
    rules_name,
};
pub use doctor::{Check, DoctorAnswer, LeftOut, ShownLayout, ShownMethod, ShownRoot};
pub use dump::DumpAnswer;
pub use experiment::{Compared, Comparison};
pub use fleet::{FleetAnswer, Member};
pub use forget::{ForgetAnswer, PruneAnswer};
pub use generations::{DamagedGeneration, GenerationAnswer, GenerationsAnswer, ListedGeneration};
pub use health::{HealthChange, HealthCheckAnswer, HealthStatusAnswer, NagiosStatus};
pub use import::ImportAnswer;
pub use keys::{KeysAnswer, NewKeyAnswer};
pub use live::{QpsDocument, TopDocument};
pub use load::{LoadAnswer, LoadPlanAnswer};
pub use lock::LockReport;
pub use plugin::{PluginInstallAnswer, PluginStatusAnswer, PluginUninstallAnswer};
pub use plugin_queue::{QueueInstallAnswer, QueuePluginAnswer, QueueUninstallAnswer};
pub use plugin_queue_sql::{QueueSqlInstallAnswer, QueueSqlStatusAnswer, QueueSqlUninstallAnswer};
pub use queue::{QueueCheckAnswer, QueueSalvageAnswer, forward_metrics, queue_metrics};
pub use rebuild::RebuildAnswer;
pub use replay::{ReplayAnswer, earlier_replay};
pub use replica::{
    HealHistoryAnswer, RepairExecutedAnswer, RepairPlannedAnswer, RepairUndoneAnswer,
    ReplicaChecksumAnswer, ReplicaDiagnoseAnswer, ReplicaHealAnswer, ReplicaStatusAnswer,
};
pub use restore::VerifyAnswer;
pub use rounds::{RoundsAnswer, RoundsPlanAnswer};
pub use settings::{SettingsAnswer, ShownSetting};
pub use tpcc::TpccConditions;
pub use url::{UrlStatsAnswer, UrlTrainAnswer};

use evenkeel_op::Error;
use serde::Serialize;

/// An answer. Its serialised form and its schema name are public contracts.
pub trait Answer: Serialize {
    /// Name and version of the JSON shape.
    const SCHEMA: &'static str;

    /// Returns the answer for people, each line ended by a newline.
    fn text(&self) -> String;
}

/// Returns words as a shell takes them, to be copied from an answer into one.
fn for_shell<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%=:".contains(c);
    let quoted = |word: S| match word.as_ref() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
        other => shell_words::quote(other).into_owned(),
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Why a part of what was asked for was not done, in an answer that tells of the rest.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// The name of its kind.
    pub kind: &'static str,
    /// What failed, and why.
    pub message: String,
    /// What to do next.
    pub hints: Vec<String>,
}

impl Failure {
    /// Describes an error.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        Self {
            kind: error.kind().name(),
            message: error.chain(),
            hints: error.hints().into_iter().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::for_shell;

    #[test]
    fn options_are_copied_into_a_shell_as_they_are() {
        let options = [
            "--datadir=/srv/a b",
            "--innodb_data_file_path=ibdata1:12M;ibdata2:8M",
        ];
        let shown = for_shell(options);
        assert_eq!(shell_words::split(&shown).unwrap(), options);
        assert!(shown.contains('\''), "{shown}");
        assert_eq!(for_shell(["--port=3306"]), "--port=3306");
    }
}
