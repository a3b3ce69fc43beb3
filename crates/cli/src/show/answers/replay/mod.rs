//! The answer of `replay`.

mod text;

use super::Answer;
use super::digest::{DigestedFile, ShownChange, ShownClass, earlier_classes};
use evenkeel_traffic::digest::{Change, Earlier};
use evenkeel_traffic::replay::{Differences, Outcome, Plan, factor};
use serde::Serialize;

const SCHEMA: &str = "evenkeel/replay/1";

/// What came of statements that ran again.
#[derive(Serialize)]
pub struct ReplayAnswer {
    file: DigestedFile,
    server_version: String,
    sessions: usize,
    sessions_at_a_time: usize,
    /// Statements replayed and counted.
    statements: u64,
    /// Of all statements in the plan: prepared ones that ran with their values.
    prepared: u64,
    /// Prepared ones that ran as text.
    prepared_as_text: u64,
    /// Statements replayed before, to warm the server up.
    warm_up: u64,
    seconds: f64,
    captured_seconds: f64,
    /// Statements that were not to be replayed.
    left_out: Vec<LeftOutStatements>,
    /// Statements that were to be replayed and were not.
    lost: u64,
    lost_sessions: u64,
    loss: Option<String>,
    /// Statements that waited for those of other sessions.
    waits: u64,
    /// Of these: those that were sent though the others were not done.
    gave_up: u64,
    late_us: Option<Late>,
    differences: Vec<ShownDifference>,
    results: ComparedResults,
    total: ReplayedClass,
    classes: Vec<ReplayedClass>,
    others: ReplayedClass,
    /// Since an earlier replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<ShownChange>>,
    #[serde(skip)]
    top: usize,
}

#[derive(Serialize)]
struct LeftOutStatements {
    reason: &'static str,
    count: u64,
    #[serde(skip)]
    says: &'static str,
}

/// How much later than planned statements were sent.
#[derive(Serialize)]
struct Late {
    p50: u64,
    p99: u64,
    max: u64,
}

#[derive(Serialize)]
struct ShownDifference {
    difference: &'static str,
    #[serde(skip)]
    says: &'static str,
    count: u64,
    example: Option<ShownExample>,
}

#[derive(Serialize)]
struct ShownExample {
    sql: String,
    captured: ShownOutcome,
    replayed: ShownOutcome,
}

#[derive(Serialize)]
struct ShownOutcome {
    error: Option<u16>,
    rows: Option<u64>,
    affected: Option<u64>,
}

/// Of which statements it was compared what the rows contain.
#[derive(Serialize)]
struct ComparedResults {
    compared: u64,
    not_compared: Vec<IncomparableResults>,
}

#[derive(Serialize)]
struct IncomparableResults {
    reason: &'static str,
    #[serde(skip)]
    says: &'static str,
    count: u64,
    /// The first statement.
    example: String,
}

