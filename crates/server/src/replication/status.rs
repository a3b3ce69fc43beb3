//! Reads the replication status of every server's dialect.
//!
//! Columns are looked for by name, whatever their case and number. What is missing is unknown, and
//! never taken for well.

use crate::abilities::{Abilities, GtidKind};
use crate::connect::{Ask, Row, Session};
use evenkeel_op::Result;
use serde::{Deserialize, Serialize};

/// State of a replication thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// It runs.
    Running,
    /// It is there and waits for its source to answer.
    Connecting,
    /// It does not run.
    Stopped,
    /// The server does not say.
    Unknown,
}

/// A place in a binary log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// File name without directory.
    pub file: String,
    /// Byte position in it.
    pub position: u64,
}

/// How a replica tells its source where to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positioning {
    /// By file and position.
    File,
    /// By GTIDs, which the replica keeps with its data.
    Gtid,
}

/// One source that a server replicates from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Name of the channel or connection; empty for the default one.
    pub name: String,
    /// Host of the source.
    pub host: String,
    /// Port of the source.
    pub port: Option<u16>,
    /// Account at the source.
    pub user: String,
    /// Whether the connection to the source should be encrypted.
    pub tls: bool,
    /// Whether the replica asks its source for its public key (MySQL 8).
    pub public_key: bool,
    /// The thread that fetches.
    pub receiver: ThreadState,
    /// The thread that applies.
    pub applier: ThreadState,
    /// The receiver's state in the server's word: `Yes`, `No`, `Connecting`, `Preparing`.
    pub receiver_word: String,
    /// What the receiver does at the moment, in the server's words.
    pub receiver_does: String,
    /// What the applier does at the moment, in the server's words.
    pub applier_does: String,
    /// Number that the source gave for itself, if it ever answered.
    pub source_id: Option<u64>,
    /// MySQL: UUID of the source, if it ever answered.
    pub source_uuid: Option<String>,
    /// Up to where the source's binary log was fetched.
    pub received: Option<Position>,
    /// Up to where everything was applied, in the source's binary log.
    pub executed: Option<Position>,
    /// Up to where the relay log was applied.
    pub relay: Option<Position>,
    /// How it continues from there.
    pub positioning: Positioning,
    /// MariaDB: up to which GTIDs was fetched. MySQL: what was fetched. Without white space.
    pub received_gtid: Option<String>,
    /// So many seconds does the applier wait on purpose.
    pub delay_s: u64,
    /// Some of what the source logs is not applied on purpose.
    pub is_filtered: bool,
    /// The applier must stop by itself at some point.
    pub until: bool,
    /// How far behind, in seconds, as the server says: 0 also while the source is frozen.
    pub lag_s: Option<u64>,
    /// Number and text of the receiver's error.
    pub receiver_error: Option<(u32, String)>,
    /// Number and text of the applier's error.
    pub applier_error: Option<(u32, String)>,
}

/// What a server replicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// One for each source; none when the server replicates from nobody.
    pub channels: Vec<Channel>,
    /// MariaDB: `gtid_slave_pos`. MySQL: `gtid_executed`. Without white space.
    pub gtid: Option<String>,
    /// Temporary tables of the appliers: they are in no image.
    pub temporary_tables: u64,
    /// Parallel workers of each applier; 0 when it works alone.
    pub workers: u64,
}

impl Replication {
    /// Asks the server. Errors: those of the session; `Refused` without the privilege.
    ///
    /// Not to be asked under a lock that stops commits: some MySQL versions hold the status back
    /// while an applier waits for such a lock.
    pub fn read(session: &mut dyn Ask, abilities: &Abilities) -> Result<Self> {
        let channels = Channel::all(session, abilities)?;
        if channels.is_empty() {
            return Ok(Self {
                channels,
                gtid: None,
                temporary_tables: 0,
                workers: 0,
            });
        }
        Ok(Self {
            channels,
            gtid: gtid(session, abilities)?,
            temporary_tables: temporary_tables(session)?,
            workers: workers(session)?,
        })
    }
}

