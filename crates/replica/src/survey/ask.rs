//! The questions to one server, in an order in which a full disk is noticed before anything hangs.

use super::facts::{Busy, Facts, Identity, LoggedFile, WorkerError};
use super::{Questions, Shared};
use evenkeel_binlog::GtidSet;
use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::abilities::{Abilities, GtidKind};
use evenkeel_server::connect::{Ask, Row, RowLimit, quote};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Channel, Position, ThreadState};
use evenkeel_wire::BoundedSession;
use std::sync::PoisonError;

/// No answer is longer.
const MOST: RowLimit = RowLimit {
    rows: 200_000,
    bytes: 32 << 20,
};
/// What threads say that wait for a disk to have space again, on MariaDB and MySQL.
const OUT_OF_SPACE: [&str; 2] = [
    "waiting for someone to free space",
    "waiting for disk space",
];
const THREADS: &str = "SELECT p.ID, p.USER, p.COMMAND, p.TIME, p.STATE, LEFT(p.INFO, 200), \
    TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), TIMESTAMPDIFF(SECOND, t.trx_wait_started, NOW()) FROM information_schema.PROCESSLIST p \
    LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID \
    WHERE p.ID <> CONNECTION_ID()";
const VARIABLES: [&str; 8] = [
    "slave_parallel_workers",
    "replica_parallel_workers",
    "slave_parallel_threads",
    "read_only",
    "server_uuid",
    "server_id",
    "hostname",
    "port",
];

