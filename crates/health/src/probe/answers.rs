//! What the answers of plain checks say.

use super::{Checks, Expected, Observed};
use crate::reason::{Cause, Reason};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Row;

/// Takes the answer to what is asked first, and what else is on that keeps clients from writing.
pub(super) fn role(
    row: Option<&Row>,
    on: &[String],
    checks: &Checks,
    seen: &mut Observed,
) -> Result<()> {
    let value = |at| row.and_then(|row| row.at(at));
    let is_on = |at| value(at).map(is_set);
    let is_read_only = is_on(0).zip(is_on(2)).map(|(all, innodb)| all || innodb);
    seen.connections_max = value(1).and_then(|text| text.parse().ok());
    let is_on = |name: &str| on.iter().any(|it| it == name);
    if is_on("offline_mode") {
        let text = "the server is in offline mode: it lets nobody in but administrators";
        seen.reasons.push(Reason::new(Cause::Refused, text));
    }
    let is_by_default = is_on("transaction_read_only") || is_on("tx_read_only");
    seen.is_writable = is_read_only.map(|is| !is && !is_by_default);
    let wrong = match (checks.expected, seen.is_writable) {
        (Expected::Writable, Some(false)) if is_read_only == Some(false) => {
            "transactions are read-only (tx_read_only), and it should be writable"
        }
        (Expected::Writable, Some(false)) => "it is read-only, and should be writable",
        (Expected::ReadOnly, Some(false)) if is_read_only == Some(false) => {
            "only tx_read_only makes it read-only, which each session can change"
        }
        (Expected::ReadOnly, Some(true)) => "it is writable, and should be read-only",
        (Expected::Writable | Expected::ReadOnly, None) => {
            return Err(Error::refused("the server does not say if it is read-only"));
        }
        _ => return Ok(()),
    };
    seen.reasons.push(Reason::new(Cause::Role, wrong));
    Ok(())
}

/// Takes counters.
pub(super) fn counters(rows: &[Row], checks: &Checks, seen: &mut Observed) -> Result<()> {
    let value = |name: &str| {
        let found = rows
            .iter()
            .find(|row| row.at(0).is_some_and(|it| it.eq_ignore_ascii_case(name)));
        found.and_then(|row| row.at(1))
    };
    let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok());
    seen.connections = number("Threads_connected");
    seen.running = number("Threads_running");
    match (seen.connections, seen.connections_max) {
        (Some(used), Some(most)) => {
            // Ours is one that clients do not have, but it is counted.
            let free = most.saturating_sub(used);
            if free < checks.connections_min {
                let text = format!("{free} of {most} connections are free");
                seen.reasons.push(Reason::new(Cause::Connections, text));
            }
        }
        _ if checks.connections_min > 0 => {
            return Err(Error::refused(
                "the server does not say how many connections it has",
            ));
        }
        _ => {}
    }
    if checks.galera {
        galera(value, seen);
    }
    Ok(())
}

/// Whether a variable is on: MariaDB's `read_only` has more words than two.
pub(super) fn is_set(value: &str) -> bool {
    !matches!(value, "0" | "OFF")
}

fn galera<'a>(value: impl Fn(&str) -> Option<&'a str>, seen: &mut Observed) {
    let is =
        |name: &str, wanted: &str| value(name).is_some_and(|it| it.eq_ignore_ascii_case(wanted));
    let text = if value("wsrep_ready").is_none() {
        "the server is in no Galera cluster".to_owned()
    } else if !is("wsrep_cluster_status", "Primary") {
        let status = value("wsrep_cluster_status").unwrap_or("unknown");
        format!("the node is not in the primary component (wsrep_cluster_status {status})")
    } else if !is("wsrep_local_state", "4") {
        let state = value("wsrep_local_state_comment").unwrap_or("unknown");
        format!("the node is not synced (wsrep_local_state_comment {state})")
    } else if !is("wsrep_ready", "ON") {
        "the node accepts no statements (wsrep_ready OFF)".to_owned()
    } else {
        return;
    };
    seen.reasons.push(Reason::new(Cause::Galera, text));
}
