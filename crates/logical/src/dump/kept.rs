//! What of an unfinished dump stays as it is: chunks of tables that nobody wrote to since its view, so
//! that the new view shows the same rows. docs/src/design/dump.md argues it.

use super::cascades;
use super::catalog::Look;
use super::compression::Compression;
use super::journal::{Left, LeftTable, View};
use super::manifest::ChunkEntry;
use super::output::Output;
use super::shapes::{Shapes, key};
use super::table::DumpTable;
use super::threads::locked;
use super::untouched::{self, Touched};
use evenkeel_op::{Cancel, Error, Progress, Result, Unit};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What became of the chunks of a dump that was resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Files of rows that were kept.
    pub chunks: u64,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of rows in them, before they were packed.
    pub bytes: u64,
    /// Files of rows that were there and are read again, by why.
    pub again: BTreeMap<String, u64>,
}

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By table, in the tables' order; none for those that are read again.
    pub(super) tables: Vec<Option<LeftTable>>,
    pub(super) resumed: Resumed,
}

impl Kept {
    /// Keeps nothing.
    pub(super) fn nothing(tables: &[DumpTable]) -> Self {
        Self {
            tables: tables.iter().map(|_| None).collect(),
            resumed: Resumed::default(),
        }
    }

    /// Returns the files that are kept.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        let tables = self.tables.iter().flatten();
        tables
            .flat_map(|table| table.done.values().flatten())
            .map(|entry| entry.file.as_str())
            .collect()
    }
}

/// What is decided by.
pub(super) struct Grounds<'a> {
    pub(super) options: &'a ConnectOptions,
    pub(super) session: &'a mut Session,
    pub(super) look: &'a Look,
    pub(super) tables: &'a [DumpTable],
    /// The new view.
    pub(super) view: &'a View,
    pub(super) output: &'a Output,
    pub(super) compression: Compression,
    pub(super) threads: usize,
}

impl Grounds<'_> {
    /// Decides what of a journal's chunks is kept.
    pub(super) fn decide(
        self,
        left: Option<Left>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Kept> {
        let mut kept = Kept::nothing(self.tables);
        let Some(mut left) = left else {
            self.output.keep_only(&BTreeSet::new())?;
            return Ok(kept);
        };
        let mut found = Vec::new();
        for table in self.tables {
            let name = (table.schema.clone(), table.name.clone());
            found.push(left.tables.remove(&name).filter(|one| !one.done.is_empty()));
        }
        let resumed = &mut kept.resumed;
        for gone in left.tables.values() {
            resumed.refuse("the table is not part of this dump any more", gone);
        }
        for (table, place) in self.tables.iter().zip(&mut found) {
            let Some(one) = place else { continue };
            if let Some(why) = self.differs(table, one, &left.view) {
                resumed.refuse(why, one);
                *place = None;
            }
        }
        let bytes = found
            .iter()
            .flatten()
            .flat_map(entries)
            .map(|one| one.bytes);
        let worth: u64 = bytes.sum();
        if found.iter().any(Option::is_some) {
            progress.note("asking the binary log which tables were written to".to_owned());
            let views = (&left.view, self.view);
            let shapes = Shapes::of(self.look);
            let touched = {
                let there = (&mut *self.session, self.look, &shapes);
                untouched::between(self.options, there, views, worth, cancel)?
            };
            let known = (self.look, &shapes);
            refuse_touched(known, self.tables, &touched, &mut found, resumed);
        }
        self.check(&mut found, resumed, progress, cancel)?;
        for entry in found.iter().flatten().flat_map(entries) {
            resumed.chunks += 1;
            resumed.rows += entry.rows;
            resumed.bytes += entry.bytes;
        }
        kept.tables = found;
        self.output.keep_only(&kept.files())?;
        Ok(kept)
    }

    /// Says why a table's chunks are none of the new dump, whatever was written to it.
    fn differs(&self, table: &DumpTable, left: &LeftTable, first: &View) -> Option<&'static str> {
        if !first.is_written_as(self.view) {
            return Some("the format or the compression changed");
        }
        if left.shape != self.look.shape(table) {
            return Some("the table, or what is dumped of it, changed");
        }
        if !table.transactional {
            return Some("the table's engine has no transactions");
        }
        if table.condition.is_some() {
            return Some("the rows that --where selects may depend on other tables");
        }
        None
    }

    /// Reads the files, and takes out the ranges whose are not what was written.
    fn check(
        &self,
        found: &mut [Option<LeftTable>],
        resumed: &mut Resumed,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<()> {
        let ranges: Vec<(usize, u32, &[ChunkEntry])> = found
            .iter()
            .enumerate()
            .filter_map(|(at, table)| Some((at, table.as_ref()?)))
            .flat_map(|(at, table)| {
                let done = table.done.iter();
                done.map(move |(number, files)| (at, *number, files.as_slice()))
            })
            .collect();
        let bytes = ranges.iter().flat_map(|range| range.2).map(|one| one.bytes);
        progress.phase("checking existing files", Some(bytes.sum()), Unit::Bytes);
        let dir = self.output.dir().unwrap_or_default();
        let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while let Some(range) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if cancel.check().is_err() {
                            return;
                        }
                        let good = range.2.iter().all(|entry| {
                            progress.advance(entry.bytes);
                            is_whole(&dir, entry, self.compression)
                        });
                        if !good {
                            locked(&wrong).push((range.0, range.1));
                        }
                    }
                });
            }
        });
        cancel.check()?;
        progress.end();
        let wrong = wrong
            .into_inner()
            .map_err(|_| Error::failed("a check panicked"))?;
        for (at, number) in wrong {
            let files = found[at]
                .as_mut()
                .and_then(|table| table.done.remove(&number));
            let count = files.map_or(0, |files| files.len() as u64);
            *resumed.count("the file is not what was written") += count;
        }
        Ok(())
    }
}

