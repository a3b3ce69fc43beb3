//! The statements that re-create objects, phase by phase.

use super::order::{ViewOrder, view_order};
use super::text::{event_parts, or_replace, split_table, with_definer, without_directories};
use super::{Database, Definer, ObjectName, Objects, Program, SchemaObjectKind, TableObject, View};
use evenkeel_server::connect::{quote, quote_name};

/// The steps of making a server's objects, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Users and roles, which definers name.
    Accounts,
    /// Schemas.
    Databases,
    /// Sequences, which columns take their defaults from.
    Sequences,
    /// Tables without secondary indexes and foreign keys. Rows come after this phase.
    Tables,
    /// Secondary indexes.
    Indexes,
    /// Foreign keys, which want indexes on both sides.
    ForeignKeys,
    /// Histograms, which are made of rows.
    Histograms,
    /// Routines: nothing in their bodies is looked at until they run.
    Routines,
    /// Something with the columns of a view in the place of each that others need before its time.
    ViewPlaceholders,
    /// Privileges: the server wants to know what they are on, and asks a view's definer for those on
    /// the functions that it calls.
    Grants,
    /// Views.
    Views,
    /// Triggers, which must not fire while rows are loaded.
    Triggers,
    /// Events, asleep.
    Events,
    /// Events that were awake are woken.
    Wake,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 14] = [
        Self::Accounts,
        Self::Databases,
        Self::Sequences,
        Self::Tables,
        Self::Indexes,
        Self::ForeignKeys,
        Self::Histograms,
        Self::Routines,
        Self::ViewPlaceholders,
        Self::Grants,
        Self::Views,
        Self::Triggers,
        Self::Events,
        Self::Wake,
    ];
}

/// How statements should come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendering {
    /// What becomes of definers.
    pub definer: Definer,
    /// Secondary indexes and foreign keys come after the rows, where a table's text is understood.
    pub split_tables: bool,
    /// `DATA DIRECTORY` and `INDEX DIRECTORY` stay; else files lie where the server puts them.
    pub directories: bool,
    /// Schemas that are there already are taken as they are.
    pub existing_databases: bool,
}

impl Default for Rendering {
    fn default() -> Self {
        Self {
            definer: Definer::Keep,
            split_tables: true,
            directories: true,
            existing_databases: true,
        }
    }
}

/// What a session has to be set to for a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `sql_mode`.
    pub sql_mode: String,
    /// `character_set_client`: what the statement is written in.
    pub character_set_client: String,
    /// `collation_connection`; `None` for that of the character set.
    pub collation_connection: Option<String>,
    /// `time_zone`.
    pub time_zone: String,
    /// `explicit_defaults_for_timestamp` has to be on: a column of the table would get a default
    /// that it does not have.
    pub explicit_timestamps: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // An engine that is not there is an error, never another engine. A key may be added by a copy of the
            // table, which stores each row again: zeros and dates must stay what they are.
            sql_mode: "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES".to_owned(),
            character_set_client: "utf8mb4".to_owned(),
            collation_connection: None,
            time_zone: "+00:00".to_owned(),
            explicit_timestamps: false,
        }
    }
}

impl Settings {
    /// Returns the statements that set a session, in ASCII. Foreign keys are not checked: the rows
    /// come from a server that did.
    #[must_use]
    pub fn statements(&self) -> Vec<String> {
        let names = match &self.collation_connection {
            Some(collation) => format!(
                "SET character_set_client = {}, collation_connection = {collation}",
                self.character_set_client
            ),
            None => format!("SET NAMES {}", self.character_set_client),
        };
        let session = format!(
            "SET SESSION sql_mode = {}, time_zone = {}, foreign_key_checks = 0",
            quote(&self.sql_mode),
            quote(&self.time_zone)
        );
        let timestamps = "SET SESSION explicit_defaults_for_timestamp = ON".to_owned();
        let mut all = vec![names, session];
        all.extend(self.explicit_timestamps.then_some(timestamps));
        all
    }

    fn of(program: &Program) -> Self {
        Self {
            sql_mode: program.sql_mode.clone().unwrap_or_default(),
            character_set_client: program.character_set_client.clone(),
            collation_connection: Some(program.collation_connection.clone()),
            time_zone: program.time_zone.clone().unwrap_or("+00:00".to_owned()),
            ..Self::default()
        }
    }
}

