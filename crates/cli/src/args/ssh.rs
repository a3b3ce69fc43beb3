//! Another host, to work on.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Another host, to work on.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Another host")]
pub struct Remote {
    /// Work on this host. Everything except the repository is there, including option files. Nothing needs to
    /// be installed there. The value is passed to ssh: `root@db1`.
    #[arg(long, value_name = "DESTINATION")]
    pub ssh: Option<String>,
    /// The ssh program and its options, quoted as in a shell.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh_command: String,
    /// Become root on that host with `sudo -n`.
    #[arg(long)]
    pub ssh_sudo: bool,
    /// If the connection is lost, try to reconnect for this long; then both sides give up and clean up.
    #[arg(long, alias = "ssh-patience", value_name = "TIME", default_value = "60s", value_parser = super::span)]
    pub ssh_timeout: Duration,
    /// Where blocks are compressed: on the server's host, or on the repository's host, which saves CPU time
    /// on the server but sends more over the link.
    #[arg(long, value_name = "WHERE", default_value = "source")]
    pub compress_at: CompressAt,
    /// The evenkeel program to send to a host that cannot run this one [default: this program].
    #[arg(long, value_name = "FILE")]
    pub ssh_program: Option<PathBuf>,
    /// Keep the program on that host for the next run (the default). It is in `~/.cache/evenkeel`, with the
    /// version used before it.
    #[arg(long, overrides_with = "no_ssh_keep_program")]
    pub ssh_keep_program: bool,
    /// Keep no program on that host, and remove programs that earlier runs left.
    #[arg(long, overrides_with = "ssh_keep_program")]
    pub no_ssh_keep_program: bool,
}

/// Where blocks are compressed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressAt {
    /// On the host where the blocks are read.
    #[default]
    Source,
    /// On the host where the blocks are stored.
    Repository,
}
