//! `load`.

use super::Connection;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel load /backup/shop.dump -S /run/mysqld/mysqld.sock
  evenkeel load d --database shop --exclude 'shop\\.log_.*' --threads 8
  evenkeel load d --table 'shop\\.orders'           One table
  evenkeel load d --database shop --into shop=shop_copy    Beside the original
  evenkeel load d --replace                       What would be dropped; with --execute, do it
  evenkeel load d --collation utf8mb4_0900_ai_ci=utf8mb4_unicode_520_ci    From MySQL 8 to MariaDB

Load creates tables without secondary indexes, fills them in primary-key order, and then builds the
indexes. If it is interrupted for any reason, run the same command again: it resumes, without duplicate
rows. Its progress is in the database evenkeel_load on the server, which it drops at the end. Exit
codes: 3 all rows are loaded, but an object could not be created; 4 --verify found differences; 11
another load is running; 14 the server cannot hold something, or has it already, and nothing was
created.";

/// Load a dump into a server, in parallel; resume if interrupted.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Load {
    /// The directory of a dump by `dump`, mydumper or MySQL Shell, or the URL that `dump` wrote to
    /// (s3://BUCKET/FOLDER).
    #[arg(value_name = "DIR")]
    pub input: PathBuf,
    /// Load only this database; may be repeated [default: all].
    #[arg(long, value_name = "NAME", help_heading = "What to load")]
    pub database: Vec<String>,
    /// Load only objects whose whole SCHEMA.NAME matches this regular expression.
    #[arg(long, value_name = "REGEX", help_heading = "What to load")]
    pub table: Vec<String>,
    /// Leave out objects whose whole SCHEMA.NAME matches this regular expression.
    #[arg(long, value_name = "REGEX", help_heading = "What to load")]
    pub exclude: Vec<String>,
    /// Leave views out.
    #[arg(long, help_heading = "What to load")]
    pub no_views: bool,
    /// Leave procedures, functions and packages out.
    #[arg(long, help_heading = "What to load")]
    pub no_routines: bool,
    /// Leave triggers out.
    #[arg(long, help_heading = "What to load")]
    pub no_triggers: bool,
    /// Leave events out.
    #[arg(long, help_heading = "What to load")]
    pub no_events: bool,
    /// Leave sequences out.
    #[arg(long, help_heading = "What to load")]
    pub no_sequences: bool,
    /// Load the dump's users and roles too, with their grants.
    #[arg(long, help_heading = "What to load")]
    pub users: bool,
    /// Load the dump's database OLD as NEW; may be repeated. --database, --table and --exclude use the
    /// names in the dump.
    #[arg(long, value_name = "OLD=NEW")]
    pub into: Vec<String>,
    /// Drop existing objects of the same name first; without --execute, only list them.
    #[arg(long)]
    pub replace: bool,
    /// Do what --replace lists.
    #[arg(long, requires = "replace")]
    pub execute: bool,
    /// Whose rights views, routines, triggers and events run with: keep, drop (those of the account that
    /// loads), or this account USER@HOST.
    #[arg(long, value_name = "HOW", default_value = "keep")]
    pub definer: String,
    /// Replace a collation that this server does not know.
    #[arg(long, value_name = "OLD=NEW")]
    pub collation: Vec<String>,
    /// How many connections work in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Compare the loaded rows with the files, before triggers are created.
    #[arg(long)]
    pub verify: bool,
    /// How rows are loaded.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: LoadMethod,
    /// When secondary indexes are built.
    #[arg(long, value_name = "WHEN", default_value = "after")]
    pub indexes: LoadIndexes,
    /// Keep the load out of the binary log, so replicas do not get it.
    #[arg(long)]
    pub no_binlog: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// How rows are loaded.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMethod {
    /// LOAD DATA LOCAL if the server allows it, or if it can be enabled for that time; else INSERT.
    Auto,
    /// LOAD DATA LOCAL only.
    LoadData,
    /// INSERT, which every server accepts.
    Insert,
}

/// When secondary indexes are built.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadIndexes {
    /// After the rows, several tables at once.
    After,
    /// With the tables.
    With,
}
