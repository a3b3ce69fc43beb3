//! Answers that are not kept when they have no end.

use super::RowLimit;
use mysql::Conn;
use mysql::prelude::Queryable;

/// Runs a statement and hands over the rows of its first result. Returns whether that was all; `false` for more than
/// the limit, after which the connection is of no use. All results count: a server may send one after the other.
pub(super) fn rows(
    conn: &mut Conn,
    sql: &str,
    limit: RowLimit,
    mut take: impl FnMut(mysql::Row),
) -> mysql::Result<bool> {
    let mut result = conn.query_iter(sql)?;
    let (mut results, mut count, mut bytes) = (0_usize, 0_usize, 0_usize);
    let mut is_too_long = false;
    while !is_too_long {
        let Some(mut rows) = result.iter() else {
            break;
        };
        results += 1;
        is_too_long = results > limit.rows;
        while !is_too_long && let Some(row) = rows.next() {
            let row = row?;
            count += 1;
            bytes = bytes.saturating_add(size(&row));
            is_too_long = count > limit.rows || bytes > limit.bytes;
            if results == 1 && !is_too_long {
                take(row);
            }
        }
        if is_too_long {
            // Dropped, it would read to the end that may never come.
            std::mem::forget(rows);
        }
    }
    if is_too_long {
        std::mem::forget(result);
        return Ok(false);
    }
    drop(result);
    Ok(true)
}

fn size(row: &mysql::Row) -> usize {
    let of = |at| match row.as_ref(at) {
        Some(mysql::Value::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(of).sum::<usize>() + row.len() * size_of::<mysql::Value>()
}
