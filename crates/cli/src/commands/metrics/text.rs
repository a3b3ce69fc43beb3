//! Prometheus' text format.

use super::Ended;
use evenkeel_backup::report::GenerationReport;
use std::collections::BTreeMap;

pub(super) const PREFIX: &str = "evenkeel_backup_";

/// What is told of every run.
const OF_RUNS: [(&str, &str); 3] = [
    ("last_run_timestamp_seconds", "When the last run ended."),
    ("last_run_exit_code", "The last run's exit code."),
    ("last_run_seconds", "How long the last run took."),
];

/// What is told of the last run that made a generation: fields of its report, by their names in JSON.
const OF_GENERATIONS: [(&str, &str); 16] = [
    (
        "last_success_timestamp_seconds",
        "When the last run that made a generation ended.",
    ),
    ("generation", "The newest generation."),
    ("files", "Files that the generation holds."),
    ("bytes_logical", "Sum of the sizes of those files."),
    ("bytes_read", "Bytes read from the snapshot."),
    (
        "bytes_changed",
        "Bytes in blocks that differ from the generation before.",
    ),
    ("bytes_stored", "Bytes added to the repository."),
    ("pages_checked", "InnoDB pages whose checksum was checked."),
    (
        "pages_torn",
        "Torn InnoDB pages of which the doublewrite buffer has a good copy.",
    ),
    ("pages_corrupt", "InnoDB pages that failed their checksum."),
    ("seconds", "How long the backup took."),
    (
        "rested_s",
        "How long of it reading rested for a busy server, in seconds.",
    ),
    ("lock_ms", "How long any lock was held, in milliseconds."),
    (
        "write_pause_ms",
        "How long commits stood still, in milliseconds.",
    ),
    (
        "applier_ms",
        "How long a replica's applier stood still, in milliseconds.",
    ),
    ("forgotten", "Generations that were forgotten after it."),
];

/// Returns the whole file; `former` is what it held, if that is to be kept.
pub(super) fn text(ended: &Ended<'_>, former: &str) -> String {
    let repository = escaped(&ended.repository.display().to_string());
    let mut values = match ended.made {
        Some((report, forgotten)) => of_report(report, forgotten, ended.at),
        None => kept(former),
    };
    values.insert("last_run_timestamp_seconds".into(), number(ended.at));
    values.insert("last_run_exit_code".into(), ended.exit_code.to_string());
    values.insert("last_run_seconds".into(), number(ended.seconds));
    let mut text = String::new();
    for (name, help) in OF_RUNS.iter().chain(&OF_GENERATIONS) {
        if let Some(value) = values.get(*name) {
            text.push_str(&format!(
                "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} gauge\n\
                 {PREFIX}{name}{{repository=\"{repository}\"}} {value}\n"
            ));
        }
    }
    let info = match ended.made {
        Some((report, _)) => Some(format!(
            "{PREFIX}info{{repository=\"{repository}\",source=\"{}\",kind=\"{}\",snapshot=\"{}\"}} 1",
            escaped(&report.source),
            escaped(&report.kind),
            escaped(&report.snapshot)
        )),
        None => former
            .lines()
            .find(|line| line.starts_with(&format!("{PREFIX}info{{")))
            .map(str::to_owned),
    };
    if let Some(info) = info {
        text.push_str(&format!(
            "# HELP {PREFIX}info What the newest generation is of, and how it was made.\n\
             # TYPE {PREFIX}info gauge\n{info}\n"
        ));
    }
    text
}

fn of_report(report: &GenerationReport, forgotten: usize, at: f64) -> BTreeMap<String, String> {
    // A plain struct: it cannot fail to serialise.
    let fields = serde_json::to_value(report).unwrap_or_default();
    let mut values: BTreeMap<String, String> = OF_GENERATIONS
        .iter()
        .filter_map(|(name, _)| Some((*name, fields.get(name)?.as_f64()?)))
        .map(|(name, value)| (name.to_owned(), number(value)))
        .collect();
    values.insert("last_success_timestamp_seconds".into(), number(at));
    values.insert("forgotten".into(), forgotten.to_string());
    values
}

/// Returns what an earlier file says of the last generation.
fn kept(former: &str) -> BTreeMap<String, String> {
    let value = |name: &str| {
        let begin = format!("{PREFIX}{name}{{");
        let line = former.lines().find(|line| line.starts_with(&begin))?;
        let (_, value) = line.rsplit_once("} ")?;
        value.parse::<f64>().ok().map(number)
    };
    OF_GENERATIONS
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), value(name)?)))
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
    use std::path::Path;

    pub(in super::super) fn report() -> GenerationReport {
        let fields = serde_json::json!({
            "source": "db1:/var/lib/\"my\"sql", "generation": 7, "kind": "incremental", "based_on": 6,
            "files": 3, "bytes_logical": 12_345_678_901_u64, "bytes_read": 2, "bytes_changed": 1,
            "bytes_stored": 1, "pages_checked": 1, "pages_corrupt": 0, "seconds": 1.5,
            "rested_s": 0.0, "lock_ms": 2.25, "write_pause_ms": 1.0, "snapshot": "btrfs",
            "coordinates": {"binlog_file": null, "binlog_position": null, "gtid": null},
        });
        serde_json::from_value(fields).unwrap()
    }

    pub(in super::super) fn ended<'a>(
        exit_code: u8,
        at: f64,
        made: Option<(&'a GenerationReport, usize)>,
    ) -> Ended<'a> {
        Ended {
            repository: Path::new("/backup/shop"),
            exit_code,
            seconds: 2.0,
            at,
            made,
        }
    }

    #[test]
    fn every_metric_has_one_type_and_every_line_a_value() {
        let report = report();
        let text = text(&ended(0, 1.0, Some((&report, 0))), "");
        let (comments, values): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with('#'));
        assert_eq!(comments.len(), values.len() * 2);
        assert_eq!(
            values.len(),
            OF_RUNS.len() + OF_GENERATIONS.len() + 1,
            "{text}"
        );
        for line in values {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
