//! How long to wait for another run.

use clap::Args;
use std::time::Duration;

/// How long to wait for another run.
#[derive(Args, Debug, Clone, Default)]
pub struct Waiting {
    /// If another run is using the repository, wait for it, at most this long [without a value: a day;
    /// without the option: give up at once, with exit code 11].
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "1d", value_parser = super::span)]
    pub wait: Option<Duration>,
}
