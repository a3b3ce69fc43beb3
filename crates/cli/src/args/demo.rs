//! `demo`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel demo
  evenkeel demo --json | jq .held
  evenkeel demo --dir /mnt/xfs/demo --keep

Starts a private server on a loopback port of its own and removes it afterwards; no server that
is already running is touched. Exit code 4: something did not hold.";

/// Show all of it on a throwaway server under load.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Work in this empty directory [default: an XFS loop file as root, else a temporary directory].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Leave the directory as it is at the end, to look around.
    #[arg(long)]
    pub keep: bool,
    /// The server to start [default: mariadbd].
    #[arg(long, value_name = "FILE")]
    pub server_binary: Option<PathBuf>,
    /// Seed of every random choice, to repeat a run.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
