//! Where a history of digests is: a file, or a schema of a server.

use super::connection;
use super::watched::place;
use crate::args::Connection;
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use evenkeel_server::options::ConnectOptions;
use evenkeel_traffic::history::HistoryPlace;
use std::path::Path;

const SERVER: &str = "mysql://";
const SCHEMA: &str = "evenkeel";

/// Returns how to reach a server that is named HOST, HOST:PORT or by the path of its socket.
///
/// # Errors
///
/// `Usage` for a name that cannot be read.
pub fn server_named(
    word: &str,
    defaults_file: Option<&Path>,
    verb: &'static str,
    ui: &Ui,
) -> Result<ConnectOptions> {
    let connection = Connection {
        defaults_file: defaults_file.map(Path::to_owned),
        ..place(word)?
    };
    connection::connect(&connection, verb, ui)
}

/// Whether this names a server.
pub fn is_server(word: &Path) -> bool {
    word.to_str().is_some_and(|word| word.starts_with(SERVER))
}

/// Returns the place that a path or `mysql://[USER@]HOST[:PORT][/SCHEMA]` names.
///
/// # Errors
///
/// `Usage` for a place that cannot be read, and for one with a password.
pub fn history(word: &Path, defaults_file: Option<&Path>, ui: &Ui) -> Result<HistoryPlace> {
    let Some(rest) = word.to_str().and_then(|word| word.strip_prefix(SERVER)) else {
        return Ok(HistoryPlace::File(word.to_owned()));
    };
    let (server, schema) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, server) = match server.rsplit_once('@') {
        Some((user, server)) => (Some(user), server),
        None => (None, server),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(Error::usage(
            "the password does not belong into --history: others see command lines",
        )
        .hint("put it into an option file, below [client], and name that: --defaults-file"));
    }
    if schema.contains('/') {
        return Err(Error::usage(format!("'{schema}' is not the name of a schema"))
            .hint("write mysql://HOST/SCHEMA, or mysql:///SCHEMA for the server that option files name"));
    }
    let named = match server {
        "" => Connection::default(),
        server => place(server)?,
    };
    let connection = Connection {
        user: user.map(str::to_owned),
        defaults_file: defaults_file.map(Path::to_owned),
        ..named
    };
    let options = connection::connect(&connection, "digest", ui)?;
    let schema = match schema {
        "" => SCHEMA,
        schema => schema,
    };
    Ok(HistoryPlace::Server(Box::new(options), schema.to_owned()))
}
