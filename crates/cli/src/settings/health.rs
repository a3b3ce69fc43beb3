//! What a server's health is checked by.

use crate::args::{HealthChecks, HealthRole, HealthRules};
use evenkeel_health::machine::Rules;
use evenkeel_health::probe::{Checks, Expected};
use evenkeel_op::{Error, Result};
use evenkeel_server::options::ConnectOptions;
use std::time::Duration;

/// Returns what is checked.
///
/// # Errors
///
/// `Usage` for a table without a database, and for one that would never be looked at.
pub fn health_checks(typed: &HealthChecks) -> Result<Checks> {
    let tables = typed.table.iter().map(|name| name.parse());
    let write_table = typed.write_table.as_ref().map(|name| name.parse());
    let asks_for_lag = typed.replicating || typed.max_lag.is_some();
    if write_table.is_some() && typed.expect == HealthRole::ReadOnly && !asks_for_lag {
        return Err(
            Error::usage("--write-table checks nothing of a server that is read-only")
                .hint("add --max-lag: then the newest row says how far the server is behind"),
        );
    }
    Ok(Checks {
        query: typed.query.clone(),
        expected: match typed.expect {
            HealthRole::Any => Expected::Any,
            HealthRole::Writable => Expected::Writable,
            HealthRole::ReadOnly => Expected::ReadOnly,
        },
        replicates: typed.replicating,
        lag_max: typed.max_lag,
        disk_min: typed.min_disk,
        datadir: typed.datadir.clone(),
        connections_min: typed.min_connections,
        galera: typed.galera,
        tables: tables.collect::<Result<_>>()?,
        write_table: write_table.transpose()?,
    })
}

/// Refuses to look at the disk of a server of another host.
///
/// # Errors
///
/// `Usage` then.
pub fn refuse_far_disk(checks: &Checks, options: &ConnectOptions) -> Result<()> {
    match checks.disk_min.is_some() && checks.datadir.is_none() && !options.means_socket() {
        true => Err(Error::usage(
            "--min-disk: over TCP, nobody knows on which host the data directory is",
        )
        .hint("connect over the socket, or name the data directory with --datadir")),
        false => Ok(()),
    }
}

/// Returns when servers turn up and down, if they are asked at this interval.
#[must_use]
pub fn health_rules(typed: &HealthRules, interval: Duration) -> Rules {
    Rules {
        fall: typed.fall,
        rise: typed.rise,
        min_down: typed.min_down,
        hold: typed.hold,
        hold_max: typed.max_hold,
        flaps_max: typed.max_failures,
        flap_window: typed.window,
        stale: interval * 2,
    }
}
