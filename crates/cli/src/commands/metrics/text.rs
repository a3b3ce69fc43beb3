//! Prometheus' text format.

use super::Ended;
use super::kind::VerbMetrics;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is reported about every run.
const OF_RUNS: [(&str, &str); 3] = [
    ("last_run_timestamp_seconds", "When the last run ended."),
    (EXIT_CODE, "The last run's exit code."),
    ("last_run_seconds", "How long the last run took."),
];
pub(super) const EXIT_CODE: &str = "last_run_exit_code";
const SUCCESS: &str = "last_success_timestamp_seconds";

type Values = BTreeMap<&'static str, f64>;

/// Returns the whole file of a run that has ended; `former` is what it held: what this run does not say stays.
pub(super) fn text(ended: &Ended<'_>, former: &str) -> String {
    let kind = ended.kind;
    let mut values = kept(kind, ended.repository, former);
    if let Some(answer) = ended.answer {
        // Neither of two answers is reported in part.
        values.retain(|name, _| *name == SUCCESS || stays(kind, name));
        let facts = kind.facts.iter();
        values.extend(facts.filter_map(|fact| Some((fact.name, fact.of(answer)?))));
        if (kind.is_success)(ended.exit_code) {
            values.insert(SUCCESS, ended.at);
        }
    }
    for ((name, _), value) in
        OF_RUNS
            .iter()
            .zip([ended.at, f64::from(ended.exit_code), ended.seconds])
    {
        values.insert(name, value);
    }
    write(kind, ended.repository, &values, info(ended, former), former)
}

/// Returns the whole file with one value changed, of a run that continues.
pub(super) fn meanwhile(
    kind: &VerbMetrics,
    repository: &str,
    (name, value): (&'static str, f64),
    former: &str,
) -> String {
    let mut values = kept(kind, repository, former);
    values.insert(name, value);
    let info = former_info(kind, repository, former);
    write(kind, repository, &values, info, former)
}

fn write(
    kind: &VerbMetrics,
    repository: &str,
    values: &Values,
    info: Option<String>,
    former: &str,
) -> String {
    let VerbMetrics { prefix, run, .. } = kind;
    let repository = escaped(repository);
    let success = format!("When the last {run} ended.");
    let all = OF_RUNS.iter().copied().chain([(SUCCESS, success.as_str())]);
    let all = all.chain(kind.facts.iter().map(|fact| (fact.name, fact.help)));
    let mut text = String::new();
    for (name, help) in all {
        if let Some(value) = values.get(name) {
            let value = number(*value);
            text.push_str(&format!(
                "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} gauge\n\
                 {prefix}{name}{{repository=\"{repository}\"}} {value}\n"
            ));
        }
    }
    if let Some(info) = info {
        text.push_str(&format!(
            "# HELP {prefix}info What the last run with a result was for.\n\
             # TYPE {prefix}info gauge\n{info}\n"
        ));
    }
    for line in of_other_verbs(kind, former) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// What each of our metrics begins with, whatever the verb.
const ANY: &str = "evenkeel_";

/// Whether a file has metrics of another repository.
pub(super) fn is_of_others(repository: &str, former: &str) -> bool {
    let label = label(repository);
    let mut values = former.lines().filter(|line| line.starts_with(ANY));
    values.any(|line| {
        let labels = line.split_once('{');
        !labels.is_some_and(|(_, labels)| labels.starts_with(&label))
    })
}

/// Returns what a file says of other verbs of this repository, which stays.
fn of_other_verbs<'a>(kind: &VerbMetrics, former: &'a str) -> impl Iterator<Item = &'a str> {
    let prefix = kind.prefix;
    former.lines().filter(move |line| {
        let metric = line
            .strip_prefix("# HELP ")
            .or(line.strip_prefix("# TYPE "));
        let metric = metric.unwrap_or(line);
        metric.starts_with(ANY) && !metric.starts_with(prefix)
    })
}

/// The first label of every metric, as far as it is the repository's alone.
fn label(repository: &str) -> String {
    format!("repository=\"{}\"", escaped(repository))
}

fn stays(kind: &VerbMetrics, name: &str) -> bool {
    let mut facts = kind.facts.iter();
    facts.any(|fact| fact.name == name && fact.stays())
}

fn info(ended: &Ended<'_>, former: &str) -> Option<String> {
    let kind = ended.kind;
    let Some(answer) = ended.answer.filter(|_| !kind.words.is_empty()) else {
        return former_info(kind, ended.repository, former);
    };
    let words = kind.words.iter().map(|name| {
        let value = answer.get(name).and_then(Value::as_str).unwrap_or_default();
        format!(",{name}=\"{}\"", escaped(value))
    });
    let (prefix, repository) = (kind.prefix, escaped(ended.repository));
    let words: String = words.collect();
    Some(format!(
        "{prefix}info{{repository=\"{repository}\"{words}}} 1"
    ))
}

fn former_info(kind: &VerbMetrics, repository: &str, former: &str) -> Option<String> {
    let begin = format!("{}info{{{}", kind.prefix, label(repository));
    let mut lines = former.lines();
    lines
        .find(|line| line.starts_with(&begin))
        .map(str::to_owned)
}

/// Returns what an earlier file says. What cannot be read is not kept: a later run tells it again.
fn kept(kind: &VerbMetrics, repository: &str, former: &str) -> Values {
    let value = |name: &str| {
        let begin = format!("{}{name}{{{}", kind.prefix, label(repository));
        let line = former.lines().find(|line| line.starts_with(&begin))?;
        let (_, value) = line.rsplit_once("} ")?;
        value.parse::<f64>().ok()
    };
    let names = kind.facts.iter().map(|fact| fact.name);
    let names = names
        .chain([SUCCESS])
        .chain(OF_RUNS.iter().map(|(name, _)| *name));
    names
        .filter_map(|name| Some((name, value(name)?)))
        .collect()
}

