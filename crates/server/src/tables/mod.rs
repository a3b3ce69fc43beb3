//! Which schemas and tables a server says that it has, and what their definitions say.
//!
//! | asked | what it gives | needs |
//! |---|---|---|
//! | `information_schema.TABLES`, `SCHEMATA` | every table with its engine | any right on them |
//! | InnoDB's own list | every tablespace of a table, each partition by itself | `PROCESS` |
//! | definitions (`.frm`, `.sdi`) | the engine of a table that the account may not see | the files |
//!
//! An account that only makes backups sees nothing in the first of them, so the others are not spared.

mod definition;
mod engines;

pub use definition::{Definition, definition};
pub use engines::{Covered, covered};

use crate::abilities::{Abilities, Flavour};
use crate::connect::{Session, quote_name};
use evenkeel_op::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// A table by the names that SQL has for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId {
    /// Its schema.
    pub schema: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, name) = (quote_name(&self.schema), quote_name(&self.name));
        write!(f, "{schema}.{name}")
    }
}

/// What a server says that it has.
#[derive(Debug, Clone, Default)]
pub struct ServerTables {
    /// Schemas that the account may see.
    pub schemas: BTreeSet<String>,
    /// Tables and sequences that it may see, with their engines; `None` where the server cannot say one.
    pub tables: BTreeMap<TableId, Option<String>>,
    /// Where InnoDB keeps what is not in its system tablespace, as it says it: absolute, or below the data
    /// directory.
    pub tablespaces: BTreeSet<PathBuf>,
    /// Each table has a `.frm` file.
    pub has_frm_files: bool,
}

/// Everything that keeps rows. MariaDB has kinds of its own: `SYSTEM VERSIONED`, `SEQUENCE`.
pub const IS_TABLE: &str = "TABLE_TYPE NOT IN ('VIEW', 'SYSTEM VIEW', 'TEMPORARY')";

/// Schemas that a server makes up when it is asked.
const OF_THE_SERVER: [&str; 2] = ["information_schema", "performance_schema"];

impl ServerTables {
    /// Asks the server. While DDL is blocked on the same session, no table is made or dropped between the
    /// answers.
    pub fn read(session: &mut Session, abilities: &Abilities) -> Result<Self> {
        let asked = || "failed to ask which tables there are";
        let mut found = Self {
            has_frm_files: !abilities.dictionary_in_innodb,
            ..Self::default()
        };
        let rows = session.rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA");
        let schemas = rows.context(asked)?;
        let schemas = schemas.iter().filter_map(|row| row.at(0));
        let schemas = schemas.filter(|name| !is_made_up(name));
        found.schemas = schemas.map(str::to_owned).collect();
        let rows = session.rows(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES \
             WHERE {IS_TABLE} AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema')"
        ));
        for row in rows.context(asked)? {
            let (Some(schema), Some(name)) = (row.at(0), row.at(1)) else {
                continue;
            };
            if !is_made_up(schema) {
                let table = TableId {
                    schema: schema.to_owned(),
                    name: name.to_owned(),
                };
                found.tables.insert(table, row.at(2).map(str::to_owned));
            }
        }
        found.tablespaces = tablespaces(session, abilities).context(asked)?;
        Ok(found)
    }

    /// Keeps what `other` has too: what was there at two looks was there in between, where nothing keeps
    /// tables from being made and dropped.
    pub fn keep_common(&mut self, other: &Self) {
        self.schemas.retain(|schema| other.schemas.contains(schema));
        let also = |table: &TableId| other.tables.contains_key(table);
        self.tables.retain(|table, _| also(table));
        let also = |path: &PathBuf| other.tablespaces.contains(path);
        self.tablespaces.retain(also);
    }
}

fn is_made_up(schema: &str) -> bool {
    let mut made_up = OF_THE_SERVER.iter();
    made_up.any(|own| own.eq_ignore_ascii_case(schema))
}

/// Asks InnoDB where it keeps what is not in its system tablespace. Needs `PROCESS`, and no right on the tables.
pub fn tablespaces(session: &mut Session, abilities: &Abilities) -> Result<BTreeSet<PathBuf>> {
    let (column, from) = match abilities.flavour {
        // Names are as files are called. MariaDB has no list of paths any more.
        Flavour::MariaDb => ("NAME", "INNODB_SYS_TABLES WHERE SPACE <> 0"),
        Flavour::MySql if abilities.dictionary_in_innodb => ("PATH", "INNODB_DATAFILES"),
        Flavour::MySql => ("PATH", "INNODB_SYS_DATAFILES"),
    };
    let rows = session.rows(&format!("SELECT {column} FROM information_schema.{from}"))?;
    let said = rows.iter().filter_map(|row| row.at(0));
    let paths = said.map(|said| match abilities.flavour {
        Flavour::MariaDb => PathBuf::from(format!("./{said}.ibd")),
        Flavour::MySql => PathBuf::from(said),
    });
    Ok(paths.filter(|path| is_of_tables(path)).collect())
}

/// Whether a tablespace is one of tables that stay: not one that a running ALTER TABLE makes and drops, nor
/// what a full-text index keeps beside its table.
fn is_of_tables(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lower = name.to_ascii_lowercase();
    let is_passing =
        lower.starts_with("#sql") || ["#tmp#", "#ren#"].iter().any(|mark| lower.contains(mark));
    let of_index = lower.strip_prefix("fts_").is_some_and(|rest| {
        let id = rest.split('_').next().unwrap_or_default();
        id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    lower.ends_with(".ibd") && !is_passing && !of_index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablespaces_that_pass_are_none_of_tables() {
        for name in [
            "./a/t.ibd",
            "gts.ibd",
            "/x/a/t#P#p0.ibd",
            "./a/fts_news.ibd",
        ] {
            assert!(is_of_tables(Path::new(name)), "{name}");
        }
        for name in [
            "./undo_001",
            "ibdata1",
            "./a/#sql-ib12.ibd",
            "./a/t#p#p0#tmp#.ibd",
            "./a/FTS_000000000000001c_0000000000000027_INDEX_1.ibd",
            "./a/fts_000000000000042a_config.ibd",
        ] {
            assert!(!is_of_tables(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn only_what_was_there_twice_is_kept() {
        let table = |name: &str| TableId {
            schema: "a".into(),
            name: name.into(),
        };
        let found = |names: &[&str]| ServerTables {
            schemas: names.iter().map(|name| (*name).to_owned()).collect(),
            tables: names.iter().map(|name| (table(name), None)).collect(),
            tablespaces: names.iter().map(PathBuf::from).collect(),
            has_frm_files: true,
        };
        let mut first = found(&["stays", "goes"]);
        first.keep_common(&found(&["stays", "comes"]));
        assert_eq!(first.schemas, ["stays".to_owned()].into());
        assert_eq!(first.tables, [(table("stays"), None)].into());
        assert_eq!(first.tablespaces, [PathBuf::from("stays")].into());
    }
}
