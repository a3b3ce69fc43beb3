//! How a server would run a sample.

use super::words::{plain, short};
use crate::show::answers::Failure;
use crate::show::{Align, TextTable};
use evenkeel_traffic::digest::{Explained, PlanTable};
use serde::Serialize;
use serde_json::Value;

/// How much of a condition stands in the table.
const CONDITION: usize = 60;

/// A server's plan, or why there is none.
#[derive(Serialize)]
pub(super) struct ShownPlan {
    /// What the server answered.
    document: Option<Value>,
    tables: Vec<ShownTable>,
    /// Why it was not asked.
    not_explained: Option<&'static str>,
    failure: Option<Failure>,
}

#[derive(Serialize)]
struct ShownTable {
    table: String,
    access: String,
    key: String,
    rows: Option<f64>,
    filtered_percent: Option<f64>,
    condition: String,
}

impl ShownTable {
    fn of(table: &PlanTable) -> Self {
        Self {
            table: table.table.clone(),
            access: table.access.clone(),
            key: table.key.clone(),
            rows: table.rows,
            filtered_percent: table.filtered,
            condition: table.condition.clone(),
        }
    }
}

impl ShownPlan {
    pub(super) fn of(explained: &Explained) -> Self {
        let mut shown = Self {
            document: None,
            tables: Vec::new(),
            not_explained: None,
            failure: None,
        };
        match explained {
            Explained::Plan(plan) => {
                shown.document = Some(plan.document.clone());
                shown.tables = plan.tables.iter().map(ShownTable::of).collect();
            }
            Explained::Not(why) => shown.not_explained = Some(why),
            Explained::Failed(error) => shown.failure = Some(Failure::of(error)),
        }
        shown
    }

    pub(super) fn text(&self) -> String {
        if let Some(why) = self.not_explained {
            return format!("   No plan: {why}.\n");
        }
        if let Some(failure) = &self.failure {
            let hints = failure
                .hints
                .iter()
                .map(|hint| format!("   hint: {}\n", plain(hint)));
            return format!(
                "   No plan: {}\n{}",
                plain(&failure.message),
                hints.collect::<String>()
            );
        }
        let mut table = TextTable::new(&[
            ("   table", Align::Left),
            ("access", Align::Left),
            ("index", Align::Left),
            ("rows", Align::Right),
            ("kept", Align::Right),
            ("condition", Align::Left),
        ]);
        for one in &self.tables {
            let figure = |value: Option<f64>, unit: &str| {
                value.map_or(String::new(), |value| format!("{value:.0}{unit}"))
            };
            table.row([
                format!("   {}", plain(&one.table)),
                plain(&one.access),
                plain(&one.key),
                figure(one.rows, ""),
                figure(one.filtered_percent, " %"),
                short(&plain(&one.condition), CONDITION),
            ]);
        }
        table.text()
    }
}
