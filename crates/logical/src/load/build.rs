//! Everything that is not rows, phase by phase. What fails once the rows are loaded is reported at
//! the end, and the rest continues.

use super::request::Request;
use super::source::Source;
use super::state::{self, LoadState};
use super::target::{self, drop_statement};
use crate::objects::{ObjectName, Phase, Rendering, Runner, SchemaObjectKind, Statement};
use evenkeel_op::workers::all_joined;
use evenkeel_op::{Cancel, Error, ErrorKind, Progress, Result, Unit};
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Refusal;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// What all phases need.
pub(super) struct Builder<'a> {
    pub(super) options: &'a ConnectOptions,
    pub(super) request: &'a Request,
    pub(super) source: &'a Source,
    pub(super) state: &'a LoadState,
    /// An earlier run may have done a part.
    pub(super) resumed: bool,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
}

impl Builder<'_> {
    fn rendering(&self) -> Rendering {
        Rendering {
            definer: self.request.definer.clone(),
            split_tables: self.request.indexes_after,
            directories: false,
            existing_databases: true,
        }
    }

    /// Makes what has to be there before rows.
    ///
    /// Errors: the first that there is.
    pub(super) fn before_rows(&self, session: &mut Session) -> Result<Vec<Error>> {
        let mut failed = Vec::new();
        for phase in [
            Phase::Accounts,
            Phase::Databases,
            Phase::Sequences,
            Phase::Tables,
        ] {
            let errors = self.phase(session, phase)?;
            match errors.into_iter().next() {
                Some(error) if phase != Phase::Accounts => return Err(error),
                other => failed.extend(other),
            }
        }
        Ok(failed)
    }

    /// Makes what comes after rows, and returns what failed.
    ///
    /// Errors: those of the connection, and requests to stop.
    pub(super) fn after_rows(&self, session: &mut Session) -> Result<Vec<Error>> {
        let phases = Phase::ALL
            .into_iter()
            .filter(|phase| *phase > Phase::Tables);
        let mut failed = Vec::new();
        for phase in phases {
            failed.extend(self.phase(session, phase)?);
        }
        Ok(failed)
    }

    fn phase(&self, session: &mut Session, phase: Phase) -> Result<Vec<Error>> {
        if self.state.has(phase) {
            return Ok(Vec::new());
        }
        let mut statements = self.source.objects.statements(phase, &self.rendering());
        if self.resumed {
            self.prepare(session, phase, &mut statements)?;
        }
        let failed = match statements.is_empty() {
            true => Vec::new(),
            false => self.run(session, phase, statements)?,
        };
        if failed.is_empty() {
            state::note_phase(session, phase)?;
        }
        fail::fail_point!("load::phase");
        Ok(failed)
    }

    fn run(
        &self,
        session: &mut Session,
        phase: Phase,
        statements: Vec<Statement>,
    ) -> Result<Vec<Error>> {
        self.progress
            .phase(title(phase), Some(statements.len() as u64), Unit::Items);
        let groups = match phase {
            Phase::Indexes => by_table(statements),
            _ => VecDeque::from([statements]),
        };
        let threads = self.request.threads.min(groups.len());
        let groups = Mutex::new(groups);
        let failed = if threads <= 1 {
            self.work(session, phase, &groups)?
        } else {
            let results: Vec<Result<Vec<Error>>> = std::thread::scope(|scope| {
                let work = || {
                    let mut session = target::session(self.options, self.request)?;
                    self.work(&mut session, phase, &groups)
                };
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                all_joined(threads, "a thread of the load")
            });
            let mut failed = Vec::new();
            for result in results {
                failed.extend(result?);
            }
            failed
        };
        self.progress.end();
        Ok(failed)
    }

    /// Runs groups of statements until there are no more. A group ends at its first failure.
    fn work(
        &self,
        session: &mut Session,
        phase: Phase,
        groups: &Mutex<VecDeque<Vec<Statement>>>,
    ) -> Result<Vec<Error>> {
        let mut failed = Vec::new();
        let mut runner = Runner::new(session, &self.source.objects)?;
        loop {
            let group = groups
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            let Some(group) = group else {
                return Ok(failed);
            };
            for statement in group {
                self.cancel.check()?;
                self.one(&mut runner, phase, &statement, &mut failed)?;
                self.progress.advance(1);
                fail::fail_point!("load::statement");
            }
        }
    }

    fn one(
        &self,
        runner: &mut Runner<'_>,
        phase: Phase,
        statement: &Statement,
        failed: &mut Vec<Error>,
    ) -> Result<()> {
        let Err(error) = runner.run(statement) else {
            return Ok(());
        };
        let lost = matches!(
            error.kind(),
            ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Terminated
        );
        if lost {
            return Err(error);
        }
        // The statement ran before.
        let is_there = Refusal::of(&error) == Some(Refusal::DefinitionIsThere);
        if phase == Phase::Indexes && self.resumed && is_there {
            return Ok(());
        }
        match &statement.broken {
            Some(why) => self.progress.warn(format!(
                "{} is not created: it was already broken in the dump ({why})",
                statement.object
            )),
            None => failed.push(error),
        }
        Ok(())
    }

    /// Takes out what an earlier run made, or has it dropped where a half of it may be there.
    fn prepare(
        &self,
        session: &mut Session,
        phase: Phase,
        statements: &mut Vec<Statement>,
    ) -> Result<()> {
        let drops = |object: &ObjectName| match phase {
            Phase::Sequences
            | Phase::Routines
            | Phase::ViewPlaceholders
            | Phase::Triggers
            | Phase::Events => object.kind != SchemaObjectKind::Database,
            Phase::Views => {
                let early = self
                    .source
                    .objects
                    .statements(Phase::ViewPlaceholders, &self.rendering());
                !early.iter().any(|one| one.object == *object)
            }
            _ => false,
        };
        // An earlier phase may have left the session in another character set.
        session.run("SET NAMES utf8mb4")?;
        let there = match phase {
            Phase::Tables => existing(session, "TABLES", "TABLE_SCHEMA", "1 = 1")?,
            Phase::ForeignKeys => existing(
                session,
                "TABLE_CONSTRAINTS",
                "TABLE_SCHEMA",
                "CONSTRAINT_TYPE = 'FOREIGN KEY'",
            )?,
            _ => BTreeSet::new(),
        };
        statements
            .retain(|one| !there.contains(&(one.object.database.clone(), one.object.name.clone())));
        let mut dropped = BTreeSet::new();
        let mut all = Vec::new();
        for one in statements.drain(..) {
            if drops(&one.object) && dropped.insert(one.object.clone()) {
                all.push(Statement {
                    sql: drop_statement(&one.object).into_bytes(),
                    settings: crate::objects::Settings::default(),
                    broken: None,
                    ..one.clone()
                });
            }
            all.push(one);
        }
        *statements = all;
        Ok(())
    }
}

