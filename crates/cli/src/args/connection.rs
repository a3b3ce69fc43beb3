//! Which server, by the MySQL clients' own flags.

use super::Hidden;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// How to reach the server.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// The server's host; `localhost` (the default) means its Unix socket.
    #[arg(short = 'h', long)]
    pub host: Option<String>,
    /// The server's TCP port.
    #[arg(short = 'P', long)]
    pub port: Option<u16>,
    /// The user to connect as.
    #[arg(short = 'u', long)]
    pub user: Option<String>,
    /// The password, without a space (`-pSECRET`, `--password=SECRET`); without a value, ask for it.
    #[arg(short = 'p', long, num_args = 0..=1, require_equals = true)]
    pub password: Option<Option<Hidden>>,
    /// The server's Unix socket.
    #[arg(short = 'S', long, value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// Read options from this file only (and from the login file).
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_file: Option<PathBuf>,
    /// Also read options from this file, after the system's and before your own.
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_extra_file: Option<PathBuf>,
    /// Also read groups with this suffix: `[client]` and `[clientSUFFIX]`.
    #[arg(long, value_name = "SUFFIX")]
    pub defaults_group_suffix: Option<String>,
    /// Read no option file except the login file.
    #[arg(long)]
    pub no_defaults: bool,
    /// Read this group of the login file (`mysql_config_editor`).
    #[arg(long, value_name = "NAME")]
    pub login_path: Option<String>,
    /// How strictly to require TLS.
    #[arg(long, value_name = "MODE", ignore_case = true)]
    pub ssl_mode: Option<SslModeArg>,
    /// Certificate authorities to trust, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_ca: Option<PathBuf>,
    /// This client's certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,
    /// The key of this client's certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,
    /// Give up connecting after this time.
    #[arg(long, value_name = "TIME", value_parser = super::span)]
    pub connect_timeout: Option<Duration>,
}

/// `--ssl-mode`, by the MySQL clients' names.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SslModeArg {
    /// No TLS.
    Disabled,
    /// Use TLS if the server offers it.
    Preferred,
    /// Require TLS; the certificate is not checked.
    Required,
    /// Require TLS and a certificate from a trusted authority.
    VerifyCa,
    /// Like VERIFY_CA, and the certificate must name the host.
    VerifyIdentity,
}
