//! Measures what tables make of URLs, and proves on whole corpora that codes sort and are searched
//! as the strings are. `benchmarks/url` parts a corpus and calls this; each command prints JSON.

mod codec;
mod measure;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod proof;

use anyhow::{Context, Result, bail};
use clap::Parser;
use codec::Codec;
use evenkeel_urlcodec::{CodeTable, Mode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Parser)]
enum Args {
    /// Train tables on a file and measure them on others, one table after the other.
    Measure(Measuring),
    /// Round trip, order and every prefix of every string in the files; then random codes.
    Check(Checking),
}

#[derive(clap::Args)]
struct Measuring {
    /// What tables and dictionaries are trained on, one string on each line.
    #[arg(long)]
    train: PathBuf,
    /// What is measured.
    #[arg(long, required = true)]
    test: Vec<PathBuf>,
    /// `dense:BYTES`, `fast:BYTES`, `table:FILE`, `zstd:LEVEL:BYTES`, `brotli`, `fsst`.
    #[arg(long = "codec", required = true)]
    codecs: Vec<String>,
    /// Times that each hundred strings are run through; the best counts.
    #[arg(long, default_value_t = 12)]
    rounds: usize,
    /// Directory in which trained tables are kept.
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Checking {
    /// The table; without it, the one that comes with the program.
    #[arg(long)]
    table: Option<PathBuf>,
    /// Random codes to try.
    #[arg(long, default_value_t = 1_000_000)]
    codes: usize,
    /// Where random codes begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Files with one string on each line.
    files: Vec<PathBuf>,
}

fn lines(file: &Path) -> Result<Vec<Vec<u8>>> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter(|l| !l.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

fn table(file: Option<&Path>) -> Result<CodeTable> {
    Ok(match file {
        Some(file) => CodeTable::read(std::fs::read(file)?)?,
        None => CodeTable::shipped()?,
    })
}

fn codec(name: &str, train: &[Vec<u8>], keep: Option<&Path>) -> Result<Box<dyn Codec>> {
    let parts: Vec<&str> = name.split(':').collect();
    Ok(match parts[..] {
        ["dense", bytes] => Box::new(ours::trained(Mode::Dense, bytes.parse()?, train, keep)?),
        ["fast", bytes] => Box::new(ours::trained(Mode::Fast, bytes.parse()?, train, keep)?),
        ["table", "shipped"] => Box::new(ours::Ours(table(None)?)),
        ["table", file] => Box::new(ours::Ours(table(Some(Path::new(file)))?)),
        #[cfg(feature = "peers")]
        ["zstd", level, bytes] => {
            Box::new(peers::Zstd::new(train, level.parse()?, bytes.parse()?)?)
        }
        #[cfg(feature = "peers")]
        ["brotli"] => Box::new(peers::Brotli),
        #[cfg(feature = "peers")]
        ["fsst"] => Box::new(peers::Fsst::new(train)),
        _ => bail!("{name} is unknown; other compressors need --features peers"),
    })
}

fn measured(args: &Measuring) -> Result<Value> {
    let train = lines(&args.train)?;
    let mut rows = Vec::new();
    for name in &args.codecs {
        let begun = std::time::Instant::now();
        let mut codec = codec(name, &train, args.keep.as_deref())?;
        let trained_s = begun.elapsed().as_secs_f64();
        for file in &args.test {
            let mut row = measure::measure(codec.as_mut(), &lines(file)?, args.rounds)?;
            row["codec"] = json!(name);
            row["file"] = json!(file);
            row["trained_s"] = json!(trained_s);
            rows.push(row);
        }
    }
    Ok(Value::Array(rows))
}

fn checked(args: &Checking) -> Result<Value> {
    let table = table(args.table.as_deref())?;
    let mut files = Vec::new();
    for file in &args.files {
        let mut row = proof::corpus(&table, lines(file)?)?;
        row["file"] = json!(file);
        files.push(row);
    }
    let random = proof::random_codes(&table, args.codes, args.seed)?;
    Ok(json!({"table": table.id(), "files": files, "random_codes": random}))
}

fn main() -> Result<()> {
    let answer = match Args::parse() {
        Args::Measure(args) => measured(&args)?,
        Args::Check(args) => checked(&args)?,
    };
    println!("{answer:#}");
    Ok(())
}
