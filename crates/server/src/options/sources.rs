//! Who may say something about a connection, and what came out of it.

use super::{ConnectOptions, Secret, SslMode};
use crate::option_file::{DefaultsSpec, OptionLine};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Connection options that somebody gave one by one: on the command line, or in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Host name or address.
    pub host: Option<String>,
    /// TCP port.
    pub port: Option<u16>,
    /// Unix socket.
    pub socket: Option<PathBuf>,
    /// Account name.
    pub user: Option<String>,
    /// Password; an empty one means none.
    pub password: Option<Secret>,
    /// `TCP` or `SOCKET`.
    pub protocol: Option<String>,
    /// How much TLS to insist on.
    pub ssl_mode: Option<SslMode>,
    /// Certificate authority.
    pub ssl_ca: Option<PathBuf>,
    /// Client certificate.
    pub ssl_cert: Option<PathBuf>,
    /// Key of the client certificate.
    pub ssl_key: Option<PathBuf>,
    /// How long a connection attempt may take.
    pub connect_timeout: Option<Duration>,
}

/// Where settings come from, weakest first: environment, option files, login path, command line.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `MYSQL_HOST`, `MYSQL_TCP_PORT`, `MYSQL_UNIX_PORT`, `MYSQL_PWD`, as the caller found them.
    pub environment: Given,
    /// Which option files to read.
    pub defaults: DefaultsSpec,
    /// The login path file (`~/.mylogin.cnf`, or `MYSQL_TEST_LOGIN_FILE`); `None` reads none.
    pub login_file: Option<PathBuf>,
    /// `--login-path`: a group of the login path file.
    pub login_path: Option<String>,
    /// What the command line says.
    pub given: Given,
}

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is built in.
    Default,
    /// An environment variable.
    Environment,
    /// A line of an option file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
        /// The group.
        group: String,
    },
    /// A group of the login path file.
    LoginPath(String),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Environment => f.write_str("environment"),
            Self::File { path, line, group } => {
                write!(f, "{}, line {line} [{group}]", path.display())
            }
            Self::LoginPath(group) => write!(f, "login path [{group}]"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One setting as it holds now, for showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of its flag, without dashes in front.
    pub name: String,
    /// The value; `***` for passwords, empty when there is none.
    pub value_shown: String,
    /// Who said it.
    pub origin: Origin,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// How to connect.
    pub connect: ConnectOptions,
    /// Whether a password is still to be asked for: an option file has `password` without a value.
    pub ask_password: bool,
    /// The connection's settings, then the verb's own out of `[evenkeel]` groups.
    pub settings: Vec<Setting>,
    /// The verb's own options out of the `[evenkeel]` and `[evenkeel-VERB]` groups, by name with
    /// `-`; the last of each counts.
    pub own: BTreeMap<String, OptionLine>,
    /// What was passed over and why.
    pub warnings: Vec<String>,
}
