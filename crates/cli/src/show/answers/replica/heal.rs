//! Answers of `replica heal`.

use crate::show::answers::Answer;
use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use evenkeel_replica::heal::{
    Forbidden, HandOver, HealClass, HealEvent, HealOutcome, HealPass, HealRecord, Healed, Treated,
};
use serde::Serialize;
use std::time::Duration;

/// What was found, and what was or would be done.
#[derive(Debug, Serialize)]
pub struct ReplicaHealAnswer {
    /// It is no plan.
    executed: bool,
    /// How many servers answered.
    servers: usize,
    findings: Vec<HealedFinding>,
    /// What could not be checked, and why.
    not_checked: Vec<String>,
    /// Put back into use.
    released: Vec<String>,
    /// Still out of use.
    kept_out: Vec<String>,
}

#[derive(Debug, Serialize)]
struct HealedFinding {
    server: String,
    channel: Option<String>,
    /// Its name in the list of failures.
    failure: &'static str,
    /// `wait`, `automatic`, `planned` or `never`.
    class: &'static str,
    what: &'static str,
    evidence: Vec<String>,
    /// The class for --allow; null if nothing repairs it.
    repair_class: Option<HealClass>,
    /// Rules that forbid it; empty if it is or would be done.
    forbidden_by: Vec<Forbidden>,
    steps: Vec<HealStep>,
    /// Who does it if it is not healed.
    hands_over: HandOver,
    /// What was done; null for nothing.
    healed: Option<Healed>,
}

#[derive(Debug, Serialize)]
struct HealStep {
    on: String,
    sql: Option<String>,
    says: String,
}

impl ReplicaHealAnswer {
    /// Describes a pass.
    #[must_use]
    pub fn new(pass: &HealPass, executed: bool) -> Self {
        let answered = pass.diagnosis.servers.iter();
        Self {
            executed,
            servers: answered.filter(|one| one.facts.is_ok()).count(),
            findings: pass.treated.iter().map(finding).collect(),
            not_checked: pass.diagnosis.unchecked.clone(),
            released: pass.released.clone(),
            kept_out: pass.kept_out.clone(),
        }
    }

    /// Returns what makes it another answer than the one before: not numbers in texts, but what was found and done.
    #[must_use]
    pub fn gist(&self) -> Vec<String> {
        let each = self.findings.iter().map(|one| {
            let rules: Vec<_> = one.forbidden_by.iter().map(|one| one.rule).collect();
            let id = one.healed.as_ref().map(|healed| &healed.id);
            format!(
                "{} {:?} {} {rules:?} {id:?}",
                one.server, one.channel, one.failure
            )
        });
        each.chain(self.kept_out.iter().cloned()).collect()
    }
}

fn finding(one: &Treated) -> HealedFinding {
    let entry = one.finding.failure.entry();
    let steps = one.steps.iter().map(|step| HealStep {
        on: step.on.clone(),
        sql: step.sql.clone(),
        says: step.says.clone(),
    });
    HealedFinding {
        server: one.server.clone(),
        channel: one.finding.channel.clone(),
        failure: entry.name,
        class: one.finding.class.word(),
        what: entry.what,
        evidence: one.finding.evidence.clone(),
        repair_class: one.decision.class,
        forbidden_by: one.decision.forbidden.clone(),
        steps: steps.collect(),
        hands_over: one.decision.hands_over,
        healed: one.healed.clone(),
    }
}

impl Answer for ReplicaHealAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-heal/1";

    fn text(&self) -> String {
        let mut text = String::new();
        if self.findings.is_empty() {
            let servers = units::count(self.servers, "server");
            text.push_str(&format!("nothing is wrong: {servers}\n"));
        }
        for one in &self.findings {
            text.push_str(&one.text(self.executed));
        }
        for server in &self.released {
            text.push_str(&format!("{server}: in use again\n"));
        }
        for server in &self.kept_out {
            text.push_str(&format!(
                "{server}: still drained: evenkeel health undrain\n"
            ));
        }
        let is_plan = self.findings.iter().any(|one| one.forbidden_by.is_empty());
        if !self.executed && is_plan {
            text.push_str("only a plan: add --execute to do it\n");
        }
        plain(&text)
    }
}

