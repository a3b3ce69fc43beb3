//! Answer of `demo`.

use super::Answer;
use super::backup::millis;
use crate::commands::demo::DemoReport;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use std::time::Duration;

impl Answer for DemoReport {
    const SCHEMA: &'static str = "evenkeel/demo/1";

    fn text(&self) -> String {
        let mut table = TextTable::new(&[
            ("generation", Align::Right),
            ("kind", Align::Left),
            ("time", Align::Right),
            ("read", Align::Right),
            ("stored", Align::Right),
            ("write pause", Align::Right),
            ("transfers/s before", Align::Right),
            ("during", Align::Right),
            ("lost", Align::Right),
        ]);
        for one in &self.generations {
            let report = &one.report;
            table.row([
                report.generation.to_string(),
                report.kind.clone(),
                units::duration(Duration::from_secs_f64(report.seconds)),
                units::bytes(report.bytes_read),
                units::bytes(report.bytes_stored),
                millis(report.write_pause_ms),
                format!("{:.0}", one.transfers_per_s_before),
                format!("{:.0}", one.transfers_per_s_during),
                format!("{:.0}", one.transfers_lost.max(0.0)),
            ]);
        }
        let mut text = format!(
            "{} on {}\n\n{}\n",
            self.server,
            self.directory,
            table.text()
        );
        if self.held {
            text.push_str(&format!(
                "held: after SIGKILL and restore the total is right; all {} transfers acknowledged before the last\n\
                 snapshot are there, none of the {} after it\n",
                self.transfers_expected, self.transfers_after
            ));
        } else {
            text.push_str("DID NOT HOLD:\n");
            for line in &self.broken {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text
    }
}
