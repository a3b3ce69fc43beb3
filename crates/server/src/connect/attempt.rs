//! One attempt to connect: which way, with how much TLS.

use super::error::{self, broken_off, connect_error};
use super::greeting;
use crate::options::{ConnectOptions, SslMode};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, ErrorKind, Result};
use mysql::{ClientIdentity, Conn, OptsBuilder, SslOpts};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Where servers put their socket when nobody says otherwise: Debian, then Red Hat, then the
/// upstream builds.
pub const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// What every session starts with: text in UTF-8, literals as we write them whatever the server's
/// `sql_mode`, no limit that would end a session which only holds a lock or waits for one, and none that would cut
/// answers off.
/// The comments are MariaDB's and MySQL's own conditional syntax; each server skips the other's.
pub const FIRST_STATEMENTS: [&str; 2] = [
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = '', /*M!100108 max_statement_time = 0, */ \
     /*!50708 max_execution_time = 0, */ wait_timeout = 31536000, sql_select_limit = 18446744073709551615",
];

/// Returns the socket these options mean: the one given, else the first usual one that exists.
#[must_use]
pub fn socket_path(options: &ConnectOptions) -> PathBuf {
    options.socket.clone().unwrap_or_else(|| {
        let usual = USUAL_SOCKETS.iter().map(Path::new);
        usual
            .clone()
            .find(|path| path.exists())
            .unwrap_or(Path::new(USUAL_SOCKETS[0]))
            .to_owned()
    })
}

/// Returns where these options lead, for messages: a socket path or `host:port`.
pub(super) fn place(options: &ConnectOptions) -> String {
    match options.host.as_deref() {
        Some(host) if !options.means_socket() => {
            format!("{host}:{}", options.port.unwrap_or(3306))
        }
        _ => socket_path(options).display().to_string(),
    }
}

/// Returns the error for an attempt at `place` that got no answer in time.
#[must_use]
pub fn timed_out(options: &ConnectOptions, place: &str) -> Error {
    let limit = evenkeel_op::units::duration(options.connect_timeout);
    Error::new(
        ErrorKind::Unreachable,
        format!("no answer from {place} within {limit}"),
    )
    .hint("check that the server is running and not behind a firewall, or raise --connect-timeout")
}

/// Tries each way these options allow, in the order the MySQL clients would. Also returns whether
/// TLS came about.
pub(super) fn attempt(options: &ConnectOptions, place: &str) -> Result<(Conn, bool)> {
    if options.means_socket() {
        return over_socket(options, place).map(|conn| (conn, false));
    }
    let plain = options.ssl_mode == SslMode::Disabled;
    if !plain {
        check_files(options)?;
    }
    // The driver believes that it is one.
    options.server_key.read()?;
    let mut last = None;
    for host in addresses(options, place)? {
        let result = match over_tcp(options, &host, !plain) {
            // A server without TLS, or with none that we speak (OpenSSL 1.0 and before).
            Err(error) if options.ssl_mode == SslMode::Preferred && error::is_about_tls(&error) => {
                over_tcp(options, &host, false).map(|conn| (conn, false))
            }
            other => other.map(|conn| (conn, !plain)),
        };
        match result {
            Ok(connected) => return Ok(connected),
            Err(error) if error::is_no_connection(&error) => last = Some(error),
            Err(error) => return Err(failed(options, &host, place, &error)),
        }
    }
    Err(last.map_or_else(
        || Error::new(ErrorKind::Unreachable, format!("no address for {place}")),
        |error| connect_error(&error, place),
    ))
}

/// Looks at the files for TLS: one that is missing must not pass for a server without TLS.
///
/// # Errors
///
/// `Usage` for one that cannot be read.
pub fn check_files(options: &ConnectOptions) -> Result<()> {
    for (flag, path) in [
        ("ssl-ca", &options.ssl_ca),
        ("ssl-cert", &options.ssl_cert),
        ("ssl-key", &options.ssl_key),
    ] {
        let Some(path) = path else { continue };
        std::fs::File::open(path)
            .map_err(|error| unreadable(&format!("{flag} file"), path, error))?;
    }
    Ok(())
}

fn over_socket(options: &ConnectOptions, place: &str) -> Result<Conn> {
    if options.ssl_mode > SslMode::Preferred {
        return Err(Error::usage(format!(
            "ssl-mode={} cannot be used with the Unix socket {place}",
            options.ssl_mode.name()
        ))
        .hint(
            "connect over TCP (--host=127.0.0.1), or use ssl-mode PREFERRED: data on a socket \
             never leaves this host",
        ));
    }
    let path = socket_path(options);
    let Some(path) = path.to_str() else {
        return Err(Error::usage(format!("socket path {place} is not UTF-8")));
    };
    let builder = builder(options).socket(Some(path));
    Conn::new(builder).map_err(|error| failed(options, "", place, &error))
}

