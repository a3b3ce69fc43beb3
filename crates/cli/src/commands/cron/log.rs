//! The log of a run: appended to a file that lives on, or to one that nobody else sees.

use evenkeel_op::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Whoever may read logs may read it, and nobody else.
const MODE: u32 = 0o640;
/// The line that parts one run from the next.
const DASHES: usize = 78;

/// The log of one run.
///
/// Writing never fails the command that is being logged: it keeps running with its output drained, and
/// [`Log::finish`] returns the first error.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Where this run's lines begin, after the dashes.
    start: u64,
    stamped: bool,
    at_line_start: bool,
    error: Option<std::io::Error>,
}

impl Log {
    /// Opens the log file, or a temporary one.
    pub(super) fn open(path: Option<&Path>, stamped: bool) -> Result<Self> {
        let file = match path {
            Some(path) => OpenOptions::new()
                .create(true)
                .read(true)
                .append(true)
                .mode(MODE)
                .open(path)
                .context(|| format!("failed to open the log {}", path.display()))?,
            None => tempfile::tempfile().context(|| "failed to create a temporary log")?,
        };
        Ok(Self {
            file,
            start: 0,
            stamped,
            at_line_start: true,
            error: None,
        })
    }

    /// Parts this run from the last and says what is started.
    pub(super) fn begin(&mut self, command: &str) {
        self.put(format!("{}\n", "-".repeat(DASHES)).as_bytes());
        self.start = self.file.seek(SeekFrom::End(0)).unwrap_or(0);
        self.note(&format!("{} starting: {command}", host()));
    }

    /// Appends some of the command's output: any bytes, lines cut anywhere.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if !self.stamped {
            self.put(bytes);
            self.at_line_start = bytes.last().is_none_or(|last| *last == b'\n');
            return;
        }
        let stamp = stamp();
        let mut out = Vec::with_capacity(bytes.len() + stamp.len());
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.at_line_start {
                out.extend_from_slice(stamp.as_bytes());
            }
            out.extend_from_slice(piece);
            self.at_line_start = piece.ends_with(b"\n");
        }
        self.put(&out);
    }

    /// Appends a line of ours, on a line of its own.
    pub(super) fn note(&mut self, line: &str) {
        if !self.at_line_start {
            self.write(b"\n");
        }
        self.write(format!("{line}\n").as_bytes());
    }

    /// Appends the last line of the run.
    pub(super) fn end(&mut self, line: &str) {
        self.note(line);
    }

    /// Copies this run's lines to `out`, which may have been closed.
    pub(super) fn replay(&mut self, out: &mut impl Write) -> Result<()> {
        let length = self
            .file
            .metadata()
            .context(|| "failed to read the log back")?
            .len();
        // Somebody who truncated the log meanwhile (logrotate's copytruncate) left what came after.
        let start = if length < self.start { 0 } else { self.start };
        self.file
            .seek(SeekFrom::Start(start))
            .context(|| "failed to read the log back")?;
        let mut part = (&self.file).take(length - start);
        match std::io::copy(&mut part, out).and_then(|_| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(error).context(|| "failed to print the log")
            }
            _ => Ok(()),
        }
    }

    /// Returns the first error of writing, if there was one.
    pub(super) fn finish(self) -> Result<()> {
        match self.error {
            Some(error) => Err(error).context(|| "the log of this run is not complete"),
            None => Ok(()),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Err(error) = self.file.write_all(bytes)
            && self.error.is_none()
        {
            self.error = Some(error);
        }
    }
}

fn stamp() -> String {
    jiff::Zoned::now()
        .strftime("[%Y-%m-%d %H:%M:%S%:z] ")
        .to_string()
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(log: &mut Log) -> String {
        let mut out = Vec::new();
        log.replay(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_cut_anywhere_are_stamped_once() {
        let mut log = Log::open(None, true).unwrap();
        log.begin("x");
        for piece in ["one\ntw", "o", "\nthr"] {
            log.write(piece.as_bytes());
        }
        log.end("command exited with code:0");
        let text = replayed(&mut log);
        let bare: Vec<&str> = text
            .lines()
            .map(|line| line.split_once("] ").unwrap().1)
            .collect();
        assert_eq!(
            bare[1..],
            ["one", "two", "thr", "command exited with code:0"]
        );
    }

    #[test]
    fn only_this_run_is_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for number in 1..=2 {
            let mut log = Log::open(Some(&path), false).unwrap();
            log.begin("x");
            log.write(format!("run {number}").as_bytes());
            log.end("end");
            assert_eq!(
                replayed(&mut log).lines().nth(1).unwrap(),
                format!("run {number}")
            );
        }
        let whole = std::fs::read_to_string(path).unwrap();
        assert_eq!(whole.matches(&"-".repeat(DASHES)).count(), 2);
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let mut log = Log::open(Some(Path::new("/dev/full")), false).unwrap();
        log.write(b"x\n");
        assert!(log.finish().is_err());
    }
}
