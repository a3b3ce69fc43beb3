//! What the options of several measurements take.

use evenkeel_op::Error;
use std::time::Duration;

/// Parses a span of time; without a unit it is seconds, as tpcc-mysql has them.
pub(super) fn seconds(text: &str) -> Result<Duration, Error> {
    match text.parse::<u32>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => crate::args::span(text),
    }
}

/// Parses a number of transactions a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.01..=1e6).contains(&rate) => Ok(rate),
        _ => Err("not a number from 0.01 to 1000000".to_owned()),
    }
}
