//! `plugin`.

use super::Connection;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel plugin install url                                 With the table that is built in
  evenkeel plugin install url --table shop.urltable           With one of your own URLs: best
  evenkeel plugin status url
  evenkeel plugin uninstall url                               The plan
  evenkeel plugin uninstall url --execute
  evenkeel plugin install queue                               Queues as tables: ENGINE=QUEUE
  evenkeel plugin install queue --sql --database shop         Where no library can be loaded

The functions of url are url_compress(), url_decompress(), url_prefix_low(), url_prefix_high() and
url_table_id(); those of queue are queue_wait(), queue_end() and others, and the
engine belongs to them. Each server gets its own, and nothing of that goes into the binary log; the
procedures of --sql do, and replicas get them.";

/// Put functions and queues into a server, change them, take them out.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct Plugin {
    /// What to do.
    #[command(subcommand)]
    pub verb: PluginVerb,
}

/// What to do with plugins.
#[derive(Subcommand, Debug)]
pub enum PluginVerb {
    /// Put functions into a server, or newer ones in the place of older.
    Install(Box<PluginInstall>),
    /// Take functions out of a server, and their files.
    Uninstall(Box<PluginUninstall>),
    /// Say what a server has of them, and whether they work.
    Status(Box<PluginStatus>),
}

/// What there is to put into a server.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginName {
    /// Functions that compress URLs.
    Url,
    /// Queues as tables, and their functions.
    Queue,
}

/// Where the server is, and its files.
#[derive(Args, Debug, Clone)]
pub struct PluginServer {
    /// The server's plugin directory as it is called on this host [default: what the server says, when
    /// it is reached over its socket].
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Queues without a library.
#[derive(Args, Debug, Clone)]
pub struct SqlForm {
    /// The form of queue for servers that load no library, such as rented ones: procedures over
    /// InnoDB in one database.
    #[arg(long, requires = "database")]
    pub sql: bool,
    /// The database that has or gets the procedures; with --sql.
    #[arg(long, value_name = "DATABASE", requires = "sql")]
    pub database: Option<String>,
}

const INSTALL: &str = "\
Examples:
  evenkeel plugin install url -S /run/mysqld/mysqld.sock
  evenkeel plugin install url --table shop.urltable --library /opt/evenkeel/libevenkeel_url.so
  evenkeel plugin install queue -S /run/mysqld/mysqld.sock
  evenkeel plugin install queue --sql --database shop -h db.example.com -u admin

Run it on the server's host as a user who may write into its plugin directory; from elsewhere it says
what to copy where. Where functions are there already and differ, it shows what it would drop and make
anew, and does it with --execute: for some milliseconds there are none, and statements that call them
fail. The library of queue is bound to its server's version, evenkeel_queue-mariadb-10.11.19.so: `make
queue-plugin` builds it; it takes the place of another only when no connection is left that used queues. Exit codes: 13
no server there; 14 the server or its host refuses, or works with another table.";

/// Put functions into a server.
#[derive(Args, Debug)]
#[command(after_help = INSTALL)]
pub struct PluginInstall {
    /// What to put there.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PluginName,
    /// A table that `url train` wrote; without it, the one that is built in.
    #[arg(long, value_name = "TABLE")]
    pub table: Option<PathBuf>,
    /// The library [default: evenkeel_url.so or libevenkeel_url.so, for queue
    /// evenkeel_queue-SERVER-VERSION.so, beside this program or in ../lib/evenkeel].
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The server may get another table: there are no codes of the old one, or nobody needs them.
    #[arg(long)]
    pub change_table: bool,
    /// Which form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Replace what is there.
    #[arg(long)]
    pub execute: bool,
    /// Which server.
    #[command(flatten)]
    pub server: PluginServer,
}

const UNINSTALL: &str = "\
Examples:
  evenkeel plugin uninstall url             The plan
  evenkeel plugin uninstall url --execute
  evenkeel plugin uninstall queue --sql --database shop --execute

The table's file of url goes too. Without it nobody can read what was compressed: keep a copy. Queues are
not taken out of a server that has any: drop them first.";

/// Take functions out of a server, and their files.
#[derive(Args, Debug)]
#[command(after_help = UNINSTALL)]
pub struct PluginUninstall {
    /// What to take out.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PluginName,
    /// Which form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Do it.
    #[arg(long)]
    pub execute: bool,
    /// Which server.
    #[command(flatten)]
    pub server: PluginServer,
}

const STATUS: &str = "\
Examples:
  evenkeel plugin status url
  evenkeel plugin status url --json
  evenkeel plugin status queue

Exit code 4: some of the functions are there, and they do not work.";

/// Say what a server has of the functions.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct PluginStatus {
    /// Of what.
    #[arg(value_name = "PLUGIN", default_value = "url")]
    pub plugin: PluginName,
    /// Which form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
