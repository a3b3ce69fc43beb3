//! Answer of `backup`.

use super::{Answer, Failure, ForgetAnswer, PruneAnswer};
use evenkeel_backup::report::{CorruptPage, GenerationReport};
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::replication::SourceCoordinates;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A finished backup.
#[derive(Debug, Serialize, Deserialize)]
pub struct BackupAnswer {
    /// The generation.
    #[serde(flatten)]
    pub report: GenerationReport,
    /// Corrupt pages that were stored as they are.
    pub corrupt: Vec<CorruptPage>,
    /// Why everything was read, though there is a generation before it.
    pub read_everything_because: Option<String>,
    /// What was forgotten afterwards, if keep rules were given.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<ForgetAnswer>,
    /// What was freed afterwards, if that was asked for.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<PruneAnswer>,
    /// Why not all of that was done.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub retention_failure: Option<Failure>,
    /// Why the file of metrics was not written.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub metrics_failure: Option<Failure>,
}

impl BackupAnswer {
    /// Describes a generation; nothing was forgotten.
    #[must_use]
    pub fn new(report: GenerationReport, corrupt: Vec<CorruptPage>) -> Self {
        Self {
            report,
            corrupt,
            read_everything_because: None,
            forgotten: None,
            pruned: None,
            retention_failure: None,
            metrics_failure: None,
        }
    }

    /// Says what went, in a line, if anything was to.
    fn gone(&self) -> String {
        let mut parts = Vec::new();
        if let Some(forgotten) = &self.forgotten {
            let numbers: Vec<String> = forgotten.remove.iter().map(u32::to_string).collect();
            parts.push(match numbers.is_empty() {
                true => "nothing to forget".to_owned(),
                false => format!("forgot generation {}", numbers.join(", ")),
            });
        }
        if let Some(pruned) = &self.pruned {
            parts.push(format!("{} freed", units::bytes(pruned.bytes_freed)));
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("  {}\n", parts.join("; ")),
        }
    }
}

impl Answer for BackupAnswer {
    const SCHEMA: &'static str = "evenkeel/backup/1";

    fn text(&self) -> String {
        self.made() + &self.gone()
    }
}

impl BackupAnswer {
    /// Says what was made.
    fn made(&self) -> String {
        let report = &self.report;
        let based = report
            .based_on
            .map_or(String::new(), |base| format!(" on {base}"));
        let mut text = format!(
            "generation {} ({}{based}) of {}\n  {}, {}; read {}, changed {}, stored {}\n",
            report.generation,
            report.kind,
            report.source,
            units::count(report.files, "file"),
            units::bytes(report.bytes_logical),
            units::bytes(report.bytes_read),
            units::bytes(report.bytes_changed),
            units::bytes(report.bytes_stored),
        );
        if let Some(why) = &self.read_everything_because {
            text.push_str(&format!("  everything was read: {why}\n"));
        }
        let seconds = units::duration(Duration::from_secs_f64(report.seconds));
        // Without a server: volumes.
        let locked = report.write_pause_ms > 0.0 || report.lock_ms > 0.0;
        if !locked && report.pages_checked == 0 && report.coordinates == Coordinates::default() {
            let (by, rested) = (&report.snapshot, rested(report));
            text.push_str(&format!("  frozen by {by}; {seconds}{rested}\n"));
            return text;
        }
        text.push_str(&format!(
            "  writes paused for {}, locked for {} ({})\n",
            millis(report.write_pause_ms),
            millis(report.lock_ms),
            report.snapshot,
        ));
        if let Some(line) = coordinates(report) {
            text.push_str(&format!("  {line}\n"));
        }
        for source in &report.source_coordinates {
            text.push_str(&format!("  {}\n", in_source(source)));
        }
        if report.applier_ms > 0.0 {
            let stood = millis(report.applier_ms);
            text.push_str(&format!("  SQL thread stopped for {stood}\n"));
        }
        text.push_str(&format!(
            "  {} checked, {} corrupt{}; {}{}
",
            units::count(report.pages_checked, "InnoDB page"),
            report.pages_corrupt,
            match report.pages_torn {
                0 => String::new(),
                torn => format!(", {torn} torn with a good doublewrite copy"),
            },
            seconds,
            rested(report),
        ));
        text.push_str(&covered(report));
        text
    }
}

/// Says which tables are in it, and what is not.
fn covered(report: &GenerationReport) -> String {
    let mut text = match report.tables {
        Some(tables) => format!("  {}\n", units::count(tables, "table")),
        None => "  its list of tables is not recorded\n".to_owned(),
    };
    let Some(rules) = &report.left_out else {
        text.push_str("  what was left out is not recorded\n");
        return text;
    };
    for rule in rules {
        let directories = match rule.directories {
            0 => String::new(),
            1 => "1 directory, ".to_owned(),
            count => format!("{count} directories, "),
        };
        let named = rule.first.len() as u64;
        let more = match rule.directories == 0 && rule.files > named {
            true => ", …",
            false => "",
        };
        text.push_str(&format!(
            "  left out: {directories}{}, {} ({}): {}{more}\n",
            units::count(rule.files, "file"),
            units::bytes(rule.bytes),
            rule.why,
            rule.first.join(", "),
        ));
    }
    text
}

/// Milliseconds as people read them.
pub(super) fn millis(ms: f64) -> String {
    units::duration(Duration::from_secs_f64(ms.max(0.0) / 1000.0))
}

/// Says how long reading rested, if it did.
fn rested(report: &GenerationReport) -> String {
    if report.rested_s <= 0.0 {
        return String::new();
    }
    let rested = Duration::from_secs_f64(report.rested_s);
    format!(
        ", of which {} resting for the server",
        units::duration(rested)
    )
}

fn coordinates(report: &GenerationReport) -> Option<String> {
    let at = &report.coordinates;
    let mut text = format!(
        "binary log {}:{}",
        at.binlog_file.as_ref()?,
        at.binlog_position?
    );
    if let Some(gtid) = &at.gtid {
        text.push_str(&format!(", GTID {gtid}"));
    }
    Some(text)
}

/// Says where an image is in the binary log of a source.
fn in_source(source: &SourceCoordinates) -> String {
    let mut text = format!("replicates from {}", source.host);
    if let Some(port) = source.port {
        text.push_str(&format!(":{port}"));
    }
    if !source.channel.is_empty() {
        text.push_str(&format!(" (channel '{}')", source.channel));
    }
    match (&source.binlog_file, source.binlog_position) {
        (Some(file), Some(position)) => {
            text.push_str(&format!(", was at {file}:{position} there"));
        }
        _ if source.goes_by_gtid() => text.push_str(", resumes by GTID"),
        _ => text.push_str(", position there not known"),
    }
    if let Some(gtid) = &source.gtid {
        text.push_str(&format!(", GTID {gtid}"));
    }
    text
}
