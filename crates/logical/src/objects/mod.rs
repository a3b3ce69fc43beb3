//! The objects of a server's schemas: everything that is not rows, as statements that re-create it.
//!
//! [`read`] asks a server what there is; [`Objects::statements`] says, phase by phase, what to run
//! on another. Texts are the server's own (`SHOW CREATE …`), as bytes: programs may be written in
//! any character set.

mod collations;
mod compare;
mod json;
mod order;
mod read;
mod rename;
mod run;
mod select;
mod statements;
pub(crate) mod text;

pub(crate) use collations::names_collation;
pub use compare::{Closeness, differences};
pub use read::{read, read_and_match};
pub(crate) use rename::in_statement;
pub use run::Runner;
pub(crate) use run::utf8mb4_means;
pub(crate) use select::{SYSTEM, typed};
pub use select::{Selection, Unmatched};
pub use statements::{Phase, Rendering, Settings, Statement};
pub use text::{Account, Definer, SplitTable, split_table};

use evenkeel_server::abilities::{Flavour, TableDialect};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What sort of object it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaObjectKind {
    /// A schema.
    Database,
    /// A sequence of MariaDB.
    Sequence,
    /// A table with rows.
    Table,
    /// A view.
    View,
    /// A stored procedure.
    Procedure,
    /// A stored function.
    Function,
    /// The interface of a package of MariaDB.
    Package,
    /// The body of a package of MariaDB.
    PackageBody,
    /// A trigger.
    Trigger,
    /// An event.
    Event,
    /// A user or a role.
    Account,
}

impl SchemaObjectKind {
    /// Returns the words that name this kind in SQL.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::Database => "DATABASE",
            Self::Sequence => "SEQUENCE",
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::Procedure => "PROCEDURE",
            Self::Function => "FUNCTION",
            Self::Package => "PACKAGE",
            Self::PackageBody => "PACKAGE BODY",
            Self::Trigger => "TRIGGER",
            Self::Event => "EVENT",
            Self::Account => "USER",
        }
    }
}

/// Which object: its kind, schema and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// What it is.
    pub kind: SchemaObjectKind,
    /// Its schema; empty for accounts, and the name itself for schemas.
    pub database: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    /// Writes `table shop.orders`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.sql().to_lowercase();
        match self.kind {
            SchemaObjectKind::Database | SchemaObjectKind::Account => {
                write!(f, "{kind} {}", self.name)
            }
            _ => write!(f, "{kind} {}.{}", self.database, self.name),
        }
    }
}

/// All objects that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// Whose server they come from.
    pub flavour: Flavour,
    /// `VERSION()` of that server.
    pub version_text: String,
    /// What `utf8mb4` without a collation means there: texts leave out what is the default.
    pub utf8mb4_collation: String,
    /// The schemas, by name.
    pub databases: Vec<Database>,
    /// Users and roles.
    pub accounts: Vec<AccountObject>,
    /// What was listed and then gone when it was read. Where the caller holds off changes of
    /// definitions this is empty; elsewhere these were dropped meanwhile.
    pub gone: Vec<ObjectName>,
}

impl Objects {
    /// Writes tables as a server reads them, where the other flavour writes the same otherwise.
    pub fn translate(&mut self, to: &TableDialect) {
        let databases = self.databases.iter_mut();
        for table in databases.flat_map(|database| &mut database.tables) {
            table.create = text::in_dialect(&table.create, to);
        }
    }

    /// Gives all views, routines, triggers and events other definers.
    pub fn set_definer(&mut self, definer: &Definer) {
        for database in &mut self.databases {
            let views = database.views.iter_mut().map(|view| &mut view.program);
            let programs = views
                .chain(&mut database.routines)
                .chain(&mut database.triggers)
                .chain(&mut database.events);
            for program in programs {
                program.create = text::with_definer(&program.create, definer);
            }
        }
    }
}

/// A schema with its objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Its name.
    pub name: String,
    /// Its default character set.
    pub charset: String,
    /// Its default collation.
    pub collation: String,
    /// Its comment (MariaDB).
    pub comment: String,
    /// Its tables are encrypted by default (MySQL 8.0.16 and later).
    pub encrypted: bool,
    /// Sequences, by name.
    pub sequences: Vec<Sequence>,
    /// Tables, by name.
    pub tables: Vec<TableObject>,
    /// Views, by name.
    pub views: Vec<View>,
    /// Routines, by kind and name; a package's interface before its body.
    pub routines: Vec<Program>,
    /// Triggers, by table, then in the order in which they fire.
    pub triggers: Vec<Program>,
    /// Events, by name.
    pub events: Vec<Program>,
}

