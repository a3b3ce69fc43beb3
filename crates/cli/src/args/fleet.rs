//! `fleet`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel fleet /etc/evenkeel/fleet.toml -- backup --keep-daily 7 --prune
  evenkeel fleet /etc/evenkeel/fleet.toml --jobs 2 --only shop --only blog -- backup --full
  evenkeel fleet /etc/evenkeel/fleet.toml --json -- verify | jq '.servers[] | select(.exit_code != 0)'

In the file, [every] holds the options for all servers, and each [[server]] those of one: a name, a
repository, and options of the command by their long names. {name} in a value stands for the server's
name. Do not put a password there or on a command line: name an option file.

  [every]
  repository = \"/backup/{name}\"
  defaults-file = \"/etc/evenkeel/{name}.cnf\"

  [[server]]
  name = \"shop\"

  [[server]]
  name = \"blog\"
  ssh = \"root@blog.example\"

Each server has its own process: a failure does not stop the others. Exit code 3: some failed; 1: all failed.";

/// Run a command for every server in a list, several at a time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Fleet {
    /// The list of servers.
    #[arg(value_name = "FLEET.toml")]
    pub file: PathBuf,
    /// How many servers to process at a time.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Only the server of this name; repeat for more.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The command and its common options, after `--`: `backup`, `verify`, `generations`, `forget`, `prune`
    /// or `doctor`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
