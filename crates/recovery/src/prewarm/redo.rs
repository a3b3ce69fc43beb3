//! How the server ended: cleanly, or so that the redo log has to be applied.

use evenkeel_innodb::redo::{self, RedoFormat, RedoHeader};
use evenkeel_op::Result;
use evenkeel_server::files::{FileClass, ServerFiles};
use std::path::PathBuf;

/// What lies behind the checkpoint of a log that a server closed: a record that names the
/// checkpoint itself, at most so many bytes.
const CLOSING_RECORD_BYTES: u64 = 64;

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redo {
    /// It was shut down: nothing needs to be applied.
    Clean,
    /// It crashed: so many bytes of redo log must be applied.
    Crashed {
        /// From the checkpoint to the end of the log.
        bytes: u64,
    },
    /// The log is none that evenkeel can read: what a crash would need is read.
    Unknown,
}

impl Redo {
    /// Returns whether the server will recover, or might.
    #[must_use]
    pub fn needs_recovery(self) -> bool {
        self != Self::Clean
    }

    /// Returns the name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Crashed { .. } => "crashed",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns the files of the redo log in order.
pub(super) fn files(found: &ServerFiles) -> Vec<PathBuf> {
    let logs = found.files.iter();
    let mut logs: Vec<(u64, PathBuf)> = logs
        .filter(|file| file.class == FileClass::InnodbRedo)
        .map(|file| (number(&file.name), file.path.clone()))
        .collect();
    logs.sort();
    logs.into_iter().map(|(_, path)| path).collect()
}

/// The digits at the end of a name.
fn number(name: &str) -> u64 {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[name.len() - digits..].parse().unwrap_or(0)
}

/// Looks at the redo log. Reads it from the checkpoint to its end, so that this part is in memory
/// afterwards: the server reads it first of all.
pub(super) fn state(logs: &[PathBuf]) -> Redo {
    let layouts = [RedoFormat::SingleFile, RedoFormat::Classic];
    let Some(first) = logs.first() else {
        return Redo::Unknown;
    };
    for layout in layouts {
        if let Ok(header) = RedoHeader::read(first, layout) {
            return match tail(logs, &header) {
                Ok(bytes) if bytes <= CLOSING_RECORD_BYTES => Redo::Clean,
                Ok(bytes) => Redo::Crashed { bytes },
                Err(_) => Redo::Unknown,
            };
        }
    }
    Redo::Unknown
}

fn tail(logs: &[PathBuf], header: &RedoHeader) -> Result<u64> {
    let end = redo::log_end(logs, header)?;
    Ok(end.saturating_sub(header.checkpoint_lsn()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_files_are_in_the_order_of_their_numbers() {
        assert_eq!(number("redo/ib_logfile12"), 12);
        assert_eq!(number("data/#innodb_redo/#ib_redo7"), 7);
        assert_eq!(number("data/ib_0000000000003000.log"), 0);
    }

    #[test]
    fn what_is_no_log_is_taken_for_a_crash() {
        assert_eq!(state(&[]), Redo::Unknown);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [1; 9000]).unwrap();
        let state = state(&[file.path().to_owned()]);
        assert_eq!(state, Redo::Unknown);
        assert!(state.needs_recovery());
    }
}