/// A sequence of MariaDB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its name.
    pub name: String,
    /// `CREATE SEQUENCE …`.
    #[serde(with = "json::bytes")]
    pub create: Vec<u8>,
    /// The first value that the server has not handed out nor cached.
    pub next_value: String,
    /// How often it has started over.
    pub cycle_count: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableObject {
    /// Its name.
    pub name: String,
    /// Its engine.
    pub engine: String,
    /// `CREATE TABLE …` as the server prints it, in UTF-8 but for literals of other bytes.
    #[serde(with = "json::bytes")]
    pub create: Vec<u8>,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The key that orders its rows: the primary one, else the unique one without NULLs and
    /// prefixes of the fewest columns.
    pub key: Option<UniqueKey>,
    /// The server's guess at its number of rows.
    pub rows_estimate: u64,
    /// Bytes of its rows, without secondary indexes, as the server knows.
    pub data_bytes: u64,
    /// Bytes of its secondary indexes.
    pub index_bytes: u64,
    /// It keeps old rows (`WITH SYSTEM VERSIONING`): a plain SELECT gives the current ones,
    /// `FOR SYSTEM_TIME ALL` all.
    pub versioned: bool,
    /// Columns with a histogram, and its buckets (MySQL 8).
    pub histograms: Vec<Histogram>,
}

impl TableObject {
    /// Returns whether its rows are its own; else they are those of other tables or servers, or it
    /// has none, and they are not to be dumped.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        const ELSEWHERE: [&str; 8] = [
            "MRG_MYISAM",
            "MERGE",
            "FEDERATED",
            "BLACKHOLE",
            "SPIDER",
            "CONNECT",
            "OQGRAPH",
            "SPHINX",
        ];
        !ELSEWHERE
            .iter()
            .any(|engine| self.engine.eq_ignore_ascii_case(engine))
    }
}

/// A histogram of a column's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// The column.
    pub column: String,
    /// How many buckets were asked for.
    pub buckets: u32,
}

/// How a column gets its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generated {
    /// It is given one.
    No,
    /// It is computed when read.
    Virtual,
    /// It is computed when written.
    Stored,
    /// The server writes when the row began or ended to hold (system versioning).
    RowTime,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// `DATA_TYPE`: `varchar`, `int`, … in lower case.
    pub data_type: String,
    /// `COLUMN_TYPE`: `varchar(10)`, `int unsigned`, …
    pub column_type: String,
    /// Its character set, for texts.
    pub charset: Option<String>,
    /// Its collation, for texts.
    pub collation: Option<String>,
    /// It takes NULL.
    pub nullable: bool,
    /// Whether it can be inserted.
    pub generated: Generated,
    /// `SELECT *` does not give it.
    pub invisible: bool,
    /// It is the table's AUTO_INCREMENT.
    pub auto_increment: bool,
}

/// A unique key, as far as it orders rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueKey {
    /// Its name: `PRIMARY` for the primary one.
    pub name: String,
    /// Its leading columns, in order: none takes NULL, is there with a prefix only, or descends.
    pub columns: Vec<String>,
    /// These are all of its columns: they tell each row from every other.
    pub whole: bool,
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its name, text and settings.
    pub program: Program,
    /// The names of its columns; empty where the server does not know them.
    pub columns: Vec<String>,
    /// What is wrong with it, in the server's words: it refers to what is not there.
    pub broken: Option<String>,
}

/// A view, routine, trigger or event: a text with the settings that it was made under, which decide
/// what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// What it is.
    pub kind: SchemaObjectKind,
    /// Its name.
    pub name: String,
    /// The table of a trigger.
    pub table: Option<String>,
    /// `CREATE …`, in its own character set.
    #[serde(with = "json::bytes")]
    pub create: Vec<u8>,
    /// `sql_mode`; views have none.
    pub sql_mode: Option<String>,
    /// `character_set_client`: what `create` is written in.
    pub character_set_client: String,
    /// `collation_connection`.
    pub collation_connection: String,
    /// The schema's collation at that time; views have none.
    pub database_collation: Option<String>,
    /// `time_zone`, of events.
    pub time_zone: Option<String>,
}

/// A user or a role with what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountObject {
    /// Who.
    pub account: Account,
    /// It is a role of MariaDB; MySQL's roles are accounts.
    pub role: bool,
    /// `CREATE USER IF NOT EXISTS …` or `CREATE ROLE IF NOT EXISTS …`.
    #[serde(with = "json::bytes")]
    pub create: Vec<u8>,
    /// `GRANT …`, `SET DEFAULT ROLE …`, in order, for when all accounts and objects are there.
    #[serde(with = "json::list")]
    pub grants: Vec<Vec<u8>>,
}
