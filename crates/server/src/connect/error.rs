//! What the driver's and the server's errors mean to the user.

use super::quote::quote;
use evenkeel_op::{Error, ErrorKind};
use mysql::{DriverError, MySqlError};
use std::error::Error as _;
use std::fmt;
use std::io;

/// What hints say of the options that every command has that connects, and what they say where these options are
/// filters, or do not exist.
const FLAGS: [(&str, &str); 5] = [
    (
        "--user and --password (or the [client] group of an option file, or --login-path)",
        "user and password below [client] in the option file, which --defaults-file names",
    ),
    (
        "--host and --port (or the [client] group of an option file)",
        "the server's name and port",
    ),
    (
        "--host (or the [client] group of an option file)",
        "the server's name",
    ),
    (
        "with --ssl-mode=REQUIRED",
        "with ssl-mode=REQUIRED below [client] in the option file, which --defaults-file names",
    ),
    (
        "or raise --connect-timeout",
        "or raise connect-timeout below [client] in the option file, which --defaults-file names",
    ),
];

/// Says in an error's hints where a command takes account and settings of the connection from: option files only, as its
/// `--user` and `--host` choose statements.
#[must_use]
pub fn told_by_files(error: Error) -> Error {
    error.rehinted(|hint| {
        // A client's options, for a client: the command is another one's.
        let known = FLAGS.iter().find(|(flags, _)| hint.contains(flags));
        match known {
            Some((flags, files)) => Some(hint.replace(flags, files)),
            None => hint
                .split_once(" (--host, --port)")
                .or_else(|| hint.split_once(" (--socket), or use --host"))
                .map(|(begin, rest)| format!("{begin}{rest}")),
        }
    })
}

/// An operation needs a global privilege.
const LACKS_GLOBAL: u16 = 1227;

/// The global privileges that a backup needs, by the names that servers have for them.
const OF_BACKUPS: [&str; 7] = [
    "RELOAD",
    "BACKUP_ADMIN",
    "PROCESS",
    "REPLICATION CLIENT",
    "BINLOG MONITOR",
    "SLAVE MONITOR",
    "CONNECTION ADMIN",
];

/// Longest piece of a statement that a message quotes, in bytes.
const STATEMENT_SHOWN: usize = 120;

/// The server's number of an error, which the error states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerNumber(pub u16);

impl ServerNumber {
    /// Returns the number with which a server answered, if it was a server: not for a connection that was lost.
    #[must_use]
    pub fn of(error: &Error) -> Option<u16> {
        error.fact::<Self>().map(|number| number.0)
    }
}

/// Turns the driver's error for a statement into ours. The server's code and text are in the
/// message as the MySQL clients print them: `ERROR 1205 (HY000): Lock wait timeout exceeded …`.
#[must_use]
pub fn query_error(error: &mysql::Error, sql: &str) -> Error {
    query_error_of(error, sql, None)
}

/// Does the same for a statement of an account, `USER@HOST`, where it is known.
#[must_use]
pub fn query_error_of(error: &mysql::Error, sql: &str, account: Option<&str>) -> Error {
    let shown = shortened(sql);
    match error {
        mysql::Error::MySqlError(server) => {
            let kind = kind_of_code(server.code);
            let text = format!("{}, in: {shown}", server_text(server));
            let error = Error::new(kind, text).stating(ServerNumber(server.code));
            with_query_hint(error, server, account)
        }
        other if is_lost(other) => Error::new(
            ErrorKind::Unreachable,
            format!(
                "lost the connection to the server ({}), in: {shown}",
                plain(other)
            ),
        )
        .hint("see the server's error log: it crashed, was stopped, or the session was killed"),
        other => Error::failed(format!("{}, in: {shown}", plain(other))),
    }
}