/// One statement with what it needs around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// When.
    pub phase: Phase,
    /// What it makes, or makes a part of.
    pub object: ObjectName,
    /// The default schema that its names are meant in.
    pub database: Option<String>,
    /// The settings of the session that runs it.
    pub settings: Settings,
    /// The statement, without a delimiter at its end.
    pub sql: Vec<u8>,
    /// Why it will fail on a server like the one that it came from: the view is broken there too.
    pub broken: Option<String>,
}

impl Objects {
    /// Returns the statements of one phase, in order.
    #[must_use]
    pub fn statements(&self, phase: Phase, how: &Rendering) -> Vec<Statement> {
        let mut made = Vec::new();
        match phase {
            Phase::ViewPlaceholders | Phase::Views => self.views(phase, how, &mut made),
            Phase::Accounts | Phase::Grants => self.accounts(phase, &mut made),
            _ => {
                for database in &self.databases {
                    of_database(database, phase, how, &mut made);
                }
            }
        }
        made
    }

    fn accounts(&self, phase: Phase, made: &mut Vec<Statement>) {
        for one in &self.accounts {
            let texts = match phase {
                Phase::Accounts => std::slice::from_ref(&one.create),
                _ => &one.grants,
            };
            let name = one.account.to_string();
            made.extend(texts.iter().map(|text| Statement {
                database: None,
                ..statement(phase, SchemaObjectKind::Account, "", &name, text.clone())
            }));
        }
    }

    fn views(&self, phase: Phase, how: &Rendering, made: &mut Vec<Statement>) {
        let ViewOrder {
            placeholders,
            views,
        } = view_order(&self.databases, !self.accounts.is_empty());
        if phase == Phase::ViewPlaceholders {
            made.extend(placeholders.iter().map(|(database, view)| {
                let sql = placeholder(view).into_bytes();
                statement(
                    phase,
                    SchemaObjectKind::View,
                    &database.name,
                    &view.program.name,
                    sql,
                )
            }));
            return;
        }
        let replaces = |placed: &View| {
            placeholders
                .iter()
                .any(|(_, view)| std::ptr::eq(*view, placed))
        };
        for (database, view) in views {
            let mut program = view.program.clone();
            if replaces(view) {
                program.create = or_replace(&program.create);
            }
            let sql = with_definer(&program.create, &how.definer);
            made.push(Statement {
                settings: Settings::of(&program),
                broken: view.broken.clone(),
                ..statement(
                    phase,
                    SchemaObjectKind::View,
                    &database.name,
                    &program.name,
                    sql,
                )
            });
        }
    }
}

/// Returns a view with the same columns and nothing behind them.
fn placeholder(view: &View) -> String {
    let columns = view
        .columns
        .iter()
        .map(|name| format!("1 AS {}", quote_name(name)));
    let columns: Vec<String> = columns.collect();
    let name = quote_name(&view.program.name);
    format!("CREATE VIEW {name} AS SELECT {}", columns.join(", "))
}

fn of_database(database: &Database, phase: Phase, how: &Rendering, made: &mut Vec<Statement>) {
    match phase {
        Phase::Databases => made.push(Statement {
            database: None,
            ..statement(
                phase,
                SchemaObjectKind::Database,
                &database.name,
                &database.name,
                schema(database, how),
            )
        }),
        Phase::Sequences => {
            for one in &database.sequences {
                let name = quote_name(&one.name);
                let (next, cycle) = (&one.next_value, &one.cycle_count);
                let value = format!("DO SETVAL({name}, {next}, 0, {cycle})");
                for sql in [one.create.clone(), value.into_bytes()] {
                    made.push(statement(
                        phase,
                        SchemaObjectKind::Sequence,
                        &database.name,
                        &one.name,
                        sql,
                    ));
                }
            }
        }
        Phase::Tables | Phase::Indexes | Phase::ForeignKeys | Phase::Histograms => {
            for table in &database.tables {
                of_table(database, table, phase, how, made);
            }
        }
        Phase::Routines => programs(database, &database.routines, phase, how, made),
        Phase::Triggers => programs(database, &database.triggers, phase, how, made),
        Phase::Events | Phase::Wake => programs(database, &database.events, phase, how, made),
        Phase::Accounts | Phase::ViewPlaceholders | Phase::Grants | Phase::Views => {}
    }
}

