//! Statements that differ in their values only.

use super::fingerprint::{Fingerprint, Mode, redacted};
use super::names::Names;
use super::series::{Grid, Series};
use crate::Statement;
use hdrhistogram::Histogram;
use std::cmp::Ordering;

/// How much of a fingerprint is kept.
const TEXT_MAX: usize = 4 << 10;
/// How much of a sample is kept.
const SAMPLE_MAX: usize = 8 << 10;

/// The slowest statement of a class, without secrets.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The statement, or its beginning.
    pub sql: String,
    /// How long the statement is.
    pub sql_bytes: u64,
    /// How long it took, in nanoseconds.
    pub total_ns: Option<u64>,
    /// When it came, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The server's number of its session.
    pub session: Option<u32>,
    /// Its default schema.
    pub schema: Option<String>,
}

/// Statements that differ in their values only.
#[derive(Debug, Clone)]
pub struct Class {
    /// Its identifier; the same in every run.
    pub id: String,
    /// What they have in common, or its beginning.
    pub fingerprint: String,
    /// How many ran.
    pub count: u64,
    /// How many were prepared; they run later.
    pub prepares: u64,
    /// Of how many it is known how long they took.
    pub timed: u64,
    /// How long these took in all, in nanoseconds.
    pub sum_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How long each took, in microseconds, to two digits.
    pub latency_us: Histogram<u32>,
    /// How long they waited for locks in all, in nanoseconds.
    pub lock_ns: u64,
    /// Rows sent in all; `None` where no source says so.
    pub rows_sent: Option<u64>,
    /// Rows read for them in all, likewise.
    pub rows_examined: Option<u64>,
    /// Rows changed in all, likewise.
    pub rows_affected: Option<u64>,
    /// Bytes of the requests: on the wire where that is known, else those of the text.
    pub bytes_in: u64,
    /// Bytes of the answers.
    pub bytes_out: u64,
    /// How many failed.
    pub errors: u64,
    /// Warnings in all.
    pub warnings: u64,
    /// Whose they were.
    pub users: Names,
    /// From where.
    pub hosts: Names,
    /// In which schemas.
    pub schemas: Names,
    /// When the first came, in nanoseconds since 1970.
    pub first_ns: i64,
    /// When the last came.
    pub last_ns: i64,
    /// The slowest.
    pub sample: Option<Sample>,
    /// When they came.
    pub series: Series,
}

/// Adds what is known.
fn add(sum: &mut Option<u64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
}

impl Default for Class {
    fn default() -> Self {
        let mut latency_us = Histogram::new(2).expect("two digits are allowed");
        latency_us.auto(true);
        Self {
            id: String::new(),
            fingerprint: String::new(),
            count: 0,
            prepares: 0,
            timed: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            latency_us,
            lock_ns: 0,
            rows_sent: None,
            rows_examined: None,
            rows_affected: None,
            bytes_in: 0,
            bytes_out: 0,
            errors: 0,
            warnings: 0,
            users: Names::default(),
            hosts: Names::default(),
            schemas: Names::default(),
            first_ns: i64::MAX,
            last_ns: i64::MIN,
            sample: None,
            series: Series::default(),
        }
    }
}

impl Class {
    pub(super) fn of(print: Fingerprint, grid: &Grid) -> Self {
        Self {
            id: print.id,
            fingerprint: head(&print.text, TEXT_MAX),
            series: Series::on(grid),
            ..Self::default()
        }
    }

    /// Returns the same class with nothing counted.
    pub(crate) fn fresh(&self, grid: &Grid) -> Self {
        Self {
            id: self.id.clone(),
            fingerprint: self.fingerprint.clone(),
            series: Series::on(grid),
            ..Self::default()
        }
    }

    /// Counts a statement that ran again.
    pub(crate) fn count(&mut self, one: &Statement<'_>, slot: usize) {
        self.add(one, false, slot, Mode::default());
    }

    /// The one with the most time comes first; without times, the one with the most statements.
    pub(super) fn by_time(&self, other: &Self) -> Ordering {
        let key = |class: &Self| (class.sum_ns, class.count, class.prepares);
        key(other)
            .cmp(&key(self))
            .then_with(|| self.id.cmp(&other.id))
    }

