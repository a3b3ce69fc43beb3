//! What InnoDB's row formats and its page compression take on disk and in time.

use super::report::{ExperimentReport, Metric};
use super::rounds::{Ran, Rounds};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{Connection, Value};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::time::Instant;

const METRICS: [Metric; 5] = [
    Metric {
        name: "allocated_kib",
        says: "allocated on disk, KiB",
        more_is_better: false,
        digits: 0,
    },
    Metric {
        name: "file_kib",
        says: "length of the file, KiB",
        more_is_better: false,
        digits: 0,
    },
    Metric {
        name: "insert_s",
        says: "inserting, seconds",
        more_is_better: false,
        digits: 2,
    },
    Metric {
        name: "scan_s",
        says: "reading all rows, seconds",
        more_is_better: false,
        digits: 3,
    },
    Metric {
        name: "lookups_per_s",
        says: "rows by key, a second",
        more_is_better: true,
        digits: 0,
    },
];
/// The table; dropped after each run.
const TABLE: &str = "evenkeel_compression";
/// Rows of a statement.
const STATEMENT: u32 = 500;
/// Rows of a transaction.
const TRANSACTION: u32 = 10_000;
/// Rows asked for by their keys.
const LOOKUPS: u32 = 5000;
/// Words that texts are made of: they compress about as prose does.
const WORDS: [&str; 24] = [
    "the", "harbour", "lay", "still", "and", "a", "ship", "came", "in", "with", "seven", "barrels",
    "of", "salt", "for", "market", "before", "noon", "while", "gulls", "cried", "over", "grey",
    "water",
];

/// What to measure.
#[derive(Debug, Clone)]
pub struct CompressionRequest {
    /// The schema for the table; made when it is not there.
    pub database: String,
    /// Rows of a run.
    pub rows: u32,
    /// Bytes of text in each row: 8 hexadecimal digits, more are words.
    pub text_bytes: u32,
    /// How often each way is run.
    pub repeat: usize,
    /// What the order and the rows come from.
    pub seed: u64,
}

/// A table's format: its name for people, and what stands in CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Format(String, String);

fn formats(session: &mut Session) -> Result<Vec<Format>> {
    let row = |name: &str| Format(name.to_owned(), format!("ROW_FORMAT={name}"));
    let mut all = ["DYNAMIC", "COMPACT", "REDUNDANT"].map(row).to_vec();
    for size in [16, 8, 4, 2, 1] {
        all.push(Format(
            format!("COMPRESSED {size}K"),
            format!("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={size}"),
        ));
    }
    // MariaDB says it so, MySQL otherwise; who knows the variable knows the first.
    let clause = match session.variable("innodb_compression_algorithm")? {
        Some(_) => "ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1",
        None => "ROW_FORMAT=DYNAMIC COMPRESSION='zlib'",
    };
    all.push(Format("page compression".to_owned(), clause.to_owned()));
    Ok(all)
}

/// Measures.
///
/// Errors: `Usage` for no rows; what the server refuses but for a format that it has not.
pub fn compression(
    options: &ConnectOptions,
    request: &CompressionRequest,
    run: Run<'_>,
) -> Result<ExperimentReport> {
    if request.rows == 0 || request.repeat == 0 || !(8..=4000).contains(&request.text_bytes) {
        return Err(Error::usage(
            "at least one row with a text of 8 to 4000 bytes, and one run, are needed",
        ));
    }
    let mut session = Session::open(options)?;
    let name = quote_name(&request.database);
    session.run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
    let formats = formats(&mut session)?;
    let rounds = Rounds {
        experiment: "compression",
        did: format!(
            "A run inserts {} rows of a number and {} bytes of text in the order of their keys, {STATEMENT} a \
             statement, reads them all, and {LOOKUPS} by their keys; the pages are in memory then.",
            request.rows, request.text_bytes
        ),
        names: formats.iter().map(|format| format.0.clone()).collect(),
        metrics: METRICS.to_vec(),
        repeat: request.repeat,
        seed: request.seed,
    };
    let report = rounds.run(run, |number| {
        let mut connection = Connection::open(options, run.cancel)?;
        connection.run(&format!("USE {name}"))?;
        // What it cannot do is an error then, not a warning.
        connection.run("SET SESSION innodb_strict_mode = 1")?;
        connection.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        let made = connection.run(&format!(
            "CREATE TABLE {TABLE} (id INT NOT NULL PRIMARY KEY, txt CHAR({}) NOT NULL) \
             ENGINE=InnoDB DEFAULT CHARACTER SET latin1 {}",
            // CHAR ends at 255.
            request.text_bytes.min(255),
            formats[number].1
        ));
        match made {
            Err(error) if connection.refusal().is_some() => {
                return Ok(Ran::LeftOut(error.to_string()));
            }
            other => other?,
        };
        if request.text_bytes > 255 {
            let width = request.text_bytes;
            connection.run(&format!(
                "ALTER TABLE {TABLE} MODIFY txt VARCHAR({width}) NOT NULL"
            ))?;
        }
        let ran = once(&mut connection, &mut session, request, run);
        ran.map(Ran::Measured)
    });
    // Also after an error or a request to stop.
    let dropped = session.run(&format!("DROP TABLE IF EXISTS {name}.{TABLE}"));
    let report = report?;
    dropped?;
    Ok(report)
}

