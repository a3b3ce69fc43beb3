//! What `plugin` says.

use super::Answer;
use evenkeel_plugins::Registered;
use evenkeel_url_install::{Found, Plan};
use serde::Serialize;
use std::fmt::Write;

/// What was changed in a server, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct PluginInstallAnswer {
    /// Whether it was done; else it is the plan.
    pub executed: bool,
    /// The library's name in the plugin directory.
    pub library: Option<String>,
    /// The id of the table that the functions use.
    pub table_id: Option<String>,
    /// The id of the table that they used before.
    pub table_id_before: Option<String>,
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
    /// Files that are written there.
    pub written: Vec<String>,
    /// Functions that are dropped.
    pub dropped: Vec<String>,
    /// Functions that are made.
    pub created: Vec<String>,
    /// Files that are removed there.
    pub removed: Vec<String>,
}

impl PluginInstallAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(plan: &Plan, executed: bool) -> Self {
        let library = plan.library.clone();
        let id = library
            .as_deref()
            .and_then(evenkeel_url_install::table_in_name);
        Self {
            executed,
            table_id: id.map(str::to_owned),
            library,
            table_id_before: plan.found.table_id.clone(),
            plugin_dir: plan.found.plugin_dir.clone(),
            written: plan.write.clone(),
            dropped: plan.drop.clone(),
            created: plan.create.clone(),
            removed: plan.remove.clone(),
        }
    }

    /// Says what happens, a line each.
    fn steps(&self) -> String {
        let verb = |done: &'static str, planned: &'static str| match self.executed {
            true => done,
            false => planned,
        };
        let directory = self.plugin_dir.trim_end_matches('/');
        let mut out = String::new();
        for (what, names, place) in [
            (verb("wrote", "would write"), &self.written, directory),
            (verb("dropped", "would drop"), &self.dropped, ""),
            (verb("created", "would create"), &self.created, ""),
            (verb("removed", "would remove"), &self.removed, directory),
        ] {
            for name in names {
                // Writing into a string cannot fail.
                let _ = match place {
                    "" => writeln!(out, "{what} function {name}()"),
                    _ => writeln!(out, "{what} {place}/{name}"),
                };
            }
        }
        if !self.executed && !out.is_empty() {
            out.push_str("nothing was done: add --execute to do it\n");
        }
        out
    }
}

impl Answer for PluginInstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-install/1";

    fn text(&self) -> String {
        let id = self.table_id.as_deref().unwrap_or_default();
        match self.executed {
            true => format!("{}the functions work, with table {id}\n", self.steps()),
            false => self.steps(),
        }
    }
}

/// What was taken out of a server, or would be.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct PluginUninstallAnswer(PluginInstallAnswer);

impl PluginUninstallAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(plan: &Plan, executed: bool) -> Self {
        Self(PluginInstallAnswer::new(plan, executed))
    }
}

impl Answer for PluginUninstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-uninstall/1";

    fn text(&self) -> String {
        let mut out = self.0.steps();
        if out.is_empty() {
            out.push_str("there is nothing to remove\n");
        } else if let Some(id) = &self.0.table_id_before {
            let _ = writeln!(
                out,
                "codes can only be read with table {id}: keep a copy of its file"
            );
        }
        out
    }
}

/// What a server has.
#[derive(Debug, Clone, Serialize)]
pub struct PluginStatusAnswer {
    /// `absent`, `working` or `broken`.
    pub state: &'static str,
    /// The id of the table that the functions use.
    pub table_id: Option<String>,
    /// The functions that are there.
    pub functions: Vec<Registered>,
    /// Those that are not.
    pub missing: Vec<String>,
    /// What is wrong.
    pub problem: Option<String>,
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
}

impl PluginStatusAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(found: Found) -> Self {
        let state = match (found.functions.is_empty(), found.works()) {
            (true, _) => "absent",
            (_, true) => "working",
            _ => "broken",
        };
        Self {
            state,
            table_id: found.table_id,
            functions: found.functions,
            missing: found.missing,
            problem: found.problem,
            plugin_dir: found.plugin_dir,
        }
    }
}

impl Answer for PluginStatusAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-status/1";

    fn text(&self) -> String {
        let mut out = format!("url: {}", self.state);
        if let Some(id) = &self.table_id {
            let _ = write!(out, ", table {id}");
        }
        if let Some(first) = self.functions.first() {
            let directory = self.plugin_dir.trim_end_matches('/');
            let _ = write!(out, ", {directory}/{}", first.library);
        }
        if self.state == "broken" && !self.missing.is_empty() {
            let _ = write!(out, "; missing: {}", self.missing.join(", "));
        }
        if let Some(problem) = &self.problem {
            let _ = write!(out, "; {problem}");
        }
        out.push('\n');
        out
    }
}
