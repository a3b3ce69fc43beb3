//! The rows of one file, a row group after the other.

use super::bounds::{GroupSize, NOT_READ, TOO_LARGE, is_footer_sound};
use super::columns::{COLUMNS, Cell, Column, ColumnKind, statement};
use super::facts::{FileFacts, sum_of, sums};
use super::fault;
use crate::Statement;
use bytes::{Buf, Bytes, buf::Reader};
use evenkeel_op::{Error, Result};
use evenkeel_repository::store::StoredObject;
use parquet::basic::Repetition;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What every Parquet file begins and ends with.
const MAGIC: &[u8] = b"PAR1";
/// A row group that takes more is none of ours.
const GROUP_BYTES_MAX: u64 = 512 << 20;
const NOT_AS_WRITTEN: &str =
    "its bytes are not as they were written: the checksum of a row group differs";
/// Rows that are in memory at a time.
const BATCH: usize = 1024;
/// What a footer may take: that of 8 MiB of statements takes six thousand bytes.
const FOOTER_MOST: u32 = 64 << 20;

/// Returns whether a file that begins like this is Parquet.
#[must_use]
pub fn is_begun_by(first: &[u8]) -> bool {
    first.starts_with(MAGIC)
}

/// An opened file.
pub(super) struct KeptFile {
    name: String,
    bytes: Arc<dyn StoredObject>,
    metadata: ParquetMetaData,
    /// Where each of our columns is in the file.
    places: Vec<Option<usize>>,
    pub(super) facts: FileFacts,
    /// What the bytes of each row group sum up to, where the file says so.
    sums: Option<Vec<String>>,
}

/// Part of a file, in memory.
struct Window {
    begin: u64,
    bytes: Bytes,
}

/// A file whose end is read.
struct Whole<'a>(&'a dyn StoredObject);

fn read(object: &dyn StoredObject, begin: u64, length: usize) -> io::Result<Bytes> {
    let end = begin.checked_add(length as u64);
    if end.is_none_or(|end| end > object.size()) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut bytes = vec![0; length];
    object.read_exact_at(begin, &mut bytes)?;
    Ok(bytes.into())
}

impl Length for Whole<'_> {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Whole<'_> {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let left = self.0.size().saturating_sub(start);
        let length = usize::try_from(left).unwrap_or(usize::MAX);
        Ok(self.get_bytes(start, length)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        Ok(read(self.0, start, length)?)
    }
}

impl Length for Window {
    fn len(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }
}

impl ChunkReader for Window {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let left = self.len().saturating_sub(start);
        Ok(self.get_bytes(start, left as usize)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let begin = start.checked_sub(self.begin).map(|begin| begin as usize);
        let end = begin.and_then(|begin| begin.checked_add(length));
        match begin.zip(end.filter(|end| *end <= self.bytes.len())) {
            Some((begin, end)) => Ok(self.bytes.slice(begin..end)),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }
}

impl KeptFile {
    /// Opens a file. `name` stands in messages.
    ///
    /// Errors: `Failed` where it cannot be read, is damaged, or is not of a capture.
    pub(super) fn open(name: &str, bytes: Arc<dyn StoredObject>) -> Result<Self> {
        let damaged = |error| fault(format!("failed to read {name}"), error);
        check_footer(&*bytes).map_err(damaged)?;
        let metadata = survived(|| {
            let reader = ParquetMetaDataReader::new();
            reader.parse_and_finish(&Whole(&*bytes))
        })
        .map_err(damaged)?;
        let file = metadata.file_metadata();
        let pairs = file.key_value_metadata().map(Vec::as_slice);
        let facts = pairs.and_then(FileFacts::of).ok_or_else(|| {
            Error::failed(format!("{name} holds no captured statements"))
                .hint("give it Parquet files that 'evenkeel capture --directory' wrote")
        })?;
        let schema = file.schema_descr();
        let mut places = Vec::with_capacity(COLUMNS.len());
        for column in COLUMNS {
            let mut all = schema.columns().iter();
            let place = all.position(|it| it.path().parts() == [column.name]);
            let fits = |place: usize| is_like(&schema.column(place), column.kind);
            let is_wrong = match place {
                Some(place) => !fits(place),
                None => !column.may_lack,
            };
            if is_wrong {
                let text = format!("{name}: its column {} is not as it should be", column.name);
                return Err(Error::failed(text)
                    .hint("give it the files as 'evenkeel capture --directory' wrote them"));
            }
            places.push(place);
        }
        Ok(Self {
            name: name.to_owned(),
            bytes,
            places,
            facts,
            sums: pairs.and_then(sums),
            metadata,
        })
    }