/// Turns the driver's error for a connection attempt at `place` into ours.
#[must_use]
pub fn connect_error(error: &mysql::Error, place: &str) -> Error {
    match error {
        mysql::Error::MySqlError(server) => {
            let kind = match server.code {
                // Shutting down; the 2000s are the client library's own.
                1053 | 2000..=2999 => ErrorKind::Unreachable,
                _ => ErrorKind::Refused,
            };
            let text = format!("{place} refused the connection: {}", server_text(server));
            let error = Error::new(kind, text).stating(ServerNumber(server.code));
            error.hint(login_hint(server.code))
        }
        mysql::Error::DriverError(DriverError::CouldNotConnect(Some((_, text, kind)))) => {
            unreachable(place, text, *kind)
        }
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            Error::refused(format!("the server at {place} offers no TLS")).hint(
                "set up TLS on the server, or allow an unencrypted connection with \
                     --ssl-mode=PREFERRED",
            )
        }
        mysql::Error::DriverError(
            inner @ (DriverError::UnknownAuthPlugin(_)
            | DriverError::OldMysqlPasswordDisabled
            | DriverError::CleartextPluginDisabled),
        ) => Error::refused(format!("failed to log in at {place}: {inner}")).hint(
            "use an account with mysql_native_password, caching_sha2_password or unix_socket",
        ),
        strange if makes_no_sense(strange) => no_mysql(place),
        tls if is_tls_failure(tls) => {
            Error::refused(format!("TLS with {place} failed: {}", plain(tls))).hint(tls_hint(tls))
        }
        other => Error::new(
            ErrorKind::Unreachable,
            format!("failed to connect to {place}: {}", plain(other)),
        )
        .hint("check that it is a MySQL or MariaDB server, and see its error log"),
    }
}

/// Returns whether the answer is none that the protocol has at that point.
pub(super) fn makes_no_sense(error: &mysql::Error) -> bool {
    match error {
        mysql::Error::CodecError(_) => io_error(error).is_none(),
        mysql::Error::DriverError(inner) => matches!(
            inner,
            DriverError::UnexpectedPacket
                | DriverError::PacketOutOfSync
                | DriverError::UnsupportedProtocol(_)
        ),
        _ => false,
    }
}

/// Makes the error for a login that the server at `place` left in the middle: what came was `answer`.
#[must_use]
pub fn broken_off(answer: &str, place: &str) -> Error {
    Error::new(
        ErrorKind::Unreachable,
        format!("the login at {place} was cut off: {answer}"),
    )
    .hint(
        "run it again: someone may have killed the session; if it happens again, see the \
         server's error log",
    )
}

/// Returns whether no connection came about at all, so that another address may do better.
pub(super) fn is_no_connection(error: &mysql::Error) -> bool {
    matches!(
        error,
        mysql::Error::DriverError(DriverError::CouldNotConnect(_) | DriverError::ConnectTimeout)
    )
}

/// Returns whether a plain connection may work where this one did not.
pub(super) fn is_about_tls(error: &mysql::Error) -> bool {
    match error {
        mysql::Error::DriverError(DriverError::TlsNotSupported) => true,
        // A peer that dislikes our hello hangs up, which looks like any other end.
        mysql::Error::IoError(_) | mysql::Error::TlsError(_) | mysql::Error::CodecError(_) => true,
        _ => false,
    }
}

/// Returns whether a packet was longer than the options allow: what follows it cannot be read.
pub(super) fn is_packet_too_long(error: &mysql::Error) -> bool {
    // The driver does not pass on the type of this error.
    let is_said = |inner: &dyn fmt::Display| inner.to_string().starts_with("Packet is larger");
    matches!(error, mysql::Error::CodecError(inner) if is_said(inner))
}

fn is_tls_failure(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::TlsError(_))
        // What rustls has to say comes wrapped into this kind.
        || io_error(error).is_some_and(|inner| inner.kind() == io::ErrorKind::InvalidData)
}

fn tls_hint(error: &mysql::Error) -> &'static str {
    let text = plain(error);
    if text.contains("HandshakeFailure") || text.contains("ProtocolVersion") {
        // Servers built with OpenSSL 1.0, as MySQL 5.7 and early 8.0 often are, offer key
        // exchanges (DHE, RSA) that rustls leaves out as unsafe.
        "this server's TLS is too old for a safe connection: connect over its socket, or through an ssh tunnel with --ssl-mode=DISABLED"
    } else {
        "check --ssl-ca, --ssl-cert and --ssl-key; --ssl-mode=REQUIRED encrypts without checking the certificate"
    }
}

/// Returns the error of the operating system or of TLS in the driver's wrapping.
fn io_error(error: &mysql::Error) -> Option<&io::Error> {
    match error {
        mysql::Error::IoError(inner) => Some(inner),
        mysql::Error::CodecError(inner) => inner.source()?.downcast_ref(),
        _ => None,
    }
}

