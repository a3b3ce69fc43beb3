//! `bench compare`.

use clap::Args;
use std::path::PathBuf;

const COMPARE: &str = "\
Examples:
  evenkeel bench tpcc run --repeat 5 --json > before.json
  evenkeel bench compare before.json after.json               As often after the change
  evenkeel bench compare inserts-a.json inserts-b.json        Each way, by each of its values
  evenkeel bench compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json --value /transactions_per_s

A file holds one answer of `--json` or several, one after the other: of `bench tpcc run` (compared by `tpmc`,
`kinds/0/p95_ms`, `kinds/0/max_ms`), `bench oltp run` (`transactions_per_s`, `p95_ms`, `p99_ms`), both with --repeat too,
of experiments (each way) and showdowns (each method); of others with --value. The test is that of Mann and Whitney, and
its probability is exact; with fewer than four runs on each side it can tell nothing.";

/// Say whether the difference between two lots of runs is real, or may be chance.
#[derive(Args, Debug)]
#[command(after_help = COMPARE)]
pub struct BenchCompare {
    /// Runs of one side; several files with commas between them.
    #[arg(
        value_name = "A.json",
        value_delimiter = ',',
        num_args = 1,
        required = true
    )]
    pub first: Vec<PathBuf>,
    /// Runs of the other side.
    #[arg(
        value_name = "B.json",
        value_delimiter = ',',
        num_args = 1,
        required = true
    )]
    pub second: Vec<PathBuf>,
    /// Compare this value, by its place in the document: `/kinds/0/p95_ms`; more of it is better. May be
    /// given several times [default: what each bench is about].
    #[arg(long = "value", value_name = "PLACE")]
    pub values: Vec<String>,
    /// The same, for a value of which less is better.
    #[arg(long = "value-less", value_name = "PLACE")]
    pub values_less: Vec<String>,
}