/// A server that is being asked.
pub(super) struct Asking<'a> {
    session: BoundedSession,
    abilities: Abilities,
    step: &'a Shared,
    refused: Vec<String>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(options: &ConnectOptions, step: &'a Shared) -> Result<Self> {
        let mut session = BoundedSession::open(options, MOST)?;
        {
            let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
            step.session = Some(session.id());
            "the first statements of a session".clone_into(&mut step.asks);
        }
        let abilities = Abilities::probe(&mut session)?;
        Ok(Self {
            session,
            abilities,
            step,
            refused: Vec::new(),
        })
    }

    /// Asks everything.
    pub(super) fn all(mut self, questions: &Questions) -> Result<Facts> {
        let busy = self.busy()?;
        let is_out_of_space = busy.iter().any(|thread| thread.is_out_of_space());
        let variables = self.variables()?;
        let mut facts = self.facts(&variables, busy)?;
        facts.is_out_of_space = is_out_of_space;
        if !is_out_of_space {
            self.replication(&mut facts)?;
            self.logs(&mut facts)?;
        }
        if let Some(table) = &questions.heartbeat {
            facts.heartbeat_s = self.heartbeat(table)?;
        }
        facts.refused = self.refused;
        Ok(facts)
    }

    fn asks(&self, what: &str) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        what.clone_into(&mut step.asks);
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.asks(sql);
        self.session.rows(sql)
    }

    /// Asks what the answer can do without; a refusal is kept.
    fn try_rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        match self.rows(sql) {
            Ok(rows) => Ok(rows),
            Err(error) if error.kind() == ErrorKind::Unreachable || self.session.is_lost() => {
                Err(error)
            }
            Err(error) => {
                self.refused.push(error.chain());
                Ok(Vec::new())
            }
        }
    }

    fn busy(&mut self) -> Result<Vec<Busy>> {
        let rows = self.try_rows(THREADS)?;
        let number = |row: &Row, at| row.at(at).and_then(|text| text.parse().ok());
        let text = |row: &Row, at| row.at(at).unwrap_or_default().to_owned();
        let threads = rows.iter().map(|row| Busy {
            id: number(row, 0).unwrap_or(0),
            user: text(row, 1),
            command: text(row, 2),
            seconds: number(row, 3).unwrap_or(0),
            does: text(row, 4),
            statement: text(row, 5),
            transaction_s: number(row, 6),
            row_wait_s: number(row, 7),
        });
        let is_busy = |thread: &Busy| {
            thread.transaction_s.is_some() || !matches!(thread.command.as_str(), "Sleep" | "Daemon")
        };
        Ok(threads.filter(is_busy).collect())
    }

    fn variables(&mut self) -> Result<Vec<(String, String)>> {
        let names = VARIABLES.map(|name| format!("'{name}'")).join(", ");
        let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
        let rows = self.rows(&sql)?;
        let pair = |row: &Row| Some((row.at(0)?.to_ascii_lowercase(), row.at(1)?.to_owned()));
        Ok(rows.iter().filter_map(pair).collect())
    }

    fn facts(&mut self, variables: &[(String, String)], busy: Vec<Busy>) -> Result<Facts> {
        let of = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let workers = [
            "replica_parallel_workers",
            "slave_parallel_workers",
            "slave_parallel_threads",
        ];
        let workers = workers.into_iter().find_map(|name| of(name)?.parse().ok());
        let identity = Identity {
            id: of("server_id").and_then(|id| id.parse().ok()).unwrap_or(0),
            uuid: of("server_uuid").map(str::to_owned),
            hostname: of("hostname").unwrap_or_default().to_owned(),
            port: of("port").and_then(|port| port.parse().ok()).unwrap_or(0),
            is_read_only: of("read_only").is_some_and(|value| !matches!(value, "OFF" | "0")),
            version: String::new(),
        };
        let version = self.rows("SELECT VERSION()")?;
        let version = version.first().and_then(|row| row.at(0));
        Ok(Facts {
            identity: Identity {
                version: version.unwrap_or_default().to_owned(),
                ..identity
            },
            abilities: self.abilities.clone(),
            channels: Vec::new(),
            workers: workers.unwrap_or(0),
            applied: GtidSet::default(),
            logged: GtidSet::default(),
            purged: GtidSet::default(),
            knows_gtids: false,
            log_end: None,
            log_files: Vec::new(),
            worker_errors: Vec::new(),
            unique_keys: Vec::new(),
            busy,
            relay_logs_gone: Vec::new(),
            heartbeat_s: None,
            is_out_of_space: false,
            refused: Vec::new(),
        })
    }

    fn replication(&mut self, facts: &mut Facts) -> Result<()> {
        self.asks("the statement for the state of replication");
        facts.channels = match Channel::all(&mut self.session, &self.abilities) {
            Err(error) if error.kind() == ErrorKind::Refused => {
                self.refused.push(error.chain());
                return Ok(());
            }
            other => other?,
        };
        let refused = self.refused.len();
        (facts.applied, facts.logged, facts.purged) = self.gtids()?;
        facts.knows_gtids = self.abilities.gtid != GtidKind::None && self.refused.len() == refused;
        if !self.abilities.show_all_replicas_status && !facts.channels.is_empty() {
            facts.worker_errors = self.worker_errors()?;
        }
        for table in tables_in_errors(facts) {
            if let Some(keys) = self.unique_keys(&table)? {
                facts.unique_keys.push((table, keys));
            }
        }
        let stands = |channel: &Channel| {
            channel.receiver == ThreadState::Stopped
                && channel.applier == ThreadState::Stopped
                && channel.receiver_error.is_none()
                && channel.applier_error.is_none()
        };
        let standing = facts.channels.iter().filter(|channel| stands(channel));
        let standing: Vec<String> = standing.map(|channel| channel.name.clone()).collect();
        for channel in standing {
            // It stands without an error: is what it would read next still there?
            if let Some(why) = self.relay_log_gone(&channel)? {
                facts.relay_logs_gone.push((channel, why));
            }
        }
        Ok(())
    }

    /// Asks which unique keys a table has; `None` where there is no such table.
    fn unique_keys(&mut self, table: &(String, String)) -> Result<Option<Vec<String>>> {
        let (database, name) = (quote(&table.0), quote(&table.1));
        let place = format!("TABLE_SCHEMA = {database} AND TABLE_NAME = {name}");
        let exists = format!("SELECT 1 FROM information_schema.TABLES WHERE {place}");
        if self.try_rows(&exists)?.is_empty() {
            return Ok(None);
        }
        let rows = self.try_rows(&format!(
            "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS \
             WHERE {place} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME"
        ))?;
        let names = rows.iter().filter_map(|row| row.at(0)).map(str::to_owned);
        Ok(Some(names.collect()))
    }

    fn gtids(&mut self) -> Result<(GtidSet, GtidSet, GtidSet)> {
        let sql = match self.abilities.gtid {
            GtidKind::None => return Ok(<_>::default()),
            GtidKind::MariaDb => "SELECT @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_state, ''",
            GtidKind::MySql => {
                "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged"
            }
        };
        let rows = self.rows(sql)?;
        let mut set = |at: usize| -> GtidSet {
            let text = rows.first().and_then(|row| row.at(at)).unwrap_or_default();
            let text: String = text.split_whitespace().collect();
            text.parse().unwrap_or_else(|_| {
                self.refused
                    .push(format!("GTIDs that cannot be read: {text}"));
                GtidSet::default()
            })
        };
        Ok((set(0), set(1), set(2)))
    }

    fn worker_errors(&mut self) -> Result<Vec<WorkerError>> {
        let rows = self.try_rows(
            "SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE \
             FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0",
        )?;
        let text = |row: &Row, at| row.at(at).unwrap_or_default().to_owned();
        let errors = rows.iter().map(|row| WorkerError {
            channel: text(row, 0),
            number: row.at(1).and_then(|text| text.parse().ok()).unwrap_or(0),
            text: text(row, 2),
        });
        Ok(errors.collect())
    }

    fn relay_log_gone(&mut self, channel: &str) -> Result<Option<String>> {
        let name = quote(channel);
        let sql = match (channel, self.abilities.show_all_replicas_status) {
            ("", _) => "SHOW RELAYLOG EVENTS LIMIT 1".to_owned(),
            (_, true) => format!("SHOW RELAYLOG {name} EVENTS LIMIT 1"),
            (_, false) => format!("SHOW RELAYLOG EVENTS LIMIT 1 FOR CHANNEL {name}"),
        };
        self.asks(&sql);
        match self.session.rows(&sql) {
            // Every relay log begins with an event.
            Ok(rows) if rows.is_empty() => Ok(Some(format!("{sql} shows nothing"))),
            Ok(_) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Unreachable) => Err(error),
            Err(error) if error.kind() == ErrorKind::Refused => {
                self.refused.push(error.chain());
                Ok(None)
            }
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    fn logs(&mut self, facts: &mut Facts) -> Result<()> {
        let sql = match self.abilities.show_binary_log_status {
            true => "SHOW BINARY LOG STATUS",
            false => "SHOW MASTER STATUS",
        };
        let rows = self.try_rows(sql)?;
        facts.log_end = rows.first().and_then(|row| {
            Some(Position {
                file: row.at(0)?.to_owned(),
                position: row.at(1)?.parse().ok()?,
            })
        });
        if facts.log_end.is_some() {
            let rows = self.try_rows("SHOW BINARY LOGS")?;
            let file = |row: &Row| {
                Some(LoggedFile {
                    name: row.at(0)?.to_owned(),
                    bytes: row.at(1)?.parse().ok()?,
                })
            };
            facts.log_files = rows.iter().filter_map(file).collect();
        }
        Ok(())
    }

    fn heartbeat(&mut self, table: &str) -> Result<Option<f64>> {
        let sql =
            format!("SELECT TIMESTAMPDIFF(MICROSECOND, MAX(at), UTC_TIMESTAMP(6)) FROM {table}");
        let rows = self.try_rows(&sql)?;
        let age = rows.first().and_then(|row| row.at(0)?.parse::<f64>().ok());
        Ok(age.map(|micros| micros / 1e6))
    }
}

/// Returns the tables that errors of appliers name: `… event on table shop.orders; …`.
fn tables_in_errors(facts: &Facts) -> Vec<(String, String)> {
    let own = facts.channels.iter();
    let own = own.filter_map(|channel| Some(channel.applier_error.as_ref()?.1.as_str()));
    let workers = facts.worker_errors.iter().map(|error| error.text.as_str());
    let mut tables: Vec<(String, String)> = own.chain(workers).filter_map(table_in_error).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Returns the table that an error of an applier names.
#[must_use]
pub fn table_in_error(text: &str) -> Option<(String, String)> {
    let (_, behind) = text.split_once(" event on table ")?;
    let (named, _) = behind.split_once(';')?;
    // Names may have dots, which the server does not quote here; the database's rarely has.
    let (database, table) = named.split_once('.')?;
    Some((database.to_owned(), table.to_owned()))
}

impl Busy {
    /// Whether it waits until a disk has space again.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        let does = self.does.to_ascii_lowercase();
        OUT_OF_SPACE.iter().any(|says| does.contains(says))
    }
}