/// Returns schema and name of the tables in a list of `information_schema`.
fn existing(
    session: &mut Session,
    list: &str,
    schema: &str,
    condition: &str,
) -> Result<BTreeSet<(String, String)>> {
    let own = quote(state::SCHEMA);
    let rows = session.rows(&format!(
        "SELECT {schema}, TABLE_NAME FROM information_schema.{list} \
         WHERE {schema} <> {own} AND {condition}"
    ))?;
    let text = |row: &evenkeel_server::connect::Row, at| row.at(at).unwrap_or("").to_owned();
    Ok(rows
        .iter()
        .map(|row| (text(row, 0), text(row, 1)))
        .collect())
}

/// Parts statements by what they make; those of one table stay in order.
fn by_table(statements: Vec<Statement>) -> VecDeque<Vec<Statement>> {
    let mut groups: VecDeque<Vec<Statement>> = VecDeque::new();
    for one in statements {
        match groups.back_mut() {
            Some(group) if group[0].object == one.object => group.push(one),
            _ => groups.push_back(vec![one]),
        }
    }
    groups
}

fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Accounts => "creating accounts",
        Phase::Databases => "creating databases",
        Phase::Sequences => "creating sequences",
        Phase::Tables => "creating tables",
        Phase::Indexes => "creating indexes",
        Phase::ForeignKeys => "creating foreign keys",
        Phase::Histograms => "creating histograms",
        Phase::Routines => "creating routines",
        Phase::ViewPlaceholders => "creating placeholders for views",
        Phase::Grants => "granting privileges",
        Phase::Views => "creating views",
        Phase::Triggers => "creating triggers",
        Phase::Events => "creating events",
        Phase::Wake => "waking events",
    }
}