/// Makes the error for an answer of whoever listens. One that makes no sense comes of a server, too: MySQL tells a session
/// that is killed while it logs in out of turn.
fn failed(options: &ConnectOptions, host: &str, place: &str, error: &mysql::Error) -> Error {
    match error::makes_no_sense(error) && greeting::is_heard(options, host) {
        true => broken_off(&error::plain(error), place),
        false => connect_error(error, place),
    }
}

/// Returns what to hand to the driver as host: it tries only the first address of a name, so names
/// are looked up here, except where the certificate has to match the name.
fn addresses(options: &ConnectOptions, place: &str) -> Result<Vec<String>> {
    let host = options.host.as_deref().unwrap_or_default();
    if options.ssl_mode == SslMode::VerifyIdentity {
        return Ok(vec![bracketed(host)]);
    }
    let port = options.port.unwrap_or(3306);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port)
        .to_socket_addrs()
        .map_err(|error| unknown_host(host, place, error))?;
    Ok(found
        .map(|address| bracketed(&address.ip().to_string()))
        .collect())
}

/// Makes the error for a host of which no address could be found.
#[must_use]
pub fn unknown_host(host: &str, place: &str, error: io::Error) -> Error {
    // The C library's words for a name that nobody has; what else it says is about the way there.
    let is_unknown = [
        "not known",
        "No address associated",
        "nodename nor servname",
    ]
    .iter()
    .any(|words| error.to_string().contains(words));
    let failure = match is_unknown {
        true => Error::new(
            ErrorKind::Unreachable,
            format!("the host name '{host}' is unknown"),
        ),
        false => {
            Error::new(ErrorKind::Unreachable, format!("failed to look up {place}")).because(error)
        }
    };
    match is_socket(host) {
        true => failure.hint(format!(
            "if it is the server's socket file, give it as a path: ./{host} where a server is named, or --socket={host}"
        )),
        false => failure
            .hint("check --host (or the [client] group of an option file), and this host's DNS"),
    }
}

/// Whether what was taken for a host is called as a socket is, or is one.
fn is_socket(host: &str) -> bool {
    let is_there = || {
        let found = std::fs::symlink_metadata(host);
        found.is_ok_and(|found| found.file_type().is_socket())
    };
    host.ends_with(".sock") || is_there()
}

/// Returns an IPv6 address in the brackets that the driver wants; anything else as it is.
fn bracketed(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.to_owned(),
    }
}

fn over_tcp(options: &ConnectOptions, host: &str, tls: bool) -> mysql::Result<Conn> {
    let builder = builder(options)
        .ip_or_hostname(Some(host))
        .tcp_port(options.port.unwrap_or(3306))
        .tcp_connect_timeout(Some(options.connect_timeout))
        // A peer that vanished without a word is noticed in about a minute.
        .tcp_keepalive_time_ms(Some(30_000))
        .tcp_keepalive_probe_interval_secs(Some(10))
        .tcp_keepalive_probe_count(Some(3))
        .tcp_user_timeout_ms(Some(60_000))
        .ssl_opts(tls.then(|| ssl_opts(options)));
    Conn::new(builder)
}

fn ssl_opts(options: &ConnectOptions) -> SslOpts {
    let mode = options.ssl_mode;
    let identity = options.ssl_cert.clone().map(|certificate| {
        // As the MySQL clients do: a file may hold both.
        let key = options.ssl_key.clone().unwrap_or(certificate.clone());
        ClientIdentity::new(certificate, key)
    });
    SslOpts::default()
        .with_root_cert_path(options.ssl_ca.clone())
        .with_client_identity(identity)
        .with_danger_accept_invalid_certs(mode < SslMode::VerifyCa)
        .with_danger_skip_domain_validation(mode < SslMode::VerifyIdentity)
}

fn builder(options: &ConnectOptions) -> OptsBuilder {
    OptsBuilder::new()
        .user(Some(
            options
                .user
                .clone()
                .unwrap_or_else(crate::options::login_name),
        ))
        .server_key_path(options.server_key.file())
        .pass(options.password.as_ref().map(|p| p.reveal().to_owned()))
        // The driver's default swaps a TCP connection for a socket behind our back.
        .prefer_socket(false)
        // Where nothing is said, the driver asks the server for it.
        .max_allowed_packet(options.packet_max)
        .init(FIRST_STATEMENTS.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_name_what_is_meant() {
        let mut options = ConnectOptions::over_tcp("db1", 3307, "u");
        assert_eq!(place(&options), "db1:3307");
        options.host = Some("localhost".to_owned());
        options.socket = Some("/x/s".into());
        assert_eq!(place(&options), "/x/s");
    }

    #[test]
    fn addresses_of_version_6_get_brackets() {
        assert_eq!(bracketed("::1"), "[::1]");
        assert_eq!(bracketed("127.0.0.1"), "127.0.0.1");
        let options = ConnectOptions::over_tcp("[::1]", 3306, "u");
        assert_eq!(addresses(&options, "x").unwrap(), ["[::1]"]);
    }
}