fn is_lost(error: &mysql::Error) -> bool {
    matches!(
        error,
        mysql::Error::IoError(_) | mysql::Error::CodecError(_) | mysql::Error::TlsError(_)
    ) || matches!(
        error,
        mysql::Error::DriverError(DriverError::PacketOutOfSync | DriverError::UnexpectedPacket)
    )
}

/// Returns the kind for a server's error code.
fn kind_of_code(code: u16) -> ErrorKind {
    match code {
        // lock wait timeout; max_statement_time (MariaDB), max_execution_time (MySQL)
        1205 | 1969 | 3024 => ErrorKind::LockTimeout,
        // shutting down, killed (1927 is MariaDB's), idle too long (4031), gone away
        1053 | 1927 | 2006 | 2013 | 4031 => ErrorKind::Unreachable,
        // access to a database, an account, a table, a column, a routine, an operation; an option
        // such as --skip-grant-tables or super_read_only forbids the statement
        1044 | 1045 | 1142 | 1143 | 1227 | 1290 | 1370 | 1698 => ErrorKind::Refused,
        _ => ErrorKind::Failed,
    }
}

fn with_query_hint(error: Error, server: &MySqlError, account: Option<&str>) -> Error {
    match error.kind() {
        ErrorKind::Refused => with_grant(error, server, account),
        ErrorKind::LockTimeout => error.hint(
            "find the session that holds the lock with SHOW PROCESSLIST, and run it again when \
             that has ended",
        ),
        ErrorKind::Unreachable if server.code == 1927 => {
            error.hint("someone killed this session: find out who, then run it again")
        }
        _ => error,
    }
}

/// Returns whether the server names a privilege that is missing, but not the account.
#[must_use]
pub fn lacks_account(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(server) if server.code == LACKS_GLOBAL)
}

/// Says which statement gives the privilege that the server misses, as far as it says so.
fn with_grant(error: Error, server: &MySqlError, account: Option<&str>) -> Error {
    let text = server.message.as_str();
    let missing = match server.code {
        LACKS_GLOBAL => lacking_global(text).zip(account.map(quoted_account)),
        1142 => lacking_on_table(text),
        _ => None,
    };
    let Some((what, account)) = missing else {
        return error.hint("give the account the privilege that the message names");
    };
    let of_backups = OF_BACKUPS.iter().any(|one| what == format!("{one} ON *.*"));
    let error = error.hint(format!("GRANT {what} TO {account};"));
    match of_backups {
        true => error.hint("'evenkeel doctor' checks all that a backup needs"),
        false => error,
    }
}

/// Access denied; you need (at least one of) the RELOAD privilege(s) for this operation
fn lacking_global(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("(at least one of) the ")?;
    let (names, _) = rest.split_once(" privilege")?;
    let names: Vec<&str> = names
        .split(", ")
        .flat_map(|some| some.split(" or "))
        .collect();
    // SUPER allows far more than what should be done.
    let least = names.iter().find(|name| **name != "SUPER");
    let name = least.or(names.first())?;
    Some(format!("{name} ON *.*"))
}

/// SELECT command denied to user 'poor'@'localhost' for table `shop`.`orders`: what is missing, and to whom. Some
/// servers do not say in which database, and then nothing is reported.
fn lacking_on_table(text: &str) -> Option<(String, String)> {
    let (privilege, rest) = text.split_once(" command denied to user ")?;
    let (account, table) = rest.split_once(" for table ")?;
    let is_whole = table.starts_with('`') && table.contains("`.`");
    is_whole.then(|| (format!("{privilege} ON {table}"), account.to_owned()))
}

/// `USER@HOST` as a statement has it.
fn quoted_account(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("{}@{}", quote(user), quote(host))
}

fn login_hint(code: u16) -> &'static str {
    match code {
        1040 | 1203 | 1226 => "raise max_connections or the account's limits, or try again later",
        1129 => "run FLUSH HOSTS on the server",
        1130 => "create an account for this host, or connect over the socket",
        1862 | 1820 => "set a new password for the account",
        3159 => "connect with --ssl-mode=REQUIRED",
        1053 => "wait until the server is up again",
        _ => {
            "check --user and --password (or the [client] group of an option file, or --login-path)"
        }
    }
}

