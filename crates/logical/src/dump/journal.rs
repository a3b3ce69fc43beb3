//! What a dump has written so far, as lines of JSON in a file beside it: from this one that was
//! interrupted is resumed.
//!
//! A line is appended when a range is handed out and when its files are whole. Nothing rests on a
//! line alone: files are hashed before they count, so a journal that reached the disk before its
//! files does no harm. A line that is cut ends it.

use super::chunks::{Position, Range};
use super::encode::Format;
use super::manifest::ChunkEntry;
use super::request::Request;
use super::table::DumpTable;
use super::threads::locked;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use evenkeel_server::coordinates::Coordinates;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The file's name.
pub(super) const JOURNAL: &str = ".journal";
const DRAFT: &str = ".journal.new";
/// The format's name and version.
const SCHEMA: &str = "evenkeel/dump-journal/1";
/// How much of it is read, in bytes: a million ranges have less.
const MOST: u64 = 1 << 30;
/// A power cut loses at most what was noted within this time.
const SYNC: Duration = Duration::from_secs(2);

/// The view that a dump reads under, and the server whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct View {
    schema: String,
    /// Where in the binary log it is.
    pub(super) coordinates: Coordinates,
    /// The server's clock shortly before, in seconds since 1970.
    pub(super) time: u64,
    /// What does not change while a server is the same.
    pub(super) server: String,
    /// Whether it was taken under a lock: then the coordinates are exactly where it is.
    pub(super) locked: bool,
    /// Whether the server's crash takes nothing back that was in sight.
    pub(super) durable: bool,
    format: Format,
    compression: String,
}

impl View {
    pub(super) fn new(request: &Request, coordinates: Coordinates) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            coordinates,
            time: 0,
            server: String::new(),
            locked: request.lock.is_some(),
            durable: false,
            format: request.format,
            compression: request.compression.name().to_owned(),
        }
    }

    /// Returns whether files of both look alike.
    pub(super) fn is_written_as(&self, other: &Self) -> bool {
        self.format == other.format && self.compression == other.compression
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    View(View),
    /// The next table, and what it looks like, as a hash.
    Table {
        schema: String,
        name: String,
        shape: String,
    },
    /// A range of a table was handed out, and where the next begins.
    Range {
        table: usize,
        range: Range,
        after: Position,
    },
    /// All files of a range are whole.
    Done {
        table: usize,
        number: u32,
        files: Vec<ChunkEntry>,
    },
}

/// What a journal says of a table.
#[derive(Debug, Default)]
pub(super) struct LeftTable {
    pub(super) shape: String,
    /// What was handed out, by number.
    pub(super) ranges: BTreeMap<u32, Range>,
    /// Where the next range begins.
    pub(super) after: Option<Position>,
    /// The files of the ranges that are whole.
    pub(super) done: BTreeMap<u32, Vec<ChunkEntry>>,
}

/// What a dump left that did not end.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) view: View,
    /// By schema and name.
    pub(super) tables: HashMap<(String, String), LeftTable>,
}

impl Left {
    /// Reads the journal in a directory; `None` where there is none that can be read.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        let mut text = Vec::new();
        let file = File::open(dir.join(JOURNAL)).ok()?;
        file.take(MOST).read_to_end(&mut text).ok()?;
        // What is behind the last newline is cut.
        let end = memchr::memrchr(b'\n', &text)?;
        let mut lines = text[..end].split(|byte| *byte == b'\n');
        let Ok(Line::View(view)) = serde_json::from_slice(lines.next()?) else {
            return None;
        };
        if view.schema != SCHEMA {
            return None;
        }
        let (mut names, mut tables) = (Vec::new(), Vec::new());
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(Line::Table {
                    schema,
                    name,
                    shape,
                }) => {
                    names.push((schema, name));
                    tables.push(LeftTable {
                        shape,
                        ..LeftTable::default()
                    });
                }
                Ok(Line::Range {
                    table,
                    range,
                    after,
                }) if table < tables.len() => {
                    tables[table].ranges.insert(range.number, range);
                    tables[table].after = Some(after);
                }
                Ok(Line::Done {
                    table,
                    number,
                    files,
                }) if table < tables.len() => {
                    tables[table].done.insert(number, files);
                }
                _ => break,
            }
        }
        Some(Self {
            view,
            tables: names.into_iter().zip(tables).collect(),
        })
    }
}

/// A journal that is written.
#[derive(Debug)]
pub(super) struct Journal(Mutex<(File, Instant)>);

impl Journal {
    /// Puts a journal in the place of the one there: the view, the tables with their shapes, and what
    /// of them is kept.
    pub(super) fn begin<'a>(
        dir: &Path,
        view: View,
        tables: impl Iterator<Item = (&'a DumpTable, String, Option<&'a LeftTable>)>,
    ) -> Result<Self> {
        let draft = dir.join(DRAFT);
        let failed = || format!("failed to write {}", shown(&draft).display());
        let mut text = Vec::new();
        add(&Line::View(view), &mut text)?;
        let (mut lines, mut later) = (Vec::new(), Vec::new());
        for (at, (table, shape, kept)) in tables.enumerate() {
            lines.push(Line::Table {
                schema: table.schema.clone(),
                name: table.name.clone(),
                shape,
            });
            let Some(kept) = kept else { continue };
            // Numbers are in the order of the key, so that the last is where the next begins.
            for range in kept.ranges.values() {
                later.push(Line::Range {
                    table: at,
                    range: range.clone(),
                    after: kept.after.clone().unwrap_or(Position::Start),
                });
            }
            for (number, files) in &kept.done {
                later.push(Line::Done {
                    table: at,
                    number: *number,
                    files: files.clone(),
                });
            }
        }
        for line in lines.iter().chain(&later) {
            add(line, &mut text)?;
        }
        let mut file = File::create(&draft).context(failed)?;
        file.write_all(&text).context(failed)?;
        file.sync_all().context(failed)?;
        std::fs::rename(&draft, dir.join(JOURNAL)).context(failed)?;
        Ok(Self(Mutex::new((file, Instant::now()))))
    }

    /// Notes that a range was handed out. To be called in the order of the table's ranges.
    pub(super) fn handed_out(&self, table: usize, range: &Range, after: &Position) -> Result<()> {
        self.append(&Line::Range {
            table,
            range: range.clone(),
            after: after.clone(),
        })
    }

    /// Notes that the files of a range are whole.
    pub(super) fn done(&self, table: usize, number: u32, files: Vec<ChunkEntry>) -> Result<()> {
        self.append(&Line::Done {
            table,
            number,
            files,
        })
    }

    fn append(&self, line: &Line) -> Result<()> {
        let mut text = Vec::new();
        add(line, &mut text)?;
        let failed = || format!("failed to write {JOURNAL}");
        let mut guard = locked(&self.0);
        let (file, synced) = &mut *guard;
        file.write_all(&text).context(failed)?;
        if synced.elapsed() > SYNC {
            file.sync_data().context(failed)?;
            *synced = Instant::now();
        }
        Ok(())
    }
}

fn add(line: &Line, text: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(&mut *text, line).context(|| "failed to note what was dumped")?;
    text.push(b'\n');
    Ok(())
}
