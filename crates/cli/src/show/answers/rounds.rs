//! The answers of `replay --rounds`.

use super::Answer;
use super::digest::DigestedFile;
use super::digest::text::{micros, plain, short};
use crate::commands::RoundServerPlan;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_recovery::baseline::RollbackPlan;
use evenkeel_report::compare::Verdict;
use evenkeel_traffic::replay::rounds::{ClassRuns, Measured, Rounds, letter, percent, span};
use evenkeel_traffic::replay::{Differences, Plan};
use serde::Serialize;

const SCHEMA: &str = "evenkeel/replay-rounds/1";
/// How much of a fingerprint stands in the table.
const TITLE: usize = 60;

/// What would be rolled back before each replay.
#[derive(Serialize)]
pub struct RoundsPlanAnswer {
    executed: bool,
    rounds: usize,
    variants: Vec<PlannedVariant>,
}

#[derive(Serialize)]
struct PlannedVariant {
    variant: char,
    rollback: RollbackPlan,
    set: Vec<String>,
}

impl RoundsPlanAnswer {
    /// Answers with the plans of the variants.
    #[must_use]
    pub fn new(rounds: usize, plans: Vec<RoundServerPlan>) -> Self {
        let variants = plans.into_iter().map(|plan| PlannedVariant {
            variant: plan.variant,
            rollback: plan.rollback,
            set: plan.settings,
        });
        Self {
            executed: false,
            rounds,
            variants: variants.collect(),
        }
    }
}

impl Answer for RoundsPlanAnswer {
    const SCHEMA: &'static str = SCHEMA;

    fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.variants {
            let rollback = &one.rollback;
            text.push_str(&format!(
                "{}: roll {} back to baseline {} {}",
                one.variant,
                rollback.datadir.display(),
                rollback.baseline.name,
                match self.rounds {
                    1 => "once".to_owned(),
                    more => format!("{more} times"),
                }
            ));
            if let Some(how) = &rollback.server {
                text.push_str(&format!(" ({how})"));
            }
            for set in &one.set {
                text.push_str(&format!(", then SET GLOBAL {set}"));
            }
            text.push('\n');
            text.extend(rollback.notes.iter().map(|note| format!("note: {note}\n")));
        }
        text.push_str("What these data directories have now is lost: save it as a baseline if it is needed.\n");
        text.push_str("only a plan: add --execute to do it\n");
        text
    }
}

/// What several rounds came to.
#[derive(Serialize)]
pub struct RoundsAnswer {
    executed: bool,
    file: DigestedFile,
    sessions: usize,
    rounds: usize,
    variants: Vec<Variant>,
    statements: u64,
    warm_up: u64,
    left_out: Vec<LeftOut>,
    lost: u64,
    loss: Option<String>,
    total: ShownRuns,
    classes: Vec<ShownRuns>,
    #[serde(skip)]
    needed: Option<usize>,
    #[serde(skip)]
    too_few: bool,
    #[serde(skip)]
    states: Vec<String>,
    #[serde(skip)]
    top: usize,
}

#[derive(Serialize)]
struct Variant {
    variant: char,
    name: String,
    /// How long each run took.
    seconds: Vec<f64>,
}

#[derive(Serialize)]
struct LeftOut {
    reason: &'static str,
    count: u64,
    #[serde(skip)]
    says: &'static str,
}

#[derive(Serialize)]
struct ShownRuns {
    #[serde(skip_serializing_if = "String::is_empty")]
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    fingerprint: String,
    captured: ShownRun,
    variants: Vec<ShownVariant>,
    /// B against A; none with one variant, or without times.
    verdict: Option<Verdict>,
    /// Whether that is more than chance among so many classes.
    is_real: bool,
    change_percent: Option<f64>,
    other_results: Vec<ShownOther>,
}

#[derive(Serialize)]
struct ShownVariant {
    median_us: Option<f64>,
    least_us: Option<f64>,
    most_us: Option<f64>,
    p95_us: Option<f64>,
    runs: Vec<ShownRun>,
    differences: Vec<ShownDifference>,
}

#[derive(Serialize)]
struct ShownRun {
    count: u64,
    avg_us: Option<f64>,
    p95_us: Option<u64>,
    errors: u64,
    rows: u64,
    affected: u64,
}

#[derive(Serialize)]
struct ShownDifference {
    difference: &'static str,
    count: u64,
    example: Option<String>,
    #[serde(skip)]
    says: &'static str,
}

