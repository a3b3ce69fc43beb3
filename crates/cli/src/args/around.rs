//! The user's own commands before and after a run.

use clap::Args;

/// The user's own commands before and after a run.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Commands before and after")]
pub struct Around {
    /// Run this command with `sh -c` first; if it fails, the run does not start.
    #[arg(long, value_name = "COMMAND")]
    pub run_before: Option<String>,
    /// Run this command after exit code 0; if it fails, the exit code becomes 3.
    #[arg(long, value_name = "COMMAND")]
    pub run_after: Option<String>,
    /// Run this command after any other exit code. Its environment contains EVENKEEL_EXIT_CODE,
    /// EVENKEEL_MESSAGE, EVENKEEL_VERB and EVENKEEL_REPOSITORY.
    #[arg(long, value_name = "COMMAND")]
    pub run_failed: Option<String>,
}

impl Around {
    /// Returns whether there is any.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.run_before.is_some() || self.run_after.is_some() || self.run_failed.is_some()
    }
}
