//! A capture on its way into a directory: files of at most so many bytes and so much time, each of which appears when
//! it is complete.

use super::columns::{Beside, message, row};
use super::facts::{CaptureEnd, FileFacts, sum_of, sums_pair};
use super::rows::Rows;
use super::{ENCRYPTED_ENDING, ENDING, MARK, MARK_TEXT, fault, redact};
use crate::digest::fingerprint::{Fingerprint, Mode, Rules, Shapes};
use crate::digest::{Counted, is_counted};
use crate::{SourceKind, Statement};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_repository::store::{Existing, Lock, LockMode, NewObject, Store, UNFINISHED};
use evenkeel_repository::{Recipient, encrypted};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows are written when they take so much memory.
const GROUP_BYTES: u64 = 8 << 20;
/// The lock of who writes.
const LOCK: &str = "_writing.lock";

/// Whether a directory that holds captures is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// It is refused.
    Refuse,
    /// This capture joins them.
    Allow,
}

/// How a capture is kept.
#[derive(Debug)]
pub struct Settings {
    /// What the statements were seen by.
    pub source: SourceKind,
    /// Statements are kept without their values.
    pub is_redacted: bool,
    /// About how large a file becomes.
    pub file_bytes: u64,
    /// After how long a file is finished, however small it is.
    pub file_span: Duration,
    /// For whom files are encrypted; nobody: they are not.
    pub recipients: Vec<Recipient>,
    /// Whether the directory may hold captures already.
    pub append: Append,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that are complete.
    pub files: u64,
    /// Statements in them.
    pub statements: u64,
}

/// The bytes of a file on their way, and what they sum up to since they were asked for it.
struct Sink(Box<dyn NewObject>, blake3::Hasher);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        self.1.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is not complete.
struct Unfinished {
    name: String,
    begun: Instant,
    writer: SerializedFileWriter<Sink>,
    statements: u64,
    /// Of each row group.
    sums: Vec<String>,
}

impl Unfinished {
    /// Returns what was written since this was asked the last time sums up to.
    fn sum(&mut self) -> ParquetResult<String> {
        self.writer.flush()?;
        let hasher = &mut self.writer.inner_mut().1;
        let sum = sum_of(hasher);
        hasher.reset();
        Ok(sum)
    }
}

/// A directory that a capture is written to.
pub struct CaptureDirectory {
    store: Arc<dyn Store>,
    settings: Settings,
    capture: String,
    number: u64,
    rows: Rows,
    /// What statements count as, by their shapes.
    shapes: Shapes<Fingerprint>,
    open: Option<Unfinished>,
    written: Written,
    _lock: Box<dyn Lock>,
}

