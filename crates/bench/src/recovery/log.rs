//! A server's log, read while it is written: when each line came.
//!
//! MySQL writes microseconds, and 8.0 writes all lines at once when its start is nearly through: its
//! own times count. MariaDB writes whole seconds, line by line: what counts are the times at which the
//! lines were seen, which is up to one look later.

use evenkeel_op::{Context, Result};
use evenkeel_server::launch::log_below;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(4);

/// A line, and how long after the beginning it was there.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) at: Duration,
    pub(super) text: String,
}

/// Watches for the log of the next server that keeps its log in a directory below `run_dir`.
#[derive(Debug)]
pub(super) struct Watch {
    begun: SystemTime,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Line>>>,
}

impl Watch {
    pub(super) fn start(run_dir: &Path, begun: Instant) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, run_dir) = (Arc::clone(&stop), run_dir.to_owned());
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || watched(&run_dir, begun, &ended))
            .context(|| "failed to start a thread")?;
        Ok(Self {
            begun: SystemTime::now() - begun.elapsed(),
            stop,
            thread: Some(thread),
        })
    }

    /// Returns what was seen until now, in the order of the times.
    pub(super) fn lines(mut self) -> Vec<Line> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let lines = thread.and_then(|thread| thread.join().ok());
        let mut lines = lines.unwrap_or_default();
        for line in &mut lines {
            let own = written(&line.text);
            line.at = own
                .and_then(|own| own.duration_since(self.begun).ok())
                .unwrap_or(line.at);
        }
        lines.sort_by_key(|line| line.at);
        lines
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watched(run_dir: &Path, begun: Instant, ended: &AtomicBool) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut log = None;
    let mut rest = Vec::new();
    loop {
        // Looked at once more after the end: the last lines may have come with it.
        let is_last = ended.load(Ordering::Relaxed);
        if log.is_none() {
            log = log_below(run_dir).and_then(|path| File::open(path).ok());
        }
        if let Some(file) = &mut log {
            // A log that cannot be read is a step that is not named.
            let _ = file.read_to_end(&mut rest);
            take_lines(&mut rest, begun.elapsed(), &mut lines);
        }
        if is_last {
            return lines;
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads the time at the beginning of `2026-11-22T10:52:27.349114Z 0 [Note] …`: one with
/// microseconds and in UTC, as MySQL writes it unless it is told otherwise.
fn written(line: &str) -> Option<SystemTime> {
    let word = line.split(' ').next()?;
    let time = word.strip_suffix('Z').filter(|time| time.contains('.'));
    let time: jiff::Timestamp = format!("{}Z", time?).parse().ok()?;
    Some(time.into())
}

/// Takes whole lines; what follows the last of them stays.
fn take_lines(bytes: &mut Vec<u8>, at: Duration, lines: &mut Vec<Line>) {
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return;
    };
    let whole: Vec<u8> = bytes.drain(..=end).collect();
    for line in String::from_utf8_lossy(&whole).lines() {
        lines.push(Line {
            at,
            text: line.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_with_fractions_are_taken() {
        let at = |line| {
            let since = written(line)?.duration_since(SystemTime::UNIX_EPOCH);
            since.ok().map(|since| since.as_micros())
        };
        let mysql = "2026-11-22T10:52:27.349114Z 0 [Note] [MY-010747] [Server] Plugin";
        assert_eq!(at(mysql), Some(1_795_344_747_349_114));
        for other in [
            "2026-11-22 10:52:39 0 [Note] InnoDB: To recover: 19 pages",
            "2026-11-22T10:52:27Z 0 [Note]",
            "Version: '5.7.22'",
            "",
        ] {
            assert_eq!(at(other), None, "{other}");
        }
    }

    #[test]
    fn a_line_is_taken_when_it_is_whole() {
        let (mut bytes, mut lines) = (b"one\ntw".to_vec(), Vec::new());
        take_lines(&mut bytes, Duration::from_secs(1), &mut lines);
        bytes.extend(b"o\nthree\n");
        take_lines(&mut bytes, Duration::from_secs(2), &mut lines);
        let seen: Vec<_> = lines.iter().map(|l| (l.at.as_secs(), &*l.text)).collect();
        assert_eq!(seen, [(1, "one"), (2, "two"), (2, "three")]);
        assert!(bytes.is_empty());
    }
}
