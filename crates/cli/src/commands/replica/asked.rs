//! Servers that are asked once.

use crate::args::AskedServers;
use crate::commands::watching::none_answered;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Error, Result, open_files};
use evenkeel_replica::checksum::TableName;
use evenkeel_replica::survey::{Answered, Target};
use evenkeel_server::connect::quote_name;

/// Finds out which servers are meant.
pub(super) fn meant(typed: &AskedServers, ui: &Ui) -> Result<Vec<Target>> {
    if typed.timeout.is_zero() {
        return Err(Error::usage("--timeout is 0").hint("give it at least some seconds"));
    }
    let servers = settings::watched(&typed.which, "replica", ui)?;
    // Each server is a connection.
    open_files::raise();
    let targets = servers.into_iter().map(|server| {
        let mut options = server.options;
        options.connect_timeout = options.connect_timeout.min(typed.timeout);
        let name = server.name;
        Target { name, options }
    });
    Ok(targets.collect())
}

/// Reads DATABASE.TABLE, and returns it quoted.
pub(super) fn table(name: &str) -> Result<String> {
    let TableName { database, table } = name.parse()?;
    Ok(format!("{}.{}", quote_name(&database), quote_name(&table)))
}

/// Says which servers did not answer; an error when none did.
pub(super) fn say_silent(servers: &[Answered], ui: &Ui) -> Result<()> {
    let mut silent = Vec::new();
    for server in servers {
        if let Err(error) = &server.facts {
            silent.push(error);
        }
    }
    if silent.len() < servers.len() {
        for server in servers {
            if let Err(error) = &server.facts {
                ui.warn_of(&format!("{}: ", server.name), error);
            }
        }
        return Ok(());
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    Err(none_answered(&names.join(", "), &silent))
}
