//! Answer of `replica diagnose`.

use crate::show::answers::Answer;
use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use evenkeel_replica::diagnose::{Diagnosis, Finding};
use serde::Serialize;

/// What is wrong with replicas.
#[derive(Debug, Serialize)]
pub struct ReplicaDiagnoseAnswer {
    /// How many servers answered.
    servers: usize,
    /// How many channels they have.
    channels: usize,
    findings: Vec<ShownFinding>,
    /// What could not be checked, and why.
    not_checked: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ShownFinding {
    server: String,
    channel: Option<String>,
    /// Its name in the list of failures.
    failure: &'static str,
    /// `wait`, `automatic`, `planned` or `never`.
    class: &'static str,
    what: &'static str,
    evidence: Vec<String>,
    repair: Vec<ShownStep>,
    /// What must not be tried, and why.
    avoid: &'static str,
}

#[derive(Debug, Serialize)]
struct ShownStep {
    /// On which server.
    on: String,
    sql: Option<String>,
    says: String,
}

impl ReplicaDiagnoseAnswer {
    /// Describes a diagnosis.
    #[must_use]
    pub fn new(diagnosis: &Diagnosis) -> Self {
        let answered = diagnosis
            .servers
            .iter()
            .filter_map(|one| one.facts.as_ref().ok());
        let findings = diagnosis.findings.iter();
        Self {
            servers: answered.clone().count(),
            channels: answered.map(|facts| facts.channels.len()).sum(),
            findings: findings.map(|finding| shown(finding, diagnosis)).collect(),
            not_checked: diagnosis.unchecked.clone(),
        }
    }
}

fn shown(finding: &Finding, diagnosis: &Diagnosis) -> ShownFinding {
    let entry = finding.failure.entry();
    let steps = finding.repair.iter().map(|step| ShownStep {
        on: step.on.clone(),
        sql: step.sql.clone(),
        says: step.says.clone(),
    });
    ShownFinding {
        server: diagnosis.servers[finding.server].name.clone(),
        channel: finding.channel.clone(),
        failure: entry.name,
        class: finding.class.word(),
        what: entry.what,
        evidence: finding.evidence.clone(),
        repair: steps.collect(),
        avoid: entry.avoid,
    }
}

impl Answer for ReplicaDiagnoseAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-diagnose/1";

    fn text(&self) -> String {
        if self.findings.is_empty() {
            return format!(
                "nothing found: {}, {}\n",
                units::count(self.servers, "server"),
                units::count(self.channels, "channel")
            );
        }
        let each: Vec<String> = self.findings.iter().map(ShownFinding::text).collect();
        each.join("\n")
    }
}

impl ShownFinding {
    /// What servers say is shown as what it is: text, on one line.
    fn text(&self) -> String {
        let plain = |text: &str| text.replace(is_obeyed, " ");
        let channel = self.channel.as_deref().filter(|name| !name.is_empty());
        let channel =
            channel.map_or_else(String::new, |name| format!(", channel '{}'", plain(name)));
        let server = plain(&self.server);
        let mut text = format!("{server}{channel}: {} ({})\n", self.failure, self.class);
        text.push_str(&format!("  {}\n", self.what));
        for evidence in &self.evidence {
            text.push_str(&format!("  seen:   {}\n", plain(evidence)));
        }
        for (at, step) in self.repair.iter().enumerate() {
            let number = at + 1;
            let (on, says) = (plain(&step.on), plain(&step.says));
            let what = match (&step.sql, says.is_empty()) {
                (Some(sql), true) => format!("{};", plain(sql)),
                (Some(sql), false) => format!("{};   -- {says}", plain(sql)),
                (None, _) => says,
            };
            text.push_str(&format!("  repair {number}: on {on}: {what}\n"));
        }
        if !self.avoid.is_empty() {
            text.push_str(&format!("  avoid:  {}\n", self.avoid));
        }
        text
    }
}
