//! Rows in memory, column by column, until there are enough of them for a row group.

use super::columns::{COLUMNS, Cell, ColumnKind};
use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use std::io::Write;

/// What a value takes beside its bytes, about.
const CELL_BYTES: usize = 10;

/// The values of a column. Of those that may lack, `levels` says for each row whether it has one.
#[derive(Debug, Default)]
struct Values {
    levels: Vec<i16>,
    numbers: Vec<i64>,
    flags: Vec<bool>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Rows that are not written yet.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<Values>,
    /// How many there are.
    pub(super) count: usize,
    /// How much memory they take, about.
    pub(super) bytes: usize,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            columns: COLUMNS.iter().map(|_| Values::default()).collect(),
            count: 0,
            bytes: 0,
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &[Cell<'_>; COLUMNS.len()]) {
        for ((values, column), cell) in self.columns.iter_mut().zip(COLUMNS).zip(row) {
            if column.may_lack {
                values.levels.push((*cell != Cell::Nothing).into());
            }
            self.bytes += CELL_BYTES;
            match cell {
                Cell::Nothing => {}
                Cell::Number(number) => values.numbers.push(*number),
                Cell::Flag(flag) => values.flags.push(*flag),
                Cell::Bytes(bytes) => {
                    values.bytes.extend_from_slice(bytes);
                    values.ends.push(values.bytes.len());
                    self.bytes += bytes.len();
                }
            }
        }
        self.count += 1;
    }

    /// Writes all rows as a row group, and forgets them.
    pub(super) fn write<W: Write + Send>(
        &mut self,
        to: &mut SerializedFileWriter<W>,
    ) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let mut group = to.next_row_group()?;
        for (values, column) in self.columns.iter_mut().zip(COLUMNS) {
            let values = std::mem::take(values);
            if let Some(mut writer) = group.next_column()? {
                values.write(column.kind, column.may_lack, &mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.count = 0;
        self.bytes = 0;
        Ok(())
    }
}

impl Values {
    fn write(
        self,
        kind: ColumnKind,
        may_lack: bool,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let levels = may_lack.then_some(&self.levels[..]);
        match kind.physical() {
            Physical::INT64 => to
                .typed::<Int64Type>()
                .write_batch(&self.numbers, levels, None)?,
            Physical::INT32 => {
                // By their bits: all of them fit into so many.
                let small = self.numbers.iter().map(|number| *number as i32);
                let small: Vec<i32> = small.collect();
                to.typed::<Int32Type>().write_batch(&small, levels, None)?
            }
            Physical::BOOLEAN => to
                .typed::<BoolType>()
                .write_batch(&self.flags, levels, None)?,
            _ => {
                let bytes = Bytes::from(self.bytes);
                let mut begin = 0;
                let each = self.ends.iter().map(|end| {
                    let one = ByteArray::from(bytes.slice(begin..*end));
                    begin = *end;
                    one
                });
                let all: Vec<ByteArray> = each.collect();
                to.typed::<ByteArrayType>()
                    .write_batch(&all, levels, None)?
            }
        };
        Ok(())
    }
}