#[derive(Serialize)]
struct ShownOther {
    what: &'static str,
    a: (u64, u64),
    b: (u64, u64),
    #[serde(skip)]
    says: &'static str,
}

impl From<&Measured> for ShownRun {
    fn from(run: &Measured) -> Self {
        Self {
            count: run.count,
            avg_us: run.avg_us,
            p95_us: run.p95_us,
            errors: run.errors,
            rows: run.rows,
            affected: run.affected,
        }
    }
}

fn differences(all: &Differences) -> Vec<ShownDifference> {
    let all = all.all();
    all.map(|(difference, count, example)| ShownDifference {
        difference: difference.name(),
        count,
        example: example.map(|example| example.sql.clone()),
        says: difference.says(),
    })
    .collect()
}

impl ShownRuns {
    fn of(class: &ClassRuns) -> Self {
        let variants = class.runs.iter().enumerate().map(|(variant, runs)| {
            let spread = class.spread(variant);
            ShownVariant {
                median_us: spread.map(|one| one.median),
                least_us: spread.map(|one| one.least),
                most_us: spread.map(|one| one.most),
                p95_us: class.p95_us(variant),
                runs: runs.iter().map(ShownRun::from).collect(),
                differences: differences(&class.differences[variant]),
            }
        });
        Self {
            id: class.id.clone(),
            fingerprint: class.fingerprint.clone(),
            captured: ShownRun::from(&class.captured),
            variants: variants.collect(),
            verdict: class.verdict.clone(),
            is_real: class.is_real,
            change_percent: class.change_percent(),
            other_results: class
                .others
                .iter()
                .map(|other| ShownOther {
                    what: other.name,
                    a: other.ranges[0],
                    b: other.ranges[1],
                    says: other.says,
                })
                .collect(),
        }
    }
}

impl RoundsAnswer {
    /// Answers with what came out. `names` says what each variant is, `states` what the data directories have now.
    #[must_use]
    pub fn new(
        file: DigestedFile,
        plan: &Plan,
        rounds: &Rounds,
        names: Vec<String>,
        states: Vec<String>,
        top: usize,
    ) -> Self {
        let variants = names.into_iter().enumerate().map(|(place, name)| {
            let runs = rounds.turns.iter().zip(&rounds.seconds);
            let runs = runs.filter(|(turn, _)| turn.variant == place);
            Variant {
                variant: letter(place),
                name,
                seconds: runs.map(|(_, seconds)| *seconds).collect(),
            }
        });
        Self {
            executed: true,
            file,
            sessions: plan.sessions(),
            rounds: rounds.rounds,
            variants: variants.collect(),
            statements: rounds.statements,
            warm_up: rounds.warm_up,
            left_out: plan
                .left
                .iter()
                .map(|(left, count)| LeftOut {
                    reason: left.name(),
                    count: *count,
                    says: left.reason(),
                })
                .collect(),
            lost: rounds.lost,
            loss: rounds.loss.clone(),
            total: ShownRuns::of(&rounds.total),
            classes: rounds.classes.iter().map(ShownRuns::of).collect(),
            needed: rounds.rounds_needed(),
            too_few: rounds.are_too_few(),
            states,
            top,
        }
    }

    fn head(&self) -> String {
        let mut text = format!(
            "{}: {} of {} in each run",
            plain(&self.file.file),
            units::count(self.statements, "statement"),
            units::count(self.sessions, "session")
        );
        if self.warm_up > 0 {
            text.push_str(&format!(", after {} to warm up", self.warm_up));
        }
        text.push_str(&format!("; {}.\n", units::count(self.rounds, "round")));
        for one in &self.variants {
            text.push_str(&format!("{}  {}\n", one.variant, plain(&one.name)));
        }
        let reasons = self.left_out.iter();
        let mut reasons: Vec<String> = reasons
            .map(|one| format!("{} {}", one.count, one.says))
            .collect();
        if self.lost > 0 {
            let why = self.loss.as_deref().unwrap_or("sessions were lost");
            reasons.push(format!("{} over all runs: {why}", self.lost));
        }
        if !reasons.is_empty() {
            text.push_str(&format!("Not replayed: {}.\n", reasons.join("; ")));
        }
        text
    }

