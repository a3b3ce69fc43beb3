//! Who else is connected to a server: a rollback would throw away what they write, and they would disturb the
//! measurement.

use evenkeel_op::{Cancel, Error, Result, units};
use evenkeel_server::abilities::{Privilege, missing_privileges};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Sessions of ours that ended may be seen for so long.
const LEAVING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// Waits until nobody else is connected.
///
/// # Errors
///
/// `Refused` with their names when they do not leave.
pub(super) fn refuse_others(connect: &ConnectOptions, cancel: &Cancel) -> Result<()> {
    let mut session = Session::open(connect)?;
    if !missing_privileges(&mut session, &[Privilege::Process])?.is_empty() {
        return Err(
            Error::refused("this account cannot see who else is connected")
                .hint("grant it PROCESS, so that nobody's work is rolled back unseen"),
        );
    }
    let until = Instant::now() + LEAVING;
    loop {
        let others = others(&mut session)?;
        if others.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(refusal(&others));
        }
        cancel.check()?;
        std::thread::sleep(LOOK);
    }
}

/// Returns the accounts of other clients, with how many sessions each has.
fn others(session: &mut Session) -> Result<BTreeMap<String, usize>> {
    let own = session.id().to_string();
    let mut others = BTreeMap::new();
    for row in session.rows("SHOW FULL PROCESSLIST")? {
        let of = |name: &str| row.get(name).unwrap_or_default();
        if of("Id") != own && is_client(of("User"), of("Command")) {
            let host = of("Host");
            // Of a TCP connection, with its port.
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            *others.entry(format!("{}@{host}", of("User"))).or_default() += 1;
        }
    }
    Ok(others)
}

/// Whether a session is a client's: neither one of the server's own threads nor a replica's.
fn is_client(user: &str, command: &str) -> bool {
    let is_server = matches!(user, "system user" | "event_scheduler") || command == "Daemon";
    !is_server && !command.starts_with("Binlog Dump")
}

fn refusal(others: &BTreeMap<String, usize>) -> Error {
    let count: usize = others.values().sum();
    let named = others.iter().map(|(account, count)| match count {
        1 => account.clone(),
        _ => format!("{account} ({count})"),
    });
    Error::refused(format!(
        "{} connected to the server: {}",
        match count {
            1 => "another session is".to_owned(),
            _ => format!("{} are", units::count(count, "other session")),
        },
        named.collect::<Vec<_>>().join(", ")
    ))
    .hint("end them, or choose a server that nobody uses: rounds must be alike, and a rollback loses what others write")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_server_and_replicas_are_no_clients() {
        for (user, command, expected) in [
            ("shop", "Sleep", true),
            ("event_scheduler", "Daemon", false),
            ("system user", "Slave_SQL", false),
            ("repl", "Binlog Dump GTID", false),
        ] {
            assert_eq!(is_client(user, command), expected, "{user} {command}");
        }
        let others = BTreeMap::from([("a@h".to_owned(), 2), ("b@h".to_owned(), 1)]);
        assert_eq!(
            refusal(&others).to_string(),
            "3 other sessions are connected to the server: a@h (2), b@h"
        );
    }
}
