//! Looks at the tables of an image.

use super::{Bounds, CONTENT, ROWS, SCHEMA, Subject};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::{Row, Session};
use std::collections::BTreeMap;

/// Reads a table's groups; `Differs` when one is there by half.
pub(super) fn groups(session: &mut Session, name: &str) -> Result<BTreeMap<i64, i64>> {
    let sql = format!(
        "SELECT g, turn, COUNT(*), SUM(c <> CRC32({CONTENT})) FROM {SCHEMA}.{name} GROUP BY g, turn"
    );
    let mut groups = BTreeMap::new();
    for row in session.rows(&sql)? {
        let number = |at: usize| row.at(at).and_then(|text| text.parse::<i64>().ok());
        let (Some(group), Some(turn)) = (number(0), number(1)) else {
            return Err(wrong(format!("{name} has rows without numbers")));
        };
        let is_whole = number(2) == Some(ROWS) && number(3) == Some(0);
        if !is_whole || groups.insert(group, turn).is_some() {
            return Err(wrong(format!(
                "{name}: group {group} is there by half: {row:?}"
            )));
        }
    }
    Ok(groups)
}

pub(super) fn accounts(session: &mut Session) -> Result<BTreeMap<i64, i64>> {
    let sql = "SELECT user FROM mysql.user WHERE user LIKE 'turn\\_%'";
    let number = |row: &Row| row.at(0)?.strip_prefix("turn_")?.parse().ok();
    let rows = session.rows(sql)?;
    Ok(rows
        .iter()
        .filter_map(number)
        .map(|turn| (turn, turn))
        .collect())
}

/// Whose tables may have a header that is wrong, and not by anything of ours. It is repaired, and rows are looked
/// at after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// The server's own.
    OfTheServer,
    /// Users' tables of Aria too: where the image is a crash to Aria, of which nothing of ours was a part.
    OfAnybody,
    /// Tables of MyISAM and Aria that say that they are open, and of CSV whose number of rows is an older one, too:
    /// the server's own tool copies them so now and then.
    CopiedByATool,
}

/// Asserts that an image's tables are all sound and each of a turn within its bounds. Returns how many turns
/// are in the binary log, if it tells of the same ones.
pub fn check(
    session: &mut Session,
    subjects: &[Subject],
    bounds: &[Bounds],
    headers: Headers,
) -> Result<i64> {
    check_tables(session, headers)?;
    let mut logged = 0;
    for (subject, bounds) in subjects.iter().zip(bounds) {
        let turn = subject.turn_in(session, *bounds)?;
        logged += if subject.is_logged() { turn } else { 0 };
    }
    Ok(logged)
}

/// Has the server look at every page and key of every table that is not InnoDB's.
pub(super) fn check_tables(session: &mut Session, headers: Headers) -> Result<()> {
    let tables = session.rows(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`'), engine FROM information_schema.tables \
         WHERE engine IN ('Aria', 'MyISAM', 'CSV', 'ARCHIVE') AND table_type = 'BASE TABLE' \
         AND table_schema NOT IN ('information_schema', 'performance_schema')",
    )?;
    for row in &tables {
        let (Some(name), Some(engine)) = (row.at(0), row.at(1)) else {
            return Err(wrong("a table without a name or an engine".to_owned()));
        };
        let is_excused = |text: &String| match headers {
            _ if name.starts_with("`mysql`") => is_header(text),
            Headers::OfTheServer => false,
            Headers::OfAnybody => engine == "Aria" && is_header(text),
            Headers::CopiedByATool => is_left_open(text) || engine == "CSV" && text == "Corrupt",
        };
        let mut said = complaints(session, name)?;
        if !said.is_empty() && said.iter().all(is_excused) {
            println!("repaired: {name}: {}", said.join("; "));
            session.rows(&format!("REPAIR NO_WRITE_TO_BINLOG TABLE {name}"))?;
            said = complaints(session, name)?;
        }
        if !said.is_empty() {
            return Err(wrong(format!("{name}: {}", said.join("; "))));
        }
    }
    Ok(())
}

fn complaints(session: &mut Session, name: &str) -> Result<Vec<String>> {
    let rows = session.rows(&format!("CHECK TABLE {name} EXTENDED"))?;
    let texts = rows.iter().filter_map(|row| row.at(3));
    Ok(texts
        .filter(|text| *text != "OK")
        .map(str::to_owned)
        .collect())
}

/// Whether it is the header of a table that is wrong: its count of rows, or of those who have it open. Aria's
/// recovery gets the former of the server's own tables wrong also after a plain `kill -9` amid GRANT and DROP
/// USER, without any backup: 14 of 70 times.
fn is_header(text: &str) -> bool {
    text == "Corrupt"
        || text.starts_with("Found ") && text.contains(" keys of ")
        || is_left_open(text)
}

fn is_left_open(text: &str) -> bool {
    text.ends_with("closed the table properly")
}

pub(super) fn wrong(text: String) -> Error {
    Error::new(ErrorKind::Differs, text)
}
