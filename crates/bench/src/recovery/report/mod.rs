//! What was measured, and whether it is what was promised.

use super::make::Crashed;
use super::request::RecoveryRequest;
use evenkeel_report::median;
use serde::Serialize;
use std::time::Duration;

/// Whether something was done before a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: the server on its own.
    Own,
    /// The page cache was warmed.
    Prewarmed,
}

/// What was warmed before a start.
#[derive(Debug, Clone, Serialize)]
pub struct Warmed {
    /// Bytes that were read.
    pub bytes_read: u64,
    /// The most reads that were under way.
    pub depth: usize,
    /// `io_uring` or `threads`.
    pub reader: &'static str,
    /// Whether all that was planned was read.
    pub is_complete: bool,
}

/// How long a step took.
#[derive(Debug, Clone, Serialize)]
pub struct StepTime {
    /// What the server did.
    pub name: String,
    /// For how long.
    pub seconds: f64,
}

/// Reads of a start that reached the emulated storage: the page cache did not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReadsSeen {
    /// Those of the tables' files.
    pub of_tables: u64,
    /// Others: system tablespace, undo, redo, the schema `mysql`.
    pub others: u64,
    /// Bytes of all.
    pub bytes: u64,
}

/// One start.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Of which kind.
    pub mode: Mode,
    /// From the beginning, with what was done before the start, until a client was greeted.
    pub seconds: f64,
    /// What was done before the start.
    pub prewarm_seconds: Option<f64>,
    /// The server's start.
    pub start_seconds: f64,
    /// The steps of that.
    pub steps: Vec<StepTime>,
    /// What reached the storage during that, where it is emulated.
    pub reads: Option<ReadsSeen>,
    /// What was warmed before.
    pub warmed: Option<Warmed>,
}

/// Starts of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// The median, in seconds.
    pub seconds: f64,
    /// The shortest.
    pub least_seconds: f64,
    /// The longest.
    pub most_seconds: f64,
    /// What the server did then, each step's median, in the order in which they begin.
    pub steps: Vec<StepTime>,
    /// The longest of these.
    pub slowest_step: Option<String>,
}

/// What a server is measured by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// The server.
    pub server: String,
    /// With how many tables.
    pub tables: usize,
    /// The time with prewarm, of the server's own.
    pub ratio: f64,
    /// Most that it may be.
    pub ratio_max: f64,
    /// Whether it is not.
    pub held: bool,
}

/// One server with one number of tables.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// The server: `MySQL 5.7.22`.
    pub server: String,
    /// How many tables.
    pub tables: usize,
    /// How many of them had changes in the redo log.
    pub changed_tables: usize,
    /// Whether this server is known to look into every table's file after a crash.
    pub reads_every_table: bool,
    /// The server on its own.
    pub own: Timing,
    /// With prewarm, which is included.
    pub prewarmed: Timing,
    /// The second of the first.
    pub ratio: f64,
    /// Every start, in the order in which they were made.
    pub rounds: Vec<Round>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct RecoveryReport {
    /// What storage was emulated, in words.
    pub storage: String,
    /// The delay of each read.
    pub latency_ms: f64,
    /// Starts of each kind.
    pub repeat: usize,
    /// What decided their order.
    pub seed: u64,
    /// One server with one number of tables each.
    pub cases: Vec<Case>,
    /// For each server its bar, at its largest number of tables.
    pub bars: Vec<Bar>,
    /// Whether all of them held.
    pub held: bool,
    /// How long all of it took.
    pub seconds: f64,
}

impl Case {
    pub(super) fn of(crashed: &Crashed, rounds: Vec<Round>) -> Self {
        let own = Timing::of(&rounds, Mode::Own);
        let prewarmed = Timing::of(&rounds, Mode::Prewarmed);
        Self {
            server: crashed.name(),
            tables: crashed.tables,
            changed_tables: crashed.changed,
            reads_every_table: crashed.reads_every_table(),
            ratio: prewarmed.seconds / own.seconds,
            own,
            prewarmed,
            rounds,
        }
    }

    /// Returns what is promised: a tenth where every table's file is read one after the other, and
    /// hardly anything lost elsewhere.
    #[must_use]
    pub fn bar(&self) -> Bar {
        let ratio_max = if self.reads_every_table { 0.1 } else { 1.02 };
        Bar {
            server: self.server.clone(),
            tables: self.tables,
            ratio: self.ratio,
            ratio_max,
            held: self.ratio <= ratio_max,
        }
    }
}

impl Timing {
    fn of(rounds: &[Round], mode: Mode) -> Self {
        let rounds: Vec<&Round> = rounds.iter().filter(|round| round.mode == mode).collect();
        let seconds: Vec<f64> = rounds.iter().map(|round| round.seconds).collect();
        let mut steps: Vec<StepTime> = Vec::new();
        for step in rounds.iter().flat_map(|round| &round.steps) {
            if steps.iter().all(|known| known.name != step.name) {
                let took = rounds.iter().map(|round| round.took(&step.name));
                let took: Vec<f64> = took.collect();
                steps.push(StepTime {
                    name: step.name.clone(),
                    seconds: median(&took).unwrap_or(0.0),
                });
            }
        }
        let slowest = steps.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Self {
            least_seconds: seconds.iter().copied().fold(f64::INFINITY, f64::min),
            most_seconds: seconds.iter().copied().fold(0.0, f64::max),
            slowest_step: slowest.map(|step| step.name.clone()),
            seconds: median(&seconds).unwrap_or(0.0),
            steps,
        }
    }

    /// Returns how long a step took.
    #[must_use]
    pub fn took(&self, step: &str) -> f64 {
        let found = self.steps.iter().find(|one| one.name == step);
        found.map_or(0.0, |step| step.seconds)
    }
}

impl Round {
    fn took(&self, step: &str) -> f64 {
        let found = self.steps.iter().find(|one| one.name == step);
        found.map_or(0.0, |step| step.seconds)
    }
}

impl RecoveryReport {
    pub(super) fn of(request: &RecoveryRequest, cases: Vec<Case>, took: Duration) -> Self {
        let mut bars: Vec<Bar> = Vec::new();
        for case in &cases {
            let of_server = cases.iter().filter(|other| other.server == case.server);
            let is_largest = of_server.map(|other| other.tables).max() == Some(case.tables);
            if is_largest && bars.iter().all(|bar| bar.server != case.server) {
                bars.push(case.bar());
            }
        }
        let latency_ms = request.latency.as_secs_f64() * 1000.0;
        Self {
            storage: match request.latency.is_zero() {
                true => "the disk as it is, after dropping the kernel's page cache".to_owned(),
                false => format!(
                    "a FUSE filesystem that answers each read and each synchronous write after \
                     {latency_ms} ms, any number in parallel; everything below it is in memory"
                ),
            },
            latency_ms,
            repeat: request.repeat,
            seed: request.seed,
            held: bars.iter().all(|bar| bar.held),
            bars,
            cases,
            seconds: took.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests;
