//! A history in a schema of a server.

use super::VERSION;
use super::store::{Store, TABLES, Value};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::mysql::prelude::Queryable;
use evenkeel_server::connect::mysql::{Params, Row, Value as SqlValue};
use evenkeel_server::connect::{Session, query_error, quote, quote_name};
use evenkeel_server::options::ConnectOptions;

/// What the session needs, whatever the server's settings are. The wait is for another program that writes.
const SETTINGS: &str =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 60, autocommit = 1";

pub(super) struct InServer {
    session: Session,
}

impl InServer {
    /// Connects, and makes the schema and the tables where they do not exist.
    ///
    /// Errors: those of the server.
    pub(super) fn open(options: &ConnectOptions, schema: &str) -> Result<Self> {
        let mut session = Session::open(options)?;
        session.run(SETTINGS)?;
        let known = format!(
            "SELECT 1 FROM information_schema.schemata WHERE schema_name = {}",
            quote(schema)
        );
        if session.value(&known)?.is_none() {
            let name = quote_name(schema);
            session
                .run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))
                .map_err(|error| {
                    error.hint(format!(
                        "or let an administrator make it: CREATE DATABASE {name}"
                    ))
                })?;
        }
        session.run(&format!("USE {}", quote_name(schema)))?;
        let mut store = Self { session };
        store.make_tables(schema)?;
        store.check_tables(schema)?;
        Ok(store)
    }

    /// Returns where the server is.
    pub(super) fn place(&self) -> &str {
        self.session.place()
    }

    /// Refuses tables that would not keep all of a period or nothing of it, and what may change what is written.
    fn check_tables(&mut self, schema: &str) -> Result<()> {
        let ours = "IN ('digest_history', 'digest_period', 'digest_class')";
        let odd = self.session.value(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = {} AND table_name {ours} \
             AND (engine IS NULL OR engine NOT IN \
             (SELECT engine FROM information_schema.engines WHERE transactions = 'YES')) LIMIT 1",
            quote(schema)
        ))?;
        if let Some(table) = odd {
            let table = format!("{}.{}", quote_name(schema), quote_name(&table));
            return Err(Error::refused(format!(
                "{table} has no transactions: a run that is killed would leave half a period in it"
            ))
            .hint(format!("change it: ALTER TABLE {table} ENGINE = InnoDB"))
            .hint("or name another schema: mysql://HOST/SCHEMA"));
        }
        // Only those are seen on which the account has the TRIGGER privilege.
        let trigger = self.session.value(&format!(
            "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = {} \
             AND event_object_table {ours} LIMIT 1",
            quote(schema)
        ))?;
        match trigger {
            Some(trigger) => Err(Error::refused(format!(
                "the history in {} has the trigger {}, which no history has: it may change what is kept",
                quote_name(schema),
                quote_name(&trigger)
            ))
            .hint("drop it, or name another schema: mysql://HOST/SCHEMA")),
            None => Ok(()),
        }
    }

    fn make_tables(&mut self, schema: &str) -> Result<()> {
        let count = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = {} \
             AND table_name IN ('digest_history', 'digest_period', 'digest_class')",
            quote(schema)
        );
        if self.session.value(&count)?.as_deref() != Some("3") {
            for table in TABLES {
                let sql = format!(
                    "{table} ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
                );
                self.session.run(&sql)?;
            }
        }
        let first = self.session.value("SELECT version FROM digest_history")?;
        match first {
            Some(_) => Ok(()),
            None => self.session.run(&format!(
                "INSERT IGNORE INTO digest_history (id, version, next_number, writes) VALUES (1, {VERSION}, 1, 0)"
            )),
        }
    }
}

impl Store for InServer {
    fn begin(&mut self) -> Result<()> {
        self.session.run("START TRANSACTION")
    }

    fn commit(&mut self) -> Result<()> {
        self.session.run("COMMIT")
    }

    fn roll_back(&mut self) {
        // Where the connection is lost, the server has done it.
        let _ = self.session.run("ROLLBACK");
    }

    fn run(&mut self, sql: &str, values: &[Value]) -> Result<()> {
        let done = self.session.raw().exec_drop(sql, parameters(values));
        done.map_err(|error| failed(query_error(&error, sql)))
    }

    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>> {
        let rows = self.session.raw().exec(sql, parameters(values));
        let rows: Vec<Row> = rows.map_err(|error| failed(query_error(&error, sql)))?;
        let of = |row: Row| row.unwrap().into_iter().map(value).collect();
        Ok(rows.into_iter().map(of).collect())
    }
}

fn failed(error: Error) -> Error {
    error.hint("nothing of this run was added to the history; repeat the command")
}

fn parameters(values: &[Value]) -> Params {
    if values.is_empty() {
        return Params::Empty;
    }
    let of = |value: &Value| match value {
        Value::Null => SqlValue::NULL,
        Value::Integer(number) => SqlValue::Int(*number),
        Value::Text(text) => SqlValue::Bytes(text.clone().into_bytes()),
    };
    Params::Positional(values.iter().map(of).collect())
}

fn value(value: SqlValue) -> Value {
    match value {
        SqlValue::Int(number) => Value::Integer(number),
        SqlValue::UInt(number) => Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
        SqlValue::Bytes(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Value::Null,
    }
}
