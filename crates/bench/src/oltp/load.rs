//! Fills the tables, several connections at once. A piece of a table is one transaction, so that a load
//! which was interrupted resumes with what is missing.

use super::{Shape, tables};
use crate::parts;
use evenkeel_op::{Error, Result, Run, Unit};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use fastrand::Rng;
use serde::Serialize;
use std::time::Instant;

/// Rows of a piece.
const PIECE: u32 = 10_000;
/// Rows of a statement: below 200 KB.
const STATEMENT: u32 = 1000;

/// What to load.
#[derive(Debug, Clone)]
pub struct OltpLoadRequest {
    /// The schema; made when it is not there.
    pub database: String,
    /// How much.
    pub shape: Shape,
    /// The storage engine.
    pub engine: String,
    /// How many connections; at least 1.
    pub threads: usize,
    /// The same rows for the same number, whatever the threads.
    pub seed: u64,
}

/// What was loaded.
#[derive(Debug, Clone, Serialize)]
pub struct OltpLoaded {
    /// What is there now.
    pub shape: Shape,
    /// Rows that were loaded.
    pub rows_loaded: u64,
    /// Rows that an earlier load had left.
    pub rows_found: u64,
    /// Wall clock time in seconds, with indexes.
    pub seconds: f64,
}

/// Rows of a table, the last one not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    table: u32,
    from: u32,
    to: u32,
}

impl Piece {
    fn all(shape: Shape) -> impl Iterator<Item = Self> {
        let starts = move || (1..=shape.table_size).step_by(PIECE as usize);
        (1..=shape.tables).flat_map(move |table| {
            starts().map(move |from| Self {
                table,
                from,
                to: from.saturating_add(PIECE).min(shape.table_size + 1),
            })
        })
    }

    /// Sends its rows; the numbers are its own, whoever loads it.
    fn send(self, size: u32, seed: u64, send: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let own = u64::from(self.table) << 32 | u64::from(self.from);
        let mut random = Rng::with_seed(seed.rotate_left(32) ^ own);
        let mut statement = Vec::with_capacity(STATEMENT as usize * 210);
        for from in (self.from..self.to).step_by(STATEMENT as usize) {
            statement.clear();
            let head = format!("INSERT INTO sbtest{} (id, k, c, pad) VALUES ", self.table);
            statement.extend_from_slice(head.as_bytes());
            for id in from..(from + STATEMENT).min(self.to) {
                let comma = if id == from { "" } else { "," };
                let k = random.u32(1..=size);
                statement.extend_from_slice(format!("{comma}({id},{k},'").as_bytes());
                tables::digits(&mut statement, 10, &mut random);
                statement.extend_from_slice(b"','");
                tables::digits(&mut statement, 5, &mut random);
                statement.extend_from_slice(b"')");
            }
            send(&statement)?;
        }
        Ok(())
    }
}

/// Makes the tables and fills them; continues where an earlier load was interrupted.
///
/// Errors: `Usage` for no tables or rows; `Refused` when there are more rows than that.
pub fn load(
    options: &ConnectOptions,
    request: &OltpLoadRequest,
    run: Run<'_>,
) -> Result<OltpLoaded> {
    let begun = Instant::now();
    let shape = request.shape;
    let mut session = Session::open(options)?;
    let name = quote_name(&request.database);
    session.run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
    session.run(&format!("USE {name}"))?;
    for table in 1..=shape.tables {
        session.run(&tables::create(table, &request.engine))?;
        let most = session.value(&format!("SELECT MAX(id) FROM sbtest{table}"))?;
        let most: u64 = most.and_then(|text| text.parse().ok()).unwrap_or(0);
        if most > u64::from(shape.table_size) {
            return Err(Error::refused(format!(
                "table sbtest{table} has rows up to {most}, not {}",
                shape.table_size
            ))
            .hint("load into another --database, or drop this one"));
        }
    }
    let mut missing = Vec::new();
    let mut found = 0;
    for piece in Piece::all(shape) {
        let first = format!(
            "SELECT 1 FROM sbtest{} WHERE id = {}",
            piece.table, piece.from
        );
        match session.value(&first)? {
            None => missing.push(piece),
            Some(_) => found += u64::from(piece.to - piece.from),
        }
    }
    let rows = missing.iter().map(|piece| u64::from(piece.to - piece.from));
    let rows: u64 = rows.sum();
    run.progress.phase("loading rows", Some(rows), Unit::Items);
    fill(options, request, &missing, run).map_err(|error| {
        error.hint("run it again when that is fixed: it resumes with what is missing")
    })?;
    run.progress.end();
    for table in 1..=shape.tables {
        run.cancel.check()?;
        tables::index(&mut session, table)?;
        session.rows(&format!("ANALYZE TABLE sbtest{table}"))?;
    }
    Ok(OltpLoaded {
        shape,
        rows_loaded: rows,
        rows_found: found,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn fill(
    options: &ConnectOptions,
    request: &OltpLoadRequest,
    missing: &[Piece],
    run: Run<'_>,
) -> Result<()> {
    parts::each(missing, request.threads, |take, stop| {
        let mut connection = Connection::open(options, run.cancel)?;
        connection.run(&format!("USE {}", quote_name(&request.database)))?;
        connection.run("SET unique_checks = 0")?;
        connection.run("SET autocommit = 0")?;
        while let Some(piece) = take() {
            let mut send = |statement: &[u8]| {
                stop.check()?;
                connection.run_bytes(statement).map(|_| ())
            };
            piece.send(request.shape.table_size, request.seed, &mut send)?;
            connection.run("COMMIT")?;
            run.progress.advance(u64::from(piece.to - piece.from));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_rows_and_none_twice() {
        let shape = Shape {
            tables: 2,
            table_size: 25_001,
        };
        let pieces: Vec<Piece> = Piece::all(shape).collect();
        assert_eq!(pieces.len(), 6);
        let rows: u32 = pieces.iter().map(|piece| piece.to - piece.from).sum();
        assert_eq!(rows, 2 * 25_001);
        assert!(
            pieces
                .windows(2)
                .all(|two| two[0].to == two[1].from || two[1].from == 1)
        );
    }

    #[test]
    fn a_piece_is_the_same_for_a_seed() {
        let text = |from, seed| {
            let mut all = Vec::new();
            let piece = Piece {
                table: 1,
                from,
                to: from + 1500,
            };
            let mut statements = 0;
            let mut send = |statement: &[u8]| {
                statements += 1;
                all.extend_from_slice(statement);
                Ok(())
            };
            piece.send(9000, seed, &mut send).unwrap();
            assert_eq!(statements, 2);
            all
        };
        assert_eq!(text(1, 7), text(1, 7));
        assert_ne!(text(1, 7), text(1, 8));
        assert_ne!(text(1, 7), text(10_001, 7));
    }
}
