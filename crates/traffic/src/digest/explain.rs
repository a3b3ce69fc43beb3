//! How a server would run the slowest statement of a class.
//!
//! Nothing but queries is explained, in a transaction that may only read. To make a plan, servers may run parts of a
//! query, such as subqueries without a table outside of them: so each has a deadline, and is killed then.

use super::Class;
use crate::replay::is_query;
use evenkeel_op::{Cancel, Error, Result, units};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_sql::Mode;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(50);

/// Where and how statements are explained.
#[derive(Debug, Clone)]
pub struct ExplainOptions {
    /// The server.
    pub connect: ConnectOptions,
    /// How it reads statements.
    pub mode: Mode,
    /// The modes that the sessions had besides the server's own.
    pub sql_mode: String,
    /// How long one may take.
    pub deadline: Duration,
}

/// What became of a class that was to be explained.
#[derive(Debug)]
pub enum Explained {
    /// The server's plan.
    Plan(Plan),
    /// It is not explained, because of this.
    Not(&'static str),
    /// The server did not.
    Failed(Error),
}

/// What became of each class, by its identifier.
pub type Explanations = BTreeMap<String, Explained>;

/// A server's plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the server answered.
    pub document: Value,
    /// The tables in it, in the order of the answer.
    pub tables: Vec<PlanTable>,
}

/// How a table is read. What the answer does not say is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanTable {
    /// Its name or alias.
    pub table: String,
    /// How rows are found: `ALL`, `ref`, `range`.
    pub access: String,
    /// The index that is used.
    pub key: String,
    /// How many rows the server expects to read each time.
    pub rows: Option<f64>,
    /// How many of them it expects to keep, in percent.
    pub filtered: Option<f64>,
    /// What rows have to fulfil; or what the server says in place of a plan.
    pub condition: String,
}

/// Explains the slowest statement of each class.
///
/// # Errors
///
/// `Interrupted` or `Terminated` once a stop was asked for. What the server refuses is in the result.
pub fn explain<'a>(
    classes: impl Iterator<Item = &'a Class>,
    options: &ExplainOptions,
    cancel: &Cancel,
) -> Result<Explanations> {
    let each = classes.map(|class| Ok((class.id.clone(), explained(class, options, cancel)?)));
    each.collect()
}

fn explained(class: &Class, options: &ExplainOptions, cancel: &Cancel) -> Result<Explained> {
    let Some(sample) = &class.sample else {
        return Ok(Explained::Not("there is no sample"));
    };
    if sample.sql_bytes != sample.sql.len() as u64 {
        return Ok(Explained::Not(
            "the sample is not what ran: it was cut, or hides a password",
        ));
    }
    if !is_query(sample.sql.as_bytes(), options.mode) {
        return Ok(Explained::Not("it is no query that only reads"));
    }
    let schemas = class.schemas.all();
    let usual = schemas.first().map(|(name, _)| (*name).to_owned());
    let schema = sample.schema.clone().or(usual);
    Ok(match asked(&sample.sql, schema, options, cancel) {
        Ok(answer) => match plan(&answer) {
            Some(plan) => Explained::Plan(plan),
            None => Explained::Failed(Error::failed("the server's plan is not JSON")),
        },
        Err(error) => {
            cancel.check()?;
            Explained::Failed(error)
        }
    })
}

/// Asks in a thread, so that the wait has an end.
fn asked(
    sql: &str,
    schema: Option<String>,
    options: &ExplainOptions,
    cancel: &Cancel,
) -> Result<String> {
    let (tell, answer) = sync_channel(1);
    let session = Arc::new(AtomicU64::new(0));
    let (sql, wanted, id) = (sql.to_owned(), options.clone(), session.clone());
    std::thread::Builder::new()
        .name("explain".to_owned())
        .spawn(move || {
            // Fails only when nobody waits any more.
            let _ = tell.send(answered(&sql, schema.as_deref(), &wanted, &id));
        })
        .map_err(|error| Error::failed("failed to start a thread").because(error))?;
    let until = Instant::now() + options.deadline;
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return Err(Error::failed("a thread ended")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_over = Instant::now() >= until;
        if is_over || cancel.is_cancelled() {
            let is_gone = kill(session.load(Ordering::Acquire), &options.connect);
            cancel.check()?;
            let limit = units::span(options.deadline);
            return Err(match is_gone {
                true => Error::failed(format!("no plan within {limit}; it was stopped")),
                false => Error::failed(format!("no plan within {limit}; it may still run"))
                    .hint("see SHOW PROCESSLIST"),
            }
            .hint("allow more time: --explain-timeout"));
        }
    }
}

/// Ends a session; true where it is certain that it ended.
fn kill(session: u64, connect: &ConnectOptions) -> bool {
    session == 0
        || Session::open(connect)
            .and_then(|mut other| other.run(&format!("KILL {session}")))
            .is_ok()
}

fn answered(
    sql: &str,
    schema: Option<&str>,
    options: &ExplainOptions,
    id: &AtomicU64,
) -> Result<String> {
    let mut session = Session::open(&options.connect)?;
    id.store(session.id(), Ordering::Release);
    if !options.sql_mode.is_empty() {
        let modes = quote(&format!(",{}", options.sql_mode));
        session.run(&format!(
            "SET SESSION sql_mode = CONCAT(@@sql_mode, {modes})"
        ))?;
    }
    // MySQL 8.3 has a second format, which may be the default. Others do not know the variable.
    let _ = session.run("SET SESSION explain_json_format_version = 1");
    if let Some(schema) = schema {
        session.run(&format!("USE {}", quote_name(schema)))?;
    }
    session.run("START TRANSACTION READ ONLY")?;
    let answer = session.value(&format!("EXPLAIN FORMAT=JSON {sql}"))?;
    session.run("ROLLBACK")?;
    answer.ok_or_else(|| Error::failed("the server has no plan"))
}

fn plan(answer: &str) -> Option<Plan> {
    let document: Value = serde_json::from_str(answer).ok()?;
    let mut tables = Vec::new();
    collect(&document, &mut tables);
    Some(Plan { document, tables })
}

/// Finds the tables, however deep they are.
fn collect(value: &Value, tables: &mut Vec<PlanTable>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| collect(one, tables)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if let (true, Some(table)) = (name == "table", field.as_object()) {
                    tables.push(table_of(table));
                }
                collect(field, tables);
            }
        }
        _ => {}
    }
}

fn table_of(table: &Map<String, Value>) -> PlanTable {
    let text = |name: &str| table.get(name).and_then(Value::as_str).unwrap_or_default();
    // MySQL writes some numbers as text.
    let figure = |name: &str| match table.get(name)? {
        Value::String(text) => text.parse().ok(),
        number => number.as_f64(),
    };
    let condition = match text("attached_condition") {
        "" => text("message"),
        condition => condition,
    };
    PlanTable {
        table: text("table_name").to_owned(),
        access: text("access_type").to_owned(),
        key: text("key").to_owned(),
        rows: figure("rows_examined_per_scan").or_else(|| figure("rows")),
        filtered: figure("filtered"),
        condition: condition.to_owned(),
    }
}
