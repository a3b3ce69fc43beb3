//! What a run measured: throughput over an interval, latency over all of it.

use crate::Mark;
use hdrhistogram::Histogram;

/// Throughput between two marks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Units done.
    pub done: u64,
    /// Length in seconds.
    pub seconds: f64,
}

impl Interval {
    pub(crate) fn between(from: &Mark, to: &Mark) -> Self {
        Self {
            done: to.done.saturating_sub(from.done),
            seconds: to.at.saturating_duration_since(from.at).as_secs_f64(),
        }
    }

    /// Returns units per second; 0 for an interval of no length.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        if self.seconds > 0.0 {
            self.done as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Latency of the units of a run, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Units timed.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            count: histogram.len(),
            mean_us: histogram.mean(),
            p50_us: histogram.value_at_quantile(0.50),
            p95_us: histogram.value_at_quantile(0.95),
            p99_us: histogram.value_at_quantile(0.99),
            max_us: histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn throughput_is_units_over_time() {
        let start = Instant::now();
        let from = Mark {
            at: start,
            done: 100,
        };
        let to = Mark {
            at: start + Duration::from_millis(500),
            done: 350,
        };
        assert_eq!(Interval::between(&from, &to).per_s(), 500.0);
        assert_eq!(Interval::between(&from, &from).per_s(), 0.0);
    }
}
