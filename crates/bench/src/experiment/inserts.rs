//! One row or many to a statement, with and without LOCK TABLES and transactions.

use super::report::{ExperimentReport, Metric};
use super::rounds::{Ran, Rounds};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::time::Instant;

const METRICS: [Metric; 2] = [
    Metric {
        name: "rows_per_s",
        says: "rows a second",
        more_is_better: true,
        digits: 0,
    },
    Metric {
        name: "seconds",
        says: "seconds",
        more_is_better: false,
        digits: 2,
    },
];
/// The table; dropped after each run.
const TABLE: &str = "evenkeel_inserts";

/// What to measure.
#[derive(Debug, Clone)]
pub struct InsertsRequest {
    /// The schema for the table; made when it is not there.
    pub database: String,
    /// Rows of a run.
    pub rows: u32,
    /// Rows of a statement with several.
    pub rows_per_statement: u32,
    /// Storage engines; those that the server does not have are left out.
    pub engines: Vec<String>,
    /// How often each way is run.
    pub repeat: usize,
    /// What the order and the rows come from.
    pub seed: u64,
}

/// A way to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    engine: String,
    rows_per_statement: u32,
    locked: bool,
    in_transaction: bool,
}

impl Way {
    fn all(request: &InsertsRequest) -> Vec<Self> {
        let mut all = Vec::new();
        for engine in &request.engines {
            for rows_per_statement in [1, request.rows_per_statement] {
                let way = |locked, in_transaction| Self {
                    engine: engine.clone(),
                    rows_per_statement,
                    locked,
                    in_transaction,
                };
                all.extend([way(false, false), way(true, false)]);
                // Others have none.
                if engine.eq_ignore_ascii_case("InnoDB") {
                    all.push(way(false, true));
                }
            }
        }
        all
    }

    fn name(&self) -> String {
        let rows = match self.rows_per_statement {
            1 => "one row a statement".to_owned(),
            some => format!("{some} rows a statement"),
        };
        let around = match (self.locked, self.in_transaction) {
            (true, _) => ", LOCK TABLES",
            (_, true) => ", one transaction",
            _ => "",
        };
        format!("{}, {rows}{around}", self.engine)
    }
}

/// Measures.
///
/// Errors: `Usage` for no rows; what the server refuses but for a storage engine that it has not.
pub fn inserts(
    options: &ConnectOptions,
    request: &InsertsRequest,
    run: Run<'_>,
) -> Result<ExperimentReport> {
    if request.rows == 0 || request.rows_per_statement < 2 || request.repeat == 0 {
        return Err(Error::usage(
            "at least one row, two rows per multi-row statement, and one run are needed",
        ));
    }
    let mut session = Session::open(options)?;
    let name = quote_name(&request.database);
    session.run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
    let engines: Vec<String> = session
        .rows("SHOW ENGINES")?
        .iter()
        .filter(|row| {
            row.at(1)
                .is_some_and(|support| support != "NO" && support != "DISABLED")
        })
        .filter_map(|row| Some(row.at(0)?.to_ascii_lowercase()))
        .collect();
    let ways = Way::all(request);
    let rounds = Rounds {
        experiment: "inserts",
        did: format!(
            "A run inserts {} rows into an empty table with a key and an index, over one connection.",
            request.rows
        ),
        names: ways.iter().map(Way::name).collect(),
        metrics: METRICS.to_vec(),
        repeat: request.repeat,
        seed: request.seed,
    };
    let report = rounds.run(run, |number| {
        let way = &ways[number];
        if !engines.contains(&way.engine.to_ascii_lowercase()) {
            return Ok(Ran::LeftOut(format!("the server has no {}", way.engine)));
        }
        once(options, request, way, run).map(Ran::Measured)
    });
    // Also after an error or a request to stop.
    let dropped = session.run(&format!("DROP TABLE IF EXISTS {name}.{TABLE}"));
    let report = report?;
    dropped?;
    Ok(report)
}

fn once(
    options: &ConnectOptions,
    request: &InsertsRequest,
    way: &Way,
    run: Run<'_>,
) -> Result<BTreeMap<&'static str, f64>> {
    let mut connection = Connection::open(options, run.cancel)?;
    connection.run(&format!("USE {}", quote_name(&request.database)))?;
    connection.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
    connection.run(&format!(
        "CREATE TABLE {TABLE} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, number INT NOT NULL, \
         name CHAR(20) NOT NULL, KEY number (number)) ENGINE = {} DEFAULT CHARACTER SET latin1",
        way.engine
    ))?;
    let mut random = Rng::with_seed(request.seed);
    let begun = Instant::now();
    if way.locked {
        connection.run(&format!("LOCK TABLES {TABLE} WRITE"))?;
    }
    if way.in_transaction {
        connection.run("BEGIN")?;
    }
    let mut left = request.rows;
    let mut statement = String::new();
    while left > 0 {
        let now = left.min(way.rows_per_statement);
        fill(&mut statement, now, &mut random);
        connection.run(&statement)?;
        left -= now;
    }
    if way.in_transaction {
        connection.run("COMMIT")?;
    }
    if way.locked {
        connection.run("UNLOCK TABLES")?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    if count(&mut connection)? != u64::from(request.rows) {
        let rows = request.rows;
        return Err(Error::failed(format!(
            "{TABLE} does not hold the {rows} rows that were inserted"
        )));
    }
    Ok(BTreeMap::from([
        ("seconds", seconds),
        ("rows_per_s", f64::from(request.rows) / seconds.max(1e-9)),
    ]))
}

/// Counts over the connection that inserted: others see the last rows of MyISAM a moment later. And row by row:
/// after LOCK TABLES, Aria's own count can lag behind its rows (seen with MariaDB 10.11).
fn count(connection: &mut Connection) -> Result<u64> {
    let counted = format!("SELECT SUM(1) FROM {TABLE}");
    let mut rows = connection.query(&counted)?;
    let row = rows.next()?;
    let cell = row.and_then(|row| row.cells().next().ok().flatten());
    let count = cell.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    count.ok_or_else(|| Error::failed("the server does not count its rows"))
}

fn fill(statement: &mut String, rows: u32, random: &mut Rng) {
    use std::fmt::Write;
    statement.clear();
    statement.push_str("INSERT INTO ");
    statement.push_str(TABLE);
    statement.push_str(" (number, name) VALUES ");
    for row in 0..rows {
        let comma = if row == 0 { "" } else { "," };
        let (number, name) = (random.u32(0..1_000_000), random.u64(..));
        // Into a string it does not fail.
        let _ = write!(statement, "{comma}({number},'{name:020}')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names_of_their_own() {
        let request = InsertsRequest {
            database: String::new(),
            rows: 10,
            rows_per_statement: 310,
            engines: vec!["MyISAM".to_owned(), "InnoDB".to_owned()],
            repeat: 1,
            seed: 1,
        };
        let names: std::collections::BTreeSet<String> =
            Way::all(&request).iter().map(Way::name).collect();
        assert_eq!(names.len(), 4 + 6);
        assert!(names.contains("InnoDB, 310 rows a statement, one transaction"));
    }

    #[test]
    fn a_statement_has_its_rows() {
        let mut statement = String::new();
        fill(&mut statement, 3, &mut Rng::with_seed(1));
        assert_eq!(
            statement.matches("('").count() + statement.matches(",'").count(),
            3
        );
    }
}
