//! What `plugin … queue --sql` says.

use super::Answer;
use evenkeel_op::units;
use evenkeel_queue_admin::procedures::{Found, Plan};
use serde::Serialize;
use std::fmt::Write;

/// What was changed in a database, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct QueueSqlInstallAnswer {
    /// Whether it was done; else it is the plan.
    pub executed: bool,
    /// The database.
    pub database: String,
    /// Routines that are dropped.
    pub dropped: Vec<String>,
    /// Tables that are made.
    pub created_tables: Vec<String>,
    /// Routines that are made.
    pub created: Vec<String>,
    /// Tables that are dropped.
    pub dropped_tables: Vec<String>,
}

impl QueueSqlInstallAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(plan: &Plan, executed: bool) -> Self {
        let dropped = plan.drop.iter().map(|one| one.name.clone());
        Self {
            executed,
            database: plan.found.database.clone(),
            dropped: dropped.collect(),
            created_tables: plan.create_tables.clone(),
            created: plan.create.clone(),
            dropped_tables: plan.drop_tables.clone(),
        }
    }

    /// Says what happens, a line for each kind.
    fn steps(&self) -> String {
        let mut out = String::new();
        let steps = [
            ("dropped", "would drop", "routines", &self.dropped),
            ("created", "would create", "tables", &self.created_tables),
            ("created", "would create", "routines", &self.created),
            ("dropped", "would drop", "tables", &self.dropped_tables),
        ];
        for (done, planned, what, names) in steps {
            if names.is_empty() {
                continue;
            }
            let verb = if self.executed { done } else { planned };
            // Writing into a string cannot fail.
            let _ = writeln!(
                out,
                "{verb} {} {what} in {}: {}",
                names.len(),
                self.database,
                names.join(", ")
            );
        }
        if !self.executed && !out.is_empty() {
            out.push_str("nothing was done: add --execute to do it\n");
        }
        out
    }
}

impl Answer for QueueSqlInstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-install-queue-sql/1";

    fn text(&self) -> String {
        let mut out = self.steps();
        if self.executed {
            let _ = writeln!(
                out,
                "the procedures are ready: CALL {}.queue_create('mails', 'id INT NOT NULL, what TEXT')",
                self.database
            );
        }
        out
    }
}

/// What was taken out of a database, or would be.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct QueueSqlUninstallAnswer(pub QueueSqlInstallAnswer);

impl Answer for QueueSqlUninstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-uninstall-queue-sql/1";

    fn text(&self) -> String {
        match self.0.steps() {
            none if none.is_empty() => "there is nothing to remove\n".to_owned(),
            steps => steps,
        }
    }
}

/// What a database has of queues.
#[derive(Debug, Clone, Serialize)]
pub struct QueueSqlStatusAnswer {
    /// `absent`, `working` or `broken`: some routines are missing, or of another release.
    pub state: &'static str,
    /// The database.
    pub database: String,
    /// How many routines of ours it has.
    pub routines: usize,
    /// Its queues.
    pub queues: Vec<String>,
}

impl QueueSqlStatusAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(found: Found) -> Self {
        let is_absent = found.routines.is_empty() && found.tables.is_empty();
        Self {
            state: match (is_absent, found.is_current()) {
                (true, _) => "absent",
                (_, true) => "working",
                _ => "broken",
            },
            database: found.database,
            routines: found.routines.len(),
            queues: found.queues,
        }
    }
}

impl Answer for QueueSqlStatusAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-status-queue-sql/1";

    fn text(&self) -> String {
        let mut out = format!("queue in SQL: {}, database {}", self.state, self.database);
        if !self.queues.is_empty() {
            let _ = write!(out, ", {}", units::count(self.queues.len(), "queue"));
        }
        if self.state == "broken" {
            out.push_str("; run plugin install queue --sql again");
        }
        out.push('\n');
        out
    }
}
