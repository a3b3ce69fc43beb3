//! A node's body: its children in order.
//!
//! ```text
//! children                                                       varint
//! per child: tag: 0 holes, 1 zeros, 2 record, 3 record right after the last one   1
//!            record: generation, offset, length                  varints
//!            record after the last: length                       varint
//! ```

use super::{Child, FAN_OUT, RecordRef};
use crate::format::bytes::{Cursor, Malformed, put_varint};

const HOLE: u8 = 0;
const ZERO: u8 = 1;
const RECORD: u8 = 2;
const NEXT: u8 = 3;

/// Returns the body of a node. Every child must be known.
pub(crate) fn encode(children: &[Child]) -> Vec<u8> {
    let mut out = Vec::with_capacity(children.len() * 6);
    put_varint(&mut out, children.len() as u64);
    let mut next = None;
    for child in children {
        match child {
            // The builder refuses unknown children before it comes here.
            Child::Hole | Child::Absent => out.push(HOLE),
            Child::Zero => out.push(ZERO),
            Child::Record(record) => {
                if next == Some((record.generation, record.offset)) {
                    out.push(NEXT);
                } else {
                    out.push(RECORD);
                    put_varint(&mut out, u64::from(record.generation));
                    put_varint(&mut out, record.offset);
                }
                put_varint(&mut out, u64::from(record.length));
                next = Some((record.generation, record.offset + u64::from(record.length)));
            }
        }
    }
    out
}

/// Reads a node's body.
pub(crate) fn decode(body: &[u8]) -> Result<Vec<Child>, Malformed> {
    let mut fields = Cursor::new(body);
    let count: u16 = fields.small()?;
    if u64::from(count) > FAN_OUT {
        return Err(Malformed);
    }
    let mut children = Vec::with_capacity(usize::from(count));
    let mut next: Option<(u32, u64)> = None;
    for _ in 0..count {
        let tag = fields.u8()?;
        let child = match tag {
            HOLE => Child::Hole,
            ZERO => Child::Zero,
            RECORD | NEXT => {
                let (generation, offset) = if tag == RECORD {
                    (fields.small()?, fields.varint()?)
                } else {
                    next.ok_or(Malformed)?
                };
                let length: u32 = fields.small()?;
                let end = offset.checked_add(u64::from(length)).ok_or(Malformed)?;
                next = Some((generation, end));
                Child::Record(RecordRef {
                    generation,
                    offset,
                    length,
                })
            }
            _ => return Err(Malformed),
        };
        children.push(child);
    }
    fields.end()?;
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_read_back_and_neighbours_are_short() {
        let record = |generation, offset, length| {
            Child::Record(RecordRef {
                generation,
                offset,
                length,
            })
        };
        let children = [
            record(3, 1 << 33, 4500),
            record(3, (1 << 33) + 4500, 4500),
            Child::Hole,
            record(3, (1 << 33) + 9000, 10),
            Child::Zero,
            record(1, 64, 9),
        ];
        let body = encode(&children);
        assert_eq!(decode(&body).unwrap(), children);
        assert!(body.len() < 25, "{}", body.len());
        assert!(decode(&body[..body.len() - 1]).is_err());
    }
}
