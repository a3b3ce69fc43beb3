//! The digest as people read it: a line for each class, then the first few in detail.

use super::words::local;
pub(in crate::show::answers) use super::words::{micros, plain, short};
use super::{DigestAnswer, Latency, Named, ShownChange, ShownClass};
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_traffic::digest::as_often;

/// Of how many classes the details are shown.
const DETAILS: usize = 3;
/// How wide the bar of all time is.
const BAR: usize = 20;
/// How much of a fingerprint stands in the table.
const TITLE: usize = 60;
const SAMPLE: usize = 400;
/// How wide the bars of a histogram are.
const COLUMN: usize = 40;

pub(super) fn of(answer: &DigestAnswer) -> String {
    let mut text = head(answer);
    if let Some(history) = &answer.history {
        text.push_str(&history.text());
    }
    if answer.classes.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&profile(answer));
    for (number, class) in answer
        .classes
        .iter()
        .take(DETAILS.min(answer.top))
        .enumerate()
    {
        text.push('\n');
        text.push_str(&details(number + 1, class));
    }
    text.push_str(&plans(answer));
    if let Some(changes) = &answer.changes {
        text.push('\n');
        text.push_str(&changed(changes, answer.top));
    }
    text
}

fn head(answer: &DigestAnswer) -> String {
    let total = &answer.total;
    let names: Vec<String> = answer.files.iter().map(|file| plain(&file.file)).collect();
    let mut text = format!(
        "{}: {}, {}",
        names.join(", "),
        units::count(total.count, "statement"),
        classes(answer.classes.len())
    );
    if let Some(latency) = &total.latency_us {
        text.push_str(&format!(", {} in all", micros(latency.sum)));
    }
    if total.count > 0 {
        text.push_str(&format!(", {:.1} a second", total.qps));
    }
    if total.errors > 0 {
        text.push_str(&format!(", {} failed", total.errors));
    }
    text.push('\n');
    if let (Some(from), Some(to)) = (answer.from, answer.to) {
        text.push_str(&format!("From {} to {}.\n", local(from), local(to)));
    }
    if answer.left_out > 0 {
        text.push_str(&format!(
            "{} left out by the options.\n",
            units::count(answer.left_out, "statement")
        ));
    }
    text
}

fn profile(answer: &DigestAnswer) -> String {
    let is_timed = answer.total.latency_us.is_some();
    let share = |class: &ShownClass| match is_timed {
        true => class.share_of_time,
        false => class.count as f64 / answer.total.count.max(1) as f64,
    };
    let mut table = TextTable::new(&[
        ("", Align::Right),
        (if is_timed { "time" } else { "statements" }, Align::Left),
        ("", Align::Right),
        ("count", Align::Right),
        ("average", Align::Right),
        ("95 %", Align::Right),
        ("slowest", Align::Right),
        ("class", Align::Left),
    ]);
    let row = |number: String, class: &ShownClass, title: String| {
        let latency = |value: fn(&Latency) -> f64| {
            class
                .latency_us
                .as_ref()
                .map_or(String::new(), |all| micros(value(all)))
        };
        [
            number,
            bar(share(class), BAR),
            format!("{:.1} %", 100.0 * share(class)),
            class.count.to_string(),
            latency(|all| all.avg),
            latency(|all| all.p95 as f64),
            latency(|all| all.max),
            title,
        ]
    };
    for (number, class) in answer.classes.iter().take(answer.top).enumerate() {
        table.row(row(
            (number + 1).to_string(),
            class,
            short(&plain(&class.fingerprint), TITLE),
        ));
    }
    let mut text = table.text();
    let rest = answer.classes.iter().skip(answer.top);
    let (count, part) = rest.fold((0_u64, 0.0), |(count, part), class| {
        (count.saturating_add(class.count), part + share(class))
    });
    let of_all = match is_timed {
        true => "of the time",
        false => "of all",
    };
    if answer.classes.len() > answer.top {
        text.push_str(&format!(
            "… and {} more with {}, {:.1} % {of_all}: --top shows more of them.\n",
            answer.classes.len() - answer.top,
            units::count(count, "statement"),
            100.0 * part
        ));
    }
    if answer.folded > 0 {
        text.push_str(&format!(
            "Classes beyond --classes are counted together: {}, {:.1} % {of_all}.\n",
            units::count(answer.others.count, "statement"),
            100.0 * share(&answer.others)
        ));
    }
    text
}

