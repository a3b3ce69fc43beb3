//! A replica, its source and other replicas, as they are named.

use crate::args::{Comparison, Servers};
use crate::commands::watch_applier;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use evenkeel_replica::checksum::{ChecksumLimits, ChecksumRequest, ChecksumSelection};
use evenkeel_server::options::ConnectOptions;
use std::time::Duration;

/// How long a statement that reads should take, where nothing says so.
const CHUNK_TIME: Duration = Duration::from_millis(500);
/// No view is kept for longer, where nothing says so.
const SNAPSHOT: Duration = Duration::from_secs(600);
/// So many rows are named of each table that differs, where nothing says so.
const NAMED: usize = 100;

/// Returns the comparison that was typed, for `verb` of `replica`. The replica goes on if a killed run left it
/// standing.
pub(super) fn comparison(typed: &Comparison, verb: &str, ui: &Ui) -> Result<ChecksumRequest> {
    let servers = servers(typed, verb, ui)?;
    let tables = typed.table.iter().map(|name| name.parse());
    Ok(ChecksumRequest {
        replica: servers.replica,
        source: servers.source,
        channel: typed.channel.clone(),
        selection: ChecksumSelection {
            databases: typed.database.clone(),
            tables: tables.collect::<Result<_>>()?,
        },
        limits: ChecksumLimits {
            threads: usize::from(typed.threads),
            chunk_time: CHUNK_TIME,
            lag: Some(typed.max_lag),
            other_replicas: servers.others,
            threads_running: typed.max_load,
            snapshot: SNAPSHOT,
            deadline: typed.lock_deadline,
        },
        watchdog: watch_applier::program(),
        state: None,
        named_rows: NAMED,
    })
}

/// The servers that are named.
struct Named {
    replica: ConnectOptions,
    source: Option<ConnectOptions>,
    others: Vec<ConnectOptions>,
}

fn servers(typed: &Comparison, verb: &str, ui: &Ui) -> Result<Named> {
    if typed.source.is_some() && typed.source == typed.replica {
        return Err(Error::usage("a server cannot be its own source"));
    }
    let mut names: Vec<String> = typed.replica.iter().cloned().collect();
    names.extend(typed.source.clone());
    names.extend(typed.lag_of.iter().cloned());
    let mut rest = Servers {
        servers: names,
        fleet: typed.fleet.clone(),
        connection: typed.connection.clone(),
    };
    let mut own = None;
    if typed.replica.is_none() {
        if typed.fleet.is_some() {
            let hint = format!("name it: evenkeel replica {verb} NAME --fleet FILE");
            return Err(Error::usage("which server of the list is the replica?").hint(hint));
        }
        own = Some(settings::connect(&typed.connection, "replica", ui)?);
        (rest.connection.host, rest.connection.socket) = (None, None);
    }
    let targets = match rest.servers.is_empty() {
        true => Vec::new(),
        false => settings::watched(&rest, "replica", ui)?,
    };
    let of = |name: &String| {
        let found = targets.iter().find(|target| target.name == *name);
        found
            .map(|target| target.options.clone())
            .ok_or_else(|| Error::usage(format!("'{name}' is not a server")))
    };
    let replica = match own {
        Some(own) => own,
        None => of(typed.replica.as_ref().unwrap_or(&String::new()))?,
    };
    crate::commands::resume::resume(&replica, ui);
    Ok(Named {
        replica,
        source: typed.source.as_ref().map(of).transpose()?,
        others: typed.lag_of.iter().map(of).collect::<Result<_>>()?,
    })
}
