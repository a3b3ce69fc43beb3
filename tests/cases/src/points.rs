//! Rows by which a point in time is known: each is one transaction, numbered.

use crate::Site;
use crate::program::{Ended, Evenkeel, run};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use std::path::Path;

/// Where a server is in its binary log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The file.
    pub file: String,
    /// The position in it.
    pub position: u64,
    /// GTID of the last transaction.
    pub gtid: String,
}

impl Mark {
    /// Returns the place as `--to` takes it, moved by some bytes.
    #[must_use]
    pub fn moved(&self, bytes: i64) -> String {
        format!(
            "{}:{}",
            self.file,
            self.position.saturating_add_signed(bytes)
        )
    }
}

/// Makes the table. In its own right the first row that is not there tells where a restore ended.
pub fn make_table(session: &mut Session) {
    session.run("CREATE DATABASE points").expect("a schema");
    session
        .run("CREATE TABLE points.n (id INT PRIMARY KEY) ENGINE=InnoDB")
        .expect("a table");
}

/// Adds a row in a transaction of its own, and returns where the log is then.
pub fn add(session: &mut Session, id: u32) -> Mark {
    session
        .run(&format!("INSERT INTO points.n VALUES ({id})"))
        .expect("a row");
    mark(session)
}

/// Returns where the server is in its binary log.
pub fn mark(session: &mut Session) -> Mark {
    let abilities = Abilities::probe(session).expect("abilities");
    let at = Coordinates::read(session, &abilities).expect("coordinates");
    let version = session
        .value("SELECT VERSION()")
        .expect("a version")
        .unwrap_or_default();
    let gtid = match version.contains("MariaDB") {
        true => session.value("SELECT @@gtid_binlog_pos"),
        false => session.value("SELECT @@global.gtid_executed"),
    };
    let gtid = gtid.expect("a GTID").unwrap_or_default();
    // Of a set, the last transaction of its only server.
    let gtid = match gtid.split_once(':') {
        Some((server, range)) => {
            let last = range.rsplit(['-', ':']).next().unwrap_or_default();
            format!("{server}:{last}")
        }
        None => gtid,
    };
    Mark {
        file: at.binlog_file.expect("a log"),
        position: at.binlog_position.expect("a position"),
        gtid,
    }
}

/// Archives up to where the server is.
pub fn archive(evenkeel: &Evenkeel, site: &Site, flags: &[&str]) -> Ended {
    run(archive_command(evenkeel, site, flags))
}

/// Plans such a run.
#[must_use]
pub fn archive_command(evenkeel: &Evenkeel, site: &Site, flags: &[&str]) -> std::process::Command {
    let mut command = evenkeel.command(&[
        "binlog",
        "archive",
        "--no-defaults",
        "-u",
        "root",
        "--until-current",
    ]);
    command
        .arg("-S")
        .arg(site.running().socket())
        .args(flags)
        .arg(site.repository());
    command
}

/// Restores to a point.
pub fn restore_to(evenkeel: &Evenkeel, site: &Site, target: &Path, to: &str) -> Ended {
    run(restore_to_command(evenkeel, site, target, to))
}

/// Plans such a restore.
#[must_use]
pub fn restore_to_command(
    evenkeel: &Evenkeel,
    site: &Site,
    target: &Path,
    to: &str,
) -> std::process::Command {
    let mut command = evenkeel.restore(&site.repository(), target, &["--to", to]);
    command.arg("--server-binary").arg(&site.server.binary.path);
    command
}

/// Starts a server on a restored directory and returns the rows, `1,2,3`; nothing without the table.
pub fn rows_of(site: &Site, datadir: &Path) -> String {
    let mut launch = site.launch.clone();
    launch.datadir = datadir.to_owned();
    let running = site.server.run(&launch);
    let mut session = running.session().expect("a session");
    let rows = session.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM points.n");
    let rows = rows.unwrap_or_else(|error| {
        assert!(error.chain().contains("doesn't exist"), "{}", error.chain());
        None
    });
    let abilities = Abilities::probe(&mut session).expect("abilities");
    let status = match abilities.show_replica_status {
        true => "SHOW REPLICA STATUS",
        false => "SHOW SLAVE STATUS",
    };
    let replica = session.rows(status).expect("a status");
    assert!(replica.is_empty(), "a replica was left");
    running.kill();
    rows.unwrap_or_default()
}
