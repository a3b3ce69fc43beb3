//! The tables whose rows are dumped, and whether they are still what they were.

use super::filter::Filter;
use super::history::row_times;
use super::mask::TableMask;
use super::table::{DumpTable, Key, uncounted};
use crate::objects::{
    self, Closeness, Column, Generated, Objects, SYSTEM, UniqueKey, Unmatched, differences,
};
use evenkeel_innodb::names::TableName;
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::options::ConnectOptions;
use std::collections::HashMap;

/// Engines whose reads see the point in time of the snapshot.
const TRANSACTIONAL: [&str; 3] = ["InnoDB", "ROCKSDB", "TokuDB"];

impl DumpTable {
    pub(super) fn of(schema: &str, table: &objects::TableObject, filter: &Filter) -> Self {
        let of = |wanted: fn(&Column) -> bool| {
            let columns = table.columns.iter().filter(|column| wanted(column));
            columns.cloned().collect::<Vec<Column>>()
        };
        let mut columns = of(|column| column.generated == Generated::No);
        // Files have to say how many rows there are.
        if columns.is_empty() {
            columns = of(|column| column.generated != Generated::RowTime);
            columns.truncate(1);
        }
        let times = filter.history.then(|| row_times(table)).flatten();
        let history = times.is_some();
        columns.extend(times.into_iter().flatten());
        Self {
            schema: schema.to_owned(),
            name: table.name.clone(),
            engine: table.engine.clone(),
            transactional: TRANSACTIONAL
                .iter()
                .any(|one| one.eq_ignore_ascii_case(&table.engine)),
            has_rows: table.has_rows(),
            rows: table.rows_estimate,
            bytes: table.data_bytes,
            key: table.key.as_ref().and_then(|key| cutting(key, &columns)),
            is_read_backwards: false,
            condition: filter.condition(schema, &table.name).map(str::to_owned),
            columns,
            history,
            mask: None,
        }
    }
}

/// Returns those of a key's leading columns whose values compare as literals as they do in the
/// index. Only of the primary key a part is worth something: it is the order that rows lie in.
fn cutting(key: &UniqueKey, columns: &[Column]) -> Option<Key> {
    let usable: Vec<usize> = key
        .columns
        .iter()
        .map_while(|name| {
            let at = columns.iter().position(|column| column.name == *name)?;
            columns[at].compares().then_some(at)
        })
        .collect();
    let whole = key.whole && usable.len() == key.columns.len();
    (!usable.is_empty() && (whole || key.name == "PRIMARY")).then(|| Key {
        name: key.name.clone(),
        columns: usable,
        whole,
    })
}

/// What a server had at one look.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) objects: Objects,
    /// What changes when a table becomes another of the same name, by the table's.
    made: HashMap<String, String>,
    pub(super) unmatched: Unmatched,
    are_read_backwards: bool,
}

/// Opens the session that looks things up.
pub(super) fn session(options: &ConnectOptions) -> Result<Session> {
    let mut session = Session::open(options)?;
    // Times are compared. MySQL 8 would answer with what it knew a day ago.
    session.run(
        "SET SESSION sql_mode = '', time_zone = '+00:00' \
         /*!80003 , information_schema_stats_expiry = 0 */",
    )?;
    Ok(session)
}

impl Look {
    /// Looks.
    ///
    /// Errors: those of [`objects::read`]; `Usage` when there is nothing to dump, or nothing of what was
    /// asked for.
    pub(super) fn at(session: &mut Session, filter: &Filter) -> Result<Self> {
        // First: who changes a table after its text was read is found at the next look.
        let made = made(session, filter)?;
        let (objects, unmatched) = objects::read_and_match(session, &filter.selection)?;
        unmatched.refuse()?;
        if objects.databases.is_empty() && objects.accounts.is_empty() {
            return Err(Error::usage(
                "there is nothing to dump: the server has only its own databases",
            ));
        }
        Ok(Self {
            objects,
            made,
            unmatched,
            are_read_backwards: Abilities::probe(session)?.sticky_range_ends,
        })
    }