fn no_mysql(place: &str) -> Error {
    Error::new(
        ErrorKind::Unreachable,
        format!("the program that listens at {place} is not MySQL or MariaDB"),
    )
    .hint(
        "check --host and --port (or the [client] group of an option file); 3306 is the usual port",
    )
}

fn unreachable(place: &str, text: &str, kind: io::ErrorKind) -> Error {
    let error = Error::new(
        ErrorKind::Unreachable,
        format!("no server at {place}: {text}"),
    );
    let socket = place.contains('/');
    match kind {
        io::ErrorKind::PermissionDenied => {
            error.hint(format!("this user may not use {place}: run as a user who may"))
        }
        _ if socket => error.hint(format!(
            "check that the server runs and that its socket is {place} (--socket), or use --host"
        )),
        _ => error.hint(format!(
            "check that the server runs and listens at {place} (--host, --port), not only on its socket"
        )),
    }
}

/// Returns a server's error as the MySQL clients print it.
fn server_text(server: &MySqlError) -> String {
    format!(
        "ERROR {} ({}): {}",
        server.code, server.state, server.message
    )
}

/// Returns the driver's error without its type names.
pub(super) fn plain(error: &mysql::Error) -> String {
    if let Some(inner) = io_error(error) {
        return inner.to_string();
    }
    match error {
        mysql::Error::DriverError(inner) => inner.to_string(),
        mysql::Error::CodecError(inner) => inner.to_string(),
        mysql::Error::MySqlError(inner) => server_text(inner),
        mysql::Error::TlsError(inner) => inner.to_string(),
        other => other.to_string(),
    }
}

/// Returns a statement in one line, cut where it gets long.
fn shortened(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().find(|(at, _)| *at >= STATEMENT_SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> mysql::Error {
        mysql::Error::MySqlError(MySqlError {
            state: "HY000".to_owned(),
            message: "text of it".to_owned(),
            code,
        })
    }

    #[test]
    fn codes_decide_the_kind_and_stay_readable() {
        for (code, kind) in [
            (1205, ErrorKind::LockTimeout),
            (1969, ErrorKind::LockTimeout),
            (3024, ErrorKind::LockTimeout),
            (2013, ErrorKind::Unreachable),
            (1142, ErrorKind::Refused),
            (1227, ErrorKind::Refused),
            (1064, ErrorKind::Failed),
        ] {
            let error = query_error(&server(code), "SELECT\n  1");
            assert_eq!(error.kind(), kind, "{code}");
            let text = format!("ERROR {code} (HY000): text of it, in: SELECT 1");
            assert_eq!(error.to_string(), text);
            assert_eq!(ServerNumber::of(&error), Some(code));
        }
    }

    #[test]
    fn the_statement_that_gives_a_privilege_is_named() {
        for (code, message, hint) in [
            (
                1227,
                "Access denied; you need (at least one of) the RELOAD privilege(s) for this operation",
                "GRANT RELOAD ON *.* TO 'o''neil'@'%';",
            ),
            (
                1227,
                "Access denied; you need (at least one of) the SUPER, BINLOG MONITOR privilege(s) for this operation",
                "GRANT BINLOG MONITOR ON *.* TO 'o''neil'@'%';",
            ),
            (
                1142,
                "SELECT command denied to user 'a'@'b' for table `shop`.`orders`",
                "GRANT SELECT ON `shop`.`orders` TO 'a'@'b';",
            ),
            (
                1142,
                "SELECT command denied to user 'a'@'b' for table 'orders'",
                "give the account the privilege that the message names",
            ),
        ] {
            let refused = mysql::Error::MySqlError(MySqlError {
                state: "42000".to_owned(),
                message: message.to_owned(),
                code,
            });
            let error = query_error_of(&refused, "X", Some("o'neil@%"));
            assert_eq!(error.hints()[0], hint);
        }
    }

    #[test]
    fn a_lost_connection_is_unreachable() {
        let gone = mysql::Error::IoError(io::ErrorKind::BrokenPipe.into());
        // A statement is quoted, whatever it says.
        let error = query_error(&gone, "SELECT 'ERROR 1062 (23000): '");
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert_eq!(ServerNumber::of(&error), None);
    }

    #[test]
    fn long_statements_are_cut_between_characters() {
        let text = shortened(&"é".repeat(200));
        assert!(text.ends_with('…') && text.len() < 130);
    }
}