impl Resumed {
    fn count(&mut self, why: &str) -> &mut u64 {
        self.again.entry(why.to_owned()).or_default()
    }

    fn refuse(&mut self, why: &str, table: &LeftTable) {
        *self.count(why) += entries(table).count() as u64;
    }
}

fn entries(table: &LeftTable) -> impl Iterator<Item = &ChunkEntry> {
    table.done.values().flatten()
}

/// Takes out the tables that were written to, and those that may have been by a foreign key.
fn refuse_touched(
    (look, shapes): (&Look, &Shapes),
    tables: &[DumpTable],
    touched: &Result<Touched, String>,
    found: &mut [Option<LeftTable>],
    resumed: &mut Resumed,
) {
    let written = match touched {
        Ok(written) => written,
        Err(why) => {
            for place in &mut *found {
                if let Some(one) = place.take() {
                    resumed.refuse(why, &one);
                }
            }
            return;
        }
    };
    let reached = cascades::reached(look, shapes, &written.logged);
    for (table, place) in tables.iter().zip(found) {
        let name = key(&table.schema, &table.name);
        let why = match () {
            () if written.logged.contains_key(&name) => "the table was written to since",
            () if reached.contains(&name) => {
                "a foreign key refers to a table that was written to since, and may have changed rows"
            }
            () if written.noticed.contains(&name) => {
                "InnoDB reports writes to the table, but the binary log does not"
            }
            () => continue,
        };
        if let Some(one) = place.take() {
            resumed.refuse(why, &one);
        }
    }
}

/// Reads a file and says whether it is what was written.
fn is_whole(dir: &Path, entry: &ChunkEntry, compression: Compression) -> bool {
    let read = || -> io::Result<bool> {
        let file = std::fs::File::open(dir.join(&entry.file))?;
        if file.metadata()?.len() != entry.bytes_stored {
            return Ok(false);
        }
        let mut hasher = blake3::Hasher::new();
        let mut from = compression.reader(file)?;
        let (mut buffer, mut bytes) = (vec![0; 1 << 17], 0);
        loop {
            match from.read(&mut buffer)? {
                0 => break,
                read => {
                    hasher.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(bytes == entry.bytes && hasher.finalize().to_hex().as_str() == entry.blake3)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_what_was_written_do_not_count() {
        let scratch = evenkeel_testkit::Scratch::new();
        let text = b"1\ta\n".repeat(9000);
        let compression = Compression::Zstd(1);
        let packed = zstd::encode_all(&text[..], 1).unwrap();
        let entry = ChunkEntry {
            file: "c".to_owned(),
            rows: 9000,
            bytes: text.len() as u64,
            bytes_stored: packed.len() as u64,
            blake3: blake3::hash(&text).to_hex().to_string(),
            range: None,
        };
        let write = |bytes: &[u8]| std::fs::write(scratch.join("c"), bytes).unwrap();
        write(&packed);
        assert!(is_whole(scratch.path(), &entry, compression));
        let mut other = text.clone();
        other[5] ^= 1;
        for wrong in [
            zstd::encode_all(&other[..], 1).unwrap(),
            packed[1..].to_vec(),
            Vec::new(),
        ] {
            write(&wrong);
            assert!(!is_whole(scratch.path(), &entry, compression));
        }
        std::fs::remove_file(scratch.join("c")).unwrap();
        assert!(!is_whole(scratch.path(), &entry, compression));
    }
}
