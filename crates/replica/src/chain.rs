//! A file that only grows: a line for each record, with a hash of it and of the line before. So a line that was changed
//! or taken away is noticed, and one that was being written when that was interrupted does not count.

use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Such a file, open for more. One process at a time has it.
#[derive(Debug)]
pub(crate) struct ChainFile {
    file: File,
    last: String,
    /// Where its whole lines end, if there is more behind them: the next line goes there.
    whole: Option<u64>,
    /// What a line that could not be written has left cannot be taken away: nothing is written behind it.
    is_spoilt: bool,
    shown: PathBuf,
}

impl ChainFile {
    /// Takes a file that is empty.
    ///
    /// Errors: `Busy` while another process has it.
    pub(crate) fn empty(file: File, shown: &Path) -> Result<Self> {
        own(&file, shown)?;
        Ok(Self {
            file,
            last: String::new(),
            whole: None,
            is_spoilt: false,
            shown: shown.to_owned(),
        })
    }

    /// Takes a file that was [`own`]ed and read.
    pub(crate) fn read(file: File, chain: &Chain<impl Sized>, shown: &Path) -> Self {
        Self {
            file,
            last: chain.last.clone(),
            whole: chain.torn.then_some(chain.whole),
            is_spoilt: false,
            shown: shown.to_owned(),
        }
    }

    /// Adds a line. It is on the disk when this returns; after an error it is not in the file.
    pub(crate) fn append<R: Serialize>(&mut self, record: &R) -> Result<()> {
        let failed = || format!("failed to write {}", self.shown.display());
        if self.is_spoilt {
            return Err(Error::failed(failed()).because("an earlier line was written in part"));
        }
        if let Some(whole) = self.whole {
            self.file.set_len(whole).context(failed)?;
            self.whole = None;
        }
        let text = serde_json::to_string(record).context(failed)?;
        let hash = chained(&self.last, &text);
        let length = self.file.metadata().context(failed)?.len();
        let line = format!("{hash} {text}\n");
        let written = self.file.write_all(line.as_bytes());
        if let Err(error) = written.and_then(|()| self.file.sync_all()) {
            let cut = self.file.set_len(length);
            self.is_spoilt = cut.and_then(|()| self.file.sync_all()).is_err();
            return Err(error).context(failed);
        }
        self.last = hash;
        Ok(())
    }
}

/// Takes a file for this process, for as long as it is open.
///
/// Errors: `Busy` while another process has it.
pub(crate) fn own(file: &File, shown: &Path) -> Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
            ErrorKind::Busy,
            format!("another run is using {}", shown.display()),
        )),
        Err(error) => Err(std::io::Error::from(error))
            .context(|| format!("failed to lock {}", shown.display())),
    }
}

/// What a file says.
#[derive(Debug)]
pub(crate) struct Chain<R> {
    pub(crate) records: Vec<R>,
    last: String,
    /// How long its whole lines are.
    whole: u64,
    /// There is more behind them.
    torn: bool,
}

/// Reads whole lines. `None` if they are not as they were written.
pub(crate) fn parse<R: DeserializeOwned>(text: &[u8]) -> Option<Chain<R>> {
    let (mut records, mut last, mut whole) = (Vec::new(), String::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        whole += line.len() as u64 + 1;
        let line = std::str::from_utf8(line).ok()?;
        let (hash, record) = line.split_once(' ')?;
        if hash != chained(&last, record) {
            return None;
        }
        hash.clone_into(&mut last);
        records.push(serde_json::from_str(record).ok()?);
    }
    let torn = whole < text.len() as u64;
    Some(Chain {
        records,
        last,
        whole,
        torn,
    })
}

fn chained(last: &str, text: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(last.as_bytes());
    hasher.update(text.as_bytes());
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<u8> {
        let (mut text, mut last) = (String::new(), String::new());
        for word in ["a", "b", "c"] {
            let record = format!("\"{word}\"");
            last = chained(&last, &record);
            text.push_str(&format!("{last} {record}\n"));
        }
        text.into_bytes()
    }

    fn parsed(text: &[u8]) -> Option<Chain<String>> {
        parse(text)
    }

    #[test]
    fn lines_are_read_as_far_as_they_are_whole() {
        let text = lines();
        let all = parsed(&text).unwrap();
        assert_eq!((all.records.len(), all.whole), (3, text.len() as u64));
        let torn = parsed(&text[..text.len() - 1]).unwrap();
        assert_eq!((torn.records.len(), torn.torn), (2, true));
        assert_eq!(
            parsed(&text[..torn.whole as usize]).unwrap().records.len(),
            2
        );
    }

    #[test]
    fn changed_lines_are_refused() {
        let text = String::from_utf8(lines()).unwrap();
        assert!(parsed(text.replace("\"b\"", "\"x\"").as_bytes()).is_none());
        let without_second: Vec<&str> = text.lines().collect();
        let text = format!("{}\n{}\n", without_second[0], without_second[2]);
        assert!(parsed(text.as_bytes()).is_none());
    }

    #[test]
    fn nothing_is_written_behind_a_line_that_could_not_be_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chain");
        std::fs::write(&path, lines()).unwrap();
        // It can neither be written nor shortened.
        let file = File::open(&path).unwrap();
        let chain = parsed(&lines()).unwrap();
        let mut file = ChainFile::read(file, &chain, &path);
        assert!(file.append(&"d").is_err());
        file.file = File::options().append(true).open(&path).unwrap();
        assert!(file.append(&"e").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), lines());
    }

    #[test]
    fn a_torn_line_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chain");
        let text = lines();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        let chain = parsed(&std::fs::read(&path).unwrap()).unwrap();
        let mut file = ChainFile::read(file, &chain, &path);
        file.append(&"d").unwrap();
        let now = parsed(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (now.records, now.torn),
            (["a", "b", "d"].map(str::to_owned).to_vec(), false)
        );
    }
}
