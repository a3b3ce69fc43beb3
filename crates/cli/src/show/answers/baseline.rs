//! Answers of `baseline`.

use super::Answer;
use crate::show::table::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_recovery::baseline::{
    Baseline, DropPlan, ListReport, RollbackPlan, RollbackReport, SaveReport,
};
use std::time::Duration;

impl Answer for SaveReport {
    const SCHEMA: &'static str = "evenkeel/baseline-save/1";

    fn text(&self) -> String {
        let mut text = reported(self.healed.as_deref());
        let still = match self.pause_ms {
            Some(pause) => format!("; the server was paused for {pause} ms"),
            None => String::new(),
        };
        text.push_str(&format!(
            "saved {} as '{}' ({}, {}, {}) in {}{still}\n",
            self.datadir.display(),
            self.baseline.name,
            self.baseline.method.name(),
            units::count(self.baseline.files, "file"),
            units::bytes(self.baseline.bytes),
            seconds(self.seconds),
        ));
        text.push_str(&listed(&self.notes));
        text
    }
}

impl Answer for RollbackPlan {
    const SCHEMA: &'static str = "evenkeel/baseline-rollback/1";

    fn text(&self) -> String {
        let mut text = plan(self);
        text.push_str("only a plan: add --execute to do it\n");
        text
    }
}

impl Answer for RollbackReport {
    const SCHEMA: &'static str = "evenkeel/baseline-rollback/1";

    fn text(&self) -> String {
        let mut text = reported(self.healed.as_deref());
        text.push_str(&plan(&self.plan));
        if self.bytes_compared > 0 {
            text.push_str(&format!(
                "compared {}, wrote {}\n",
                units::bytes(self.bytes_compared),
                units::bytes(self.bytes_written)
            ));
        }
        text.push_str(&format!(
            "done in {}: prepared in {}, stopped in {}, swapped in {}, started in {}, tidied up in {}\n",
            seconds(self.seconds),
            seconds(self.prepare_s),
            seconds(self.stop_s),
            seconds(self.swap_s),
            seconds(self.start_s),
            seconds(self.tidy_s)
        ));
        text
    }
}

impl Answer for ListReport {
    const SCHEMA: &'static str = "evenkeel/baseline-list/1";

    fn text(&self) -> String {
        let mut text = match &self.interrupted {
            Some(what) => format!("{what}: the next save, rollback or drop repairs it\n"),
            None => String::new(),
        };
        if self.baselines.is_empty() {
            text.push_str(&format!("no baselines of {}\n", self.datadir.display()));
            return text;
        }
        let mut table = TextTable::new(&[
            ("name", Align::Left),
            ("saved", Align::Left),
            ("method", Align::Left),
            ("files", Align::Right),
            ("size", Align::Right),
            ("server", Align::Left),
        ]);
        for one in &self.baselines {
            table.row(row(one));
        }
        text.push_str(&table.text());
        text
    }
}

impl Answer for DropPlan {
    const SCHEMA: &'static str = "evenkeel/baseline-drop/1";

    fn text(&self) -> String {
        let mut text = reported(self.healed.as_deref());
        let verb = if self.executed { "dropped" } else { "drop   " };
        text.push_str(&format!("{verb}  {}\n", shown(&self.baseline)));
        if !self.executed {
            text.push_str("only a plan: add --execute to do it\n");
        }
        text
    }
}

fn plan(plan: &RollbackPlan) -> String {
    let mut text = format!(
        "roll {} back to {}\n",
        plan.datadir.display(),
        shown(&plan.baseline)
    );
    match (&plan.server, plan.starts) {
        (Some(how), true) => text.push_str(&format!("stop and start the server: {how}\n")),
        (Some(how), false) => {
            text.push_str(&format!("stop the server and leave it stopped: {how}\n"))
        }
        (None, _) => text.push_str("no server runs on it, and none is started\n"),
    }
    if let Some(name) = &plan.keeps_replaced_as {
        text.push_str(&format!("keep what is replaced as '{name}'\n"));
    }
    if let Some(what) = &plan.interrupted {
        text.push_str(&format!("{what}: it is repaired first\n"));
    }
    text.push_str(&listed(&plan.notes));
    text
}

fn shown(one: &Baseline) -> String {
    format!(
        "'{}', saved {} ({}, {})",
        one.name,
        one.saved.strftime("%Y-%m-%d %H:%M:%S UTC"),
        one.method.name(),
        units::bytes(one.bytes)
    )
}

fn row(one: &Baseline) -> [String; 6] {
    [
        one.name.clone(),
        one.saved.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        one.method.name().to_owned(),
        one.files.to_string(),
        units::bytes(one.bytes),
        match (one.hot, &one.server_version) {
            (true, Some(version)) => format!("running, {version}"),
            (true, None) => "running".to_owned(),
            (false, _) => "stopped".to_owned(),
        },
    ]
}

fn reported(healed: Option<&str>) -> String {
    healed.map_or_else(String::new, |what| format!("{what}\n"))
}

fn listed(notes: &[String]) -> String {
    notes.iter().map(|note| format!("note: {note}\n")).collect()
}

fn seconds(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds))
}