fn once(
    connection: &mut Connection,
    session: &mut Session,
    request: &CompressionRequest,
    run: Run<'_>,
) -> Result<BTreeMap<&'static str, f64>> {
    let mut random = Rng::with_seed(request.seed);
    let begun = Instant::now();
    insert(connection, request, &mut random, run)?;
    let insert_s = begun.elapsed().as_secs_f64();
    // Writes every changed page of the table, so that its size is what it will be.
    connection.run(&format!("FLUSH TABLES {TABLE} FOR EXPORT"))?;
    connection.run("UNLOCK TABLES")?;
    let begun = Instant::now();
    connection.run(&format!("SELECT SUM(LENGTH(txt)) FROM {TABLE}"))?;
    let scan_s = begun.elapsed().as_secs_f64();
    let mut lookup = connection.prepare(&format!("SELECT txt FROM {TABLE} WHERE id = ?"))?;
    let begun = Instant::now();
    for _ in 0..LOOKUPS {
        let id = random.u32(0..request.rows);
        connection.execute(&mut lookup, &[Value::Number(id.into())])?;
    }
    let lookups_per_s = f64::from(LOOKUPS) / begun.elapsed().as_secs_f64().max(1e-9);
    let (file, allocated) = sizes(session, &request.database)?;
    Ok(BTreeMap::from([
        ("allocated_kib", allocated / 1024.0),
        ("file_kib", file / 1024.0),
        ("insert_s", insert_s),
        ("scan_s", scan_s),
        ("lookups_per_s", lookups_per_s),
    ]))
}

fn insert(
    connection: &mut Connection,
    request: &CompressionRequest,
    random: &mut Rng,
    run: Run<'_>,
) -> Result<()> {
    use std::fmt::Write;
    let mut statement = String::new();
    connection.run("BEGIN")?;
    for from in (0..request.rows).step_by(STATEMENT as usize) {
        run.cancel.check()?;
        statement.clear();
        statement.push_str("INSERT INTO ");
        statement.push_str(TABLE);
        statement.push_str(" VALUES ");
        for id in from..from.saturating_add(STATEMENT).min(request.rows) {
            let comma = if id == from { "" } else { "," };
            // Into a string it does not fail.
            let _ = write!(statement, "{comma}({id},'");
            text(&mut statement, request.text_bytes, random);
            statement.push_str("')");
        }
        connection.run(&statement)?;
        if (from + STATEMENT).is_multiple_of(TRANSACTION) {
            connection.run("COMMIT")?;
            connection.run("BEGIN")?;
        }
    }
    connection.run("COMMIT").map(|_| ())
}

fn text(into: &mut String, bytes: u32, random: &mut Rng) {
    if bytes <= 8 {
        into.push_str(&format!("{:08x}", random.u32(..)));
        return;
    }
    let end = into.len() + bytes as usize;
    while into.len() < end {
        into.push_str(WORDS[random.usize(0..WORDS.len())]);
        into.push(' ');
    }
    into.truncate(end);
}

/// Asks the server how long the table's file is, and what the filesystem gives to it, in bytes. Its name for
/// the view changed in the course of time.
fn sizes(session: &mut Session, database: &str) -> Result<(f64, f64)> {
    let views = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema' \
        AND TABLE_NAME IN ('INNODB_SYS_TABLESPACES', 'INNODB_TABLESPACES')";
    let view = session.value(views)?;
    let view =
        view.ok_or_else(|| Error::refused("the server does not report the sizes of tables"))?;
    let name = evenkeel_server::connect::quote(&format!("{database}/{TABLE}"));
    let sql = format!(
        "SELECT FILE_SIZE, ALLOCATED_SIZE FROM information_schema.{view} WHERE NAME = {name}"
    );
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    let row = session.one(&sql)?;
    let sizes = row.and_then(|row| Some((number(row.at(0))?, number(row.at(1))?)));
    sizes.ok_or_else(|| {
        Error::refused("the table has no file of its own")
            .hint("set innodb_file_per_table = ON on the server")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_long_as_was_asked() {
        for bytes in [8, 9, 100, 4000] {
            let mut into = "x".to_owned();
            text(&mut into, bytes, &mut Rng::with_seed(4));
            assert_eq!(into.len(), 1 + bytes as usize);
        }
    }
}
