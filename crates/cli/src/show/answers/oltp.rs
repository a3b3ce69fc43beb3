//! The answers of `bench oltp`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::oltp::{OltpLoaded, OltpReport};
use evenkeel_op::units;
use std::time::Duration;

impl Answer for OltpLoaded {
    const SCHEMA: &'static str = "evenkeel/bench-oltp-load/1";

    fn text(&self) -> String {
        let found = match self.rows_found {
            0 => String::new(),
            some => format!(" ({} there before)", units::count(some, "row")),
        };
        format!(
            "{} of {} loaded in {}{found}\n",
            units::count(self.shape.tables, "table"),
            units::count(self.shape.table_size, "row"),
            units::duration(Duration::from_secs_f64(self.seconds.max(0.0)))
        )
    }
}

impl Answer for OltpReport {
    const SCHEMA: &'static str = "evenkeel/bench-oltp/1";

    fn text(&self) -> String {
        let mut text = format!(
            "{}, {} of {}, {}, measured for {:.1} s (--seed {})\n\n",
            self.mode.name(),
            units::count(self.shape.tables, "table"),
            units::count(self.shape.table_size, "row"),
            units::count(self.threads, "connection"),
            self.seconds,
            self.seed
        );
        text.push_str(&numbers(self));
        for (reported, times) in &self.failures {
            let times = units::count(times, "time");
            text.push_str(&format!("failed {times}: {reported}\n"));
        }
        if self.sessions_lost > 0 {
            let lost = units::count(self.sessions_lost, "session");
            text.push_str(&format!("{lost} lost\n"));
        }
        let verdict = match (self.ended, self.counts()) {
            (_, true) => "",
            ("failures", _) => " (DOES NOT COUNT: ended early, too many transactions failed)",
            ("server", _) => " (DOES NOT COUNT: the server is down)",
            ("time", _) => " (DOES NOT COUNT: nothing was done)",
            _ => " (DOES NOT COUNT: ended early)",
        };
        text.push_str(&format!(
            "\n{:.2} transactions a second{verdict}, {:.1} statements a transaction, {}\n",
            self.transactions_per_s,
            self.statements_per_transaction,
            match self.prepared {
                true => "prepared",
                false => "sent as text",
            }
        ));
        text
    }
}

fn numbers(report: &OltpReport) -> String {
    let rate = |count: f64| format!("{count:.2} a second");
    let mut table = TextTable::new(&[
        ("transactions", Align::Left),
        (&report.transactions.to_string(), Align::Right),
        (&rate(report.transactions_per_s), Align::Right),
    ]);
    table.row([
        "statements".to_owned(),
        String::new(),
        rate(report.statements_per_s),
    ]);
    table.row([
        "without BEGIN, COMMIT".to_owned(),
        String::new(),
        rate(report.requests_per_s),
    ]);
    for (name, value) in [("retried", report.retries), ("failed", report.failed)] {
        table.row([name.to_owned(), value.to_string(), String::new()]);
    }
    for (name, ms) in [
        ("mean", report.mean_ms),
        ("50 %", report.p50_ms),
        ("95 %", report.p95_ms),
        ("99 %", report.p99_ms),
        ("slowest", report.max_ms),
    ] {
        table.row([name.to_owned(), format!("{ms:.2} ms"), String::new()]);
    }
    table.row([
        "generator's processor time".to_owned(),
        format!("{:.1} s", report.cpu_s),
        format!("{:.0} µs each", report.cpu_us_per_transaction),
    ]);
    table.text()
}