    pub(super) fn add(&mut self, one: &Statement<'_>, is_prepare: bool, slot: usize, mode: Mode) {
        self.first_ns = self.first_ns.min(one.at_ns);
        self.last_ns = self.last_ns.max(one.at_ns);
        self.users.add(one.user);
        self.hosts.add(one.host);
        self.schemas.add(one.schema);
        self.errors += u64::from(one.error.is_some());
        let plus =
            |sum: &mut u64, value: Option<u64>| *sum = sum.saturating_add(value.unwrap_or(0));
        plus(&mut self.warnings, one.warnings);
        plus(&mut self.bytes_in, one.bytes_in.or(Some(one.sql_bytes)));
        plus(&mut self.bytes_out, one.bytes_out);
        let is_slowest = one.total_ns.is_some_and(|ns| ns > self.max_ns);
        if self.sample.is_none() || (is_slowest && !is_prepare) {
            self.sample = Some(sample(one, mode));
        }
        if is_prepare {
            self.prepares += 1;
            return;
        }
        self.count += 1;
        self.series.add(slot, one.total_ns);
        plus(&mut self.lock_ns, one.lock_ns);
        add(&mut self.rows_sent, one.rows_sent);
        add(&mut self.rows_examined, one.rows_examined);
        add(&mut self.rows_affected, one.rows_affected);
        if let Some(ns) = one.total_ns {
            self.timed += 1;
            self.sum_ns = self.sum_ns.saturating_add(ns);
            self.min_ns = self.min_ns.min(ns);
            self.max_ns = self.max_ns.max(ns);
            // It grows by itself: nothing is out of its range.
            let _ = self.latency_us.record(ns / 1000);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.prepares += other.prepares;
        self.timed += other.timed;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        // As below.
        let _ = self.latency_us.add(&other.latency_us);
        self.lock_ns = self.lock_ns.saturating_add(other.lock_ns);
        add(&mut self.rows_sent, other.rows_sent);
        add(&mut self.rows_examined, other.rows_examined);
        add(&mut self.rows_affected, other.rows_affected);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.errors += other.errors;
        self.warnings = self.warnings.saturating_add(other.warnings);
        self.users.merge(&other.users);
        self.hosts.merge(&other.hosts);
        self.schemas.merge(&other.schemas);
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.series.merge(&other.series);
    }

    /// Returns how long one took in the middle of all, in nanoseconds; `None` where no time is known.
    #[must_use]
    pub fn avg_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.timed)
    }

    /// Returns how many took how long: up to so many microseconds, and longer than the step before. Steps are 1, 2, 5,
    /// 10 and so on; those with nothing in them are left out.
    #[must_use]
    pub fn steps_us(&self) -> Vec<(u64, u64)> {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut bounds = (0..18).flat_map(|power| [1, 2, 5].map(|first| first * 10_u64.pow(power)));
        let mut bound = 0;
        for recorded in self.latency_us.iter_recorded() {
            let value = self
                .latency_us
                .lowest_equivalent(recorded.value_iterated_to());
            while bound < value.max(1) {
                bound = bounds.next().unwrap_or(u64::MAX);
            }
            match steps.last_mut().filter(|(last, _)| *last == bound) {
                Some((_, count)) => *count += recorded.count_since_last_iteration(),
                None => steps.push((bound, recorded.count_since_last_iteration())),
            }
        }
        steps
    }

    /// Returns the time within which such a share of all, 0 to 1, was done, in microseconds.
    #[must_use]
    pub fn within_us(&self, share: f64) -> Option<u64> {
        let most = self.max_ns / 1000;
        let least = self.min_ns / 1000;
        // The last of an interval may lie beyond what there was.
        (self.timed > 0).then(|| self.latency_us.value_at_quantile(share).clamp(least, most))
    }
}

fn sample(one: &Statement<'_>, mode: Mode) -> Sample {
    let sql = redacted(one.sql, mode);
    let kept = &sql[..sql.len().min(SAMPLE_MAX)];
    Sample {
        sql: head(&String::from_utf8_lossy(kept), SAMPLE_MAX),
        sql_bytes: one.sql_bytes,
        total_ns: one.total_ns,
        at_ns: one.at_ns,
        session: one.session,
        schema: one.schema.map(str::to_owned),
    }
}

/// Returns so many bytes of a text, letters intact.
fn head(text: &str, bytes: usize) -> String {
    match text.len() > bytes {
        true => format!("{}…", &text[..text.floor_char_boundary(bytes)]),
        false => text.to_owned(),
    }
}
