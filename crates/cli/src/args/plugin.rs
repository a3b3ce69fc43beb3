//! `plugin`.

use super::Connection;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel plugin install url                                 With the built-in table
  evenkeel plugin install url --table shop.urltable           With a table trained on your URLs (best)
  evenkeel plugin status url
  evenkeel plugin uninstall url                               The plan
  evenkeel plugin uninstall url --execute
  evenkeel plugin install queue                               Queues as tables: ENGINE=QUEUE
  evenkeel plugin install queue --sql --database shop         On servers that cannot load a library

url installs the functions url_compress(), url_decompress(), url_prefix_low(), url_prefix_high() and
url_table_id(). queue installs the storage engine and queue_wait(), queue_end() and other functions. Install
them on each server, because the installation is not written to the binary log. The procedures of --sql are
written to it and reach the replicas.";

/// Install, upgrade and uninstall functions and queues on a server.
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
    /// Install functions on a server, or upgrade them.
    Install(Box<PluginInstall>),
    /// Remove functions and their files from a server.
    Uninstall(Box<PluginUninstall>),
    /// Show which functions a server has, and whether they work.
    Status(Box<PluginStatus>),
}

/// What can be installed in a server.
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
    /// The path of the server's plugin directory on this host [default: what the server reports over its
    /// socket].
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Queues without a library.
#[derive(Args, Debug, Clone)]
pub struct SqlForm {
    /// Use the SQL form of queue: procedures and InnoDB tables in one database, for servers that cannot load
    /// a library, such as managed servers.
    #[arg(long, requires = "database")]
    pub sql: bool,
    /// With --sql: the database of the procedures.
    #[arg(long, value_name = "DATABASE", requires = "sql")]
    pub database: Option<String>,
}

const INSTALL: &str = "\
Examples:
  evenkeel plugin install url -S /run/mysqld/mysqld.sock
  evenkeel plugin install url --table shop.urltable --library /opt/evenkeel/libevenkeel_url.so
  evenkeel plugin install queue -S /run/mysqld/mysqld.sock
  evenkeel plugin install queue --sql --database shop -h db.example.com -u admin

Run it on the server's host, as a user who may write to the server's plugin directory. From another host, it
prints what to copy where. If different functions are already installed, it shows what it would drop and
re-create, and does so only with --execute. Then the functions are missing for some milliseconds, and
statements that call them fail. The library of queue works with exactly one server version, which is in its
name: evenkeel_queue-mariadb-10.11.19.so. `make queue-plugin` builds it. It can replace another library only
after all connections that used queues have closed. Exit codes: 13 no server was found; 14 the server or its
host refuses, or the server uses another table.";

/// Install functions in a server.
#[derive(Args, Debug)]
#[command(after_help = INSTALL)]
pub struct PluginInstall {
    /// What to install.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PluginName,
    /// A table written by `url train` [default: the built-in table].
    #[arg(long, value_name = "TABLE")]
    pub table: Option<PathBuf>,
    /// The library [default: evenkeel_url.so or libevenkeel_url.so; for queue
    /// evenkeel_queue-SERVER-VERSION.so; next to this program or in ../lib/evenkeel].
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Allow replacing the table; codes made with the old table become unreadable.
    #[arg(long)]
    pub change_table: bool,
    /// The form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Replace functions that are already installed; without this, only the plan to replace them is shown.
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

url: the file of the table is removed too. Keep a copy, because without it compressed URLs cannot be read.
queue: drop all queues first; as long as the server has queues, it keeps the engine.";

/// Remove functions and their files from a server.
#[derive(Args, Debug)]
#[command(after_help = UNINSTALL)]
pub struct PluginUninstall {
    /// What to remove.
    #[arg(value_name = "PLUGIN")]
    pub plugin: PluginName,
    /// The form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Carry out the plan; without this the plan is only shown.
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

Exit code 4: functions are installed, but do not work.";

/// Show which functions a server has.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct PluginStatus {
    /// What to check.
    #[arg(value_name = "PLUGIN", default_value = "url")]
    pub plugin: PluginName,
    /// The form of queue.
    #[command(flatten)]
    pub form: SqlForm,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}
