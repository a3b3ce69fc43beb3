//! `demo`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel demo
  evenkeel demo --json | jq .held
  evenkeel demo --dir /var/tmp --server-binary /usr/sbin/mariadbd

Starts a private MariaDB server on its own socket, and removes it afterwards. It does not touch other servers.
If you run it as root, the server's files are on an XFS filesystem in a loop file. Exit code 4: a check
failed.";

/// Demonstrate backup and restore on a throwaway server under load.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Work in a new directory inside this one, and remove it at the end [default: the temporary directory].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The MariaDB server to start [default: mariadbd].
    #[arg(long, value_name = "FILE")]
    pub server_binary: Option<PathBuf>,
}
