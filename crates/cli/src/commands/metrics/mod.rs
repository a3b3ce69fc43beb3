//! What a run came to, for Prometheus: a file in the text format that node_exporter's textfile
//! collector reads. Written after a failed run too; what the last good run left is kept then.

mod kind;
mod text;

use crate::args::{BinlogVerb, Verb};
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Context, Error, Event, Result, exit};
use kind::{CAUGHT_UP, VerbMetrics};
use rustix::fs::{self as sys, Mode, OFlags};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// No file of metrics is longer, in bytes.
const FORMER_MAX: u64 = 1 << 20;

/// How often the file of a run that follows a server is written.
const EVERY: Duration = Duration::from_secs(10);

/// A run whose end is written to a file of metrics.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    kind: &'static VerbMetrics,
    path: PathBuf,
    /// The repository as it was named: the label of every metric.
    repository: String,
    began: Instant,
}

impl Watch {
    /// Begins to watch a verb, if a file was named for it.
    #[must_use]
    pub(super) fn of(verb: &Verb) -> Option<Self> {
        let (kind, path, repository) = match verb {
            Verb::Backup(args) => (&kind::BACKUP, &args.metrics, &args.repository),
            Verb::Verify(args) => (&kind::VERIFY, &args.metrics, &args.repository),
            Verb::Forget(args) => (&kind::FORGET, &args.metrics, &args.repository),
            Verb::Prune(args) => (&kind::PRUNE, &args.metrics, &args.repository),
            Verb::Binlog(args) => match &args.verb {
                BinlogVerb::Archive(args) => (&kind::ARCHIVE, &args.metrics, &args.repository),
                BinlogVerb::List(_) | BinlogVerb::Extract(_) => return None,
            },
            _ => return None,
        };
        Some(Self {
            kind,
            path: path.clone()?,
            repository: settings::shown_place(repository),
            began: Instant::now(),
        })
    }

    /// Refuses a file that something else is, or that tells of another repository: this run would take the place of what it
    /// tells.
    pub(super) fn refuse_others(&self) -> Result<()> {
        let path = self.path.display();
        refuse_other_kinds(&self.path)?;
        if text::is_of_others(&self.repository, &self.former()) {
            return Err(Error::usage(format!(
                "{path} has the metrics of a repository other than {}",
                self.repository
            ))
            .hint("use one file per repository with --metrics"));
        }
        Ok(())
    }

    /// Tells of a run that ended before it began.
    pub(super) fn refused(&self, error: &Error, ui: &Ui) {
        if self.refuse_others().is_err() {
            return;
        }
        // It fails anyhow, and was warned of.
        let _ = self.tell(error.kind().exit_code(), None, ui);
    }

    /// Does the work, whose answer goes to the UI, and says how it ended. If that cannot be reported, the exit
    /// code of work that was done is 3.
    pub(super) fn over(&self, ui: &Ui, work: impl FnOnce() -> Result<u8>) -> Result<u8> {
        ui.keep_answer();
        self.follow(ui);
        let ended = work();
        let code = exit_code(&ended);
        let noted = self.tell(code, ui.kept_answer().as_ref(), ui);
        match (ended, noted) {
            (Ok(exit::DONE), Err(_)) => Ok(exit::PARTIAL),
            (ended, _) => ended,
        }
    }

    /// Tells how a run ended. An error if that could not be reported; a warning was given.
    pub(super) fn tell(&self, exit_code: u8, answer: Option<&Value>, ui: &Ui) -> Result<()> {
        let ended = Ended {
            kind: self.kind,
            repository: &self.repository,
            exit_code,
            seconds: self.began.elapsed().as_secs_f64(),
            at: now(),
            answer,
        };
        let written = self.update(|former| text::text(&ended, former));
        if let Err(error) = &written {
            let begin = answer.map_or("", |_| "the work is done, but ");
            ui.warn_of(begin, error);
        }
        written
    }

