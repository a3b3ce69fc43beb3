//! `url`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel url train urls.txt --output shop.urltable --table-size 2500K   On your own URLs: best
  evenkeel url stats urls.txt --table shop.urltable                       What it makes of them
  evenkeel url compress urls.txt > codes.txt                              With the table that is built in
  evenkeel url grep https://example.com/ codes.txt | evenkeel url decompress

Codes compare, byte by byte, as the URLs do, so that indexes, ranges and ORDER BY work on them. One
line is one URL, in bytes, without the line's end; a code's line is its bytes as hexadecimal digits.
What was compressed with a table is read with that table only: keep it as long as the codes. Exit codes: 1 a line is not a code of this table;
2 a file is not there, is not a table, or is one that would be overwritten.";

/// Compress URLs so that they sort and are searched as before.
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
    /// Turn URLs into codes.
    Compress(UrlCoded),
    /// Turn codes into URLs.
    Decompress(UrlCoded),
    /// Find the codes of URLs that begin alike, without decompressing any.
    Grep(UrlGrep),
    /// Say what a table makes of URLs.
    Stats(UrlStats),
}

/// Which table.
#[derive(Args, Debug, Clone)]
pub struct UrlTable {
    /// A table that `url train` wrote; without it, the one that is built in.
    #[arg(long, value_name = "TABLE")]
    pub table: Option<PathBuf>,
}

const TRAIN_EXAMPLES: &str = "\
Examples:
  evenkeel url train urls.txt --output shop.urltable --table-size 2500K
  mariadb -BNe 'SELECT url FROM shop.links' | evenkeel url train - --output shop.urltable --table-size 6M --mode fast

The same URLs, in whatever order, make the same table. How it does with hosts that it has not seen is
measured with a second table, trained on nine in ten hosts.";

/// Train a table on URLs.
#[derive(Args, Debug)]
#[command(after_help = TRAIN_EXAMPLES)]
pub struct UrlTrain {
    /// URLs, one on each line; - reads standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The table to write. It may not exist.
    #[arg(long, value_name = "TABLE")]
    pub output: PathBuf,
    /// The most that the table may take.
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub table_size: u64,
    /// What the table is for.
    #[arg(long, value_name = "MODE", default_value = "dense")]
    pub mode: UrlMode,
    /// Do not measure how it does with hosts that it has not seen, which takes as long again.
    #[arg(long)]
    pub no_held_out: bool,
}

/// What a table is for.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlMode {
    /// As few bytes as possible, some ten thousand URLs in a second.
    Dense,
    /// Some more bytes, a million URLs in a second.
    Fast,
}

const CODED_EXAMPLES: &str = "\
Examples:
  evenkeel url compress urls.txt --table shop.urltable > codes.txt
  evenkeel url decompress codes.txt --table shop.urltable | cmp - urls.txt";

/// Turn lines into lines.
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

/// Find the codes of URLs that begin alike.
#[derive(Args, Debug)]
#[command(after_help = GREP_EXAMPLES)]
pub struct UrlGrep {
    /// What the URLs begin with.
    #[arg(value_name = "PREFIX")]
    pub prefix: std::ffi::OsString,
    /// Where the codes are.
    #[command(flatten)]
    pub codes: UrlCoded,
}

const STATS_EXAMPLES: &str = "\
Examples:
  evenkeel url stats urls.txt
  evenkeel url stats urls.txt --table shop.urltable --json";

/// Say what a table makes of URLs.
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
pub struct UrlStats {
    /// URLs, one on each line; - reads standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Which table.
    #[command(flatten)]
    pub table: UrlTable,
}