impl ComparedResults {
    fn of(all: &Differences) -> Self {
        let not_compared = all.incomparable();
        Self {
            compared: all.results_compared,
            not_compared: not_compared
                .map(|(why, count, example)| IncomparableResults {
                    reason: why.name(),
                    says: why.says(),
                    count,
                    example: example.to_owned(),
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct ReplayedClass {
    captured: ShownClass,
    replayed: ShownClass,
    /// How the latency differs from the capture's; none without times in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<ShownChange>,
    /// How many times as long one takes on average, if that is more than chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_as_long: Option<f64>,
    differences: Vec<ShownDifference>,
    results: ComparedResults,
}

fn differences(all: &Differences) -> Vec<ShownDifference> {
    let all = all.all();
    all.map(|(difference, count, example)| ShownDifference {
        difference: difference.name(),
        says: difference.says(),
        count,
        example: example.map(|example| ShownExample {
            sql: example.sql.clone(),
            captured: ShownOutcome {
                error: example.before.0,
                rows: example.before.1,
                affected: example.before.2,
            },
            replayed: ShownOutcome {
                error: example.now.0,
                rows: Some(example.now.1),
                affected: Some(example.now.2),
            },
        }),
    })
    .collect()
}

fn left_out(plan: &Plan) -> Vec<LeftOutStatements> {
    let all = plan.left.iter();
    all.map(|(left, count)| LeftOutStatements {
        reason: left.name(),
        count: *count,
        says: left.reason(),
    })
    .collect()
}

fn classes(plan: &Plan, outcome: &Outcome, latency: &[Change]) -> Vec<ReplayedClass> {
    let (before, now) = (&plan.original, &outcome.summary);
    let both = before.classes.iter().zip(&now.classes);
    both.zip(&outcome.differences)
        .map(|((captured, replayed), of)| ReplayedClass {
            captured: ShownClass::of(captured, before),
            replayed: ShownClass::of(replayed, now),
            latency: latency
                .iter()
                .find(|change| change.id == captured.id)
                .map(ShownChange::of),
            times_as_long: latency
                .iter()
                .find(|change| change.id == captured.id)
                .and_then(|change| factor(change, captured, replayed)),
            differences: differences(of),
            results: ComparedResults::of(of),
        })
        .collect()
}

impl Late {
    fn of(outcome: &Outcome) -> Option<Self> {
        let late = &outcome.late_us;
        (!late.is_empty()).then(|| Self {
            p50: late.value_at_quantile(0.5),
            p99: late.value_at_quantile(0.99),
            max: late.max(),
        })
    }
}

impl ReplayAnswer {
    /// Answers with what came out. `latency` compares with the capture, `changes` with an earlier replay.
    #[must_use]
    pub fn new(
        file: DigestedFile,
        server_version: String,
        plan: &Plan,
        outcome: &Outcome,
        latency: &[Change],
        changes: Option<&[Change]>,
        top: usize,
    ) -> Self {
        let (before, now) = (&plan.original, &outcome.summary);
        let mut all = Differences::default();
        for one in &outcome.differences {
            all.merge(one);
        }
        let none = Differences::default();
        let both = |captured, replayed, of: &Differences| ReplayedClass {
            captured: ShownClass::of(captured, before),
            replayed: ShownClass::of(replayed, now),
            latency: None,
            times_as_long: None,
            differences: differences(of),
            results: ComparedResults::of(of),
        };
        Self {
            file,
            server_version,
            sessions: plan.sessions(),
            sessions_at_a_time: plan.most_at_a_time(),
            statements: outcome.statements,
            prepared: plan.prepared[0],
            prepared_as_text: plan.prepared[1],
            warm_up: outcome.warm_up,
            seconds: outcome.seconds,
            captured_seconds: plan.to_ns.saturating_sub(plan.from_ns) as f64 / 1e9,
            left_out: left_out(plan),
            lost: outcome.lost,
            lost_sessions: outcome.lost_sessions,
            loss: outcome.loss.clone(),
            waits: outcome.waits,
            gave_up: outcome.gave_up,
            late_us: Late::of(outcome),
            differences: differences(&all),
            results: ComparedResults::of(&all),
            total: both(&before.total, &now.total, &all),
            classes: classes(plan, outcome, latency),
            others: both(
                &before.others,
                &now.others,
                outcome.differences.last().unwrap_or(&none),
            ),
            changes: changes.map(|all| all.iter().map(ShownChange::of).collect()),
            top,
        }
    }
}

/// Reads an earlier answer; says what is wrong with it.
pub fn earlier_replay(text: &[u8]) -> Result<Vec<Earlier>, String> {
    earlier_classes(text, SCHEMA, "is not the answer of a replay", "/replayed")
}

impl Answer for ReplayAnswer {
    const SCHEMA: &'static str = SCHEMA;

    fn text(&self) -> String {
        text::of(self)
    }
}
