//! Which server is meant: the environment, option files, the login path and the command line.

use super::password;
use crate::args::{Connection, SslModeArg};
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use evenkeel_server::option_file::DefaultsSpec;
use evenkeel_server::options::{
    ConnectOptions, Given, Resolved, Secret, Sources, SslMode, resolve,
};
use std::env;
use std::path::PathBuf;

/// Returns how to reach the server, asking for the password where nobody gave it.
pub fn connect(typed: &Connection, verb: &str, ui: &Ui) -> Result<ConnectOptions> {
    let resolved = resolved(typed, verb)?;
    for warning in &resolved.warnings {
        ui.warn(warning);
    }
    let mut options = resolved.connect;
    if resolved.ask_password || matches!(typed.password, Some(None)) {
        options.password = Some(Secret::new(password::ask()?));
    }
    Ok(options)
}

/// Returns every setting with its origin, as the verb would see it.
pub fn resolved(typed: &Connection, verb: &str) -> Result<Resolved> {
    let known = super::own::known();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    resolve(&sources(typed)?, &groups(verb), &known)
}

/// Returns the verbs whose groups of option files a verb reads, its own last. `doctor` answers for `backup`, so
/// it looks with the same account.
fn groups(verb: &str) -> Vec<&str> {
    match verb {
        "doctor" => vec!["backup", "doctor"],
        other => vec![other],
    }
}

fn sources(typed: &Connection) -> Result<Sources> {
    let home = path("HOME");
    let defaults = DefaultsSpec {
        no_defaults: typed.no_defaults,
        defaults_file: typed.defaults_file.clone(),
        extra_file: typed.defaults_extra_file.clone(),
        group_suffix: typed
            .defaults_group_suffix
            .clone()
            .or_else(|| text("MYSQL_GROUP_SUFFIX")),
        mysql_home: path("MYSQL_HOME"),
        ..DefaultsSpec::usual(home.clone())
    };
    let login_file = path("MYSQL_TEST_LOGIN_FILE").or_else(|| Some(home?.join(".mylogin.cnf")));
    Ok(Sources {
        environment: environment()?,
        defaults,
        login_file,
        login_path: typed.login_path.clone(),
        given: given(typed),
    })
}

pub(super) fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

pub(super) fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn environment() -> Result<Given> {
    let port = match text("MYSQL_TCP_PORT") {
        Some(port) => Some(port.parse().map_err(|error: std::num::ParseIntError| {
            Error::usage(format!("MYSQL_TCP_PORT is '{port}'")).because(error)
        })?),
        None => None,
    };
    Ok(Given {
        host: text("MYSQL_HOST"),
        port,
        socket: path("MYSQL_UNIX_PORT"),
        password: text("MYSQL_PWD").map(Secret::new),
        ..Given::default()
    })
}

fn given(typed: &Connection) -> Given {
    let typed = typed.clone();
    Given {
        host: typed.host,
        port: typed.port,
        socket: typed.socket,
        user: typed.user,
        password: typed.password.flatten().map(|hidden| Secret::new(hidden.0)),
        protocol: None,
        ssl_mode: typed.ssl_mode.map(ssl_mode),
        ssl_ca: typed.ssl_ca,
        ssl_cert: typed.ssl_cert,
        ssl_key: typed.ssl_key,
        connect_timeout: typed.connect_timeout,
    }
}

/// Returns what a mode's name means.
pub fn ssl_mode(typed: SslModeArg) -> SslMode {
    match typed {
        SslModeArg::Disabled => SslMode::Disabled,
        SslModeArg::Preferred => SslMode::Preferred,
        SslModeArg::Required => SslMode::Required,
        SslModeArg::VerifyCa => SslMode::VerifyCa,
        SslModeArg::VerifyIdentity => SslMode::VerifyIdentity,
    }
}
