//! The directory of a mydumper run: what its file names say, and its `metadata`. docs/src/formats/others.md
//! says which versions were seen.

use super::files::{Files, Found};
use super::found::{Found as Whole, objects};
use super::loads::loaded_files;
use super::script::{Cut, Drafts, of_file};
use crate::load::source::{Shape, SourceTable, is_transactional, listed};
use crate::objects::{Column, Database, ObjectName, SchemaObjectKind};
use evenkeel_op::{Error, Result};
use evenkeel_server::coordinates::Coordinates;
use std::collections::BTreeMap;
use std::path::Path;

/// The file that is written last, and gets its name when all is there.
pub(in crate::load) const METADATA: &str = "metadata";
/// What files of definitions say when times are in UTC.
const UTC: &[u8] = b"SET TIME_ZONE='+00:00'";

/// What `metadata` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metadata {
    coordinates: Coordinates,
    /// Rows by section: `` `schema`.`table` ``.
    rows: BTreeMap<String, u64>,
    ended: bool,
}

/// A table by what its files are called.
struct Named {
    object: ObjectName,
    /// What the names of its files begin with.
    stem: String,
}

pub(super) fn open(dir: &Path) -> Result<Whole> {
    let mut files = Files::list(dir)?;
    if files.take("metadata.partial").is_some() {
        return Err(Error::usage(format!(
            "{} holds an unfinished mydumper run",
            dir.display()
        ))
        .hint("wait for it, or dump again"));
    }
    let text = files.need(METADATA)?.text()?;
    let metadata = metadata(&String::from_utf8_lossy(&text));
    if !metadata.ended {
        return Err(Error::usage(format!(
            "{} holds an unfinished mydumper run: metadata does not say when it finished",
            dir.display()
        )));
    }
    let mut identity = text;
    let mut drafts = Drafts::default();
    let homes = schemas(&mut files, &mut drafts, &mut identity)?;
    let named = definitions(&mut files, &mut drafts, &homes, &mut identity)?;
    let mut notes = Vec::new();
    for ending in ["-checksum", "-metadata"] {
        let left_alone = files.take_ending(ending).len();
        if left_alone > 0 {
            notes.push(format!(
                "mydumper's files *{ending} were ignored ({left_alone})"
            ));
        }
    }
    let mut tables = tables(&mut drafts.databases, &named, &metadata);
    let described = |one: &Named| -> Vec<Column> {
        let databases = drafts.databases.iter();
        let home = databases.filter(|it| it.name == one.object.database);
        let mut tables = home.flat_map(|it| &it.tables);
        let table = tables.find(|it| it.name == one.object.name);
        table.map_or_else(Vec::new, |it| it.columns.clone())
    };
    let columns: Vec<Vec<Column>> = named.iter().map(described).collect();
    rows(&mut files, (&named, &columns), &mut tables, &mut identity)?;
    files.all_taken()?;
    Ok(Whole {
        objects: objects(drafts.databases, String::new()),
        tables,
        coordinates: metadata.coordinates,
        identity,
        notes,
    })
}

/// Makes the schemas, and returns them with what the names of their files begin with.
fn schemas(
    files: &mut Files,
    drafts: &mut Drafts,
    identity: &mut Vec<u8>,
) -> Result<Vec<(String, String)>> {
    let mut homes = Vec::new();
    for (stem, found) in files.take_ending("-schema-create.sql") {
        for object in read(drafts, &found, None, identity)? {
            homes.push((stem.clone(), object.name));
        }
    }
    match homes.is_empty() {
        false => Ok(homes),
        true => Err(
            Error::refused("the directory has no definitions of schemas")
                .hint("load needs a complete dump: run mydumper without --no-schemas"),
        ),
    }
}

/// Reads a file of definitions into the drafts.
fn read(
    drafts: &mut Drafts,
    found: &Found,
    home: Option<&str>,
    identity: &mut Vec<u8>,
) -> Result<Vec<ObjectName>> {
    let text = found.text()?;
    identity.extend_from_slice(&text);
    of_file(drafts.read(&text, Cut::Lines, home), &found.path)
}