impl Channel {
    /// Asks the server for its sources, with one statement. Errors and a warning: those of [`Replication::read`].
    pub fn all(session: &mut dyn Ask, abilities: &Abilities) -> Result<Vec<Self>> {
        let rows = session.rows(statement(abilities))?;
        let channels = rows.iter().map(|row| channel(&Status(row)));
        // Group replication drives its own channels: they are not to be stopped by hand.
        Ok(channels
            .filter(|channel| !channel.name.starts_with("group_replication_"))
            .collect())
    }
}

/// Returns the statement that has a row for each source.
pub(super) fn statement(abilities: &Abilities) -> &'static str {
    if abilities.show_all_replicas_status {
        "SHOW ALL SLAVES STATUS"
    } else if abilities.show_replica_status {
        "SHOW REPLICA STATUS"
    } else {
        "SHOW SLAVE STATUS"
    }
}

fn gtid(session: &mut dyn Ask, abilities: &Abilities) -> Result<Option<String>> {
    let text = match abilities.gtid {
        GtidKind::None => None,
        GtidKind::MariaDb => session.value("SELECT @@GLOBAL.gtid_slave_pos")?,
        GtidKind::MySql => session.value("SELECT @@GLOBAL.gtid_executed")?,
    };
    let text = text.map(|text| text.split_whitespace().collect::<String>());
    Ok(text.filter(|text| !text.is_empty()))
}

/// How many temporary tables the appliers have open.
pub(super) fn temporary_tables(session: &mut dyn Ask) -> Result<u64> {
    for name in ["Slave_open_temp_tables", "Replica_open_temp_tables"] {
        let row = session.one(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        if let Some(number) = row.as_ref().and_then(|row| row.at(1)?.parse().ok()) {
            return Ok(number);
        }
    }
    Ok(0)
}

fn workers(session: &mut dyn Ask) -> Result<u64> {
    for name in [
        "replica_parallel_workers",
        "slave_parallel_workers",
        "slave_parallel_threads",
    ] {
        if let Some(number) = session.variable(name)?.and_then(|text| text.parse().ok()) {
            return Ok(number);
        }
    }
    Ok(0)
}

/// A row of a status, under the names of old: newer servers renamed them.
pub(super) struct Status<'r>(pub(super) &'r Row);

impl Status<'_> {
    /// Name of the channel or connection; empty for the default one.
    pub(super) fn channel(&self) -> &str {
        let name = self.get("Connection_name");
        name.or_else(|| self.get("Channel_Name"))
            .unwrap_or_default()
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).or_else(|| {
            let renamed = name.replace("Master", "Source").replace("Slave", "Replica");
            self.0.get(&renamed)
        })
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.parse().ok()
    }

    fn position(&self, file: &str, position: &str) -> Option<Position> {
        let file = self.get(file).filter(|file| !file.is_empty())?.to_owned();
        let position = self.number(position)?;
        Some(Position { file, position })
    }

    fn says(&self, name: &str, what: &str) -> bool {
        self.get(name)
            .is_some_and(|text| text.eq_ignore_ascii_case(what))
    }

    fn thread(&self, name: &str) -> ThreadState {
        match self.get(name).unwrap_or_default() {
            "Yes" => ThreadState::Running,
            "Connecting" | "Preparing" => ThreadState::Connecting,
            "No" => ThreadState::Stopped,
            _ => ThreadState::Unknown,
        }
    }

    fn error(&self, number: &str, text: &str) -> Option<(u32, String)> {
        let number = self.number(number).filter(|number| *number != 0)?;
        Some((number, self.text(text)))
    }
}

