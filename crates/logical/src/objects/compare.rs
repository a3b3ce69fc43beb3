//! Whether two servers have the same objects.

use super::text::{Token, TokenKind, all_tokens};
use super::{Database, ObjectName, Objects, Program, SchemaObjectKind};
use std::collections::BTreeMap;

/// How close texts have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// Byte for byte, but for a character set that a collation says again: servers of one version.
    Same,
    /// But for what versions print differently: case of keywords, conditional comments, display
    /// widths, quotes around numbers, `()` of functions without arguments, the name of `utf8mb3`,
    /// and options of the table behind its columns.
    AcrossVersions,
}

/// Returns what is different, one sentence for each object; empty when nothing is.
#[must_use]
pub fn differences(one: &Objects, other: &Objects, closeness: Closeness) -> Vec<String> {
    let (left, right) = (texts(one, closeness), texts(other, closeness));
    let mut found = Vec::new();
    for (name, text) in &left {
        match right.get(name) {
            None => found.push(format!("{name} is only in the first")),
            Some(same) if same == text => {}
            Some(differs) => found.push(format!("{name} differs:\n{text}\nand\n{differs}")),
        }
    }
    let only = right.keys().filter(|name| !left.contains_key(*name));
    found.extend(only.map(|name| format!("{name} is only in the second")));
    found
}

/// Returns a text for each object that is equal exactly when the objects are.
fn texts(objects: &Objects, closeness: Closeness) -> BTreeMap<ObjectName, String> {
    let mut all = BTreeMap::new();
    for database in &objects.databases {
        of_database(database, closeness, &mut all);
    }
    for one in &objects.accounts {
        let grants = one
            .grants
            .iter()
            .map(|grant| String::from_utf8_lossy(grant));
        let grants: Vec<_> = grants.collect();
        let create = normal(&one.create, closeness);
        all.insert(
            ObjectName {
                kind: SchemaObjectKind::Account,
                database: String::new(),
                name: one.account.to_string(),
            },
            format!("{create}\n{}", grants.join("\n")),
        );
    }
    all
}

fn of_database(database: &Database, closeness: Closeness, all: &mut BTreeMap<ObjectName, String>) {
    let mut add = |kind: SchemaObjectKind, name: &str, text: String| {
        let name = ObjectName {
            kind,
            database: database.name.clone(),
            name: name.to_owned(),
        };
        all.insert(name, text);
    };
    let Database {
        name,
        charset,
        collation,
        comment,
        encrypted,
        ..
    } = database;
    add(
        SchemaObjectKind::Database,
        name,
        format!(
            "{} {collation} {comment} {encrypted}",
            charset.replace("utf8mb3", "utf8")
        ),
    );
    for one in &database.sequences {
        let text = String::from_utf8_lossy(&one.create);
        let (next, cycle) = (&one.next_value, &one.cycle_count);
        add(
            SchemaObjectKind::Sequence,
            &one.name,
            format!("{text} {next} {cycle}"),
        );
    }
    for one in &database.tables {
        let text = normal(&one.create, closeness);
        add(
            SchemaObjectKind::Table,
            &one.name,
            format!("{text} {:?}", one.histograms),
        );
    }
    for one in &database.views {
        add(
            SchemaObjectKind::View,
            &one.program.name,
            program(&one.program, closeness),
        );
    }
    // Triggers are numbered within their table: the order in which they fire counts.
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &database.triggers {
        let place = place
            .entry(one.table.as_deref().unwrap_or_default())
            .or_default();
        *place += 1;
        add(
            one.kind,
            &one.name,
            format!("{place} {}", program(one, closeness)),
        );
    }
    for one in database.routines.iter().chain(&database.events) {
        add(one.kind, &one.name, program(one, closeness));
    }
}

fn program(program: &Program, closeness: Closeness) -> String {
    let text = match closeness {
        Closeness::Same => String::from_utf8_lossy(&program.create).into_owned(),
        Closeness::AcrossVersions => normal(&program.create, closeness),
    };
    let mut settings = vec![
        program.sql_mode.clone().unwrap_or_default(),
        program.time_zone.clone().unwrap_or_default(),
        program.table.clone().unwrap_or_default(),
    ];
    if closeness == Closeness::Same {
        settings.push(program.character_set_client.clone());
        settings.push(program.collation_connection.clone());
        settings.push(program.database_collation.clone().unwrap_or_default());
    }
    format!("{text} {}", settings.join("; "))
}