/// Returns the schemas that a file may belong to, those with the longest names first, each with what
/// the file is called within it.
fn homes_of<'h>(homes: &'h [(String, String)], stem: &str) -> Vec<(&'h str, String)> {
    let mut all: Vec<(usize, &str, String)> = homes
        .iter()
        .filter_map(|(home, schema)| {
            let rest = stem.strip_prefix(home.as_str())?.strip_prefix('.')?;
            Some((home.len(), schema.as_str(), rest.to_owned()))
        })
        .collect();
    all.sort_by_key(|(length, ..)| std::cmp::Reverse(*length));
    all.into_iter()
        .map(|(_, schema, rest)| (schema, rest))
        .collect()
}

fn nowhere(found: &Found) -> Error {
    Error::refused(format!(
        "{} belongs to no schema of the directory",
        found.path.display()
    ))
}

/// Makes tables, views, sequences, triggers and programs. Returns the tables.
fn definitions(
    files: &mut Files,
    drafts: &mut Drafts,
    homes: &[(String, String)],
    identity: &mut Vec<u8>,
) -> Result<Vec<Named>> {
    let views = files.take_ending("-schema-view.sql");
    for (stem, found) in &views {
        let (home, _) = homes_of(homes, stem)
            .into_iter()
            .next()
            .ok_or_else(|| nowhere(found))?;
        let made = read(drafts, found, Some(home), identity)?;
        // A table with the view's columns stands in its place until all others are there.
        if let Some(placeholder) = files.take(&format!("{stem}-schema.sql")) {
            let mut aside = Drafts::default();
            read(&mut aside, &placeholder, Some(home), identity)?;
            let columns = aside.databases.iter().flat_map(|one| &one.tables);
            let columns: Vec<String> = columns
                .flat_map(|table| &table.columns)
                .map(|column| column.name.clone())
                .collect();
            let views = &mut drafts.database(home).views;
            if let Some(view) = views
                .iter_mut()
                .find(|view| made.iter().any(|one| one.name == view.program.name))
            {
                view.columns = columns;
            }
        }
    }
    for ending in ["-schema-sequence.sql", "-schema-triggers.sql"] {
        for (stem, found) in files.take_ending(ending) {
            // Of a table, or of all tables of a schema: releases differ.
            let of_table = homes_of(homes, &stem).into_iter().next();
            let of_schema = homes.iter().find(|(home, _)| *home == stem);
            let home = of_table.map(|(schema, _)| schema);
            let home = home.or(of_schema.map(|(_, schema)| schema.as_str()));
            let home = home.ok_or_else(|| nowhere(&found))?;
            read(drafts, &found, Some(home), identity)?;
        }
    }
    for (stem, found) in files.take_ending("-schema-post.sql") {
        let home = homes.iter().find(|(home, _)| *home == stem);
        let (_, home) = home.ok_or_else(|| nowhere(&found))?;
        read(drafts, &found, Some(home), identity)?;
    }
    let mut named = Vec::new();
    for (stem, found) in files.take_ending("-schema.sql") {
        named.extend(table(drafts, homes, stem, &found, identity)?);
    }
    Ok(named)
}

/// Makes a table. Where a dot leaves two schemas, the one in which the file is called as the table.
fn table(
    drafts: &mut Drafts,
    homes: &[(String, String)],
    stem: String,
    found: &Found,
    identity: &mut Vec<u8>,
) -> Result<Vec<Named>> {
    let candidates = homes_of(homes, &stem);
    let (first, _) = candidates.first().ok_or_else(|| nowhere(found))?;
    let mut home = *first;
    if candidates.len() > 1 {
        let made = read(&mut Drafts::default(), found, Some(home), &mut Vec::new())?;
        let called = |(_, rest): &&(&str, String)| made.iter().any(|one| one.name == *rest);
        home = candidates
            .iter()
            .find(called)
            .map_or(home, |(schema, _)| schema);
    }
    let made = read(drafts, found, Some(home), identity)?;
    let text = found.text()?;
    let utc = text.windows(UTC.len()).any(|part| part == UTC);
    let local = drafts.database(home).tables.iter().find(|table| {
        let times = table.columns.iter().any(|it| it.data_type == "timestamp");
        times && !utc && made.iter().any(|one| one.name == table.name)
    });
    if let Some(table) = local {
        return Err(Error::refused(format!(
            "the times of {home}.{} are in the time zone of that server, which the dump does not name",
            table.name
        ))
        .hint("run mydumper without --skip-tz-utc, or leave the table out of its dump"));
    }
    let tables = made
        .into_iter()
        .filter(|one| one.kind == SchemaObjectKind::Table);
    Ok(tables
        .map(|object| Named {
            object,
            stem: stem.clone(),
        })
        .collect())
}

