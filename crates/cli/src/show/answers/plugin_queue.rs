//! What `plugin … queue` says.

use super::Answer;
use evenkeel_op::units;
use evenkeel_plugins::Registered;
use evenkeel_queue_admin::engine::{Engine, Found, Plan, QueueTable};
use serde::Serialize;
use std::fmt::Write;

/// What was changed in a server, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct QueueInstallAnswer {
    /// Whether it was done; else it is the plan.
    pub executed: bool,
    /// What the library was built for.
    pub server: String,
    /// The library's name in the plugin directory.
    pub library: Option<String>,
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
    /// Files that are written there.
    pub written: Vec<String>,
    /// Functions that are dropped.
    pub dropped: Vec<String>,
    /// The library whose engine is taken out.
    pub uninstalled: Option<String>,
    /// The library whose engine is put in.
    pub installed: Option<String>,
    /// Functions that are made.
    pub created: Vec<String>,
    /// Files that are removed there.
    pub removed: Vec<String>,
}

impl QueueInstallAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(plan: &Plan, executed: bool) -> Self {
        Self {
            executed,
            server: plan.found.server.clone(),
            library: plan.library.clone(),
            plugin_dir: plan.found.plugin_dir.clone(),
            written: plan.write.clone(),
            dropped: plan.drop.clone(),
            uninstalled: plan.uninstall.clone(),
            installed: plan.install.clone(),
            created: plan.create.clone(),
            removed: plan.remove.clone(),
        }
    }

    /// Says what happens, a line each.
    fn steps(&self) -> String {
        let directory = self.plugin_dir.trim_end_matches('/');
        let mut out = String::new();
        let mut step = |done: &str, planned: &str, what: String| {
            let verb = if self.executed { done } else { planned };
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{verb} {what}");
        };
        for name in &self.written {
            step("wrote", "would write", format!("{directory}/{name}"));
        }
        for name in &self.dropped {
            step("dropped", "would drop", format!("function {name}()"));
        }
        if let Some(library) = &self.uninstalled {
            let what = format!("the engine QUEUE of {library}");
            step("uninstalled", "would uninstall", what);
        }
        if let Some(library) = &self.installed {
            let what = format!("the engine QUEUE of {library}");
            step("installed", "would install", what);
        }
        for name in &self.created {
            step("created", "would create", format!("function {name}()"));
        }
        for name in &self.removed {
            step("removed", "would remove", format!("{directory}/{name}"));
        }
        if !self.executed && !out.is_empty() {
            out.push_str("nothing was done: add --execute to do it\n");
        }
        out
    }
}

impl Answer for QueueInstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-install-queue/1";

    fn text(&self) -> String {
        let mut out = self.steps();
        if self.executed {
            out.push_str("queues work: rows went through one\n");
        }
        out
    }
}

/// What was taken out of a server, or would be.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct QueueUninstallAnswer(pub QueueInstallAnswer);

impl Answer for QueueUninstallAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-uninstall-queue/1";

    fn text(&self) -> String {
        match self.0.steps() {
            none if none.is_empty() => "there is nothing to remove\n".to_owned(),
            steps => steps,
        }
    }
}

/// What a server has of queues.
#[derive(Debug, Clone, Serialize)]
pub struct QueuePluginAnswer {
    /// `absent`, `working` or `broken`.
    pub state: &'static str,
    /// What a library has to be built for.
    pub server: String,
    /// The engine, if there is one.
    pub engine: Option<Engine>,
    /// The functions that are there.
    pub functions: Vec<Registered>,
    /// Those that are not.
    pub missing: Vec<String>,
    /// The tables of the engine, as far as the account may see them.
    pub queues: Vec<QueueTable>,
    /// What is wrong.
    pub problem: Option<String>,
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
}

impl QueuePluginAnswer {
    /// Puts the answer together.
    #[must_use]
    pub fn new(found: Found) -> Self {
        Self {
            state: match (found.is_absent(), found.works()) {
                (true, _) => "absent",
                (_, true) => "working",
                _ => "broken",
            },
            problem: found.problem(),
            server: found.server,
            engine: found.engine,
            functions: found.functions,
            missing: found.missing,
            queues: found.queues,
            plugin_dir: found.plugin_dir,
        }
    }
}

impl Answer for QueuePluginAnswer {
    const SCHEMA: &'static str = "evenkeel/plugin-status-queue/1";

    fn text(&self) -> String {
        let mut out = format!("queue: {}, {}", self.state, self.server);
        if let Some(engine) = &self.engine {
            let directory = self.plugin_dir.trim_end_matches('/');
            let _ = write!(out, ", {directory}/{}", engine.library);
        }
        if !self.queues.is_empty() {
            let _ = write!(out, ", {}", units::count(self.queues.len(), "queue"));
        }
        if let Some(problem) = &self.problem {
            let _ = write!(out, "; {problem}");
        }
        out.push('\n');
        out
    }
}
