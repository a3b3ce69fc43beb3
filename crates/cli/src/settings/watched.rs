//! Which servers are watched: those that were typed, those of a list, or the one of the connection options.

use super::{connection, fleet, password};
use crate::args::{Connection, Hidden, Servers};
use crate::show::Ui;
use evenkeel_live::poll::Target;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::socket_path;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// By what the user told which server is meant: the same command line means the same, whatever is there today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMeant {
    /// By a name of a list, or as an argument.
    Named(String),
    /// By a socket: as it was written.
    Socket(PathBuf),
    /// By host and port.
    Tcp(String, u16),
    /// By nothing: whichever of the usual sockets is there.
    UsualSocket,
}

impl ServerMeant {
    fn argument(name: &str) -> Self {
        match name.contains('/') {
            true => Self::Socket(name.into()),
            false => Self::Named(name.to_owned()),
        }
    }

    fn options(options: &ConnectOptions) -> Self {
        match (&options.host, &options.socket) {
            (Some(host), _) if !options.means_socket() => {
                Self::Tcp(host.clone(), options.port.unwrap_or(3306))
            }
            (_, Some(socket)) => Self::Socket(socket.clone()),
            _ => Self::UsualSocket,
        }
    }
}

/// Returns the servers, each with its name and how to reach it. A password that should be asked for is asked for
/// once.
///
/// # Errors
///
/// `Usage` for options that contradict each other, and for a list that cannot be used.
pub fn watched(typed: &Servers, verb: &str, ui: &Ui) -> Result<Vec<Target>> {
    let servers = servers_meant(typed, verb, ui)?;
    Ok(servers.into_iter().map(|(_, target)| target).collect())
}

/// Returns the same, and by what each was meant.
///
/// # Errors
///
/// Those of [`watched`].
pub fn servers_meant(typed: &Servers, verb: &str, ui: &Ui) -> Result<Vec<(ServerMeant, Target)>> {
    let mut common = typed.connection.clone();
    if matches!(common.password, Some(None)) {
        common.password = Some(Some(Hidden(password::ask()?)));
    }
    let is_named = typed.fleet.is_some() || !typed.servers.is_empty();
    if is_named && (common.host.is_some() || common.socket.is_some()) {
        return Err(Error::usage(
            "--host and --socket name one server, but servers are named already",
        )
        .hint("give either, not both"));
    }
    let named = match &typed.fleet {
        Some(list) => fleet::connections(list, &typed.servers, ui.cancel())?,
        None => each(&typed.servers)?,
    };
    if named.is_empty() {
        let options = connection::connect(&common, verb, ui)?;
        let name = match (&options.host, options.means_socket()) {
            (Some(host), false) => host.clone(),
            _ => socket_path(&options).display().to_string(),
        };
        let meant = ServerMeant::options(&options);
        return Ok(vec![(meant, Target { name, options })]);
    }
    let is_listed = typed.fleet.is_some();
    let targets = named.into_iter().map(|(name, own)| {
        let options = connection::connect(&over(&common, own), verb, ui)
            .context(|| format!("server '{name}'"))?;
        let meant = match is_listed {
            true => ServerMeant::Named(name.clone()),
            false => ServerMeant::argument(&name),
        };
        Ok((meant, Target { name, options }))
    });
    targets.collect()
}

fn each(servers: &[String]) -> Result<Vec<(String, Connection)>> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = servers.iter().find(|server| !seen.insert(*server)) {
        return Err(Error::usage(format!("'{twice}' is named twice")).hint("name each server once"));
    }
    let each = servers.iter();
    each.map(|server| Ok((server.clone(), place(server)?)))
        .collect()
}

/// Reads HOST, HOST:PORT, `[ADDRESS]:PORT` or the path of a socket.
pub(super) fn place(server: &str) -> Result<Connection> {
    let wrong = || {
        Error::usage(format!("'{server}' is not a server"))
            .hint("write it as HOST, HOST:PORT, [ADDRESS]:PORT or the path of a socket")
    };
    if server.contains('/') {
        return Ok(Connection {
            host: Some("localhost".to_owned()),
            socket: Some(server.into()),
            ..Connection::default()
        });
    }
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if host.starts_with('[') || !host.contains(':') => {
            (host, Some(port.parse().map_err(|_| wrong())?))
        }
        _ => (server, None),
    };
    if host.is_empty() || host.starts_with('[') && !host.ends_with(']') {
        return Err(wrong());
    }
    // Who names a port means TCP.
    let host = match port.is_some() && host.eq_ignore_ascii_case("localhost") {
        true => "127.0.0.1",
        false => host,
    };
    Ok(Connection {
        host: Some(host.to_owned()),
        port,
        ..Connection::default()
    })
}

