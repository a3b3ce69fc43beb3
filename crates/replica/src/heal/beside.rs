//! What is asked besides the diagnosis, of servers that a repair would touch.

use super::journal::now;
use crate::survey::Target;
use evenkeel_op::{Error, ErrorKind, Result, units};
use evenkeel_server::connect::{Ask, RowLimit};
use evenkeel_wire::BoundedSession;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// No answer is longer.
const MOST: RowLimit = RowLimit {
    rows: 200_000,
    bytes: 32 << 20,
};

/// Locks that MaxScale's monitor takes on servers that it manages.
const MAXSCALE_LOCKS: [&str; 2] = ["maxscale_mariadbmonitor", "maxscale_mariadbmonitor_master"];
/// What other programs are called, by a part of an account's or a schema's name.
const TOOLS: [(&str, &str); 6] = [
    ("orchestrator", "orchestrator"),
    ("replication_manager", "replication-manager"),
    ("replication-manager", "replication-manager"),
    ("repman", "replication-manager"),
    ("maxscale", "maxscale"),
    ("_vt", "vitess"),
];

/// What one says.
#[derive(Debug, Clone, Default)]
pub(super) struct Beside {
    /// For so long it has been running.
    pub(super) uptime_s: Option<u64>,
    /// When that was asked, in seconds since 1970.
    pub(super) asked_s: i64,
    /// Programs of others that are at work on it.
    pub(super) tools: Vec<String>,
}

impl Beside {
    /// Returns for how long it had been running at another moment.
    pub(super) fn uptime_at(&self, second: i64) -> Option<u64> {
        let later = u64::try_from(self.asked_s - second).unwrap_or(0);
        self.uptime_s.map(|uptime_s| uptime_s.saturating_sub(later))
    }
}

/// Asks one server, and waits at most `limit`: a server whose disk is full may not answer at all.
///
/// Errors: those of the session; `Unreachable` when the time is up.
pub(super) fn ask(target: &Target, limit: Duration) -> Result<Beside> {
    let target = target.clone();
    let (tell, told) = sync_channel(1);
    std::thread::Builder::new()
        .name("ask".to_owned())
        .spawn(move || tell.send(answers(&target)))
        .map_err(|error| Error::failed("failed to start a thread").because(error))?;
    told.recv_timeout(limit).unwrap_or_else(|_| {
        let message = format!("no answer within {}", units::duration(limit));
        Err(Error::new(ErrorKind::Unreachable, message))
    })
}

fn answers(target: &Target) -> Result<Beside> {
    let mut session = BoundedSession::open(&target.options, MOST)?;
    let uptime = session.one("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
    let mut names = Vec::new();
    for sql in [
        "SELECT DISTINCT USER FROM information_schema.PROCESSLIST",
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA",
    ] {
        let rows = session.rows(sql)?;
        names.extend(rows.iter().filter_map(|row| row.at(0).map(str::to_owned)));
    }
    for lock in MAXSCALE_LOCKS {
        if session
            .value(&format!("SELECT IS_USED_LOCK('{lock}')"))?
            .is_some()
        {
            names.push(lock.to_owned());
        }
    }
    Ok(Beside {
        asked_s: now().as_second(),
        uptime_s: uptime.and_then(|row| row.at(1)?.parse().ok()),
        tools: tools_in(&names),
    })
}

fn tools_in(names: &[String]) -> Vec<String> {
    let is_there = |part: &str| {
        names.iter().any(|name| {
            let name = name.to_ascii_lowercase();
            match part {
                // Short enough to be in other words.
                "_vt" => name == part || name.starts_with("vt_"),
                part => name.contains(part),
            }
        })
    };
    let there = TOOLS.iter().filter(|(part, _)| is_there(part));
    let mut tools: Vec<String> = there.map(|(_, tool)| (*tool).to_owned()).collect();
    tools.dedup();
    tools
}

#[cfg(test)]
mod tests {
    use super::tools_in;

    #[test]
    fn other_programs_are_known_by_their_names() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            tools_in(&names)
        };
        assert_eq!(
            of(&["root", "mysql", "system user", "shop_vtable"]),
            [""; 0]
        );
        assert_eq!(of(&["orchestrator_client"]), ["orchestrator"]);
        assert_eq!(of(&["maxscale_mariadbmonitor"]), ["maxscale"]);
        assert_eq!(of(&["_vt", "vt_dba"]), ["vitess"]);
        assert_eq!(
            of(&["repman", "replication_manager_schema"]),
            ["replication-manager"]
        );
    }
}
