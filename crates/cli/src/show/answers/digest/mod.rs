//! The answer of `digest`.

mod history;
mod plan;
pub(super) mod text;
mod words;

pub use history::{ForgetPeriodsAnswer, PeriodsAnswer, ShownHistory};

use super::Answer;
use evenkeel_traffic::digest::fingerprint::Rules;
use evenkeel_traffic::digest::{Change, Changed, Class, Earlier, Explanations, Names, Summary};
use jiff::Timestamp;
use plan::ShownPlan;
use serde::Serialize;
use serde_json::Value;
use words::time;

const SCHEMA: &str = "evenkeel/digest/1";

/// Which statements cost the most.
#[derive(Serialize)]
pub struct DigestAnswer {
    files: Vec<DigestedFile>,
    /// By which rules statements are alike: `evenkeel` or `pt`.
    fingerprints: &'static str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    seconds: f64,
    /// Statements that the options left out.
    left_out: u64,
    /// How many classes went to the others.
    folded: u64,
    series: SeriesPlace,
    total: ShownClass,
    classes: Vec<ShownClass>,
    others: ShownClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<ShownChange>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<ShownHistory>,
    #[serde(skip)]
    top: usize,
}

/// A log that was read.
#[derive(Serialize)]
pub struct DigestedFile {
    /// Its name.
    pub file: String,
    /// What it is.
    pub source: &'static str,
    /// Entries read.
    pub entries: u64,
    /// Entries that could not be read.
    pub unreadable: u64,
    /// Of the entries read: those with a time that cannot be read.
    pub untimed: u64,
    /// Of the entries read: those with the time of a session that set its clock, and not that of the server.
    pub own_clocks: u64,
}

impl DigestedFile {
    /// Whether everything in it was read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unreadable == 0 && self.untimed == 0
    }
}

/// Where the intervals of every class lie.
#[derive(Serialize)]
struct SeriesPlace {
    from: Option<Timestamp>,
    interval_s: f64,
}

#[derive(Serialize)]
pub(super) struct ShownClass {
    #[serde(skip_serializing_if = "String::is_empty")]
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) fingerprint: String,
    pub(super) count: u64,
    prepares: u64,
    qps: f64,
    share_of_time: f64,
    pub(super) latency_us: Option<Latency>,
    lock_us: f64,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    bytes_in: u64,
    bytes_out: u64,
    errors: u64,
    warnings: u64,
    users: Vec<Named>,
    hosts: Vec<Named>,
    schemas: Vec<Named>,
    first_seen: Option<Timestamp>,
    last_seen: Option<Timestamp>,
    sample: Option<ShownSample>,
    series: Vec<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<ShownPlan>,
}

#[derive(Serialize)]
pub(super) struct Latency {
    count: u64,
    sum: f64,
    min: f64,
    pub(super) avg: f64,
    p50: u64,
    pub(super) p95: u64,
    p99: u64,
    max: f64,
    histogram: Vec<Step>,
}

/// How many statements took so long at most, and longer than the step before.
#[derive(Serialize)]
struct Step {
    up_to_us: u64,
    count: u64,
}

#[derive(Serialize)]
struct Named {
    name: String,
    count: u64,
}

#[derive(Serialize)]
struct ShownSample {
    sql: String,
    sql_bytes: u64,
    latency_us: Option<f64>,
    at: Option<Timestamp>,
    session: Option<u32>,
    schema: Option<String>,
}

#[derive(Serialize)]
struct Interval {
    interval: usize,
    count: u64,
    timed: u64,
    sum_us: f64,
}

