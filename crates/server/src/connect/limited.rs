//! Answers that are not kept when they have no end.

use super::RowLimit;
use mysql::Conn;
use mysql::prelude::Queryable;

/// Runs a statement and returns its rows; `None` for more than the limit, after which the connection is of no use.
pub(super) fn rows(
    conn: &mut Conn,
    sql: &str,
    limit: RowLimit,
) -> mysql::Result<Option<Vec<mysql::Row>>> {
    let mut result = conn.query_iter(sql)?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(next) = result.next() {
        let row = next?;
        bytes += size(&row);
        if rows.len() >= limit.rows || bytes > limit.bytes {
            // Dropped, it would read to the end that may never come.
            std::mem::forget(result);
            return Ok(None);
        }
        rows.push(row);
    }
    drop(result);
    Ok(Some(rows))
}

fn size(row: &mysql::Row) -> usize {
    let of = |at| match row.as_ref(at) {
        Some(mysql::Value::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(of).sum::<usize>() + row.len() * size_of::<mysql::Value>()
}