impl CaptureDirectory {
    /// Takes a directory, which must be new, empty or, on request, one of captures.
    ///
    /// # Errors
    ///
    /// `Usage` where it holds something else, or captures that should not be joined; `Busy` where another capture is
    /// being written to it; `Failed` where it cannot be used.
    pub fn begin(store: Arc<dyn Store>, settings: Settings) -> Result<Self> {
        let shown = store.place();
        let failed = || format!("failed to use {shown}");
        let names = names(&*store).context(failed)?;
        let has = |name: &str| names.iter().any(|found| found == name);
        let unfinished_mark = format!("{MARK}{UNFINISHED}");
        let is_ours = |name: &String| name == LOCK || *name == unfinished_mark;
        if !has(MARK) && !names.iter().all(is_ours) {
            return Err(
                Error::usage(format!("{shown} is not empty, and holds no capture"))
                    .hint("give --directory a new or empty directory"),
            );
        }
        if has(MARK) && settings.append == Append::Refuse {
            return Err(Error::usage(format!("{shown} already holds a capture"))
                .hint("give another directory, or --append to add to this one"));
        }
        store.make_folder("").context(failed)?;
        let lock = store
            .try_lock(LOCK, LockMode::Exclusive)
            .context(failed)?
            .ok_or_else(|| {
                let text = format!("another capture is being written to {shown}");
                Error::new(ErrorKind::Busy, text)
                    .held_by(store.holder(LOCK))
                    .hint("give each capture a directory of its own")
            })?;
        // What a capture left that was killed: nobody else is writing here.
        for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
            store.remove(name).context(failed)?;
        }
        if !has(MARK) {
            let mut mark = store.create(MARK, Existing::Refuse).context(failed)?;
            mark.write(MARK_TEXT.as_bytes()).context(failed)?;
            mark.finish().context(failed)?;
        }
        let began = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S.%6f");
        Ok(Self {
            store,
            settings,
            capture: format!("{began}Z-{:08x}", fastrand::u32(..)),
            number: 0,
            rows: Rows::new(),
            shapes: Shapes::default(),
            open: None,
            written: Written::default(),
            _lock: lock,
        })
    }

    /// Adds a statement.
    ///
    /// # Errors
    ///
    /// `Failed` where it cannot be written.
    pub fn add(&mut self, statement: &Statement<'_>) -> Result<()> {
        self.finish_if_due()?;
        let sure = match self.settings.is_redacted {
            true => redact::sure_part(statement.sql),
            false => None,
        };
        let shortened;
        let statement = match &sure {
            Some(sql) => {
                shortened = Statement {
                    sql,
                    ..statement.clone()
                };
                &shortened
            }
            None => statement,
        };
        let counts = is_counted(statement);
        let counted = counts.then(|| {
            let shapes = &mut self.shapes;
            Counted::by(statement, Rules::Evenkeel, Mode::default(), shapes)
        });
        let redacted;
        let text;
        let (kept, text) = match self.settings.is_redacted {
            true => {
                redacted = redact::text(statement, counted.as_ref());
                let kept = Statement {
                    sql: redacted.as_bytes(),
                    values: None,
                    ..statement.clone()
                };
                (kept, &redacted[..])
            }
            false => {
                text = String::from_utf8_lossy(statement.sql);
                (statement.clone(), &text[..])
            }
        };
        let beside = Beside {
            capture: &self.capture,
            text,
            counted: counted.as_ref(),
            is_cut: statement.is_cut(),
        };
        self.rows.push(&row(&kept, &beside));
        self.open()?.statements += 1;
        if self.rows.bytes as u64 >= GROUP_BYTES.min(self.settings.file_bytes) {
            self.write_group()?;
        }
        Ok(())
    }

    /// Finishes the file that is being written if it is old enough, also while no statements come.
    ///
    /// # Errors
    ///
    /// `Failed` where it cannot be written.
    pub fn pause(&mut self) -> Result<()> {
        self.finish_if_due()
    }

    /// Finishes the last file, which says how the capture ended, and returns what was written.
    ///
    /// # Errors
    ///
    /// `Failed` where it cannot be written.
    pub fn end(mut self, end: CaptureEnd) -> Result<Written> {
        self.open()?;
        self.finish(Some(end))?;
        Ok(self.written)
    }

    /// Returns what is complete.
    #[must_use]
    pub fn written(&self) -> Written {
        self.written
    }

    fn finish_if_due(&mut self) -> Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let is_old = open.begun.elapsed() >= self.settings.file_span;
        let is_large = open.writer.bytes_written() as u64 >= self.settings.file_bytes;
        match is_old || is_large {
            true => self.finish(None),
            false => Ok(()),
        }
    }

    /// Returns the file that is being written, or begins the next one.
    fn open(&mut self) -> Result<&mut Unfinished> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                self.number += 1;
                self.begun()?
            }
        };
        Ok(self.open.insert(open))
    }

    fn begun(&self) -> Result<Unfinished> {
        let is_encrypted = !self.settings.recipients.is_empty();
        let ending = if is_encrypted {
            ENCRYPTED_ENDING
        } else {
            ENDING
        };
        let name = format!("{}-{:06}{ending}", self.capture, self.number);
        let what = self.failure(&name);
        let mut object = self
            .store
            .create(&name, Existing::Refuse)
            .context(|| what.clone())?;
        if is_encrypted {
            object = encrypted(object, &self.settings.recipients)?;
        }
        let schema = parse_message_type(&message()).map_err(|error| fault(what.clone(), error))?;
        let sink = Sink(object, blake3::Hasher::new());
        let writer = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties()))
            .map_err(|error| fault(what.clone(), error))?;
        let mut open = Unfinished {
            name,
            begun: Instant::now(),
            writer,
            statements: 0,
            sums: Vec::new(),
        };
        // What is before the first row group.
        open.sum().map_err(|error| fault(what, error))?;
        Ok(open)
    }

    fn failure(&self, name: &str) -> String {
        format!("failed to write {name} in {}", self.store.place())
    }

    fn write_group(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        // A file that could not be written to is gone: nothing partial takes the space of those that are complete.
        let written = self.rows.write(&mut open.writer);
        let has_rows = open.writer.flushed_row_groups().len() > open.sums.len();
        let sum = written.and_then(|()| open.sum());
        let sum = sum.map_err(|error| fault(self.failure(&open.name), error))?;
        open.sums.extend(has_rows.then_some(sum));
        self.open = Some(open);
        Ok(())
    }

    fn finish(&mut self, end: Option<CaptureEnd>) -> Result<()> {
        self.write_group()?;
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let facts = FileFacts {
            capture: self.capture.clone(),
            number: self.number,
            is_redacted: self.settings.is_redacted,
            source: self.settings.source,
            end,
        };
        for pair in facts.pairs().into_iter().chain([sums_pair(&open.sums)]) {
            open.writer.append_key_value_metadata(pair);
        }
        let what = self.failure(&open.name);
        let sink = open
            .writer
            .into_inner()
            .map_err(|error| fault(what.clone(), error))?;
        sink.0.finish().context(|| what)?;
        self.written.files += 1;
        self.written.statements += open.statements;
        Ok(())
    }
}

/// What is there already.
fn names(store: &dyn Store) -> io::Result<Vec<String>> {
    match store.list("") {
        Ok(found) => Ok(found.into_iter().map(|one| one.name).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("evenkeel ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(None)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    // The least and the greatest of a text are a text: nothing that would help, and much that would show.
    for column in ["sql", "sql_raw", "prepared_values"] {
        let path = ColumnPath::from(column);
        properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    properties.build()
}
