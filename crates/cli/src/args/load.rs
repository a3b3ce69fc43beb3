//! `load`.

use super::Connection;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel load /backup/shop.dump -S /run/mysqld/mysqld.sock
  evenkeel load d --database shop --exclude 'shop\\.log_.*' --threads 8
  evenkeel load d --table 'shop\\.orders'           One table of it
  evenkeel load d --database shop --into shop=shop_copy    Beside the original
  evenkeel load d --replace                       What would be dropped; with --execute, do it
  evenkeel load d --collation utf8mb4_0900_ai_ci=utf8mb4_unicode_520_ci    From MySQL 8 to MariaDB

Tables are made without secondary indexes, filled in the order of their keys, and get the indexes
afterwards. Interrupted anyhow, the same command goes on from where it was, without a row twice: how
far it is stands in the database evenkeel_load of the server, which goes when all is done. Exit codes:
3 all rows are in, but an object could not be made; 4 --verify found other rows; 11 another load is at work there; 14 the server
cannot hold something, or has it already, and nothing was made.";

/// Load a dump into a server, in parallel; interrupted, go on from where it was.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Load {
    /// The directory that `dump`, mydumper or MySQL Shell wrote, or the URL that `dump` wrote to
    /// (s3://BUCKET/FOLDER).
    #[arg(value_name = "DIR")]
    pub input: PathBuf,
    /// Load this database only; may be given several times [default: all].
    #[arg(long, value_name = "NAME", help_heading = "What to load")]
    pub database: Vec<String>,
    /// Load only what has a SCHEMA.NAME that matches this regular expression in whole.
    #[arg(long, value_name = "REGEX", help_heading = "What to load")]
    pub table: Vec<String>,
    /// Leave out what has a SCHEMA.NAME that matches this regular expression in whole.
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
    /// Load the dump's database OLD as NEW; may be given several times. --database, --table and --exclude
    /// go by the names in the dump.
    #[arg(long, value_name = "OLD=NEW")]
    pub into: Vec<String>,
    /// Drop what is there already under the same name; without --execute, only say what.
    #[arg(long)]
    pub replace: bool,
    /// Do what --replace says.
    #[arg(long, requires = "replace")]
    pub execute: bool,
    /// Whose rights views, routines, triggers and events run with: keep, drop (those of who loads
    /// them), or an account USER@HOST for all.
    #[arg(long, value_name = "HOW", default_value = "keep")]
    pub definer: String,
    /// Put a collation that this server has in the place of one that it does not know.
    #[arg(long, value_name = "OLD=NEW")]
    pub collation: Vec<String>,
    /// How many connections work at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Compare the rows that are in with those of the files, before triggers are made.
    #[arg(long)]
    pub verify: bool,
    /// How rows get in.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: LoadMethod,
    /// When secondary indexes are made.
    #[arg(long, value_name = "WHEN", default_value = "after")]
    pub indexes: LoadIndexes,
    /// Leave all of it out of the binary log: replicas do not get it.
    #[arg(long)]
    pub no_binlog: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// How rows get in.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMethod {
    /// LOAD DATA LOCAL where the server allows it, or lets itself be told to for that time; else
    /// INSERT.
    Auto,
    /// LOAD DATA LOCAL or not at all.
    LoadData,
    /// INSERT, which every server takes.
    Insert,
}

/// When secondary indexes are made.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadIndexes {
    /// After the rows, several tables at once.
    After,
    /// With the tables.
    With,
}
