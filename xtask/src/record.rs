//! A record that outlives its writer: a file of one JSON object per line, which is only added to.

use anyhow::{Context, Result};
use jiff::{Timestamp, Unit};
use serde::{Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file, which need not be there yet.
pub(crate) struct Record(PathBuf);

impl Record {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Adds a line. After a line that was cut off it begins a new one.
    pub(crate) fn append<T: Serialize>(&self, line: &T) -> Result<()> {
        let failed = || format!("failed to write {}", self.0.display());
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut options = File::options();
        let options = options.create(true).read(true).append(true);
        let mut file = options.open(&self.0).with_context(failed)?;
        let mut text = String::new();
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last).with_context(failed)?;
            if last != *b"\n" {
                text.push('\n');
            }
        }
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
        file.write_all(text.as_bytes()).with_context(failed)?;
        file.sync_data().with_context(failed)
    }

    /// Reads all lines, oldest first. One that was cut off, or is of another time, tells nothing.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(error).with_context(|| format!("failed to read {}", self.0.display()));
            }
        };
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(lines.collect())
    }
}

/// Returns the time, to the second.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now)
}

/// Returns the day of a time, in UTC.
pub(crate) fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let record = Record::at(dir.path().join("made/record.jsonl"));
        assert!(record.read::<u32>().unwrap().is_empty());
        record.append(&1).unwrap();
        let mut file = File::options().append(true).open(record.path()).unwrap();
        file.write_all(b"{\"entry").unwrap();
        record.append(&2).unwrap();
        record.append(&3).unwrap();
        assert_eq!(record.read::<u32>().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn times_are_read_back_as_they_are_written() {
        let now = now();
        let text = serde_json::to_string(&now).unwrap();
        assert!(text.ends_with("Z\"") && !text.contains('.'), "{text}");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), now);
        assert!(text[1..].starts_with(&day(now)));
    }
}