#[derive(Serialize)]
pub(super) struct ShownChange {
    id: String,
    fingerprint: String,
    /// `new`, `gone`, `slower`, `faster`, `more`, `fewer`, `same` or `unknown`.
    pub(super) change: &'static str,
    count: [u64; 2],
    sum_us: [f64; 2],
    pub(super) change_percent: Option<f64>,
    /// How many times as often it comes, if that is what changed.
    times_as_often: Option<f64>,
    p: Option<f64>,
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn named(names: &Names) -> Vec<Named> {
    let all = names.all().into_iter();
    let mut all: Vec<Named> = all
        .map(|(name, count)| Named {
            name: name.to_owned(),
            count,
        })
        .collect();
    if names.others > 0 {
        all.push(Named {
            name: "…".to_owned(),
            count: names.others,
        });
    }
    all
}

impl DigestAnswer {
    /// Answers with what came out; the text has so many classes at most.
    #[must_use]
    pub fn new(
        files: Vec<DigestedFile>,
        rules: Rules,
        summary: &Summary,
        changes: Option<&[Change]>,
        top: usize,
    ) -> Self {
        let shown = |class: &Class| ShownClass::of(class, summary);
        Self {
            files,
            fingerprints: rules_name(rules),
            from: time(summary.total.first_ns),
            to: time(summary.total.last_ns),
            seconds: summary.seconds(),
            left_out: summary.left_out,
            folded: summary.folded,
            series: SeriesPlace {
                from: time(summary.series_from_ns),
                interval_s: summary.series_width_ns as f64 / 1e9,
            },
            total: shown(&summary.total),
            classes: summary.classes.iter().map(shown).collect(),
            others: shown(&summary.others),
            changes: changes.map(|all| all.iter().map(ShownChange::of).collect()),
            history: None,
            top,
        }
    }

    /// Also says how a server would run the samples.
    #[must_use]
    pub fn with_plans(mut self, plans: &Explanations) -> Self {
        for class in &mut self.classes {
            class.plan = plans.get(&class.id).map(ShownPlan::of);
        }
        self
    }

    /// Also says what the history has to do with it.
    #[must_use]
    pub fn with_history(mut self, history: Option<ShownHistory>) -> Self {
        self.history = history;
        self
    }
}

/// Returns the name of rules, which is a contract of JSON.
#[must_use]
pub fn rules_name(rules: Rules) -> &'static str {
    match rules {
        Rules::Evenkeel => "evenkeel",
        Rules::Percona => "pt",
    }
}

impl ShownClass {
    pub(super) fn of(class: &Class, summary: &Summary) -> Self {
        let all = summary.total.sum_ns.max(1) as f64;
        let buckets = class.series.buckets.iter().enumerate();
        Self {
            id: class.id.clone(),
            fingerprint: class.fingerprint.clone(),
            count: class.count,
            prepares: class.prepares,
            qps: class.count as f64 / summary.seconds(),
            share_of_time: class.sum_ns as f64 / all,
            latency_us: Latency::of(class),
            lock_us: us(class.lock_ns),
            rows_sent: class.rows_sent,
            rows_examined: class.rows_examined,
            rows_affected: class.rows_affected,
            bytes_in: class.bytes_in,
            bytes_out: class.bytes_out,
            errors: class.errors,
            warnings: class.warnings,
            users: named(&class.users),
            hosts: named(&class.hosts),
            schemas: named(&class.schemas),
            first_seen: time(class.first_ns),
            last_seen: time(class.last_ns),
            sample: class
                .sample
                .as_ref()
                .filter(|_| !class.id.is_empty())
                .map(|sample| ShownSample {
                    sql: sample.sql.clone(),
                    sql_bytes: sample.sql_bytes,
                    latency_us: sample.total_ns.map(us),
                    at: time(sample.at_ns),
                    session: sample.session,
                    schema: sample.schema.clone(),
                }),
            series: buckets
                .filter(|(_, bucket)| bucket.count > 0)
                .map(|(interval, bucket)| Interval {
                    interval,
                    count: bucket.count,
                    timed: bucket.timed,
                    sum_us: us(bucket.sum_ns),
                })
                .collect(),
            plan: None,
        }
    }
}