fn channel(row: &Status<'_>) -> Channel {
    let filters = [
        "Replicate_Do_DB",
        "Replicate_Ignore_DB",
        "Replicate_Do_Table",
        "Replicate_Ignore_Table",
        "Replicate_Wild_Do_Table",
        "Replicate_Wild_Ignore_Table",
        "Replicate_Do_Domain_Ids",
        "Replicate_Ignore_Domain_Ids",
        "Replicate_Ignore_Server_Ids",
    ];
    let received_gtid = row
        .get("Gtid_IO_Pos")
        .or_else(|| row.get("Retrieved_Gtid_Set"));
    let received_gtid = received_gtid.map(|text| text.split_whitespace().collect::<String>());
    let by_gtid =
        row.get("Using_Gtid").is_some_and(|how| how != "No") || row.says("Auto_Position", "1");
    Channel {
        name: row.channel().to_owned(),
        host: row.text("Master_Host"),
        port: row.number("Master_Port"),
        user: row.text("Master_User"),
        tls: row.says("Master_SSL_Allowed", "Yes"),
        public_key: row.says("Get_master_public_key", "1")
            || row.says("Get_Source_public_key", "1"),
        receiver: row.thread("Slave_IO_Running"),
        applier: row.thread("Slave_SQL_Running"),
        receiver_word: row.text("Slave_IO_Running"),
        receiver_does: row.text("Slave_IO_State"),
        applier_does: row.text("Slave_SQL_Running_State"),
        source_id: row.number("Master_Server_Id").filter(|id| *id != 0),
        source_uuid: row
            .get("Master_UUID")
            .filter(|uuid| !uuid.is_empty())
            .map(str::to_owned),
        received: row.position("Master_Log_File", "Read_Master_Log_Pos"),
        executed: row.position("Relay_Master_Log_File", "Exec_Master_Log_Pos"),
        relay: row.position("Relay_Log_File", "Relay_Log_Pos"),
        received_gtid: received_gtid.filter(|text| !text.is_empty()),
        delay_s: row.number("SQL_Delay").unwrap_or(0),
        is_filtered: filters.iter().any(|name| {
            row.get(name)
                .is_some_and(|listed| !matches!(listed.trim(), "" | "()"))
        }),
        positioning: if by_gtid {
            Positioning::Gtid
        } else {
            Positioning::File
        },
        until: row
            .get("Until_Condition")
            .is_some_and(|until| !until.is_empty() && until != "None"),
        lag_s: row.number("Seconds_Behind_Master"),
        receiver_error: row.error("Last_IO_Errno", "Last_IO_Error"),
        applier_error: row.error("Last_SQL_Errno", "Last_SQL_Error"),
    }
}

/// What the tables say that a server keeps with its data: read while commits wait, it is what an
/// image of that moment holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// MariaDB's position by GTIDs.
    pub gtid: Option<String>,
    /// Place in the source's binary log for each channel whose applier works alone.
    pub positions: Vec<(String, Position)>,
}

/// Reads how far the appliers got from the tables that are written in the applied transactions
/// themselves. To be asked while commits wait; harmless under any lock.
///
/// Errors: those of the session.
pub fn applied_under_lock(session: &mut Session, abilities: &Abilities) -> Result<Applied> {
    let mut applied = Applied::default();
    if abilities.gtid == GtidKind::MariaDb {
        let rows = session.rows(
            "SELECT domain_id, server_id, seq_no FROM mysql.gtid_slave_pos \
             ORDER BY domain_id, sub_id",
        )?;
        applied.gtid = last_of_each_domain(&rows);
        return Ok(applied);
    }
    let in_table = session
        .variable("relay_log_info_repository")?
        .is_none_or(|place| place.eq_ignore_ascii_case("TABLE"));
    // With workers this table is behind what they did.
    if !in_table || workers(session)? > 0 {
        return Ok(applied);
    }
    let rows = session.rows(
        "SELECT Channel_name, Master_log_name, Master_log_pos FROM mysql.slave_relay_log_info",
    )?;
    for row in &rows {
        let place = row.at(1).filter(|file| !file.is_empty());
        if let (Some(name), Some(file), Some(Ok(position))) =
            (row.at(0), place, row.at(2).map(str::parse))
        {
            let file = file.to_owned();
            applied
                .positions
                .push((name.to_owned(), Position { file, position }));
        }
    }
    Ok(applied)
}

/// Rows of domain, server and number, the newest of each domain last.
fn last_of_each_domain(rows: &[Row]) -> Option<String> {
    let mut last: Vec<(&str, String)> = Vec::new();
    for row in rows {
        let (domain, server, number) = (row.at(0)?, row.at(1)?, row.at(2)?);
        let gtid = format!("{domain}-{server}-{number}");
        match last.last_mut() {
            Some((known, newest)) if *known == domain => *newest = gtid,
            _ => last.push((domain, gtid)),
        }
    }
    let all: Vec<String> = last.into_iter().map(|(_, gtid)| gtid).collect();
    (!all.is_empty()).then(|| all.join(","))
}
