//! `import`.

use super::Connection;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel import shop.sql.gz --database shop
  evenkeel import shop.sql --indexes after --threads 8    Build indexes after a table's rows
  zstdcat shop.sql.zst | evenkeel import -                From standard input
  evenkeel import shop.sql --from-line 48213              Resume where an import stopped

Import splits statements as the mariadb and mysql clients do. Rows of plain values are spread over all
connections, and many short statements are merged; whatever depends on order keeps it. LOCK TABLES and
statements that begin or end transactions are skipped, unless the file contains ROLLBACK or SAVEPOINT:
then transactions run on one connection. Files named with source run too, relative to the file's
directory. After a failure the message gives the line and the options to resume with. Exit codes: 3 a
statement failed and everything before it was executed, or with --force any failed; 13 server lost; 14
server refuses.";

/// Run a file of SQL statements, in parallel where order does not matter.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// The file, plain or compressed with gzip, zstd or xz; - reads standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The default database at the start.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// How many connections work in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// When secondary indexes and foreign keys of new InnoDB tables are created.
    #[arg(long, value_name = "WHEN", default_value = "with")]
    pub indexes: ImportIndexes,
    /// Continue after a statement that fails: each failure is reported, and the exit code is 3.
    #[arg(long, short = 'f')]
    pub force: bool,
    /// Run no files named with source: such a line fails.
    #[arg(long)]
    pub no_source: bool,
    /// Remove comments from stored routines, as the mariadb client does, and mysql before 8.1.
    #[arg(long)]
    pub skip_comments: bool,
    /// Keep zero bytes and Windows line ends; of the clients' commands, obey only DELIMITER and \C.
    #[arg(long)]
    pub binary_mode: bool,
    /// Skip statements that begin before this line, except session settings.
    #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Resuming")]
    pub from_line: u64,
    /// Rows of this table (or all not named) on lines before LINE are already there; may be repeated.
    #[arg(
        long,
        value_name = "SCHEMA.TABLE|all=LINE",
        value_parser = done,
        help_heading = "Resuming"
    )]
    pub done: Vec<(String, u64)>,
    /// How often to report the line up to which everything was executed.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::span, help_heading = "Resuming")]
    pub tell_line_every: Duration,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// When indexes are created.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportIndexes {
    /// With the table, as the file has it.
    With,
    /// After the table's rows, all at once.
    After,
}

/// Parses `shop.log=48213`.
fn done(text: &str) -> Result<(String, u64), String> {
    let parsed = text.rsplit_once('=').and_then(|(table, line)| {
        let line = line.parse().ok().filter(|line| *line > 0)?;
        (table == "all" || table.contains('.')).then(|| (table.to_owned(), line))
    });
    parsed.ok_or_else(|| "write it as SCHEMA.TABLE=LINE, for example shop.log=48213".to_owned())
}
