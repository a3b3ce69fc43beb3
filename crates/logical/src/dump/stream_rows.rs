//! The rows of a statement as encoded bytes, handed on whenever enough are together.

use super::encode::Encoder;
use evenkeel_op::Result;
use evenkeel_wire::{Connection, Part};

/// How many bytes of rows are gathered before they are handed on.
pub(super) const GATHERED: usize = 128 * 1024;

/// Rows on their way.
pub(super) struct RowsOut {
    pub(super) encoder: Encoder,
    /// Encoded and not yet handed on.
    pub(super) out: Vec<u8>,
    /// No row is in the middle.
    pub(super) between: bool,
}

/// Where rows go.
pub(super) trait Taker {
    /// Is called before a row is added.
    fn row(&mut self, rows_out: &mut RowsOut) -> Result<()>;

    /// Takes what was gathered; returns false when no more is wanted.
    fn take(&mut self, rows_out: &mut RowsOut) -> Result<bool>;
}

/// Reads a statement's rows to their end, or until no more are wanted. What is left in `out` is the
/// caller's.
pub(super) fn stream_rows(
    connection: &mut Connection,
    sql: &str,
    rows_out: &mut RowsOut,
    taker: &mut dyn Taker,
) -> Result<()> {
    let mut rows = connection.query(sql)?;
    loop {
        let part = rows.next_part()?;
        let Some(part) = part else { return Ok(()) };
        if matches!(part, Part::Row(_) | Part::Begin) {
            taker.row(rows_out)?;
        }
        let RowsOut { encoder, out, .. } = rows_out;
        let (done, between) = match part {
            Part::Row(row) => (encoder.row(row, out), true),
            Part::Begin => {
                encoder.begin_long(out);
                (Ok(()), false)
            }
            Part::Piece(piece) => (encoder.piece(piece, out), false),
            Part::End => (encoder.end_long(out), true),
        };
        if let Err(error) = done {
            return Err(rows.malformed(error));
        }
        rows_out.between = between;
        if rows_out.out.len() < GATHERED {
            continue;
        }
        let more = taker.take(rows_out)?;
        rows_out.out.shrink_to(GATHERED * 8);
        if !more {
            return Ok(());
        }
    }
}
