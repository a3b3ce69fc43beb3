//! One session with a server. It never reconnects: whoever holds a lock through it must learn that
//! it was lost.

mod error;
mod row;

pub use error::{connect_error, query_error};
pub use mysql;
pub use row::Row;

use crate::options::{ConnectOptions, SslMode};
use evenkeel_op::{Error, ErrorKind, Result};
use mysql::prelude::Queryable;
use mysql::{ClientIdentity, Conn, OptsBuilder, SslOpts};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Where servers put their socket when nobody says otherwise: Debian, then Red Hat, then the
/// upstream builds.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// What every session starts with: text in UTF-8, literals as we write them whatever the server's
/// `sql_mode`, and no limit that would end a session which only holds a lock or waits for one.
/// The comments are MariaDB's and MySQL's own conditional syntax; each server skips the other's.
const FIRST_STATEMENTS: [&str; 2] = [
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = '', /*M!100108 max_statement_time = 0, */ \
     /*!50708 max_execution_time = 0, */ wait_timeout = 31536000",
];

/// One connection to a server.
pub struct Session {
    conn: Conn,
    id: u64,
    place: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {} at {}", self.id, self.place)
    }
}

impl Session {
    /// Connects and logs in.
    ///
    /// Errors: `Unreachable` when nobody answers there, `Refused` when the server does not let us
    /// in, `Usage` for options that contradict each other.
    pub fn open(options: &ConnectOptions) -> Result<Self> {
        let place = place(options);
        let (sender, receiver) = mpsc::sync_channel(1);
        let (wanted, at) = (options.clone(), place.clone());
        // The driver's own timeout ends with the TCP connection: a server that accepts and then
        // says nothing (frozen, or its accept queue answered by the kernel) would hold us forever.
        // The thread of an attempt that ran out of time ends when its server answers or hangs up.
        std::thread::Builder::new()
            .name("connect".to_owned())
            .spawn(move || {
                // Fails only when the attempt was given up: then the session is closed here.
                let _ = sender.send(attempt(&wanted, &at));
            })
            .map_err(|e| Error::failed("failed to start a thread").because(e))?;
        let conn = receiver
            .recv_timeout(options.connect_timeout)
            .map_err(|_| timed_out(options, &place))??;
        let id = u64::from(conn.connection_id());
        Ok(Self { conn, id, place })
    }

