//! A replica, its source and other replicas, as they are named.

use crate::args::{Connection, Servers};
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use evenkeel_server::options::ConnectOptions;
use std::path::PathBuf;

/// What was typed.
pub(super) struct Typed<'a> {
    /// Of `replica`.
    pub(super) verb: &'a str,
    pub(super) replica: &'a Option<String>,
    pub(super) source: &'a Option<String>,
    pub(super) others: &'a [String],
    pub(super) fleet: &'a Option<PathBuf>,
    pub(super) connection: &'a Connection,
}

/// The servers that are named.
pub(super) struct Named {
    pub(super) replica: ConnectOptions,
    pub(super) source: Option<ConnectOptions>,
    pub(super) others: Vec<ConnectOptions>,
}

impl Typed<'_> {
    /// Finds out how to reach them, and has the replica go on if a killed run left it standing.
    pub(super) fn servers(&self, ui: &Ui) -> Result<Named> {
        if self.source.is_some() && self.source == self.replica {
            return Err(Error::usage("a server cannot be its own source"));
        }
        let mut names: Vec<String> = self.replica.iter().cloned().collect();
        names.extend(self.source.clone());
        names.extend(self.others.iter().cloned());
        let mut rest = Servers {
            servers: names,
            fleet: self.fleet.clone(),
            connection: self.connection.clone(),
        };
        let mut own = None;
        if self.replica.is_none() {
            if self.fleet.is_some() {
                return Err(
                    Error::usage("which server of the list is the replica?").hint(format!(
                        "name it: evenkeel replica {} NAME --fleet FILE",
                        self.verb
                    )),
                );
            }
            own = Some(settings::connect(self.connection, "replica", ui)?);
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
            None => of(self.replica.as_ref().unwrap_or(&String::new()))?,
        };
        crate::commands::resume::resume(&replica, ui);
        Ok(Named {
            replica,
            source: self.source.as_ref().map(of).transpose()?,
            others: self.others.iter().map(of).collect::<Result<_>>()?,
        })
    }
}