impl HealedFinding {
    fn text(&self, executed: bool) -> String {
        let channel = self.channel.as_deref().filter(|name| !name.is_empty());
        let channel = channel.map_or_else(String::new, |name| format!(", channel '{name}'"));
        let repair = self.repair_class.map_or("no repair", HealClass::word);
        let mut text = format!("{}{channel}: {} ({repair})\n", self.server, self.failure);
        text.push_str(&format!("  {}\n", self.what));
        for evidence in &self.evidence {
            text.push_str(&format!("  seen:      {}\n", one_line(evidence)));
        }
        match &self.healed {
            Some(healed) => text.push_str(&done(healed)),
            None => {
                for rule in &self.forbidden_by {
                    text.push_str(&format!("  forbidden: {}\n", one_line(&rule.why)));
                }
                if !self.forbidden_by.is_empty() && self.hands_over == HandOver::Promotion {
                    text.push_str(
                        "  promotion: never done here: that is the work of orchestrator or replication-manager\n",
                    );
                }
                text.push_str(&self.steps(executed));
            }
        }
        text
    }

    fn steps(&self, executed: bool) -> String {
        let word = match (self.forbidden_by.is_empty(), executed) {
            (true, false) => "would do",
            _ => "by hand",
        };
        let mut text = String::new();
        for (at, step) in self.steps.iter().enumerate() {
            let what = match (&step.sql, step.says.is_empty()) {
                (Some(sql), true) => format!("{sql};"),
                (Some(sql), false) => format!("{sql};   -- {}", step.says),
                (None, _) => step.says.clone(),
            };
            let (number, what) = (at + 1, one_line(&what));
            text.push_str(&format!("  {word} {number}: on {}: {what}\n", step.on));
        }
        text
    }
}

fn done(healed: &Healed) -> String {
    let word = match healed.outcome {
        HealOutcome::Repaired => "repaired",
        HealOutcome::NotCompared => "repaired, NOT COMPARED",
        HealOutcome::Differs => "repaired, ROWS DIFFER",
        HealOutcome::Failed => "NOT REPAIRED",
    };
    let took = units::duration(Duration::from_secs_f64(healed.seconds));
    let (id, why) = (&healed.id, one_line(&healed.why));
    format!("  {word} in {took} ({id}): {why}\n")
}

/// What was seen and done.
#[derive(Debug, Serialize)]
pub struct HealHistoryAnswer {
    records: Vec<HealRecord>,
}

impl HealHistoryAnswer {
    /// Shows a journal.
    #[must_use]
    pub fn new(records: Vec<HealRecord>) -> Self {
        Self { records }
    }
}

impl Answer for HealHistoryAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-heal-history/1";

    fn text(&self) -> String {
        if self.records.is_empty() {
            return "the journal is empty\n".to_owned();
        }
        let each = self.records.iter().map(|record| {
            let lines = told(&record.what);
            let time = record.time.strftime("%Y-%m-%d %H:%M:%S");
            let shown = lines
                .iter()
                .map(|line| format!("{time}  {}\n", one_line(line)));
            shown.collect::<String>()
        });
        plain(&each.collect::<String>())
    }
}

fn told(what: &HealEvent) -> Vec<String> {
    let one = |text: String| vec![text];
    match what {
        HealEvent::Seen { findings } if findings.is_empty() => one("nothing is wrong".to_owned()),
        HealEvent::Seen { findings } => {
            let each = findings.iter().map(|seen| {
                let why = seen.forbidden_by.iter().map(|one| one.why.as_str());
                let why = why.collect::<Vec<_>>().join("; ");
                match why.as_str() {
                    "" => format!("{}: {}", seen.server, seen.failure),
                    why => format!("{}: {}, not repaired: {why}", seen.server, seen.failure),
                }
            });
            each.collect()
        }
        HealEvent::Begun(begun) => one(format!(
            "{}: {}: {} begins ({})",
            begun.server,
            begun.failure,
            begun.class.word(),
            begun.id
        )),
        HealEvent::Step { on, does, .. } => one(format!("{on}: {does}")),
        HealEvent::Running { id } => one(format!("{id}: both threads run")),
        HealEvent::Equal { channel, .. } => {
            one(format!("channel '{channel}': rows are the source's again"))
        }
        HealEvent::Rows { plan, tables, .. } => {
            one(format!("rows of {} are planned: {plan}", tables.join(", ")))
        }
        HealEvent::Ended { id, outcome, why } => {
            let word = match outcome {
                HealOutcome::Repaired => "repaired",
                HealOutcome::NotCompared => "repaired, not compared",
                HealOutcome::Differs => "repaired, rows differ",
                HealOutcome::Failed => "not repaired",
            };
            one(format!("{id}: {word}: {why}"))
        }
        HealEvent::Drained { server, id } => one(format!("{server}: drained ({id})")),
        HealEvent::Released { server, id } => one(format!("{server}: in use again ({id})")),
        HealEvent::HandedOver {
            server,
            failure,
            to,
            ended,
        } => one(format!(
            "{server}: {failure}: handed over ({}): {ended}",
            to.word()
        )),
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// What servers say, as text and not as what a terminal obeys.
fn plain(text: &str) -> String {
    text.replace(|letter| letter != '\n' && is_obeyed(letter), " ")
}