fn details(number: usize, class: &ShownClass) -> String {
    let mut text = format!("{number}. {}\n", short(&plain(&class.fingerprint), SAMPLE));
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("   {name:<9} {value}\n"));
        }
    };
    line("id", class.id.clone());
    let prepares = match class.prepares {
        0 => String::new(),
        some => format!(", prepared {} times", some),
    };
    line(
        "count",
        format!("{} ({:.2} a second){prepares}", class.count, class.qps),
    );
    if let Some(all) = &class.latency_us {
        line(
            "latency",
            format!(
                "{} to {}; average {}, half within {}, 95 % {}, 99 % {}",
                micros(all.min),
                micros(all.max),
                micros(all.avg),
                micros(all.p50 as f64),
                micros(all.p95 as f64),
                micros(all.p99 as f64)
            ),
        );
    }
    let rows = [
        (class.rows_sent, "sent"),
        (class.rows_examined, "examined"),
        (class.rows_affected, "changed"),
    ];
    let rows = rows
        .iter()
        .filter_map(|(count, what)| Some(format!("{} {what}", (*count)?)));
    line("rows", rows.collect::<Vec<_>>().join(", "));
    if class.errors + class.warnings > 0 {
        line(
            "failed",
            format!("{} times, {} warnings", class.errors, class.warnings),
        );
    }
    line("users", list(&class.users));
    line("hosts", list(&class.hosts));
    line("schemas", list(&class.schemas));
    if let (Some(first), Some(last)) = (class.first_seen, class.last_seen) {
        line("seen", format!("{} to {}", local(first), local(last)));
    }
    if let Some(all) = &class.latency_us {
        text.push_str(&histogram(all));
    }
    if let Some(sample) = &class.sample {
        text.push_str(&format!("   {}\n", short(&plain(&sample.sql), SAMPLE)));
    }
    text
}

/// The plans of all classes that have one: what is said above is of the first few.
fn plans(answer: &DigestAnswer) -> String {
    let classes = answer.classes.iter().zip(1..);
    let plans = classes.filter_map(|(class, number)| {
        let title = short(&plain(&class.fingerprint), TITLE);
        Some(format!(
            "{number}. {title}\n{}",
            class.plan.as_ref()?.text()
        ))
    });
    let plans: String = plans.collect();
    match plans.is_empty() {
        true => plans,
        false => format!("\nHow the server would run the samples:\n{plans}"),
    }
}

/// A line for each power of ten.
fn histogram(all: &Latency) -> String {
    const NAMES: [&str; 8] = [
        "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s",
    ];
    let mut decades = [0_u64; NAMES.len()];
    for step in &all.histogram {
        // What took exactly ten is with what took up to ten.
        let decade = step.up_to_us.saturating_sub(1).max(1).ilog10() as usize;
        decades[decade.min(NAMES.len() - 1)] += step.count;
    }
    let most = decades.iter().copied().max().unwrap_or(0).max(1);
    let first = decades.iter().position(|count| *count > 0).unwrap_or(0);
    let last = decades.iter().rposition(|count| *count > 0).unwrap_or(0);
    let lines = (first..=last).map(|at| {
        let bar = bar(decades[at] as f64 / most as f64, COLUMN);
        format!("   {:>9} {bar} {}", NAMES[at], decades[at])
            .trim_end()
            .to_owned()
            + "\n"
    });
    lines.collect()
}

pub(in crate::show::answers) fn changed(changes: &[ShownChange], top: usize) -> String {
    let reported: Vec<&ShownChange> = changes
        .iter()
        .filter(|one| !matches!(one.change, "same" | "unknown"))
        .collect();
    let of = |change: &str| changes.iter().filter(|one| one.change == change).count();
    let mut table = TextTable::new(&[
        ("since then", Align::Left),
        ("", Align::Right),
        ("", Align::Left),
        ("count", Align::Right),
        ("time in all", Align::Right),
        ("class", Align::Left),
    ]);
    for one in reported.iter().take(top) {
        let both = |values: [String; 2]| values.join(" → ");
        let is_change = matches!(one.change, "slower" | "faster");
        let percent = one.change_percent.filter(|_| is_change);
        let moved = percent.map(|percent| format!("{percent:+.1} %"));
        table.row([
            one.times_as_often
                .map_or_else(|| one.change.to_owned(), as_often),
            moved.unwrap_or_default(),
            one.p
                .filter(|_| is_change)
                .map_or(String::new(), evenkeel_report::compare::p_value),
            both(one.count.map(|count| count.to_string())),
            both(one.sum_us.map(micros)),
            short(&plain(&one.fingerprint), TITLE),
        ]);
    }
    let rest = match reported.len() > top {
        true => format!("… and {} more.\n", reported.len() - top),
        false => String::new(),
    };
    let others = format!(
        "No clear difference in {}.{}\n",
        classes(of("same")),
        match of("unknown") {
            0 => String::new(),
            few => format!(
                " Not compared: {}, without times or in fewer than four intervals.",
                classes(few)
            ),
        }
    );
    match (reported.is_empty(), reported.len() == changes.len()) {
        (true, _) => others,
        (false, true) => table.text() + &rest,
        (false, false) => table.text() + &rest + &others,
    }
}

fn classes(number: usize) -> String {
    match number {
        1 => "1 class".to_owned(),
        many => format!("{many} classes"),
    }
}

fn list(names: &[Named]) -> String {
    let all = names
        .iter()
        .map(|one| format!("{} ({})", plain(&one.name), one.count));
    all.collect::<Vec<_>>().join(", ")
}

/// Draws a share, in eighths of a letter.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((!eighths.is_multiple_of(8)).then(|| EIGHTHS[eighths % 8]));
    bar
}
