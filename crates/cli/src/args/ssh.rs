//! Another host, to work on.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Another host, to work on.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Another host")]
pub struct Remote {
    /// Work on this host: everything but the repository is over there, option files too. Nothing
    /// needs to be installed there; whatever ssh takes will do: `root@db1`.
    #[arg(long, value_name = "DESTINATION")]
    pub ssh: Option<String>,
    /// The ssh program and its options, as words of a shell.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh_command: String,
    /// Become root over there by `sudo -n`.
    #[arg(long)]
    pub ssh_sudo: bool,
    /// How long a lost connection may stay lost before both sides give up and clean up.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::span)]
    pub ssh_patience: Duration,
    /// Where blocks are compressed: over there, or where the repository is, which spares the other
    /// host's processors and costs the link.
    #[arg(long, value_name = "WHERE", default_value = "source")]
    pub compress_at: CompressAt,
    /// The program to push, for a host of another kind [default: this one].
    #[arg(long, value_name = "FILE")]
    pub ssh_program: Option<PathBuf>,
    /// Leave the program over there for the next run, in `~/.cache/evenkeel` (the default), with the version
    /// used before it.
    #[arg(long, overrides_with = "no_ssh_keep_program")]
    pub ssh_keep_program: bool,
    /// Leave no program over there, and remove what earlier runs left.
    #[arg(long, overrides_with = "ssh_keep_program")]
    pub no_ssh_keep_program: bool,
}

/// Where blocks are compressed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressAt {
    /// Where they are read.
    #[default]
    Source,
    /// Where they are kept.
    Repository,
}