fn tables(databases: &mut [Database], named: &[Named], metadata: &Metadata) -> Vec<SourceTable> {
    let mut all = Vec::new();
    for one in named {
        let (schema, name) = (&one.object.database, &one.object.name);
        let found = databases.iter().filter(|it| it.name == *schema);
        let engine = found
            .flat_map(|it| &it.tables)
            .find(|it| it.name == *name)
            .map_or("", |it| it.engine.as_str());
        let quoted = |text: &str| format!("`{}`", text.replace('`', "``"));
        let section = format!("{}.{}", quoted(schema), quoted(name));
        all.push(SourceTable {
            schema: schema.clone(),
            name: name.clone(),
            transactional: is_transactional(engine),
            columns: Vec::new(),
            rows: metadata.rows.get(&section).copied(),
            chunks: Vec::new(),
        });
    }
    all
}

/// Returns the table that a file of rows belongs to, and which of its files it is.
fn of_table(named: &[Named], base: &str) -> Option<(usize, Vec<u64>)> {
    let known = |stem: &str| named.iter().position(|one| one.stem == stem);
    let mut stem = base;
    let mut numbers = Vec::new();
    loop {
        if let Some(at) = known(stem) {
            return Some((at, numbers));
        }
        let (rest, number) = stem.rsplit_once('.')?;
        if numbers.len() == 2 {
            return None;
        }
        numbers.insert(0, number.parse().ok()?);
        stem = rest;
    }
}

/// Gives each table its files of rows, in the order of their numbers.
fn rows(
    files: &mut Files,
    (named, columns): (&[Named], &[Vec<Column>]),
    tables: &mut [SourceTable],
    identity: &mut Vec<u8>,
) -> Result<()> {
    let mut all = Vec::new();
    let mut strange = Vec::new();
    for (base, found) in files.take_ending(".sql") {
        match of_table(named, &base) {
            Some((at, numbers)) => all.push((at, numbers, base, found)),
            None => strange.push(found.path.display().to_string()),
        }
    }
    if !strange.is_empty() {
        return Err(Error::refused(format!(
            "these files of rows belong to no table of the directory: {}",
            listed(&strange)
        ))
        .hint("move them out of the directory if they are not needed; nothing was loaded"));
    }
    all.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    let mut number = 0;
    for (at, _, base, found) in all {
        identity.extend_from_slice(format!("{base} {}\n", found.bytes).as_bytes());
        let loaded = of_file(
            loaded_files(&found.chunk(0, Shape::Statements, None), &columns[at]),
            &found.path,
        )?;
        let Some(loaded) = loaded else {
            number += 1;
            let chunk = found.chunk(number, Shape::Statements, None);
            tables[at].chunks.push(chunk);
            continue;
        };
        for (name, sql) in loaded {
            let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
            let file = files.need(name)?;
            number += 1;
            identity.extend_from_slice(format!("{name} {}\n{sql}", file.bytes).as_bytes());
            tables[at]
                .chunks
                .push(file.chunk(number, Shape::File(sql), None));
        }
    }
    Ok(())
}

