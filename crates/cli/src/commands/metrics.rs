//! What a backup came to, for Prometheus: a file in the text format that node_exporter's textfile
//! collector reads. Written after a failed run too; what the last good run left is kept then.

use crate::args::{Backup, Verb};
use crate::show::Face;
use crate::show::answers::BackupAnswer;
use evenkeel_backup::report::GenerationReport;
use evenkeel_op::{Context, Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const PREFIX: &str = "evenkeel_backup_";

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

/// A run whose end is written to a file of metrics, if one was named.
pub struct Watch {
    metrics: Option<PathBuf>,
    repository: PathBuf,
    began: Instant,
}

impl Watch {
    /// Begins to watch a backup.
    #[must_use]
    pub(super) fn of(args: &Backup) -> Self {
        Self {
            metrics: args.metrics.clone(),
            repository: args.repository.clone(),
            began: Instant::now(),
        }
    }

    /// Returns that of a verb, if it is a backup.
    #[must_use]
    pub fn of_verb(verb: &Verb) -> Option<Self> {
        match verb {
            Verb::Backup(args) => Some(Self::of(args)),
            _ => None,
        }
    }

    /// Tells of a run that ended before it began.
    pub fn refused(&self, error: Error, face: &Face) -> Error {
        self.write(error.kind().exit_code(), None, face);
        error
    }

    /// Tells how the run ended.
    pub(super) fn tell(&self, ended: &Result<(u8, BackupAnswer)>, face: &Face) {
        match ended {
            Ok((code, answer)) => {
                let forgotten = answer.forgotten.as_ref().map_or(0, |one| one.remove.len());
                self.write(*code, Some((&answer.report, forgotten)), face);
            }
            Err(error) => self.write(error.kind().exit_code(), None, face),
        }
    }

    fn write(&self, exit_code: u8, made: Option<(&GenerationReport, usize)>, face: &Face) {
        let Some(path) = &self.metrics else {
            return;
        };
        let written = write(
            path,
            &Ended {
                repository: &self.repository,
                exit_code,
                seconds: self.began.elapsed().as_secs_f64(),
                at: jiff::Timestamp::now().as_duration().as_secs_f64(),
                made,
            },
        );
        // Whoever watches the file sees that it is old.
        if let Err(error) = written {
            face.warn(&error.chain());
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
struct Ended<'a> {
    /// The repository as it was named: the label of every metric.
    repository: &'a Path,
    exit_code: u8,
    seconds: f64,
    /// Seconds since 1970.
    at: f64,
    /// What it made, and how many generations it forgot.
    made: Option<(&'a GenerationReport, usize)>,
}

/// Writes the file, whole or not at all.
fn write(path: &Path, ended: &Ended<'_>) -> Result<()> {
    let failed = || format!("failed to write the metrics to {}", path.display());
    let former = match ended.made {
        // What cannot be read is not kept: the next good run tells it all again.
        None => fs::read_to_string(path).unwrap_or_default(),
        Some(_) => String::new(),
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // The collector looks at names that end in .prom only, and is another user.
    let mut file = tempfile::Builder::new()
        .prefix(".evenkeel-metrics-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)
        .context(failed)?;
    file.write_all(text(ended, &former).as_bytes())
        .context(failed)?;
    file.persist(path)
        .map_err(|error| error.error)
        .context(failed)?;
    Ok(())
}

fn text(ended: &Ended<'_>, former: &str) -> String {
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
mod tests {
    use super::*;

    fn report() -> GenerationReport {
        let fields = serde_json::json!({
            "source": "db1:/var/lib/\"my\"sql", "generation": 7, "kind": "incremental", "based_on": 6,
            "files": 3, "bytes_logical": 12_345_678_901_u64, "bytes_read": 2, "bytes_changed": 1,
            "bytes_stored": 1, "pages_checked": 1, "pages_corrupt": 0, "seconds": 1.5,
            "rested_s": 0.0, "lock_ms": 2.25, "write_pause_ms": 1.0, "snapshot": "btrfs",
            "coordinates": {"binlog_file": null, "binlog_position": null, "gtid": null},
        });
        serde_json::from_value(fields).unwrap()
    }

    fn ended<'a>(exit_code: u8, at: f64, made: Option<(&'a GenerationReport, usize)>) -> Ended<'a> {
        Ended {
            repository: Path::new("/backup/shop"),
            exit_code,
            seconds: 2.0,
            at,
            made,
        }
    }

    fn value(text: &str, name: &str) -> Option<String> {
        let begin = format!("{PREFIX}{name}{{repository=\"/backup/shop\"}} ");
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
    }

    #[test]
    fn a_failed_run_keeps_what_the_last_good_one_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shop.prom");
        let report = report();
        write(&path, &ended(0, 1000.0, Some((&report, 2)))).unwrap();
        write(&path, &ended(13, 2000.5, None)).unwrap();
        write(&path, &ended(13, 3000.5, None)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for (name, expected) in [
            ("last_run_timestamp_seconds", "3000.5"),
            ("last_run_exit_code", "13"),
            ("last_run_seconds", "2"),
            ("last_success_timestamp_seconds", "1000"),
            ("generation", "7"),
            ("bytes_logical", "12345678901"),
            ("lock_ms", "2.25"),
            ("forgotten", "2"),
        ] {
            assert_eq!(value(&text, name).as_deref(), Some(expected), "{text}");
        }
        let label = r#"source="db1:/var/lib/\"my\"sql""#;
        assert_eq!(text.matches(label).count(), 1, "{text}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn without_a_good_run_nothing_is_said_of_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shop.prom");
        fs::write(
            &path,
            "evenkeel_backup_generation{repository=\"x\"} not a number\n",
        )
        .unwrap();
        write(&path, &ended(1, 5.0, None)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(value(&text, "last_run_exit_code").as_deref(), Some("1"));
        assert_eq!(value(&text, "generation"), None);
        assert!(!text.contains("info"), "{text}");
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
