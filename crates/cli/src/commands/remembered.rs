//! What a server's performance_schema remembers: `digest --server` and `capture --server`.

use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Error, Result, units};
use evenkeel_traffic::Coverage;
use evenkeel_traffic::source::PerformanceSchema;
use std::path::Path;
use std::time::Duration;

/// How often a server may be asked.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(3600);

/// Which server is asked, and how.
pub(super) struct Asking<'a> {
    /// The command that asks.
    pub(super) verb: &'static str,
    pub(super) defaults_file: Option<&'a Path>,
    pub(super) interval: Duration,
    /// For how long; until somebody ends it otherwise.
    pub(super) span: Option<Duration>,
}

/// Connects to the server.
pub(super) fn open(place: &str, asking: &Asking<'_>, ui: &Ui) -> Result<PerformanceSchema> {
    if !INTERVALS.contains(&asking.interval) {
        return Err(Error::usage("--interval is out of range").hint("give from 50ms to 1h"));
    }
    let connect = settings::server_named(place, asking.defaults_file, asking.verb, ui)?;
    let mut is_silent = |waited| ui.warn(&silent(place, waited));
    PerformanceSchema::open(
        &connect,
        asking.interval,
        asking.span,
        &mut is_silent,
        ui.cancel(),
    )
}

/// Says that a server has not answered yet.
pub(super) fn silent(place: &str, waited: Duration) -> String {
    format!(
        "{place} has not answered for {}: is it frozen, or busy?",
        units::span(waited)
    )
}

/// Says what the server forgot before it was asked.
pub(super) fn forgotten(coverage: &Coverage) -> Option<String> {
    let all = coverage.statements.saturating_add(coverage.unseen);
    (coverage.unseen > 0).then(|| {
        format!(
            "{} were forgotten before they were asked for, {:.1} % of all: give a shorter --interval, or the server a \
             larger performance_schema_events_statements_history_long_size",
            units::count(coverage.unseen, "statement"),
            100.0 * coverage.unseen as f64 / all as f64
        )
    })
}
