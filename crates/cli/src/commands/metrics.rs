//! What a backup came to, for Prometheus: a file in the text format that node_exporter's textfile
//! collector reads. Written after a failed run too; what the last good run left is kept then.

mod text;

use crate::args::{Backup, Verb};
use crate::show::Face;
use crate::show::answers::BackupAnswer;
use evenkeel_backup::report::GenerationReport;
use evenkeel_op::{Context, Error, Result};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
        // It fails anyhow, and was warned of.
        let _ = self.write(error.kind().exit_code(), None, face);
        error
    }

    /// Tells how the run ended. An error when that could not be told; it was warned of.
    pub(super) fn tell(&self, ended: &Result<(u8, BackupAnswer)>, face: &Face) -> Result<()> {
        match ended {
            Ok((code, answer)) => {
                let forgotten = answer.forgotten.as_ref().map_or(0, |one| one.remove.len());
                self.write(*code, Some((&answer.report, forgotten)), face)
            }
            Err(error) => self.write(error.kind().exit_code(), None, face),
        }
    }

    fn write(
        &self,
        exit_code: u8,
        made: Option<(&GenerationReport, usize)>,
        face: &Face,
    ) -> Result<()> {
        let Some(path) = &self.metrics else {
            return Ok(());
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
        if let Err(error) = &written {
            let begin = made.map_or("", |_| "the backup is done, but ");
            face.warn_of(begin, error);
        }
        written
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

/// Writes the file.
fn write(path: &Path, ended: &Ended<'_>) -> Result<()> {
    let former = match ended.made {
        // What cannot be read is not kept: the next good run tells it all again.
        None => fs::read_to_string(path).unwrap_or_default(),
        Some(_) => String::new(),
    };
    put(path, &text::text(ended, &former))
}

/// Says why a file cannot be made, without the name that it had for a moment.
fn plain(error: &io::Error, directory: &Path) -> String {
    let directory = directory.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("the directory {directory} does not exist"),
        io::ErrorKind::PermissionDenied => format!("this user may not write into {directory}"),
        _ => error.to_string(),
    }
}

/// Writes a file of metrics, whole or not at all.
pub(super) fn put(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("the metrics could not be written to {}", path.display());
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // The collector looks at names that end in .prom only, and is another user.
    let mut file = tempfile::Builder::new()
        .prefix(".evenkeel-metrics-")
        .tempfile_in(directory)
        .map_err(|error| plain(&error, directory))
        .context(failed)
        .map_err(|error| error.hint("make the directory, or name another file with --metrics"))?;
    let readable = Permissions::from_mode(0o644);
    file.as_file().set_permissions(readable).context(failed)?;
    file.write_all(text.as_bytes()).context(failed)?;
    file.persist(path)
        .map_err(|error| error.error)
        .context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::text::PREFIX;
    use super::text::tests::{ended, report};
    use super::*;

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
}