impl Latency {
    fn of(class: &Class) -> Option<Self> {
        let steps = class.steps_us().into_iter();
        let steps = steps.map(|(up_to_us, count)| Step { up_to_us, count });
        Some(Self {
            count: class.timed,
            sum: us(class.sum_ns),
            min: us(class.min_ns),
            avg: us(class.avg_ns()?),
            p50: class.within_us(0.5)?,
            p95: class.within_us(0.95)?,
            p99: class.within_us(0.99)?,
            max: us(class.max_ns),
            histogram: steps.collect(),
        })
    }
}

impl ShownChange {
    pub(super) fn of(change: &Change) -> Self {
        let verdict = match &change.changed {
            Changed::Latency(verdict) | Changed::Same(Some(verdict)) => Some(verdict),
            _ => None,
        };
        Self {
            id: change.id.clone(),
            fingerprint: change.fingerprint.clone(),
            change: match &change.changed {
                Changed::New => "new",
                Changed::Gone => "gone",
                Changed::Latency(verdict) if verdict.medians[1] > verdict.medians[0] => "slower",
                Changed::Latency(_) => "faster",
                Changed::Rate(factor) if *factor > 1.0 => "more",
                Changed::Rate(_) => "fewer",
                Changed::Same(Some(_)) => "same",
                Changed::Same(None) => "unknown",
            },
            count: change.count,
            sum_us: change.sum_us,
            change_percent: verdict.and_then(|verdict| verdict.change_percent),
            times_as_often: match change.changed {
                Changed::Rate(factor) => Some(factor),
                _ => None,
            },
            p: verdict.map(|verdict| verdict.p),
        }
    }
}

/// Reads an earlier answer; says what is wrong with it.
pub fn earlier_digest(text: &[u8], rules: Rules) -> Result<Vec<Earlier>, String> {
    let answer = answer(text, SCHEMA, "is not the answer of a digest")?;
    if answer["fingerprints"] != rules_name(rules) {
        return Err("has fingerprints of other rules".to_owned());
    }
    classes(&answer, "")
}

/// Reads the classes of an earlier answer with this schema; `at` is where each has its sums.
pub(super) fn earlier_classes(
    text: &[u8],
    schema: &str,
    is_another: &str,
    at: &str,
) -> Result<Vec<Earlier>, String> {
    classes(&answer(text, schema, is_another)?, at)
}

fn answer(text: &[u8], schema: &str, is_another: &str) -> Result<Value, String> {
    let answer: Value =
        serde_json::from_slice(text).map_err(|error| format!("is not JSON: {error}"))?;
    match answer["schema"] == schema {
        true => Ok(answer),
        false => Err(is_another.to_owned()),
    }
}

fn classes(answer: &Value, at: &str) -> Result<Vec<Earlier>, String> {
    let classes = answer["classes"].as_array().into_iter().flatten();
    let classes = classes.map(|class| {
        let class = class.pointer(at)?;
        let intervals = class["series"].as_array().into_iter().flatten();
        Some(Earlier {
            id: class["id"].as_str()?.to_owned(),
            fingerprint: class["fingerprint"].as_str()?.to_owned(),
            count: class["count"].as_u64()?,
            sum_us: class["latency_us"]["sum"].as_f64().unwrap_or(0.0),
            averages_us: intervals
                .filter_map(|one| {
                    let timed = one["timed"].as_u64().filter(|timed| *timed > 0)?;
                    Some(one["sum_us"].as_f64()? / timed as f64)
                })
                .collect(),
            // That of a replay says how fast it was played.
            seconds: answer["seconds"].as_f64().filter(|_| at.is_empty()),
        })
    });
    classes
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "lacks what a digest says of a class".to_owned())
}

impl Answer for DigestAnswer {
    const SCHEMA: &'static str = SCHEMA;

    fn text(&self) -> String {
        text::of(self)
    }
}
