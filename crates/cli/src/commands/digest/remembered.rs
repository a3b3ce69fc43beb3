//! `digest --server`: what a server's performance_schema remembers.

use crate::args;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::DigestedFile;
use evenkeel_op::{Error, Result, units};
use evenkeel_traffic::source::PerformanceSchema;
use evenkeel_traffic::{Source, Statement};
use std::time::Duration;

/// How often a server may be asked.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(3600);

/// Connects to the server, if one is named.
pub(super) fn open(args: &args::Digest, ui: &Ui) -> Result<Option<PerformanceSchema>> {
    let Some(place) = &args.server else {
        return Ok(None);
    };
    if !INTERVALS.contains(&args.interval) {
        return Err(Error::usage("--interval is out of range").hint("give from 50ms to 1h"));
    }
    let connect = settings::server_named(place, args.defaults_file.as_deref(), ui)?;
    PerformanceSchema::open(&connect, args.interval, args.span).map(Some)
}

/// Reads it, and says what was missed.
pub(super) fn read(
    mut server: PerformanceSchema,
    each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
    ui: &Ui,
) -> Result<DigestedFile> {
    let coverage = server.read(each, ui.cancel())?;
    let file = server.place().to_owned();
    if coverage.unseen > 0 {
        let all = coverage.statements + coverage.unseen;
        ui.warn(&format!(
            "{file}: {} were forgotten before they were asked for, {:.1} % of all: give a shorter --interval, or the \
             server a larger performance_schema_events_statements_history_long_size",
            units::count(coverage.unseen, "statement"),
            100.0 * coverage.unseen as f64 / all as f64
        ));
    }
    Ok(DigestedFile {
        file,
        source: "performance-schema",
        entries: coverage.statements,
        unreadable: coverage.unseen,
    })
}
