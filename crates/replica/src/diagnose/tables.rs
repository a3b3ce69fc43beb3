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
        let name = &server.name;
        let mut wrong = Vec::new();
        for row in &rows {
            let text = row.get("Msg_text").unwrap_or_default();
            match verdict(text) {
                Verdict::Sound => {}
                Verdict::Damaged => wrong.push(text.to_owned()),
                Verdict::Unknown => checked
                    .unchecked
                    .push(format!("{name}: CHECK TABLE {table}: {text}")),
            }
        }
        if !wrong.is_empty() {
            checked.findings.push(damaged(at, name, table, &wrong));
        }
    }
    Ok(checked)
}

enum Verdict {
    Sound,
    Damaged,
    /// It was not checked: there is no such table, its engine cannot be, …
    Unknown,
}

fn verdict(text: &str) -> Verdict {
    let lower = text.to_ascii_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if matches!(text, "OK" | "Table is already up to date") {
        Verdict::Sound
    } else if says(&[
        "corrupt",
        "should be",
        "crashed",
        "btree level",
        "is marked",
    ]) {
        Verdict::Damaged
    } else {
        Verdict::Unknown
    }
}

fn damaged(at: usize, name: &str, table: &str, wrong: &[String]) -> Finding {
    let indexes: Vec<&str> = wrong.iter().filter_map(|text| index_in(text)).collect();
    // Without a primary key, rows are in a hidden one.
    let holds_rows = |index: &&str| matches!(*index, "PRIMARY" | "GEN_CLUST_INDEX");
    let is_secondary = !indexes.is_empty() && !indexes.iter().any(holds_rows);
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

/// Returns the index that a message names: `Index k is marked as corrupted`, `InnoDB: Index 'k' contains …`.
fn index_in(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find("index ")? + "index ".len();
    let rest = &text[at..];
    if let Some(quote) = rest
        .chars()
        .next()
        .filter(|letter| "'\"`".contains(*letter))
    {
        return rest[1..]
            .split(quote)
            .next()
            .filter(|name| !name.is_empty());
    }
    let ends = [" is marked", " contains ", " is corrupt"];
    let name = ends.iter().find_map(|end| rest.split_once(end))?.0;
    (!name.is_empty() && !name.starts_with("for table")).then_some(name)
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
        assert_eq!(
            index_in("Index by name is marked as corrupted"),
            Some("by name")
        );
        assert_eq!(
            index_in("The index \"by name\" is damaged"),
            Some("by name")
        );
        assert_eq!(index_in("Corrupt"), None);
        assert_eq!(
            index_in("Index for table 'b' is corrupt; try to repair it"),
            None
        );
    }
}
