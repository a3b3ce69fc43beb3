//! The answers of `bench tpcc`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_bench::tpcc::{Condition, KindReport, LoadReport, TpccReport};
use evenkeel_op::units;
use serde::Serialize;
use std::time::Duration;

impl Answer for LoadReport {
    const SCHEMA: &'static str = "evenkeel/bench-tpcc-load/1";

    fn text(&self) -> String {
        let found = match self.parts_found {
            0 => String::new(),
            some => format!(" ({} there before)", units::count(some, "part")),
        };
        format!(
            "{} loaded in {}, indexes {}{found}\n",
            units::count(self.warehouses, "warehouse"),
            seconds(self.seconds),
            seconds(self.indexes_s)
        )
    }
}

/// The conditions of the tables.
#[derive(Debug, Serialize)]
pub struct TpccConditions {
    /// Whether none is broken.
    pub sound: bool,
    /// All of them.
    pub conditions: Vec<Condition>,
}

impl Answer for TpccConditions {
    const SCHEMA: &'static str = "evenkeel/bench-tpcc-check/1";

    fn text(&self) -> String {
        conditions(&self.conditions)
    }
}

impl Answer for TpccReport {
    const SCHEMA: &'static str = "evenkeel/bench-tpcc/1";

    fn text(&self) -> String {
        let like = self.like.map_or(String::new(), |like| {
            format!("LIKE {like}, WITH ITS FAULTS: comparable with its figures only\n")
        });
        let mut text = format!(
            "{like}{}, {}, measured for {} (--seed {})\n\n{}\n{}",
            units::count(self.scale.warehouses, "warehouse"),
            units::count(self.connections, "connection"),
            seconds(self.seconds),
            self.seed,
            kinds(&self.kinds),
            constraints(&self.kinds),
        );
        if !self.conditions.is_empty() {
            text.push_str(&format!("\n{}", conditions(&self.conditions)));
        }
        for (reported, times) in &self.failures {
            let times = units::count(times, "time");
            text.push_str(&format!("failed {times}: {reported}\n"));
        }
        if self.sessions_lost > 0 {
            let lost = units::count(self.sessions_lost, "session");
            text.push_str(&format!("{lost} lost\n"));
        }
        let verdict = match (self.ended, self.counts()) {
            ("time", true) => "",
            ("time", false) => " (DOES NOT COUNT: the tables are not sound)",
            ("failures", _) => " (DOES NOT COUNT: ended early, too many transactions failed)",
            ("server", _) => " (DOES NOT COUNT: the server is down)",
            _ => " (DOES NOT COUNT: ended early)",
        };
        text.push_str(&format!(
            "\n{:.3} TpmC{verdict}, {:.1} statements a transaction\n{}\n",
            self.tpmc,
            self.statements_per_transaction,
            self.deviations.join("; ")
        ));
        text
    }
}

/// The counts, by the names that tpcc-mysql prints them under.
fn kinds(kinds: &[KindReport]) -> String {
    let right = |name| (name, Align::Right);
    let mut table = TextTable::new(&[
        ("", Align::Left),
        right("sc"),
        right("lt"),
        right("rt"),
        right("fl"),
        right("avg ms"),
        right("p50"),
        right("p90"),
        right("p95"),
        right("p99"),
        right("max"),
    ]);
    for kind in kinds {
        let ms = |value: f64| format!("{value:.1}");
        table.row([
            kind.name.to_owned(),
            kind.in_time.to_string(),
            kind.late.to_string(),
            kind.retries.to_string(),
            kind.failed.to_string(),
            ms(kind.mean_ms),
            ms(kind.p50_ms),
            ms(kind.p90_ms),
            ms(kind.p95_ms),
            ms(kind.p99_ms),
            ms(kind.max_ms),
        ]);
    }
    format!(
        "{}sc in time, lt late, rt retried, fl failed\n",
        table.text()
    )
}

/// The specification's demands on the mix and on response times.
fn constraints(kinds: &[KindReport]) -> String {
    let verdict = |held| if held { "[OK]" } else { "[NG] *" };
    let mut text = String::new();
    for kind in kinds {
        if let Some(least) = kind.least_percent {
            text.push_str(&format!(
                "{:>14}: {:6.2} % of all (>= {least:.1} %) {}\n",
                kind.name,
                kind.share_percent,
                verdict(kind.has_its_share())
            ));
        }
    }
    for kind in kinds {
        text.push_str(&format!(
            "{:>14}: {:6.2} % within {} (>= 90 %) {}\n",
            kind.name,
            kind.in_time_percent(),
            kind.limit(),
            verdict(kind.is_in_time())
        ));
    }
    text
}

fn conditions(conditions: &[Condition]) -> String {
    let broken: Vec<&Condition> = conditions.iter().filter(|one| one.broken > 0).collect();
    if broken.is_empty() {
        return format!("all {} conditions hold\n", conditions.len());
    }
    let word = |one: &Condition| match one.is_by_design {
        true => "not met by design of tpcc-mysql,",
        false => "BROKEN",
    };
    let lines = broken.iter().map(|one| {
        format!(
            "{} {}: condition {}: {}\n",
            word(one),
            units::count(one.broken, "time"),
            one.number,
            one.says
        )
    });
    lines.collect()
}

fn seconds(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds.max(0.0)))
}