    /// Hands each statement to `each`.
    ///
    /// Errors: `Failed` where it cannot be read; those of `each`.
    pub(super) fn read(
        &self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<()> {
        let failed = |error| fault(format!("failed to read {}", self.name), error);
        for (number, group) in self.metadata.row_groups().iter().enumerate() {
            let mut columns = survived(|| self.columns(number, group)).map_err(failed)?;
            let mut left = usize::try_from(group.num_rows()).unwrap_or(0);
            while left > 0 && !is_cancelled() {
                let count = left.min(BATCH);
                for column in columns.iter_mut().flatten() {
                    survived(|| column.fill(count)).map_err(failed)?;
                }
                for _ in 0..count {
                    self.next(&mut columns, each)?;
                }
                left -= count;
            }
        }
        Ok(())
    }

    /// Hands the next row of a batch to `each`.
    fn next(
        &self,
        columns: &mut [Option<Batch>],
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
    ) -> Result<()> {
        for column in columns.iter_mut().flatten() {
            column.step();
        }
        let cell = |column: Column| {
            let batch = columns.get(column as usize).and_then(Option::as_ref);
            batch.map_or(Cell::Nothing, Batch::cell)
        };
        match statement(cell) {
            Some(statement) => each(&statement),
            None => Err(Error::failed(format!(
                "{} has a row that is no statement",
                self.name
            ))),
        }
    }

    /// Opens the columns of a row group.
    fn columns(
        &self,
        number: usize,
        group: &RowGroupMetaData,
    ) -> ParquetResult<Vec<Option<Batch>>> {
        let damaged = |what: &str| ParquetError::General(what.to_owned());
        let ranges = group.columns().iter().map(|column| {
            let begin = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            let begin = u64::try_from(begin).ok()?;
            let length = u64::try_from(column.compressed_size()).ok()?;
            Some((begin, begin.checked_add(length)?))
        });
        let ranges: Option<Vec<(u64, u64)>> = ranges.collect();
        let ranges = ranges.ok_or_else(|| damaged("a column lies nowhere"))?;
        let begin = ranges.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        let end = ranges.iter().map(|(_, end)| *end).max().unwrap_or(0);
        if end - begin > GROUP_BYTES_MAX {
            return Err(damaged(TOO_LARGE));
        }
        let window = Arc::new(Window {
            begin,
            bytes: read(&*self.bytes, begin, (end - begin) as usize)?,
        });
        if let Some(sums) = &self.sums {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&window.bytes);
            if sums.get(number) != Some(&sum_of(&hasher)) {
                return Err(damaged(NOT_AS_WRITTEN));
            }
        }
        let mut size = GroupSize::default();
        for (begin, end) in self.places.iter().flatten().map(|place| ranges[*place]) {
            let pages = window.get_bytes(begin, (end - begin) as usize)?;
            size.add(&pages).map_err(damaged)?;
        }
        let rows =
            usize::try_from(group.num_rows()).map_err(|_| damaged("a row group has no rows"))?;
        let open = |(place, column): (&Option<usize>, &super::columns::ColumnOf)| {
            let Some(place) = place else {
                return Ok(None);
            };
            let chunk = group.column(*place);
            let pages = SerializedPageReader::new(window.clone(), chunk, rows, None)?;
            let described = chunk.column_descr_ptr();
            let levels = described.max_def_level();
            let reader = get_column_reader(described, Box::new(pages));
            Ok(Some(Batch::new(reader, column.kind, levels > 0)))
        };
        self.places.iter().zip(COLUMNS).map(open).collect()
    }
}

/// Does something; a panic of the library, which takes some damage for its own mistake, is damage.
fn survived<T>(work: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    // What it worked on is not looked at again.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ParquetError::General(NOT_READ.to_owned())))
}

/// Looks at what a file says of itself before it is taken at its word.
fn check_footer(object: &dyn StoredObject) -> ParquetResult<()> {
    let wrong = || ParquetError::General(NOT_READ.to_owned());
    // Its length and the magic number end a file.
    let end = object.size().checked_sub(8).ok_or_else(wrong)?;
    let tail = read(object, end, 8)?;
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    if length > FOOTER_MOST {
        return Err(ParquetError::General(TOO_LARGE.to_owned()));
    }
    let begin = end.checked_sub(length.into()).ok_or_else(wrong)?;
    match is_footer_sound(&read(object, begin, length as usize)?) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

/// Whether a column is stored as one of ours is.
fn is_like(column: &ColumnDescPtr, kind: ColumnKind) -> bool {
    let repetition = column.self_type().get_basic_info().repetition();
    column.physical_type() == kind.physical() && repetition != Repetition::REPEATED
}

/// Values of a column, some rows of them.
struct Batch {
    reader: ColumnReader,
    kind: ColumnKind,
    has_levels: bool,
    levels: Vec<i16>,
    numbers: Vec<i64>,
    small: Vec<i32>,
    flags: Vec<bool>,
    bytes: Vec<ByteArray>,
    row: usize,
    /// How many values came before the row's.
    value: usize,
    is_there: bool,
}

impl Batch {
    fn new(reader: ColumnReader, kind: ColumnKind, has_levels: bool) -> Self {
        Self {
            reader,
            kind,
            has_levels,
            levels: Vec::new(),
            numbers: Vec::new(),
            small: Vec::new(),
            flags: Vec::new(),
            bytes: Vec::new(),
            row: 0,
            value: 0,
            is_there: false,
        }
    }

    /// Reads so many rows.
    fn fill(&mut self, count: usize) -> ParquetResult<()> {
        self.levels.clear();
        self.numbers.clear();
        self.small.clear();
        self.flags.clear();
        self.bytes.clear();
        (self.row, self.value, self.is_there) = (0, 0, false);
        let levels = self.has_levels.then_some(&mut self.levels);
        let (rows, values, _) = match &mut self.reader {
            ColumnReader::Int64ColumnReader(it) => {
                it.read_records(count, levels, None, &mut self.numbers)?
            }
            ColumnReader::Int32ColumnReader(it) => {
                it.read_records(count, levels, None, &mut self.small)?
            }
            ColumnReader::BoolColumnReader(it) => {
                it.read_records(count, levels, None, &mut self.flags)?
            }
            ColumnReader::ByteArrayColumnReader(it) => {
                it.read_records(count, levels, None, &mut self.bytes)?
            }
            _ => (0, 0, 0),
        };
        let present = match self.has_levels {
            true => self.levels.iter().filter(|level| **level > 0).count(),
            false => rows,
        };
        let is_whole = rows == count && present == values;
        match is_whole && (!self.has_levels || self.levels.len() == count) {
            true => Ok(()),
            false => Err(ParquetError::EOF(
                "a column ends before its rows do".to_owned(),
            )),
        }
    }

    /// Goes to the next row.
    fn step(&mut self) {
        self.value += usize::from(self.is_there);
        self.is_there = !self.has_levels || self.levels.get(self.row).is_some_and(|it| *it > 0);
        self.row += 1;
    }

    fn cell(&self) -> Cell<'_> {
        let at = self.value;
        let cell = match (&self.reader, self.is_there) {
            (_, false) => None,
            (ColumnReader::Int64ColumnReader(_), true) => {
                self.numbers.get(at).map(|number| Cell::Number(*number))
            }
            (ColumnReader::Int32ColumnReader(_), true) => self.small.get(at).map(|number| {
                Cell::Number(match self.kind {
                    ColumnKind::Unsigned(_) => i64::from(number.cast_unsigned()),
                    _ => i64::from(*number),
                })
            }),
            (ColumnReader::BoolColumnReader(_), true) => {
                self.flags.get(at).map(|flag| Cell::Flag(*flag))
            }
            (_, true) => self.bytes.get(at).map(|bytes| Cell::Bytes(bytes.data())),
        };
        cell.unwrap_or(Cell::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As large as its footer claims to be, without taking that room on a disk.
    struct Hole {
        footer: u32,
    }

    impl StoredObject for Hole {
        fn size(&self) -> u64 {
            u64::from(self.footer) + 1000
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            assert!(
                buffer.len() <= FOOTER_MOST as usize,
                "{} bytes",
                buffer.len()
            );
            if offset == self.size() - 8 {
                buffer[..4].copy_from_slice(&self.footer.to_le_bytes());
                buffer[4..].copy_from_slice(MAGIC);
            }
            Ok(())
        }
    }

    #[test]
    fn footers_that_claim_too_much_are_not_read() {
        let refused = check_footer(&Hole { footer: 3 << 30 }).unwrap_err();
        assert!(refused.to_string().contains(TOO_LARGE), "{refused}");
        // Zeros are a footer that says nothing.
        let largest = Hole {
            footer: FOOTER_MOST,
        };
        assert!(check_footer(&largest).is_ok());
    }
}