fn statement(
    phase: Phase,
    kind: SchemaObjectKind,
    database: &str,
    name: &str,
    sql: Vec<u8>,
) -> Statement {
    Statement {
        phase,
        object: ObjectName {
            kind,
            database: database.to_owned(),
            name: name.to_owned(),
        },
        database: Some(database.to_owned()),
        settings: Settings::default(),
        sql,
        broken: None,
    }
}

/// Returns CREATE DATABASE with everything said that a server would else take from its own defaults.
fn schema(database: &Database, how: &Rendering) -> Vec<u8> {
    let if_not_exists = if how.existing_databases {
        "IF NOT EXISTS "
    } else {
        ""
    };
    let mut sql = format!(
        "CREATE DATABASE {if_not_exists}{} DEFAULT CHARACTER SET {} COLLATE {}",
        quote_name(&database.name),
        database.charset,
        database.collation
    );
    if !database.comment.is_empty() {
        sql.push_str(&format!(
            " /*M!100501 COMMENT {} */",
            quote(&database.comment)
        ));
    }
    if database.encrypted {
        sql.push_str(" /*!80016 DEFAULT ENCRYPTION='Y' */");
    }
    sql.into_bytes()
}

fn of_table(
    database: &Database,
    table: &TableObject,
    phase: Phase,
    how: &Rendering,
    made: &mut Vec<Statement>,
) {
    let create = match how.directories {
        true => table.create.clone(),
        false => without_directories(&table.create),
    };
    let split = how.split_tables.then(|| split_table(&create)).flatten();
    let sqls: Vec<Vec<u8>> = match (phase, split) {
        (Phase::Tables, Some(split)) => vec![split.create],
        (Phase::Tables, None) => vec![create],
        (Phase::Indexes, Some(split)) => split.indexes,
        (Phase::ForeignKeys, Some(split)) => split.foreign_key.into_iter().collect(),
        (Phase::Histograms, _) => {
            let name = quote_name(&table.name);
            let one = |column: &str, buckets: u32| {
                let column = quote_name(column);
                format!("ANALYZE TABLE {name} UPDATE HISTOGRAM ON {column} WITH {buckets} BUCKETS")
            };
            let all = table.histograms.iter();
            all.map(|it| one(&it.column, it.buckets).into_bytes())
                .collect()
        }
        _ => Vec::new(),
    };
    let explicit = table
        .columns
        .iter()
        .any(|it| it.data_type == "timestamp" && !it.nullable);
    made.extend(sqls.into_iter().map(|sql| Statement {
        settings: Settings {
            explicit_timestamps: explicit,
            ..Settings::default()
        },
        ..statement(
            phase,
            SchemaObjectKind::Table,
            &database.name,
            &table.name,
            sql,
        )
    }));
}

/// Adds programs, each with the schema's collation of its time around it: what a routine's parameters
/// and variables are without a character set of their own.
fn programs(
    database: &Database,
    programs: &[Program],
    phase: Phase,
    how: &Rendering,
    made: &mut Vec<Statement>,
) {
    let collate = |collation: &str| {
        let sql = format!(
            "ALTER DATABASE {} COLLATE {collation}",
            quote_name(&database.name)
        );
        statement(
            phase,
            SchemaObjectKind::Database,
            &database.name,
            &database.name,
            sql.into_bytes(),
        )
    };
    for program in programs {
        let sqls: Vec<Vec<u8>> = match (phase, event_parts(&program.create)) {
            (Phase::Events, Some(parts)) => [Some(parts.create), parts.settle]
                .into_iter()
                .flatten()
                .collect(),
            (Phase::Wake, parts) => parts.and_then(|parts| parts.enable).into_iter().collect(),
            _ => vec![program.create.clone()],
        };
        if sqls.is_empty() {
            continue;
        }
        let made_under = program.database_collation.as_deref();
        let other = made_under.filter(|collation| *collation != database.collation);
        made.extend(other.map(collate));
        made.extend(sqls.iter().map(|sql| {
            let sql = with_definer(sql, &how.definer);
            Statement {
                settings: Settings::of(program),
                ..statement(phase, program.kind, &database.name, &program.name, sql)
            }
        }));
        made.extend(other.map(|_| collate(&database.collation)));
    }
}