    /// Writes the file while the run continues, as often as it says that it has caught up.
    fn follow(&self, ui: &Ui) {
        let watch = self.clone();
        let written: Mutex<Option<Instant>> = Mutex::new(None);
        ui.listen(move |event| {
            let Event::CaughtUp { unix_s } = event else {
                return;
            };
            let mut written = written.lock().unwrap_or_else(|e| e.into_inner());
            if written.is_some_and(|at| at.elapsed() < EVERY) {
                return;
            }
            *written = Some(Instant::now());
            let value = (CAUGHT_UP, *unix_s);
            // The end is reported with a warning; until then the file looks old.
            let _ = watch
                .update(|former| text::meanwhile(watch.kind, &watch.repository, value, former));
        });
    }

    /// Reports that a run that was reported as done is done only in part.
    pub(super) fn fell_short(&self) {
        let code = (text::EXIT_CODE, f64::from(exit::PARTIAL));
        // The exit code says it too.
        let _ = self.update(|former| text::meanwhile(self.kind, &self.repository, code, former));
    }

    /// Puts in the place of the file what `make` makes of it.
    fn update(&self, make: impl FnOnce(&str) -> String) -> Result<()> {
        // Another verb may be about to do the same.
        let _held = hold(folder_of(&self.path));
        put(&self.path, &make(&self.former()))
    }

    /// What cannot be read is not kept: a later run tells it again. Whoever owns the directory may have put a pipe there,
    /// or a link to what has no end.
    fn former(&self) -> String {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = sys::open(&self.path, flags, Mode::empty()).map(File::from) else {
            return String::new();
        };
        let mut text = String::new();
        let is_file = file.metadata().is_ok_and(|facts| facts.is_file());
        match is_file && file.take(FORMER_MAX).read_to_string(&mut text).is_ok() {
            true => text,
            false => String::new(),
        }
    }
}

/// Returns the exit code of a run.
pub(super) fn exit_code(ended: &Result<u8>) -> u8 {
    match ended {
        Ok(code) => *code,
        Err(error) => error.kind().exit_code(),
    }
}

/// Returns the seconds since 1970.
fn now() -> f64 {
    jiff::Timestamp::now().as_duration().as_secs_f64()
}

/// A run that has ended.
#[derive(Debug)]
struct Ended<'a> {
    kind: &'static VerbMetrics,
    repository: &'a str,
    exit_code: u8,
    seconds: f64,
    /// Seconds since 1970.
    at: f64,
    /// Its answer's document, if it had one.
    answer: Option<&'a Value>,
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

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Keeps other runs from changing files in a directory, for as long as the returned file is open; for a second at most
/// it waits for them. Whoever may read the directory can hold it: that costs a value at worst.
fn hold(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    for _ in 0..20 {
        match sys::flock(&file, sys::FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(50)),
            _ => return Some(file),
        }
    }
    None
}

/// Refuses what is no regular file: a rename would put one in the place of `/dev/null`.
fn refuse_other_kinds(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if !facts.is_file() => {
            let path = path.display();
            Err(Error::usage(format!("{path} is not a regular file")).hint(
                "name a file that ends in .prom with --metrics; each run replaces the whole file",
            ))
        }
        _ => Ok(()),
    }
}

/// Writes a file of metrics, whole or not at all.
pub(super) fn put(path: &Path, text: &str) -> Result<()> {
    refuse_other_kinds(path)?;
    let failed = || format!("the metrics could not be written to {}", path.display());
    let directory = folder_of(path);
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
    use super::kind::BACKUP;
    use super::text::tests::{ended, report};
    use super::*;

    fn value(text: &str, name: &str) -> Option<String> {
        let begin = format!("{}{name}{{repository=\"/backup/shop\"}} ", BACKUP.prefix);
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
    }

    fn write(path: &Path, ended: &Ended<'_>) {
        let former = fs::read_to_string(path).unwrap_or_default();
        put(path, &text::text(ended, &former)).unwrap();
    }

    #[test]
    fn a_failed_run_keeps_what_the_last_good_one_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shop.prom");
        let report = report();
        write(&path, &ended(&BACKUP, 0, 1000.0, Some(&report)));
        write(&path, &ended(&BACKUP, 13, 2000.5, None));
        write(&path, &ended(&BACKUP, 13, 3000.5, None));
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
        write(&path, &ended(&BACKUP, 1, 5.0, None));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(value(&text, "last_run_exit_code").as_deref(), Some("1"));
        assert_eq!(value(&text, "generation"), None);
        assert!(!text.contains("info"), "{text}");
    }
}
