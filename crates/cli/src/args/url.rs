//! `url`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel url train urls.txt --output shop.urltable --table-size 2500K   On your own URLs (best)
  evenkeel url stats urls.txt --table shop.urltable                       Measure the compression ratio
  evenkeel url compress urls.txt > codes.txt                              With the built-in table
  evenkeel url grep https://example.com/ codes.txt | evenkeel url decompress

Codes, compared byte by byte, sort like their URLs, so indexes, ranges and ORDER BY work on them. Each input
line is one URL; each output line is its code in hexadecimal digits. A code can be read only with the table
that made it, so keep the table as long as the codes. Exit codes: 1 a line is not a code of this table; 2 a
file does not exist, is not a table, or would be overwritten.";

/// Compress URLs to codes that sort and can be searched like the URLs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct Url {
    /// What to do.
    #[command(subcommand)]
    pub verb: UrlVerb,
}

/// What to do with URLs.
#[derive(Subcommand, Debug)]
pub enum UrlVerb {
    /// Train a table on URLs.
    Train(UrlTrain),
    /// Compress URLs to codes.
    Compress(UrlCoded),
    /// Decompress codes to URLs.
    Decompress(UrlCoded),
    /// Find the codes of URLs with a common prefix, without decompressing.
    Grep(UrlGrep),
    /// Measure a table's compression ratio.
    Stats(UrlStats),
}

/// Which table.
#[derive(Args, Debug, Clone)]
pub struct UrlTable {
    /// A table written by `url train` [default: the built-in table].
    #[arg(long, value_name = "TABLE")]
    pub table: Option<PathBuf>,
}

const TRAIN_EXAMPLES: &str = "\
Examples:
  evenkeel url train urls.txt --output shop.urltable --table-size 2500K
  mariadb -BNe 'SELECT url FROM shop.links' | evenkeel url train - --output shop.urltable --table-size 6M --mode fast

The same URLs, in any order, give the same table. To measure the compression ratio for new hosts, the command
trains a second table on nine of ten hosts.";

/// Train a table on URLs.
#[derive(Args, Debug)]
#[command(after_help = TRAIN_EXAMPLES)]
pub struct UrlTrain {
    /// URLs, one per line; - reads standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The table to write. It must not exist.
    #[arg(long, value_name = "TABLE")]
    pub output: PathBuf,
    /// The maximum size of the table.
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub table_size: u64,
    /// What the table is optimized for.
    #[arg(long, value_name = "MODE", default_value = "dense")]
    pub mode: UrlMode,
    /// Do not measure the compression ratio for new hosts, which takes as long as the training.
    #[arg(long)]
    pub no_held_out: bool,
}

/// What a table is optimized for.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlMode {
    /// As few bytes as possible, about ten thousand URLs per second.
    Dense,
    /// Slightly more bytes, about a million URLs per second.
    Fast,
}

const CODED_EXAMPLES: &str = "\
Examples:
  evenkeel url compress urls.txt --table shop.urltable > codes.txt
  evenkeel url decompress codes.txt --table shop.urltable | cmp - urls.txt";

/// Compress or decompress lines.
#[derive(Args, Debug)]
#[command(after_help = CODED_EXAMPLES)]
pub struct UrlCoded {
    /// The lines; - reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Which table.
    #[command(flatten)]
    pub table: UrlTable,
}

const GREP_EXAMPLES: &str = "\
Examples:
  evenkeel url grep https://example.com/ codes.txt | evenkeel url decompress
  evenkeel url grep https://example.com/ codes.txt | wc -l";

/// Find the codes of URLs with a common prefix.
#[derive(Args, Debug)]
#[command(after_help = GREP_EXAMPLES)]
pub struct UrlGrep {
    /// The prefix of the URLs.
    #[arg(value_name = "PREFIX")]
    pub prefix: std::ffi::OsString,
    /// The file of codes.
    #[command(flatten)]
    pub codes: UrlCoded,
}

const STATS_EXAMPLES: &str = "\
Examples:
  evenkeel url stats urls.txt
  evenkeel url stats urls.txt --table shop.urltable --json";

/// Measure a table's compression ratio.
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
pub struct UrlStats {
    /// URLs, one per line; - reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Which table.
    #[command(flatten)]
    pub table: UrlTable,
}