/// Whole numbers without a fraction, others to the millisecond.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::commands::metrics::kind::{ARCHIVE, BACKUP, CAUGHT_UP, VERIFY};

    pub(in super::super) fn report() -> Value {
        serde_json::json!({
            "source": "db1:/var/lib/\"my\"sql", "generation": 7, "kind": "incremental", "based_on": 6,
            "files": 3, "bytes_logical": 12_345_678_901_u64, "bytes_read": 2, "bytes_changed": 1,
            "bytes_stored": 1, "pages_checked": 1, "pages_torn": 0, "pages_corrupt": 0, "seconds": 1.5,
            "rested_s": 0.0, "lock_ms": 2.25, "write_pause_ms": 1.0, "applier_ms": 0.0, "snapshot": "btrfs",
            "forgotten": {"remove": [1, 2]},
        })
    }

    pub(in super::super) fn ended<'a>(
        kind: &'static VerbMetrics,
        exit_code: u8,
        at: f64,
        answer: Option<&'a Value>,
    ) -> Ended<'a> {
        Ended {
            kind,
            repository: "/backup/shop",
            exit_code,
            seconds: 2.0,
            at,
            answer,
        }
    }

    fn value(text: &str, name: &str) -> Option<f64> {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    #[test]
    fn every_metric_has_one_type_and_every_line_a_value() {
        let report = report();
        let text = text(&ended(&BACKUP, 0, 1.0, Some(&report)), "");
        let (comments, values): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with('#'));
        assert_eq!(comments.len(), values.len() * 2);
        // Of runs, the success, the facts, and what it is of.
        let all = OF_RUNS.len() + 1 + BACKUP.facts.len() + 1;
        assert_eq!(values.len(), all, "{text}");
        for line in values {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn damage_is_reported_and_is_no_success() {
        let sound = serde_json::json!({"findings": [], "blocks": 9, "boot": {"proven": true}});
        let first = text(&ended(&VERIFY, 0, 100.0, Some(&sound)), "");
        let damaged = serde_json::json!({"findings": [{}], "blocks": 8, "boot": null});
        let second = text(&ended(&VERIFY, 4, 200.0, Some(&damaged)), &first);
        for (name, expected) in [
            ("findings", Some(1.0)),
            ("blocks", Some(8.0)),
            // What the first run started says nothing of the second.
            ("boot_proven", None),
            ("last_success_timestamp_seconds", Some(100.0)),
            ("last_run_timestamp_seconds", Some(200.0)),
        ] {
            let name = format!("evenkeel_verify_{name}");
            assert_eq!(value(&second, &name), expected, "{second}");
        }
    }

    #[test]
    fn what_is_reported_of_one_is_reported_of_nobody_else() {
        let report = report();
        let noted = text(&ended(&BACKUP, 0, 100.0, Some(&report)), "");
        assert!(!is_of_others("/backup/shop", &noted));
        assert!(is_of_others("/backup/blog", &noted));
        assert!(!is_of_others("/backup/blog", "somebody_elses{x=\"y\"} 1\n"));
        let mut failed = ended(&BACKUP, 2, 200.0, None);
        failed.repository = "/backup/blog";
        let failed = text(&failed, &noted);
        assert!(
            !failed.contains("generation{") && !failed.contains("shop"),
            "{failed}"
        );
        // Of the same repository each verb has its lines.
        let sound = serde_json::json!({"findings": []});
        let both = text(&ended(&VERIFY, 0, 300.0, Some(&sound)), &noted);
        assert_eq!(
            value(&both, "evenkeel_backup_generation"),
            Some(7.0),
            "{both}"
        );
        assert_eq!(
            value(&both, "evenkeel_verify_findings"),
            Some(0.0),
            "{both}"
        );
        let again = text(&ended(&BACKUP, 0, 400.0, Some(&report)), &both);
        assert_eq!(again.lines().count(), both.lines().count(), "{again}");
        assert_eq!(
            value(&again, "evenkeel_verify_last_run_timestamp_seconds"),
            Some(300.0)
        );
    }

    #[test]
    fn how_far_an_archive_is_stays_when_its_run_ends() {
        let noted = meanwhile(&ARCHIVE, "/backup/shop", (CAUGHT_UP, 50.5), "");
        let noted = meanwhile(&ARCHIVE, "/backup/shop", (CAUGHT_UP, 60.5), &noted);
        let report =
            serde_json::json!({"source": "mariadb-7", "timeline": "t", "segments": 3, "gaps": []});
        let end = text(&ended(&ARCHIVE, 0, 70.0, Some(&report)), &noted);
        let prefix = ARCHIVE.prefix;
        assert_eq!(
            value(&end, &format!("{prefix}{CAUGHT_UP}")),
            Some(60.5),
            "{end}"
        );
        assert_eq!(
            value(&end, &format!("{prefix}segments")),
            Some(3.0),
            "{end}"
        );
        let next = meanwhile(&ARCHIVE, "/backup/shop", (CAUGHT_UP, 80.0), &end);
        assert_eq!(
            value(&next, &format!("{prefix}segments")),
            Some(3.0),
            "{next}"
        );
        assert!(next.contains("source=\"mariadb-7\""), "{next}");
    }
}
