//! What was measured, method by method.

use super::method::{Leaves, NONE};
use super::stage::Stage;
use super::verdict::Verdict;
use evenkeel_report::compare::Spread;
use serde::Serialize;
use std::time::Duration;

/// Response times of New-Order.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Response {
    /// The median.
    pub p50_ms: f64,
    /// 95 of a hundred keep below.
    pub p95_ms: f64,
    /// 99 of a hundred keep below.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// One backup.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Once {
    /// Wall clock.
    pub seconds: f64,
    /// Processor time of the command and what it started.
    pub cpu_seconds: f64,
    /// What it added on disk.
    pub bytes: u64,
    /// Whether it ended while the load was measured.
    pub under_load: bool,
}

/// What became of a backup.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// What was run.
    pub command: String,
    /// Until a server with it greeted a client.
    pub seconds: f64,
    /// Of that, the command itself: the rest is the server's start.
    pub command_seconds: f64,
    /// Processor time of the command and what it started; the server's is not in it.
    pub cpu_seconds: f64,
    /// Whether all of TPC-C's conditions hold on it.
    pub is_sound: bool,
    /// Those that do not.
    pub broken: Vec<u8>,
}

/// A setting of the server.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
}

/// One round.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Round {
    /// Of which method.
    pub method: String,
    /// The how manieth of it, from 0.
    pub repetition: usize,
    /// New-Order transactions a minute.
    pub tpmc: f64,
    /// Of them, second by second.
    pub new_orders_per_s: Vec<f64>,
    /// How long they took.
    pub new_order: Response,
    /// The longest time without a commit.
    pub stall_ms: f64,
    /// What was run, the first time.
    pub command: Option<String>,
    /// Every backup.
    pub backups: Vec<Once>,
    /// What became of the last one.
    pub restored: Option<Restored>,
    /// Why it does not count.
    pub failed: Option<String>,
    /// The server's, in undisturbed rounds.
    pub settings: Vec<Setting>,
}

/// Whether a method was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum MeasurementState {
    /// It was.
    Measured,
    /// It was not, because something is missing here.
    LeftOut(String),
    /// It failed.
    Failed(String),
}

/// One method.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// Its name.
    pub method: String,
    /// Whether it was measured.
    #[serde(flatten)]
    pub state: MeasurementState,
    /// What it leaves.
    pub leaves: Leaves,
    /// Whether it is evenkeel's backup of files.
    pub is_ours: bool,
    /// Whether each backup continues from the last one.
    pub is_incremental: bool,
    /// The backup, as it was run first.
    pub command: Option<String>,
    /// The restore, as it was run first.
    pub restore_command: Option<String>,
    /// New-Order transactions a minute.
    pub tpmc: Option<Spread>,
    /// Of the undisturbed round of the same repetition, in percent.
    pub percent: Option<Spread>,
    /// The same of each round.
    pub percents: Vec<f64>,
    /// New-Order transactions that each backup cost, against that round: a slow backup takes little of each second,
    /// and takes it for longer. Below 0 where by chance more were done.
    pub lost: Option<Spread>,
    /// New-Order, 95 of a hundred.
    pub p95_ms: Option<Spread>,
    /// New-Order, 99 of a hundred.
    pub p99_ms: Option<Spread>,
    /// New-Order, the slowest.
    pub max_ms: Option<Spread>,
    /// The longest time without a commit.
    pub stall_ms: Option<Spread>,
    /// Backups, over all rounds.
    pub backups: usize,
    /// Whether a round's first backup took longer than was measured: so it ran without load at the end.
    pub outlasts: bool,
    /// The first backup of a round, in seconds.
    pub first_s: Option<Spread>,
    /// Those after the first, in seconds, that ended under load.
    pub next_s: Option<Spread>,
    /// Processor time of the first.
    pub first_cpu_s: Option<Spread>,
    /// Processor time of those after the first.
    pub next_cpu_s: Option<Spread>,
    /// What the first takes on disk.
    pub first_bytes: Option<Spread>,
    /// What one after the first adds.
    pub next_bytes: Option<Spread>,
    /// Until a server with it greets a client.
    pub restore_s: Option<Spread>,
    /// The same of each round.
    pub restores_s: Vec<f64>,
    /// Of that, the command itself, without the server's start.
    pub restore_command_s: Option<Spread>,
    /// Whether all that was restored was sound; none: nothing was.
    pub is_sound: Option<bool>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct ShowdownReport {
    /// The server.
    pub server: String,
    /// What its files lay on.
    pub filesystem: String,
    /// The server's settings.
    pub settings: Vec<Setting>,
    /// Warehouses.
    pub warehouses: u32,
    /// Whether the tables had the specification's sizes.
    pub is_specified: bool,
    /// Connections of the load.
    pub connections: usize,
    /// Threads of methods that can have several.
    pub threads: usize,
    /// Before anything counted.
    pub ramp_up_s: f64,
    /// How long was measured.
    pub measure_s: f64,
    /// How long after a backup began the next one began at the earliest.
    pub every_s: f64,
    /// Rounds of each method.
    pub repeat: usize,
    /// What decided their order.
    pub seed: u64,
    /// The methods, in the order in which they were asked for.
    pub methods: Vec<Standing>,
    /// Every round, in the order in which they were run.
    pub rounds: Vec<Round>,
    /// Who won.
    pub verdict: Verdict,
    /// How long all of it took.
    pub seconds: f64,
}

