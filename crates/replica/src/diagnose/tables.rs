//! Tables that are read whole, with their indexes.

use super::catalogue::Failure;
use super::finding::Finding;
use crate::survey::{Answered, Target};
use evenkeel_op::{Cancel, Result};
use evenkeel_server::connect::Session;

/// What CHECK TABLE said.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    pub(super) unchecked: Vec<String>,
}

/// Checks a table, as SQL has its name, on each server that replicates.
pub(super) fn check(
    targets: &[Target],
    servers: &[Answered],
    table: &str,
    cancel: &Cancel,
) -> Result<Checked> {
    let mut checked = Checked::default();
    for (at, (target, server)) in targets.iter().zip(servers).enumerate() {
        cancel.check()?;
        let is_replica = server
            .facts
            .as_ref()
            .is_ok_and(|facts| !facts.channels.is_empty());
        if !is_replica {
            continue;
        }
        let said = Session::open(&target.options)
            .and_then(|mut session| session.rows(&format!("CHECK TABLE {table}")));
        let rows = match said {
            Ok(rows) => rows,
            Err(error) => {
                let name = &server.name;
                checked
                    .unchecked
                    .push(format!("{name}: CHECK TABLE {table}: {}", error.chain()));
                continue;
            }
        };
        let text = |row: &evenkeel_server::connect::Row| {
            row.get("Msg_text").unwrap_or_default().to_owned()
        };
        let wrong: Vec<String> = rows
            .iter()
            .filter(|row| {
                row.get("Msg_type")
                    .is_none_or(|kind| !kind.eq_ignore_ascii_case("note"))
            })
            .map(text)
            .filter(|text| text != "OK")
            .collect();
        if !wrong.is_empty() {
            checked
                .findings
                .push(damaged(at, &server.name, table, &wrong));
        }
    }
    Ok(checked)
}

fn damaged(at: usize, name: &str, table: &str, wrong: &[String]) -> Finding {
    let indexes: Vec<&str> = wrong.iter().filter_map(|text| index_in(text)).collect();
    let is_secondary = !indexes.is_empty() && !indexes.contains(&"PRIMARY");
    let failure = match is_secondary {
        true => Failure::IndexDamaged,
        false => Failure::TableDamaged,
    };
    let mut finding = Finding::new(at, None, failure);
    for text in wrong {
        finding = finding.seen(format!("CHECK TABLE {table}: {text}"));
    }
    if !is_secondary {
        return finding.step(
            name,
            "rebuild this replica from a sibling or a backup: evenkeel restore",
        );
    }
    let mut seen: Vec<&str> = Vec::new();
    for index in indexes {
        if seen.contains(&index) {
            continue;
        }
        seen.push(index);
        let quoted = evenkeel_server::connect::quote_name(index);
        finding = finding
            .step(
                name,
                format!("note how {quoted} is defined: SHOW CREATE TABLE {table}"),
            )
            .sql(
                name,
                format!("ALTER TABLE {table} DROP INDEX {quoted}"),
                "after SET sql_log_bin=0",
            )
            .step(
                name,
                format!("then add it again, in a statement of its own: ALTER TABLE {table} ADD …"),
            );
    }
    finding.sql(name, format!("CHECK TABLE {table}"), "must say OK")
}

/// Returns the index that a message names: `Index k is marked as corrupted`, `… index "k" …`.
fn index_in(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("index ")? + "index ".len();
    let name = text[at..].split_whitespace().next()?;
    let name = name.trim_matches(|letter| matches!(letter, '"' | '\'' | '`' | '.' | ',' | ':'));
    (!name.is_empty() && name != "for").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::index_in;

    #[test]
    fn messages_name_indexes() {
        assert_eq!(index_in("Index k is marked as corrupted"), Some("k"));
        assert_eq!(
            index_in("InnoDB: Index 'PRIMARY' contains 3 entries, should be 4."),
            Some("PRIMARY")
        );
        assert_eq!(index_in("The index \"by name\" is damaged"), Some("by"));
        assert_eq!(index_in("Corrupt"), None);
        assert_eq!(
            index_in("Index for table 'b' is corrupt; try to repair it"),
            None
        );
    }
}