    /// Returns the server's id of this connection.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns where this session is connected to, for messages: a socket path or `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Runs a statement whose result is not wanted.
    ///
    /// Errors: `LockTimeout` when the server gave up waiting, `Unreachable` when the connection is
    /// lost, `Refused` when a privilege is missing, else `Failed`; code and text are in the message.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        self.conn.query_drop(sql).map_err(|e| query_error(&e, sql))
    }

    /// Runs a statement and returns all its rows. Errors as [`Session::run`].
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        let rows: Vec<mysql::Row> = self.conn.query(sql).map_err(|e| query_error(&e, sql))?;
        Ok(rows.into_iter().map(Row::from_driver).collect())
    }

    /// Runs a statement and returns its first row. Errors as [`Session::run`].
    pub fn one(&mut self, sql: &str) -> Result<Option<Row>> {
        let row: Option<mysql::Row> = self
            .conn
            .query_first(sql)
            .map_err(|e| query_error(&e, sql))?;
        Ok(row.map(Row::from_driver))
    }

    /// Runs a statement and returns the first column of its first row; `None` for no row and for
    /// SQL NULL. Errors as [`Session::run`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(self.one(sql)?.and_then(|row| row.at(0).map(str::to_owned)))
    }

    /// Returns a global variable, `None` when this server has none of that name.
    /// Errors as [`Session::run`].
    pub fn variable(&mut self, name: &str) -> Result<Option<String>> {
        // LIKE's pattern: an underscore would match any character.
        let pattern = name.replace('\\', "\\\\").replace('_', "\\_");
        let pattern = quote(&pattern.replace('%', "\\%"));
        let row = self.one(&format!("SHOW GLOBAL VARIABLES LIKE {pattern}"))?;
        Ok(row.and_then(|row| row.at(1).map(str::to_owned)))
    }

    /// Returns whether this very connection is still there. Asks the server once.
    pub fn is_alive(&mut self) -> bool {
        let id = self.value("SELECT CONNECTION_ID()");
        matches!(id, Ok(Some(text)) if text.parse() == Ok(self.id))
    }

    /// Returns the driver's connection, for what this type does not offer.
    pub fn raw(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

/// Returns `text` as an SQL string literal, for sessions opened by [`Session::open`].
#[must_use]
pub fn quote(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for character in text.chars() {
        match character {
            '\'' => literal.push_str("''"),
            '\\' => literal.push_str("\\\\"),
            '\0' => literal.push_str("\\0"),
            other => literal.push(other),
        }
    }
    literal.push('\'');
    literal
}

/// Returns `name` as an SQL identifier in backticks.
#[must_use]
pub fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

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

fn place(options: &ConnectOptions) -> String {
    match options.host.as_deref() {
        Some(host) if !options.means_socket() => {
            format!("{host}:{}", options.port.unwrap_or(3306))
        }
        _ => socket_path(options).display().to_string(),
    }
}

fn timed_out(options: &ConnectOptions, place: &str) -> Error {
    let limit = evenkeel_op::units::duration(options.connect_timeout);
    Error::new(
        ErrorKind::Unreachable,
        format!("no answer from {place} within {limit}"),
    )
    .hint("check that the server is neither stopped nor behind a firewall, or raise --connect-timeout")
}

/// Tries each way these options allow, in the order the MySQL clients would.
fn attempt(options: &ConnectOptions, place: &str) -> Result<Conn> {
    if options.means_socket() {
        return over_socket(options, place);
    }
    let plain = options.ssl_mode == SslMode::Disabled;
    let mut last = None;
    for host in addresses(options, place)? {
        let result = over_tcp(options, &host, !plain).or_else(|error| {
            // A server without TLS, or with none that we speak (MySQL 5.7 can end at TLS 1.1).
            let falls_back = options.ssl_mode == SslMode::Preferred && error::is_about_tls(&error);
            if falls_back {
                over_tcp(options, &host, false)
            } else {
                Err(error)
            }
        });
        match result {
            Ok(conn) => return Ok(conn),
            Err(error) if error::is_no_connection(&error) => last = Some(error),
            Err(error) => return Err(connect_error(&error, place)),
        }
    }
    Err(last.map_or_else(
        || Error::new(ErrorKind::Unreachable, format!("no address for {place}")),
        |error| connect_error(&error, place),
    ))
}

fn over_socket(options: &ConnectOptions, place: &str) -> Result<Conn> {
    if options.ssl_mode > SslMode::Preferred {
        return Err(Error::usage(format!(
            "ssl-mode={} does not go with the Unix socket {place}",
            options.ssl_mode.name()
        ))
        .hint("connect by TCP (--host=127.0.0.1), or leave ssl-mode at PREFERRED: nothing on a socket leaves this host"));
    }
    let path = socket_path(options);
    let Some(path) = path.to_str() else {
        return Err(Error::usage(format!("socket path {place} is not UTF-8")));
    };
    let builder = builder(options).socket(Some(path));
    Conn::new(builder).map_err(|e| connect_error(&e, place))
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
    let found = (bare, port).to_socket_addrs().map_err(|e| {
        Error::new(ErrorKind::Unreachable, format!("failed to look up {place}"))
            .because(e)
            .hint(format!("check the host name '{host}'"))
    })?;
    Ok(found
        .map(|address| bracketed(&address.ip().to_string()))
        .collect())
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
        .pass(options.password.as_ref().map(|p| p.reveal().to_owned()))
        // The driver's default swaps a TCP connection for a socket behind our back.
        .prefer_socket(false)
        .init(FIRST_STATEMENTS.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_names_are_quoted() {
        assert_eq!(quote("it's \\"), "'it''s \\\\'");
        assert_eq!(quote_name("a`b"), "`a``b`");
    }

    #[test]
    fn places_name_what_is_meant() {
        let mut options = ConnectOptions::over_tcp("db1", 3307, "u");
        assert_eq!(place(&options), "db1:3307");
        options.host = Some("localhost".to_owned());
        options.socket = Some("/x/s".into());
        assert_eq!(place(&options), "/x/s");
    }

    #[test]
    fn nobody_there_is_unreachable_and_hints() {
        let error = Session::open(&ConnectOptions::over_socket("/nonexistent/s", "u")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("/nonexistent/s"), "{error}");
        assert!(!error.hints().is_empty());
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let options = ConnectOptions {
            connect_timeout: std::time::Duration::from_millis(200),
            ..ConnectOptions::over_tcp("127.0.0.1", port, "u")
        };
        let error = Session::open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("200 ms"), "{error}");
    }

    #[test]
    fn tls_over_a_socket_is_not_pretended() {
        let mut options = ConnectOptions::over_socket("/nonexistent/s", "u");
        options.ssl_mode = SslMode::Required;
        let error = Session::open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}