    /// Returns, in words, something that is not what it was at an earlier look.
    pub(super) fn change_since(&self, earlier: &Self) -> Option<String> {
        let names = self.objects.databases.iter().flat_map(|database| {
            let tables = database.tables.iter();
            tables.map(|table| format!("{}.{}", database.name, table.name))
        });
        let other = |name: &String| self.made.get(name) != earlier.made.get(name);
        if let Some(name) = names.into_iter().find(other) {
            return Some(format!("table {name} was re-created"));
        }
        let (before, after) = (still(&earlier.objects), still(&self.objects));
        let found = differences(&before, &after, Closeness::Same);
        // The texts of both follow.
        let first = found.first()?.lines().next().unwrap_or_default();
        Some(first.trim_end_matches(':').to_owned())
    }

    /// Returns the tables, the largest first.
    ///
    /// Errors: `Usage` when a table has a condition and is not there, or a column must be masked in a way
    /// that does not suit it.
    pub(super) fn tables(&self, filter: &Filter) -> Result<Vec<DumpTable>> {
        let databases = self.objects.databases.iter();
        let mut tables: Vec<DumpTable> = databases
            .flat_map(|database| {
                let tables = database.tables.iter();
                tables.map(|table| DumpTable::of(&database.name, table, filter))
            })
            .collect();
        tables.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| a.shown().cmp(&b.shown()))
        });
        let unknown = |name: &&String| !tables.iter().any(|table| table.shown() == **name);
        if let Some(name) = filter.named().find(unknown) {
            return Err(Error::usage(format!(
                "--where names '{name}', which is not a table of this dump"
            )));
        }
        for table in &mut tables {
            table.is_read_backwards = self.are_read_backwards;
        }
        filter.masks.apply(&self.objects, &mut tables)?;
        Ok(tables)
    }

    /// Returns what a table looks like and is read by, as a hash.
    pub(super) fn shape(&self, table: &DumpTable) -> String {
        let mut hasher = blake3::Hasher::new();
        let databases = self.objects.databases.iter();
        let found = databases
            .filter(|database| database.name == table.schema)
            .flat_map(|database| &database.tables)
            .find(|one| one.name == table.name);
        if let Some(found) = found {
            hasher.update(&uncounted(&found.create));
        }
        let made = self.made.get(&table.shown());
        // Not the condition itself: it may have a masked value, which its hash would let others guess at.
        let is_whole = table.condition.is_none();
        let mask = table.mask.as_ref().map(TableMask::mark);
        let rest = format!(
            "{made:?} {} {:?} {:?} {is_whole} {mask:?}",
            table.engine, table.columns, table.key
        );
        hasher.update(rest.as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    /// Fails, naming it, when a table was dropped, emptied or changed since.
    pub(super) fn still_holds(
        &self,
        session: &mut Session,
        filter: &Filter,
        tables: &[DumpTable],
    ) -> Result<()> {
        let now = made(session, filter)?;
        let other = |name: &String| now.get(name) != self.made.get(name);
        match tables.iter().map(DumpTable::shown).find(other) {
            Some(name) => Err(changed(&name)),
            None => Ok(()),
        }
    }
}

/// Returns objects without what changes with every row.
fn still(objects: &Objects) -> Objects {
    let mut objects = objects.clone();
    for database in &mut objects.databases {
        for table in &mut database.tables {
            table.create = uncounted(&table.create);
        }
        for sequence in &mut database.sequences {
            sequence.next_value.clear();
            sequence.cycle_count.clear();
        }
    }
    objects
}

/// Asks for what changes when a table becomes another of the same name: when it was made or last
/// rebuilt, and InnoDB's number of it. MySQL 5.7 does not change the time for TRUNCATE, and would show
/// the snapshot an empty table. What MariaDB and MySQL 5.7 show for ARCHIVE is when its file was written
/// last, which reading it does too: of such a table only DROP is noticed, and it cannot be emptied.
fn made(session: &mut Session, filter: &Filter) -> Result<HashMap<String, String>> {
    let numbers = numbers(session);
    let names =
        |list: &mut dyn Iterator<Item = &str>| list.map(quote).collect::<Vec<_>>().join(", ");
    let meant = match filter.selection.databases.as_slice() {
        // Lists of MariaDB compare names without case; the cast keeps the schema `SYS`, which is a user's.
        [] => format!(
            "CAST(TABLE_SCHEMA AS BINARY) NOT IN ({})",
            names(&mut SYSTEM.into_iter())
        ),
        named => format!(
            "TABLE_SCHEMA IN ({})",
            names(&mut named.iter().map(String::as_str))
        ),
    };
    let rows = session.rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, IF(ENGINE = 'ARCHIVE', NULL, CREATE_TIME) \
         FROM information_schema.TABLES \
         WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {meant}"
    ))?;
    let made = rows.iter().map(|row| {
        let text = |at: usize| row.at(at).unwrap_or_default();
        let (schema, name) = (text(0), text(1));
        let number = numbers.get(&format!("{schema}.{name}"));
        let number = number.map_or("", String::as_str);
        (format!("{schema}.{name}"), format!("{} {number}", text(2)))
    });
    Ok(made.collect())
}