/// Returns the options of one server, with those that were typed for all of them before its own. What names the
/// server is only its own.
fn over(typed: &Connection, own: Connection) -> Connection {
    let typed = typed.clone();
    Connection {
        host: own.host,
        port: own.port.or(typed.port),
        user: typed.user.or(own.user),
        password: typed.password.or(own.password),
        socket: own.socket,
        defaults_file: typed.defaults_file.or(own.defaults_file),
        defaults_extra_file: typed.defaults_extra_file.or(own.defaults_extra_file),
        defaults_group_suffix: typed.defaults_group_suffix.or(own.defaults_group_suffix),
        no_defaults: typed.no_defaults || own.no_defaults,
        login_path: typed.login_path.or(own.login_path),
        ssl_mode: typed.ssl_mode.or(own.ssl_mode),
        ssl_ca: typed.ssl_ca.or(own.ssl_ca),
        ssl_cert: typed.ssl_cert.or(own.ssl_cert),
        ssl_key: typed.ssl_key.or(own.ssl_key),
        connect_timeout: typed.connect_timeout.or(own.connect_timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_hosts_ports_and_sockets() {
        let of = |server: &str| {
            let place = place(server).unwrap();
            let socket = place.socket.map(|path| path.display().to_string());
            (place.host.unwrap(), place.port, socket)
        };
        let tcp = |host: &str, port| (host.to_owned(), port, None);
        assert_eq!(of("db1"), tcp("db1", None));
        assert_eq!(of("db1:3307"), tcp("db1", Some(3307)));
        assert_eq!(of("localhost"), tcp("localhost", None));
        assert_eq!(of("localhost:3307"), tcp("127.0.0.1", Some(3307)));
        assert_eq!(of("[::1]:3307"), tcp("[::1]", Some(3307)));
        assert_eq!(of("fe80::1"), tcp("fe80::1", None));
        let socket = ("localhost".to_owned(), None, Some("./s".to_owned()));
        assert_eq!(of("./s"), socket);
        for wrong in ["", ":3306", "db1:", "db1:port", "db1:70000", "[::1:3306"] {
            let error = place(wrong).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn a_server_is_meant_by_what_was_given_and_not_by_what_is_there() {
        let none = ConnectOptions::default();
        assert_eq!(ServerMeant::options(&none), ServerMeant::UsualSocket);
        let local = ConnectOptions {
            host: Some("localhost".to_owned()),
            port: Some(3307),
            ..ConnectOptions::default()
        };
        assert_eq!(ServerMeant::options(&local), ServerMeant::UsualSocket);
        let socket = ConnectOptions::over_socket("./s", "u");
        assert_eq!(
            ServerMeant::options(&socket),
            ServerMeant::Socket("./s".into())
        );
        let two = [3306, 3307].map(|port| ConnectOptions::over_tcp("db1", port, "u"));
        let two = two.map(|options| ServerMeant::options(&options));
        assert_ne!(two[0], two[1]);
        assert_eq!(
            ServerMeant::argument("db1"),
            ServerMeant::Named("db1".to_owned())
        );
    }

    #[test]
    fn what_is_typed_for_all_comes_before_what_a_list_says_of_one() {
        let typed = Connection {
            user: Some("monitor".to_owned()),
            port: Some(1),
            ..Connection::default()
        };
        let own = Connection {
            host: Some("db1".to_owned()),
            user: Some("backup".to_owned()),
            port: Some(2),
            ..Connection::default()
        };
        let both = over(&typed, own);
        assert_eq!(both.user.as_deref(), Some("monitor"));
        assert_eq!((both.host.as_deref(), both.port), (Some("db1"), Some(2)));
    }
}
