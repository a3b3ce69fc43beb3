//! The data directory of a stopped server.

use clap::Args;
use std::path::PathBuf;

/// The data directory, by the server's own flags.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Data directory")]
pub struct DataDirectory {
    /// The server's data directory [default: from its option files].
    #[arg(long, value_name = "DIR")]
    pub datadir: Option<PathBuf>,
    /// Read the server's options from this file only.
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_file: Option<PathBuf>,
    /// Also read the server's options from this file, after the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_extra_file: Option<PathBuf>,
    /// Also read groups with this suffix: `[mysqld]` and `[mysqldSUFFIX]`.
    #[arg(long, value_name = "SUFFIX")]
    pub defaults_group_suffix: Option<String>,
    /// Read no option file.
    #[arg(long)]
    pub no_defaults: bool,
}
