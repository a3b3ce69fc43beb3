//! Which stopped server is meant: the command line, then its option files.

use super::connection::{path, text};
use crate::args::{Connection, DataDirectory};
use crate::show::Ui;
use evenkeel_op::Result;
use evenkeel_server::option_file::DefaultsSpec;
use evenkeel_server::stopped::{DatadirSpec, StoppedServer};
use std::path::Path;

/// Finds the data directory that is meant, and its server's settings; what was passed over is
/// shown.
pub fn stopped_server(typed: &DataDirectory, ui: &Ui) -> Result<StoppedServer> {
    let server = StoppedServer::find(&place(typed))?;
    for warning in &server.warnings {
        ui.warn(warning);
    }
    Ok(server)
}

/// The same for commands that take a running server too: its option files are those that the flags of
/// a connection name.
pub fn stopped_server_at(
    datadir: &Path,
    connection: &Connection,
    ui: &Ui,
) -> Result<StoppedServer> {
    let typed = DataDirectory {
        datadir: Some(datadir.to_owned()),
        defaults_file: connection.defaults_file.clone(),
        defaults_extra_file: connection.defaults_extra_file.clone(),
        defaults_group_suffix: connection.defaults_group_suffix.clone(),
        no_defaults: connection.no_defaults,
    };
    stopped_server(&typed, ui)
}

fn place(typed: &DataDirectory) -> DatadirSpec {
    let suffix = typed.defaults_group_suffix.clone();
    DatadirSpec {
        datadir: typed.datadir.clone(),
        defaults: DefaultsSpec {
            no_defaults: typed.no_defaults,
            defaults_file: typed.defaults_file.clone(),
            extra_file: typed.defaults_extra_file.clone(),
            group_suffix: suffix.or_else(|| text("MYSQL_GROUP_SUFFIX")),
            mysql_home: path("MYSQL_HOME"),
            ..DefaultsSpec::usual(path("HOME"))
        },
    }
}