    fn outcomes(&self) -> String {
        let mut text = String::new();
        let variants = self.total.variants.iter().zip(&self.variants);
        for (of, variant) in variants.filter(|(of, _)| !of.differences.is_empty()) {
            let what = of.differences.iter();
            let what: Vec<String> = what
                .map(|one| format!("{} {}", one.count, one.says))
                .collect();
            text.push_str(&format!(
                "Outcomes of {} that are not those of the capture, over all runs: {}.\n",
                variant.variant,
                what.join("; ")
            ));
        }
        if text.is_empty() {
            text =
                "Every outcome is that of the capture, as far as the capture has it.\n".to_owned();
        }
        for class in &self.classes {
            for other in &class.other_results {
                text.push_str(&format!(
                    "A and B differ: {}: {} with A, {} with B: {}\n",
                    other.says,
                    span(other.a),
                    span(other.b),
                    short(&plain(&class.fingerprint), TITLE)
                ));
            }
        }
        text
    }

    fn table(&self) -> String {
        match self.variants.len() {
            1 => self.table_of_one(),
            _ => self.table_of_two(),
        }
    }

    fn rows(&self) -> impl Iterator<Item = (String, String, &ShownRuns)> {
        let total = ("".to_owned(), "all".to_owned(), &self.total);
        let classes = self.classes.iter().take(self.top).zip(1..);
        std::iter::once(total).chain(classes.map(|(class, place)| {
            let title = short(&plain(&class.fingerprint), TITLE);
            (format!("{place}"), title, class)
        }))
    }

    fn table_of_one(&self) -> String {
        let mut table = TextTable::new(&[
            ("", Align::Right),
            ("count", Align::Right),
            ("captured", Align::Right),
            ("average", Align::Right),
            ("least to most", Align::Left),
            ("95 %", Align::Right),
            ("class", Align::Left),
        ]);
        for (place, title, class) in self.rows() {
            let one = &class.variants[0];
            table.row([
                place,
                count(class),
                time(class.captured.avg_us),
                time(one.median_us),
                one.range(),
                time(one.p95_us),
                title,
            ]);
        }
        table.text()
    }

    fn table_of_two(&self) -> String {
        let mut table = TextTable::new(&[
            ("", Align::Right),
            ("count", Align::Right),
            ("A", Align::Right),
            ("least to most", Align::Left),
            ("B", Align::Right),
            ("least to most", Align::Left),
            ("95 %", Align::Right),
            ("B is", Align::Left),
            ("class", Align::Left),
        ]);
        for (place, title, class) in self.rows() {
            let [a, b] = [&class.variants[0], &class.variants[1]];
            let is = match class.change_percent {
                Some(change) if change > 0.0 => format!("slower: {}", percent(change)),
                Some(change) => format!("faster: {}", percent(change)),
                None => String::new(),
            };
            let p95 = format!("{} → {}", time(a.p95_us), time(b.p95_us));
            table.row([
                place,
                count(class),
                time(a.median_us),
                a.range(),
                time(b.median_us),
                b.range(),
                p95,
                is,
                title,
            ]);
        }
        table.text()
    }

    fn verdict(&self) -> String {
        let Some(verdict) = &self.total.verdict else {
            return String::new();
        };
        let mut text = verdict.says("\nAverage of all statements, µs", false);
        text.push('\n');
        if let Some(needed) = self.needed.filter(|_| !self.too_few) {
            text.push_str(&format!(
                "With so many classes, it takes {needed} rounds to tell a class that differs from chance.\n"
            ));
        }
        text
    }
}

impl ShownVariant {
    fn range(&self) -> String {
        match (self.least_us, self.most_us) {
            (Some(least), Some(most)) => format!("{} to {}", micros(least), micros(most)),
            _ => String::new(),
        }
    }
}

fn time(us: Option<f64>) -> String {
    us.map_or("–".to_owned(), micros)
}

fn count(class: &ShownRuns) -> String {
    let run = class.variants[0].runs.first();
    run.map_or(0, |run| run.count).to_string()
}

impl Answer for RoundsAnswer {
    const SCHEMA: &'static str = SCHEMA;

    fn text(&self) -> String {
        let mut text = self.head();
        text.push_str(&self.outcomes());
        text.push('\n');
        text.push_str(&self.table());
        if self.classes.len() > self.top {
            let more = self.classes.len() - self.top;
            text.push_str(&format!("… and {more} more: --top shows them.\n"));
        }
        text.push_str(&self.verdict());
        text.extend(self.states.iter().map(|state| format!("{state}\n")));
        text
    }
}
