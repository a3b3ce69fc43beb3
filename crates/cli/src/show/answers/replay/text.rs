//! A replay as people read it: what ran and what did not, how outcomes differ, and a line for each class.

use super::{ReplayAnswer, ReplayedClass, ShownDifference, ShownOutcome};
use crate::show::answers::digest::text::{changed, micros, plain, short};
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_traffic::replay::{came_to, times};

/// How much of a fingerprint stands in the table.
const TITLE: usize = 60;
const SAMPLE: usize = 300;

pub(super) fn of(answer: &ReplayAnswer) -> String {
    let mut text = head(answer);
    text.push_str(&not_replayed(answer));
    if answer.statements == 0 {
        return text;
    }
    text.push_str(&outcomes(answer));
    text.push('\n');
    text.push_str(&classes(answer));
    if let Some(changes) = &answer.changes {
        text.push_str("\nCompared with the earlier replay:\n");
        text.push_str(&changed(changes, answer.top));
    }
    text
}

fn head(answer: &ReplayAnswer) -> String {
    let mut text = format!(
        "{}: {} replayed in {:.1} s on {}",
        plain(&answer.file.file),
        units::count(answer.statements, "statement"),
        answer.seconds,
        plain(&answer.server_version),
    );
    if answer.warm_up > 0 {
        text.push_str(&format!(", after {} to warm up", answer.warm_up));
    }
    text.push_str(&format!(
        ".\n{}, at most {} at a time; the capture took {:.1} s.\n",
        units::count(answer.sessions, "session"),
        answer.sessions_at_a_time,
        answer.captured_seconds
    ));
    if answer.prepared_as_text > 0 {
        text.push_str(&format!(
            "{} ran as text.\n",
            units::count(answer.prepared_as_text, "prepared statement")
        ));
    }
    if let Some(late) = &answer.late_us {
        text.push_str(&format!(
            "Statements were sent late by: half up to {}, 99 % up to {}, at most {}.\n",
            micros(late.p50 as f64),
            micros(late.p99 as f64),
            micros(late.max as f64)
        ));
    }
    if answer.waits > 0 {
        let gave_up = match answer.gave_up {
            0 => "each after those it had seen the result of".to_owned(),
            some => format!("{some} of them were sent before the others were done"),
        };
        text.push_str(&format!(
            "{} waited for other sessions, {gave_up}.\n",
            units::count(answer.waits, "statement")
        ));
    }
    text
}

fn not_replayed(answer: &ReplayAnswer) -> String {
    let reasons = answer
        .left_out
        .iter()
        .map(|left| format!("{} {}", left.count, left.says));
    let mut reasons: Vec<String> = reasons.collect();
    if answer.lost > 0 {
        let why = answer
            .loss
            .as_deref()
            .map_or(String::new(), |loss| format!(": {loss}"));
        let sessions = units::count(answer.lost_sessions, "session");
        reasons.push(format!("{} of {sessions} that were lost{why}", answer.lost));
    }
    match reasons.is_empty() {
        true => String::new(),
        false => format!("Not replayed: {}.\n", reasons.join("; ")),
    }
}

fn outcomes(answer: &ReplayAnswer) -> String {
    let mut text = differences(answer);
    for one in &answer.results.not_compared {
        text.push_str(&format!(
            "Not compared: the rows of {}, which {}, as of {}\n",
            units::count(one.count, "statement"),
            one.says,
            short(&plain(&one.example), TITLE)
        ));
    }
    text
}

/// The number of the error that no default database was selected.
const NO_DATABASE: u16 = 1046;

fn differences(answer: &ReplayAnswer) -> String {
    if answer.differences.is_empty() {
        return "Every outcome is that of the capture, as far as the capture has it.\n".to_owned();
    }
    let mut text = "Outcomes that are not those of the capture:\n".to_owned();
    for one in &answer.differences {
        text.push_str(&format!("  {} {}", one.count, one.says));
        if let Some(example) = &one.example {
            let sql = short(&plain(&example.sql), SAMPLE);
            let (before, now) = (outcome(&example.captured), outcome(&example.replayed));
            text.push_str(&match before == now {
                true => format!(": {sql} ({now})"),
                false => format!(": {sql} ({before}; now {now})"),
            });
        }
        text.push('\n');
    }
    let lacks_schema = |one: &ShownDifference| {
        let replayed = one.example.as_ref().map(|example| &example.replayed);
        replayed.is_some_and(|replayed| replayed.error == Some(NO_DATABASE))
    };
    if answer.differences.iter().any(lacks_schema) {
        text.push_str(
            "Of sessions that were open before the capture began, the default database is not known: name it with \
             --default-database.\n",
        );
    }
    text
}

fn outcome(of: &ShownOutcome) -> String {
    came_to(of.error, of.rows, of.affected)
}

fn classes(answer: &ReplayAnswer) -> String {
    let mut table = TextTable::new(&[
        ("", Align::Right),
        ("count", Align::Right),
        ("average", Align::Right),
        ("95 %", Align::Right),
        ("latency", Align::Left),
        ("outcome", Align::Left),
        ("class", Align::Left),
    ]);
    for (number, class) in answer.classes.iter().take(answer.top).enumerate() {
        table.row(row((number + 1).to_string(), class));
    }
    let mut text = table.text();
    if answer.classes.len() > answer.top {
        text.push_str(&format!(
            "… and {} more: --top shows them.\n",
            answer.classes.len() - answer.top
        ));
    }
    text
}

fn row(number: String, class: &ReplayedClass) -> [String; 7] {
    let both = |value: fn(&super::super::digest::Latency) -> f64| {
        let of = |class: &super::ShownClass| {
            class
                .latency_us
                .as_ref()
                .map_or("–".to_owned(), |all| micros(value(all)))
        };
        format!("{} → {}", of(&class.captured), of(&class.replayed))
    };
    let latency = class
        .times_as_long
        .map_or(String::new(), |factor| match factor > 1.0 {
            true => format!("slower: {}", times(factor)),
            false => format!("faster: {}", times(factor)),
        });
    let differ: u64 = class.differences.iter().map(|one| one.count).sum();
    [
        number,
        class.replayed.count.to_string(),
        both(|all| all.avg),
        both(|all| all.p95 as f64),
        latency,
        match differ {
            0 => String::new(),
            some => format!("{some} differ"),
        },
        short(&plain(&class.captured.fingerprint), TITLE),
    ]
}
