//! `fleet`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel fleet /etc/evenkeel/fleet.toml -- backup --keep-daily 7 --prune
  evenkeel fleet /etc/evenkeel/fleet.toml --jobs 2 --only shop --only blog -- backup --full
  evenkeel fleet /etc/evenkeel/fleet.toml --json -- verify | jq '.servers[] | select(.exit_code != 0)'

In the file, [every] holds what is the same for all servers and each [[server]] what is its own: a
name, a repository, and options of the command by their long names. {name} in a value stands for the
server's name. A password does not belong there, nor on a command line: name an option file.

  [every]
  repository = \"/backup/{name}\"
  defaults-file = \"/etc/evenkeel/{name}.cnf\"

  [[server]]
  name = \"shop\"

  [[server]]
  name = \"blog\"
  ssh = \"root@blog.example\"

Each server has a process of its own: one that fails stops no other. Exit code 3: some failed; 1:
all did.";

/// Run a command for each of the servers that a file lists, some at a time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Fleet {
    /// The list of servers.
    #[arg(value_name = "FLEET.toml")]
    pub file: PathBuf,
    /// How many servers to work for at a time.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Only for the server of this name; repeat for more.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The command and what is the same for all, after `--`: `backup`, `verify`, `generations`,
    /// `forget`, `prune` or `doctor`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
