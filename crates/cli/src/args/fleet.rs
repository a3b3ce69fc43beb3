//! `fleet`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel fleet /etc/evenkeel/fleet.toml -- backup --keep-daily 7 --prune
  evenkeel fleet /etc/evenkeel/fleet.toml --jobs 2 --only shop --only blog -- backup --full
  evenkeel fleet /etc/evenkeel/fleet.toml --json -- verify | jq '.servers[] | select(.exit_code != 0)'

In the file, [every] has the options for all servers. Each [[server]] has the options for one server: its
name, its repository, and options of the command by their long names. In a value, {name} stands for the
server's name. Do not put a password in the file or on a command line: name an option file.

  [every]
  repository = \"/backup/{name}\"
  defaults-file = \"/etc/evenkeel/{name}.cnf\"

  [[server]]
  name = \"shop\"

  [[server]]
  name = \"blog\"
  ssh = \"root@blog.example\"

Each server has its own process, so a failure does not stop the others. Exit codes: 3 the command failed for
some servers; 1 it failed for all.";

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
