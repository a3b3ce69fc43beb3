//! `replica checksum`.

use crate::args::{ReplicaChecksum, Servers};
use crate::commands::watch_applier;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::ReplicaChecksumAnswer;
use evenkeel_op::{Error, Result, Run, exit};
use evenkeel_replica::checksum::{
    ChecksumLimits, ChecksumRequest, ChecksumSelection, TableVerdict, checksum,
};
use evenkeel_server::options::ConnectOptions;

/// Runs the command.
pub(super) fn run(args: &ReplicaChecksum, ui: &Ui) -> Result<u8> {
    let request = request(args, ui)?;
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report = checksum(&request, run)?;
    let code = match report.verdict() {
        TableVerdict::Differs => exit::DIFFERS,
        TableVerdict::NotCompared => exit::PARTIAL,
        TableVerdict::Equal | TableVerdict::LeftOut => exit::DONE,
    };
    ui.answer(&ReplicaChecksumAnswer::new(report));
    Ok(code)
}

fn request(args: &ReplicaChecksum, ui: &Ui) -> Result<ChecksumRequest> {
    let servers = named(args, ui)?;
    let tables = args.table.iter().map(|name| name.parse());
    Ok(ChecksumRequest {
        replica: servers.replica,
        source: servers.source,
        channel: args.channel.clone(),
        selection: ChecksumSelection {
            databases: args.database.clone(),
            tables: tables.collect::<Result<_>>()?,
        },
        limits: ChecksumLimits {
            threads: usize::from(args.threads),
            chunk_time: args.chunk_time,
            lag: Some(args.max_lag),
            other_replicas: servers.others,
            threads_running: args.max_load,
            snapshot: args.max_snapshot,
            deadline: args.lock_deadline,
        },
        watchdog: watch_applier::program(),
        state: args.state.clone(),
        named_rows: args.rows,
    })
}

/// The servers that are named.
struct Named {
    replica: ConnectOptions,
    source: Option<ConnectOptions>,
    others: Vec<ConnectOptions>,
}

fn named(args: &ReplicaChecksum, ui: &Ui) -> Result<Named> {
    let mut names: Vec<String> = args.replica.iter().cloned().collect();
    names.extend(args.source.clone());
    names.extend(args.lag_of.clone());
    let mut rest = Servers {
        servers: names,
        fleet: args.fleet.clone(),
        connection: args.connection.clone(),
    };
    let mut own = None;
    if args.replica.is_none() {
        if args.fleet.is_some() {
            return Err(Error::usage("which server of the list is the replica?")
                .hint("name it: evenkeel replica checksum NAME --fleet FILE"));
        }
        own = Some(settings::connect(&args.connection, "replica", ui)?);
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
    Ok(Named {
        replica: match own {
            Some(own) => own,
            None => of(args.replica.as_ref().unwrap_or(&String::new()))?,
        },
        source: args.source.as_ref().map(of).transpose()?,
        others: args.lag_of.iter().map(of).collect::<Result<_>>()?,
    })
}
