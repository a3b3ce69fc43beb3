//! What the server that proves a generation says of each table.

use super::queues;
use super::report::BootReport;
use evenkeel_op::{Context, Result, Run, Unit};
use evenkeel_server::connect::{Row, Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_server::tables::IS_TABLE;

/// Has a server check every table. `queues` is how many of the tables no server is asked about.
pub(super) fn tables(
    server: &Running,
    queues: u64,
    report: &mut BootReport,
    run: Run<'_>,
) -> Result<()> {
    let mut session = server.session()?;
    let tables = session.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {IS_TABLE} AND \
         TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'sys') ORDER BY 1, 2"
    ))?;
    run.progress
        .phase("checking tables", Some(tables.len() as u64), Unit::Items);
    let mut unknown = 0;
    for row in &tables {
        run.cancel.check()?;
        let (Some(schema), Some(table)) = (row.at(0), row.at(1)) else {
            continue;
        };
        let name = format!("{}.{}", quote_name(schema), quote_name(table));
        unknown += u64::from(!one(&mut session, &name, report)?);
        run.progress.advance(1);
    }
    run.progress.end();
    // There are more files than queues where an ALTER TABLE was cut short.
    if unknown > queues {
        let problem = format!("the server lists {unknown} queues, and there are files of {queues}");
        report.problems.push(problem);
    }
    Ok(())
}

/// Returns false for a queue: of it the server knows nothing.
fn one(session: &mut Session, name: &str, report: &mut BootReport) -> Result<bool> {
    let rows = session
        .rows(&format!("CHECK TABLE {name}"))
        .context(|| format!("the server ended while it checked {name}"));
    match rows {
        Ok(rows) => {
            let text_of = |row: &Row| row.at(3).unwrap_or("").to_owned();
            if rows.iter().any(|row| queues::is_one(&text_of(row))) {
                return Ok(false);
            }
            report.tables_checked += 1;
            for row in rows {
                let (kind, text) = (row.at(2).unwrap_or(""), row.at(3).unwrap_or(""));
                // A MyISAM or Aria table that was open is only "not closed properly": a warning
                // that CHECK itself settles, unless the status is not OK.
                let fine = match kind.to_ascii_lowercase().as_str() {
                    "status" => matches!(text, "OK" | "Table is already up to date"),
                    "note" | "warning" => true,
                    _ => text.contains("doesn't support check"),
                };
                if !fine {
                    report.problems.push(format!("{name}: {kind}: {text}"));
                }
            }
            Ok(true)
        }
        Err(error) if error.kind() == evenkeel_op::ErrorKind::Unreachable => Err(error),
        Err(error) if queues::is_one(&error.chain()) => Ok(false),
        Err(error) => {
            report.problems.push(format!("{name}: {}", error.chain()));
            Ok(true)
        }
    }
}
