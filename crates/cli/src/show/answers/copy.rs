//! The answer of `repository copy`.

use super::Answer;
use evenkeel_op::units;
use evenkeel_repository::{CopyReport, CopyWay};
use serde::Serialize;

/// What was copied.
#[derive(Debug, Serialize)]
pub struct CopyAnswer {
    /// The repository that was copied.
    pub from: String,
    /// Where to.
    pub to: String,
    /// What was done.
    #[serde(flatten)]
    pub report: CopyReport,
    /// How long it took.
    pub seconds: f64,
}

impl Answer for CopyAnswer {
    const SCHEMA: &'static str = "evenkeel/repository-copy/1";

    fn text(&self) -> String {
        let report = &self.report;
        let mut text = String::new();
        for one in &report.copied {
            text.push_str(&format!("copied  {:>6}", one.generation));
            if report.way == CopyWay::Blocks {
                text.push_str(&format!("  as {}", one.becomes));
            }
            text.push('\n');
        }
        if !report.left_out.is_empty() {
            let all: Vec<String> = report.left_out.iter().map(u32::to_string).collect();
            text.push_str(&format!(
                "left out, older than the copies there: {} (--generation N copies them)\n",
                all.join(", ")
            ));
        }
        for note in &report.notes {
            text.push_str(&format!("{note}\n"));
        }
        text.push_str(&format!(
            "{} copied, {} already there: {} sent",
            units::count(report.copied.len(), "generation"),
            report.present.len(),
            units::bytes(report.bytes_copied)
        ));
        if report.bytes_kept > 0 {
            let kept = units::bytes(report.bytes_kept);
            text.push_str(&format!(", {kept} kept from an interrupted copy"));
        }
        if report.archive_objects > 0 {
            text.push_str(&format!(
                ", with {} of binary logs",
                units::count(report.archive_objects, "object")
            ));
        }
        text.push('\n');
        text
    }
}