impl Standing {
    /// Whether it was measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.state == MeasurementState::Measured
    }

    fn of(stage: &Stage<'_>, number: usize, left_out: Option<&String>, all: &[Round]) -> Self {
        let method = &stage.request.methods[number];
        let of_method = || all.iter().filter(|round| round.method == method.name);
        let rounds: Vec<&Round> = of_method().filter(|round| round.failed.is_none()).collect();
        let failed = of_method().find_map(|round| round.failed.clone());
        let runs = |value: &dyn Fn(&Round) -> Option<f64>| -> Vec<f64> {
            rounds.iter().filter_map(|round| value(round)).collect()
        };
        let over = |value: &dyn Fn(&Round) -> Option<f64>| Spread::of(&runs(value));
        let first = |value: fn(&Once) -> f64| over(&|round| round.backups.first().map(value));
        let next = |value: fn(&Once) -> f64| {
            let later = rounds.iter().flat_map(|round| round.backups.iter().skip(1));
            let later: Vec<f64> = later.filter(|once| once.under_load).map(value).collect();
            Spread::of(&later)
        };
        let percents = runs(&|round| round.percent_of_undisturbed(all));
        let restores_s = runs(&|round| round.restored.as_ref().map(|restored| restored.seconds));
        let restored = || rounds.iter().filter_map(|round| round.restored.as_ref());
        Self {
            method: method.name.clone(),
            state: match (left_out, failed) {
                (Some(why), _) => MeasurementState::LeftOut(why.clone()),
                (None, Some(why)) => MeasurementState::Failed(why),
                (None, None) => MeasurementState::Measured,
            },
            leaves: method.leaves,
            is_ours: method.is_ours,
            is_incremental: method.is_incremental,
            command: rounds.iter().find_map(|round| round.command.clone()),
            restore_command: restored().next().map(|restored| restored.command.clone()),
            tpmc: over(&|round| Some(round.tpmc)),
            percent: Spread::of(&percents),
            percents,
            lost: over(&|round| round.lost_per_backup(all, stage.request.measure)),
            p95_ms: over(&|round| Some(round.new_order.p95_ms)),
            p99_ms: over(&|round| Some(round.new_order.p99_ms)),
            max_ms: over(&|round| Some(round.new_order.max_ms)),
            stall_ms: over(&|round| Some(round.stall_ms)),
            backups: rounds.iter().map(|round| round.backups.len()).sum(),
            outlasts: rounds
                .iter()
                .any(|round| round.backups.first().is_some_and(|once| !once.under_load)),
            first_s: first(|once| once.seconds),
            next_s: next(|once| once.seconds),
            first_cpu_s: first(|once| once.cpu_seconds),
            next_cpu_s: next(|once| once.cpu_seconds),
            first_bytes: first(|once| once.bytes as f64),
            next_bytes: next(|once| once.bytes as f64),
            restore_s: Spread::of(&restores_s),
            restores_s,
            restore_command_s: over(&|round| Some(round.restored.as_ref()?.command_seconds)),
            is_sound: restored()
                .next()
                .map(|_| restored().all(|restored| restored.is_sound)),
        }
    }
}

impl Round {
    /// Returns what the server did undisturbed, in the same repetition.
    fn undisturbed(&self, all: &[Self]) -> Option<f64> {
        let undisturbed = all
            .iter()
            .find(|other| other.method == NONE && other.repetition == self.repetition)?;
        Some(undisturbed.tpmc).filter(|tpmc| *tpmc > 0.0)
    }

    fn percent_of_undisturbed(&self, all: &[Self]) -> Option<f64> {
        Some(self.tpmc * 100.0 / self.undisturbed(all)?)
    }

    /// Returns how many transactions each of its backups cost. One that outlasts the load counts as half a backup,
    /// unless there is no other.
    fn lost_per_backup(&self, all: &[Self], measured: Duration) -> Option<f64> {
        if self.backups.is_empty() {
            return None;
        }
        let share = |once: &Once| if once.under_load { 1.0 } else { 0.5 };
        let backups: f64 = self.backups.iter().map(share).sum();
        let lost = self.undisturbed(all)? - self.tpmc;
        Some(lost * measured.as_secs_f64() / 60.0 / backups.max(1.0))
    }
}

impl ShowdownReport {
    pub(super) fn of(
        stage: &Stage<'_>,
        left_out: &[Option<String>],
        rounds: Vec<Round>,
        took: Duration,
    ) -> Self {
        let request = stage.request;
        let methods: Vec<Standing> = left_out
            .iter()
            .enumerate()
            .map(|(number, why)| Standing::of(stage, number, why.as_ref(), &rounds))
            .collect();
        let settings = rounds.iter().find(|round| !round.settings.is_empty());
        Self {
            server: format!("{} {}", request.server.flavour, request.server.version),
            filesystem: stage.run_directory.description(),
            settings: settings.map_or(Vec::new(), |round| round.settings.clone()),
            warehouses: request.scale.warehouses,
            is_specified: request.scale.is_specified(),
            connections: request.connections,
            threads: request.threads,
            ramp_up_s: request.ramp_up.as_secs_f64(),
            measure_s: request.measure.as_secs_f64(),
            every_s: request.every.as_secs_f64(),
            repeat: request.repeat,
            seed: request.seed,
            verdict: Verdict::of(&methods),
            methods,
            rounds,
            seconds: took.as_secs_f64(),
        }
    }

    /// Whether every method that could be tried was measured.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let failed = |method: &Standing| matches!(method.state, MeasurementState::Failed(_));
        !self.methods.iter().any(failed)
    }

    /// Whether everything that was restored was sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.methods
            .iter()
            .all(|method| method.is_sound != Some(false))
    }
}
