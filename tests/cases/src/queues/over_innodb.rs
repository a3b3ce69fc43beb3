//! A server whose queues are SQL over InnoDB.

use super::verbs::{Ability, Queues, Reported};
use crate::SMALL;
use evenkeel_queue_admin::procedures::{perform, plan_install};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A server, and the databases that have the verbs.
#[derive(Debug)]
pub struct OverInnoDb {
    /// The server.
    pub running: Running,
    /// How it was started.
    pub launch: Launch,
    server: TestServer,
    installed: Mutex<BTreeSet<String>>,
    _scratch: Scratch,
}

impl OverInnoDb {
    /// Starts a server with more options.
    #[must_use]
    pub fn start(server: TestServer, more: &[&str]) -> Self {
        let scratch = Scratch::new();
        let mut args = SMALL.to_vec();
        if server.id == "mysql-9" {
            args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        }
        args.extend(more);
        let launch = server.prepare(&scratch.join("data"), &args);
        Self {
            running: server.run(&launch),
            launch,
            server,
            installed: Mutex::default(),
            _scratch: scratch,
        }
    }

    /// Starts it again, after it was killed or stopped by `end`.
    #[must_use]
    pub fn again(mut self, end: impl FnOnce(Running)) -> Self {
        end(self.running);
        self.running = self.server.run(&self.launch);
        self
    }
}

/// What `CALL {what}` answers.
pub fn call(session: &mut Session, what: &str) -> Reported<Option<String>> {
    let value = session.value(&format!("CALL {what}"));
    value.map_err(|why| why.chain())
}

fn number(session: &mut Session, what: &str) -> Reported<Option<i64>> {
    let value = call(session, what)?;
    Ok(value.map(|text| text.parse().expect("a number")))
}

impl Queues for OverInnoDb {
    fn form(&self) -> String {
        format!("SQL over InnoDB, {}", self.server.name)
    }

    fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::OneStatement
            | Ability::WakesAtOnce
            | Ability::Sources
            | Ability::CompactsBeside
            | Ability::IsTable => false,
            Ability::Durable | Ability::AltersOwned | Ability::TruncatesAround => true,
        }
    }

    fn open(&self, database: &str) -> Session {
        let mut session = self.running.session().expect("a session");
        let place = quote_name(database);
        let mut installed = self.installed.lock().expect("no one panics in here");
        if !installed.contains(database) {
            session
                .run(&format!("CREATE DATABASE IF NOT EXISTS {place}"))
                .expect("a database");
            let plan = plan_install(&mut session, database);
            let done = plan.and_then(|plan| perform(&mut session, &plan));
            done.unwrap_or_else(|why| panic!("{}: {}", self.server.name, why.chain()));
            installed.insert(database.to_owned());
        }
        drop(installed);
        session.run(&format!("USE {place}")).expect("it is used");
        session
    }

    fn create(&self, session: &mut Session, name: &str, columns: &str) -> Reported<()> {
        let (name, columns) = (quote(name), quote(columns));
        call(session, &format!("queue_create({name}, {columns})")).map(drop)
    }

    fn discard(&self, session: &mut Session, name: &str) -> Reported<()> {
        call(session, &format!("queue_drop({})", quote(name))).map(drop)
    }

    fn truncate(&self, session: &mut Session, name: &str) -> Reported<()> {
        call(session, &format!("queue_truncate({})", quote(name))).map(drop)
    }

    fn rename(&self, session: &mut Session, from: &str, to: &str) -> Reported<()> {
        let (from, to) = (quote(from), quote(to));
        call(session, &format!("queue_rename({from}, {to})")).map(drop)
    }

    fn alter(&self, session: &mut Session, name: &str, change: &str) -> Reported<()> {
        let (name, change) = (quote(name), quote(change));
        call(session, &format!("queue_alter({name}, {change})")).map(drop)
    }

    fn wait(&self, session: &mut Session, what: &[&str], seconds: f64) -> Reported<Option<i64>> {
        let what = match what {
            [one] => (*one).to_owned(),
            several => serde_json::to_string(several).expect("texts"),
        };
        number(session, &format!("queue_wait({}, {seconds})", quote(&what)))
    }

    fn wait_n(
        &self,
        session: &mut Session,
        what: &str,
        most: u64,
        seconds: f64,
    ) -> Reported<Option<i64>> {
        let what = quote(what);
        number(session, &format!("queue_wait_n({what}, {most}, {seconds})"))
    }

    fn end(&self, session: &mut Session) -> Reported<i64> {
        Ok(number(session, "queue_end()")?.unwrap_or_default())
    }

    fn abort(&self, session: &mut Session) -> Reported<i64> {
        Ok(number(session, "queue_abort()")?.unwrap_or_default())
    }

    fn row_id(&self, session: &mut Session) -> Reported<Option<i64>> {
        number(session, "queue_rowid()")
    }

    fn set_source(&self, session: &mut Session, slot: i64, mode: &str, id: i64) -> Reported<i64> {
        let what = format!("queue_set_srcid({slot}, {}, {id})", quote(mode));
        Ok(number(session, &what)?.unwrap_or_default())
    }

    fn compact(&self, session: &mut Session, name: &str) -> Reported<Option<i64>> {
        number(session, &format!("queue_compact({})", quote(name)))
    }

    fn stats(&self, session: &mut Session, name: &str) -> Reported<Option<String>> {
        call(session, &format!("queue_stats({})", quote(name)))
    }
}
