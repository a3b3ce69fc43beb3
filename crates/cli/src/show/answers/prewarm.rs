//! The answer of `prewarm`: what was read, and what it is good for.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_recovery::prewarm::PrewarmReport;
use std::time::Duration;

impl Answer for PrewarmReport {
    const SCHEMA: &'static str = "evenkeel/prewarm/1";

    fn text(&self) -> String {
        let server = self
            .server
            .as_deref()
            .unwrap_or("a server of unknown version");
        let ended = match (self.redo, self.redo_bytes) {
            ("clean", _) => "was shut down cleanly".to_owned(),
            (_, Some(bytes)) => {
                format!("crashed, with {} of redo log to apply", units::bytes(bytes))
            }
            _ => "left a redo log that evenkeel cannot read: treated as a crash".to_owned(),
        };
        let mut text = format!("{}: {server}, {ended}\n", self.datadir.display());
        if !self.steps.is_empty() {
            let mut table = TextTable::new(&[
                ("warmed", Align::Left),
                ("files", Align::Right),
                ("read", Align::Right),
                ("of", Align::Right),
            ]);
            for step in &self.steps {
                table.row([
                    step.name.to_owned(),
                    step.files.to_string(),
                    units::bytes(step.bytes_read),
                    units::bytes(step.bytes_wanted),
                ]);
            }
            text.push_str(&table.text());
        }
        text.push_str(&format!(
            "{} in {} by {}, {} at once{}\n",
            units::bytes(self.bytes_read),
            units::duration(Duration::from_secs_f64(self.seconds)),
            self.reader,
            self.depth,
            if self.sorted_by_extent {
                ", in the order of the disk"
            } else {
                ""
            },
        ));
        if !self.reads_every_tablespace {
            text.push_str("little to gain: this start does not read every tablespace\n");
        }
        for sentence in &self.useless {
            text.push_str(&format!("  {sentence}\n"));
        }
        if let Some(limit) = self.limit {
            text.push_str(&format!(
                "not everything was read: the {limit} limit was reached\n"
            ));
        }
        for file in &self.unread {
            text.push_str(&format!(
                "not read: {}: {}\n",
                file.path.display(),
                file.why
            ));
        }
        let unnamed = self.unread_files.saturating_sub(self.unread.len());
        if unnamed > 0 {
            text.push_str(&format!(
                "not read: {} more\n",
                units::count(unnamed, "file")
            ));
        }
        text
    }
}