/// Reads `metadata`: lines of old versions, sections of newer ones.
fn metadata(text: &str) -> Metadata {
    let mut found = Metadata::default();
    let mut section = String::new();
    let mut gtid_resumes = false;
    for line in text.lines() {
        let line = line.trim();
        found.ended |= line
            .trim_start_matches("# ")
            .starts_with("Finished dump at:");
        if line.starts_with('[') && line.ends_with(']') {
            section = line[1..line.len() - 1].to_owned();
            continue;
        }
        if matches!(line, "SHOW MASTER STATUS:" | "SHOW SLAVE STATUS:") {
            section = line.to_owned();
            continue;
        }
        let own = matches!(
            section.as_str(),
            "SHOW MASTER STATUS:" | "master" | "source"
        );
        let Some((name, value)) = line.split_once(['=', ':']).filter(|_| !gtid_resumes) else {
            if gtid_resumes && let Some(gtid) = &mut found.coordinates.gtid {
                gtid.push_str(line);
                gtid_resumes = line.ends_with(',');
            }
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        if value.is_empty() {
            continue;
        }
        // Version 1.0 has them as comments.
        let name = name.trim().trim_start_matches("# ");
        match name.to_ascii_lowercase().as_str() {
            "rows" => drop(
                value
                    .parse()
                    .map(|rows| found.rows.insert(section.clone(), rows)),
            ),
            "log" | "file" | "source_log_file" if own => {
                found.coordinates.binlog_file = Some(value.to_owned())
            }
            "pos" | "position" | "source_log_pos" if own => {
                found.coordinates.binlog_position = value.parse().ok()
            }
            "gtid" | "executed_gtid_set" if own => {
                found.coordinates.gtid = Some(value.split_whitespace().collect());
                gtid_resumes = value.ends_with(',');
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_metadata_are_read() {
        let old = "Started dump at: 2026-01-01 00:00:00\nSHOW MASTER STATUS:\n\tLog: b.000007\n\
                   \tPos: 99\n\tGTID:u:1-3,\nv:1-2\n\nSHOW SLAVE STATUS:\n\tHost: h\n\tLog: other.000001\n\
                   \tPos: 4\n\nFinished dump at: 2026-01-01 00:00:01\n";
        let new = "# Started dump at: 2026-01-01 00:00:00\n[config]\nquote-character = BACKTICK\n\n\
                   [source]\n# Channel_Name = ''\nFile = b.000007\nPosition = 99\n\
                   Executed_Gtid_Set = u:1-3,v:1-2\n\n[`a``b`.`c.d`]\nreal_table_name=c.d\nrows = 12\n\
                   # Finished dump at: 2026-01-01 00:00:01\n";
        let newest = "# Started dump at: 2026-01-01 00:00:00\n[config]\n[source]\n# Channel_Name = '' # for\n\
                      # executed_gtid_set = \"u:1-3,v:1-2\"\n# SOURCE_LOG_FILE = \"b.000007\"\n# SOURCE_LOG_POS = 99\n\
                      [`d`.`t`]\nrows = 12\n# Finished dump at: 2026-01-01 00:00:01\n";
        for text in [old, new, newest] {
            let found = metadata(text);
            let there = &found.coordinates;
            assert_eq!(there.binlog_file.as_deref(), Some("b.000007"));
            assert_eq!(there.binlog_position, Some(99));
            assert_eq!(there.gtid.as_deref(), Some("u:1-3,v:1-2"));
            assert!(found.ended);
        }
        assert_eq!(metadata(new).rows.get("`a``b`.`c.d`"), Some(&12));
        assert!(!metadata("Started dump at: 2026-01-01 00:00:00\n").ended);
    }

    #[test]
    fn files_of_rows_find_their_table() {
        let one = |stem: &str| Named {
            object: ObjectName {
                kind: SchemaObjectKind::Table,
                database: String::new(),
                name: String::new(),
            },
            stem: stem.to_owned(),
        };
        let named = [one("d.t"), one("d.t.00001"), one("d.t.x")];
        for (base, wanted) in [
            ("d.t", Some((0, vec![]))),
            ("d.t.00007", Some((0, vec![7]))),
            ("d.t.00007.00002", Some((0, vec![7, 2]))),
            ("d.t.00001", Some((1, vec![]))),
            ("d.t.x.3", Some((2, vec![3]))),
            ("d.t.y", None),
            ("d.u", None),
            ("d.t.1.2.3", None),
        ] {
            assert_eq!(of_table(&named, base), wanted, "{base}");
        }
    }
}
