//! `import`.

use super::Connection;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel import shop.sql.gz --database shop
  evenkeel import shop.sql --indexes after --threads 8    Indexes at once when a table's rows are there
  zstdcat shop.sql.zst | evenkeel import -                Also packed: it is seen from the first bytes
  evenkeel import shop.sql --from-line 48213              Go on where an import stopped

Statements are found as the mariadb and mysql clients find them. Rows of plain values go to all
connections, those of many short statements as one; what depends on order keeps it. LOCK TABLES and
what begins and ends transactions is left out, unless the file says ROLLBACK or SAVEPOINT: then
transactions run on one connection. Files that the file names with source are run, from its directory.
After a failure, the message has the line and the options to go on with. Exit codes: 3 when a statement
failed and what came before it is in, and with --force when any failed; 13 server lost; 14 server refuses.";

/// Run a file of SQL statements, in parallel where order cannot matter.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// The file, plain or packed with gzip, zstd or xz; - reads standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The default database at the file's beginning.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// How many connections take rows at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// When secondary indexes and foreign keys of new InnoDB tables are made.
    #[arg(long, value_name = "WHEN", default_value = "with")]
    pub indexes: ImportIndexes,
    /// Go on after statements that fail: each is told, and the exit code is 3.
    #[arg(long, short = 'f')]
    pub force: bool,
    /// Do not run files that the file names with source: such a line fails.
    #[arg(long)]
    pub no_source: bool,
    /// Leave comments out of what is stored, as the mariadb client does, and mysql before 8.1.
    #[arg(long)]
    pub skip_comments: bool,
    /// Take zero bytes and line ends of Windows as they are; of the clients' commands, obey DELIMITER alone.
    #[arg(long)]
    pub binary_mode: bool,
    /// Leave out what begins before this line, except settings of the session.
    #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Going on")]
    pub from_line: u64,
    /// Of this table (or all not named), rows on lines before LINE are in; may be given several times.
    #[arg(
        long,
        value_name = "SCHEMA.TABLE|all=LINE",
        value_parser = done,
        help_heading = "Going on"
    )]
    pub done: Vec<(String, u64)>,
    /// How often to say which line everything is in up to.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::span, help_heading = "Going on")]
    pub tell_line_every: Duration,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// When indexes are made.
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