/// Returns a text without what does not count.
fn normal(create: &[u8], closeness: Closeness) -> String {
    let Some(tokens) = all_tokens(create) else {
        return String::from_utf8_lossy(create).into_owned();
    };
    if closeness == Closeness::Same {
        return said_once(create, &tokens);
    }
    let is_table = tokens
        .get(1)
        .is_some_and(|one| one.is_word(create, "TABLE"));
    let mut words: Vec<String> = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            TokenKind::Gate | TokenKind::GateEnd => continue,
            TokenKind::Sign(b'(') => depth += 1,
            TokenKind::Sign(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        words.push(word(create, token));
        if is_table && depth == 0 && token.is_sign(b')') {
            break;
        }
        at += dropped(create, token, &tokens[at..]);
    }
    words.join(" ")
}

/// Returns a text without the character sets that a collation behind them says again: MySQL 8 prints
/// them once a table was made from what it printed.
fn said_once(create: &[u8], tokens: &[Token]) -> String {
    let said = |part: &&[Token]| {
        let words = ["CHARACTER", "SET"].iter().zip(*part);
        words
            .into_iter()
            .all(|(word, token)| token.is_word(create, word))
            && part[3].is_word(create, "COLLATE")
    };
    let mut kept = Vec::with_capacity(create.len());
    let mut from = 0;
    for part in tokens.windows(4).filter(said) {
        kept.extend_from_slice(&create[from..part[0].start]);
        from = part[3].start;
    }
    kept.extend_from_slice(&create[from..]);
    String::from_utf8_lossy(&kept).into_owned()
}

/// Returns a token as it counts.
fn word(create: &[u8], token: &Token) -> String {
    let text = String::from_utf8_lossy(token.of(create));
    match token.kind {
        TokenKind::Word => text.to_uppercase().replace("UTF8MB3", "UTF8"),
        TokenKind::Text => {
            let inside = text.trim_matches('\'');
            let number = !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_digit());
            if number {
                inside.to_owned()
            } else {
                text.into_owned()
            }
        }
        _ => text.into_owned(),
    }
}

/// Returns how many tokens after this one do not count: a display width, `()`.
fn dropped(create: &[u8], token: &Token, next: &[Token]) -> usize {
    const WIDE: [&str; 6] = ["TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR"];
    match next {
        [open, close, ..] if open.is_sign(b'(') && close.is_sign(b')') => 2,
        [open, _, close, ..] if open.is_sign(b'(') && close.is_sign(b')') => {
            let wide = WIDE.iter().any(|name| token.is_word(create, name));
            if wide { 3 } else { 0 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_print_differently() {
        let old = b"CREATE TABLE `t` (\n  `a` int(11) DEFAULT '0',\n  `b` timestamp DEFAULT \
                    current_timestamp()\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3";
        let new = b"CREATE TABLE `t` (\n  `a` int DEFAULT 0,\n  `b` timestamp /*!80000 DEFAULT */ \
                    CURRENT_TIMESTAMP\n) ENGINE=InnoDB";
        let across = Closeness::AcrossVersions;
        assert_eq!(normal(old, across), normal(new, across));
        assert_ne!(normal(old, Closeness::Same), normal(new, Closeness::Same));
        let other = b"CREATE TABLE `t` (\n  `a` int(11) DEFAULT '1',\n  `b` timestamp DEFAULT \
                      current_timestamp()\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3";
        assert_ne!(normal(old, across), normal(other, across));
    }

    #[test]
    fn a_character_set_need_not_be_said_before_its_collation() {
        let same = |column: &str| {
            normal(
                format!("CREATE TABLE `t` ({column})").as_bytes(),
                Closeness::Same,
            )
        };
        let twice = same("`a` char(1) CHARACTER SET latin1 COLLATE latin1_bin");
        assert_eq!(twice, same("`a` char(1) COLLATE latin1_bin"));
        assert_ne!(twice, same("`a` char(1) CHARACTER SET latin1"));
    }
}
