//! `bench compare`.

use clap::Args;
use std::path::PathBuf;

const COMPARE: &str = "\
Examples:
  evenkeel bench tpcc run --repeat 5 --json > before.json
  evenkeel bench compare before.json after.json               The same runs after the change
  evenkeel bench compare inserts-a.json inserts-b.json        Compares each variant by each of its values
  evenkeel bench compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json --value /transactions_per_s

A file has one or more `--json` outputs of `bench tpcc run` (compared by `tpmc`, `kinds/0/p95_ms`,
`kinds/0/max_ms`), of `bench oltp run` (`transactions_per_s`, `p95_ms`, `p99_ms`), of experiments (each
variant), or of showdowns (each method). The runs may use --repeat. For any other JSON, use --value. The
comparison uses the exact Mann-Whitney U test. With fewer than four runs on each side, it cannot detect any
difference.";

/// Test whether the difference between two sets of runs is real or may be chance.
#[derive(Args, Debug)]
#[command(after_help = COMPARE)]
pub struct BenchCompare {
    /// The runs of the first side; separate several files with commas.
    #[arg(
        value_name = "A.json",
        value_delimiter = ',',
        num_args = 1,
        required = true
    )]
    pub first: Vec<PathBuf>,
    /// The runs of the second side; separate several files with commas.
    #[arg(
        value_name = "B.json",
        value_delimiter = ',',
        num_args = 1,
        required = true
    )]
    pub second: Vec<PathBuf>,
    /// Compare this value, given as a JSON pointer: `/transactions_per_s`. More is better. Repeat for several
    /// [default: the main values of each bench].
    #[arg(long = "value", value_name = "PLACE")]
    pub values: Vec<String>,
    /// Compare this value, given as a JSON pointer: `/kinds/0/p95_ms`. Less is better. Repeat for several.
    #[arg(long = "value-less", value_name = "PLACE")]
    pub values_less: Vec<String>,
}