/// Reads InnoDB's numbers of tables and of their partitions, by name. Without the privilege there are
/// none, and only the time tells that a table is another.
fn numbers(session: &mut Session) -> HashMap<String, String> {
    // The one is MariaDB's and MySQL 5.7's, the other MySQL 8's.
    let rows = ["INNODB_SYS_TABLES", "INNODB_TABLES"]
        .iter()
        .find_map(|list| {
            let sql =
                format!("SELECT NAME, TABLE_ID FROM information_schema.{list} ORDER BY TABLE_ID");
            session.rows(&sql).ok()
        });
    let mut numbers: HashMap<String, String> = HashMap::new();
    for row in rows.unwrap_or_default() {
        let (Some(name), Some(number)) = (row.at(0), row.at(1)) else {
            continue;
        };
        let name = TableName::of_dictionary(name);
        let all = numbers.entry(format!("{}.{}", name.schema, name.table));
        let all = all.or_default();
        all.push(' ');
        all.push_str(number);
    }
    numbers
}

/// Returns the error for a table whose shape changed during the dump.
pub(super) fn changed(table: &str) -> Error {
    Error::failed(format!(
        "{table} was altered, truncated or dropped during the dump"
    ))
    .hint("run it again, and run no DDL on these tables meanwhile")
}

/// Puts the table's name on an error; what DDL does to a snapshot is said in plain words.
pub(super) fn named(error: Error, table: &DumpTable) -> Error {
    let text = error.to_string();
    // "Table definition has changed", "doesn't exist", "unknown column", "unknown table".
    let ddl = ["ERROR 1412 ", "ERROR 1146 ", "ERROR 1054 ", "ERROR 1932 "];
    if ddl.iter().any(|code| text.contains(code)) {
        return changed(&table.shown()).because(error);
    }
    Error::new(error.kind(), format!("failed to dump {}", table.shown())).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cut_by_what_compares() {
        let columns = [
            Column::for_tests("a", "int", None),
            Column::for_tests("e", "enum", Some("utf8mb4")),
            Column::for_tests("s", "varchar", Some("latin1")),
        ];
        let cut = |name: &str, of: &[&str], whole: bool| {
            let key = UniqueKey {
                name: name.to_owned(),
                columns: of.iter().map(|one| (*one).to_owned()).collect(),
                whole,
            };
            cutting(&key, &columns).map(|key| (key.columns, key.whole))
        };
        assert_eq!(cut("PRIMARY", &["s", "a"], true), Some((vec![2, 0], true)));
        // Up to the ENUM, which sorts by number and compares by text.
        assert_eq!(
            cut("PRIMARY", &["s", "e", "a"], true),
            Some((vec![2], false))
        );
        assert_eq!(cut("PRIMARY", &["a"], false), Some((vec![0], false)));
        assert_eq!(cut("u", &["a", "s"], true), Some((vec![0, 2], true)));
        for (name, columns) in [
            ("PRIMARY", ["e", "a"]),
            ("u", ["s", "e"]),
            ("u", ["g", "a"]),
        ] {
            assert_eq!(cut(name, &columns, true), None, "{name} {columns:?}");
        }
    }
}
