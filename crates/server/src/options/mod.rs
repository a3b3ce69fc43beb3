//! How to reach one server, as the MySQL clients understand it, and where each setting comes from.

mod keys;
mod merge;
mod resolve;
mod server;
mod sources;

pub use resolve::resolve;
pub(crate) use server::settings_of;
pub use server::{server_groups, server_settings};
pub use sources::{Given, Origin, Resolved, Setting, Sources};

use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// How long a connection attempt may take when nobody says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How much TLS to insist on; the names are those of `--ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SslMode {
    /// Never TLS.
    Disabled,
    /// TLS over TCP when the server offers it, else plain.
    #[default]
    Preferred,
    /// TLS or nothing; the certificate is not checked.
    Required,
    /// TLS with a certificate that the authority signed, for whatever host.
    VerifyCa,
    /// TLS with a certificate that the authority signed for this host.
    VerifyIdentity,
}

impl SslMode {
    /// Returns the name that `--ssl-mode` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::Preferred => "PREFERRED",
            Self::Required => "REQUIRED",
            Self::VerifyCa => "VERIFY_CA",
            Self::VerifyIdentity => "VERIFY_IDENTITY",
        }
    }
}

impl FromStr for SslMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.to_ascii_uppercase().replace('-', "_");
        [
            Self::Disabled,
            Self::Preferred,
            Self::Required,
            Self::VerifyCa,
            Self::VerifyIdentity,
        ]
        .into_iter()
        .find(|mode| mode.name() == wanted)
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not an ssl-mode"))
                .hint("use DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
        })
    }
}

/// Whose public key encrypts a password that a server wants to read, where nothing encrypts the connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ServerKey {
    /// Nobody said: it depends on who connects.
    #[default]
    Unsaid,
    /// What listens is asked for a key. Whoever that is can read the password.
    Asked,
    /// The key of this file, in PEM.
    File(PathBuf),
}

/// No public key is longer, in bytes.
const KEY_BYTES: u64 = 64 << 10;

impl ServerKey {
    /// Returns the file that was named.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Unsaid | Self::Asked => None,
        }
    }

    /// Reads the file that was named, if one was.
    ///
    /// Errors: `Usage` for one that is not there or has no public key.
    pub fn read(&self) -> Result<Option<String>> {
        let Self::File(path) = self else {
            return Ok(None);
        };
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(KEY_BYTES).read_to_string(&mut text))
            .map_err(|error| unreadable("server's public key", path, error))?;
        match text.contains("-----BEGIN PUBLIC KEY-----") {
            true => Ok(Some(text)),
            false => Err(
                Error::usage(format!("{} has no public key", path.display()))
                    .hint("it has to be a copy of the server's public_key.pem"),
            ),
        }
    }
}

/// A password: never shown by `Debug`, overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Wraps a password.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_bytes())
    }

    /// Returns the password itself, to hand to the server and to nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        // Made from a String and never changed since.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the optimiser from dropping stores into memory that is about to be freed.
        std::hint::black_box(&self.0);
    }
}

/// How to reach one server and who to be there. `None` means what the MySQL clients take it to
/// mean: no host is the local socket, no port is 3306, no user is the login name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Host name or address; `None` and `localhost` mean the Unix socket.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<u16>,
    /// Unix socket; looked at only when the host means one.
    pub socket: Option<PathBuf>,
    /// Account name.
    pub user: Option<String>,
    /// Password; `None` sends none.
    pub password: Option<Secret>,
    /// How much TLS to insist on.
    pub ssl_mode: SslMode,
    /// Certificate authority, PEM or DER.
    pub ssl_ca: Option<PathBuf>,
    /// Client certificate.
    pub ssl_cert: Option<PathBuf>,
    /// Key of the client certificate.
    pub ssl_key: Option<PathBuf>,
    /// Whose key encrypts the password for a server that wants to read it.
    pub server_key: ServerKey,
    /// How long the whole attempt may take: name lookup, connection, handshake, login.
    pub connect_timeout: Duration,
    /// No packet, and so no row, may be longer, in bytes; `None` leaves that to the server.
    pub packet_max: Option<usize>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            host: None,
            port: None,
            socket: None,
            user: None,
            password: None,
            ssl_mode: SslMode::default(),
            ssl_ca: None,
            ssl_cert: None,
            ssl_key: None,
            server_key: ServerKey::default(),
            connect_timeout: CONNECT_TIMEOUT,
            packet_max: None,
        }
    }
}

impl ConnectOptions {
    /// Makes options for a server's Unix socket, without a password.
    pub fn over_socket(path: impl Into<PathBuf>, user: &str) -> Self {
        Self {
            socket: Some(path.into()),
            user: Some(user.to_owned()),
            ..Self::default()
        }
    }

    /// Makes options for a server's TCP port, without a password.
    #[must_use]
    pub fn over_tcp(host: &str, port: u16, user: &str) -> Self {
        Self {
            host: Some(host.to_owned()),
            port: Some(port),
            user: Some(user.to_owned()),
            ..Self::default()
        }
    }

    /// Returns whether these options mean a Unix socket rather than TCP.
    #[must_use]
    pub fn means_socket(&self) -> bool {
        // "localhost" is a socket for every MySQL client, however it is written.
        self.host
            .as_deref()
            .is_none_or(|host| host.is_empty() || host.eq_ignore_ascii_case("localhost"))
    }
}

/// Returns the account name that goes with no user given: this process's login name, as the
/// password file has it.
#[must_use]
pub fn login_name() -> String {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    accounts
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&uid.as_str()))
        .map_or_else(String::new, |fields| fields[0].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssl_modes_read_back() {
        for name in ["DISABLED", "preferred", "Verify_Ca", "verify-identity"] {
            let mode: SslMode = name.parse().unwrap();
            assert_eq!(mode.name(), name.to_uppercase().replace('-', "_"));
        }
        assert!("maybe".parse::<SslMode>().is_err());
    }

    #[test]
    fn secrets_do_not_show() {
        let options = ConnectOptions {
            password: Some(Secret::new("hunter2")),
            ..ConnectOptions::over_socket("/s", "u")
        };
        assert!(!format!("{options:?}").contains("hunter2"));
        assert_eq!(options.password.unwrap().reveal(), "hunter2");
    }

    #[test]
    fn localhost_is_the_socket() {
        let host = |h: &str| ConnectOptions::over_tcp(h, 3306, "u").means_socket();
        assert!(host("localhost") && host("LOCALHOST"));
        assert!(!host("127.0.0.1") && !host("localhost."));
    }
}
