//! Commands of the user's own around a run.

use clap::Args;

/// Commands of the user's own around a run.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Commands around it")]
pub struct Around {
    /// Run this command by `sh -c` before anything else; when it fails, nothing is done.
    #[arg(long, value_name = "COMMAND")]
    pub run_before: Option<String>,
    /// Run this command when the run ended with exit code 0; when it fails, the exit code is 3.
    #[arg(long, value_name = "COMMAND")]
    pub run_after: Option<String>,
    /// Run this command when the run ended with any other exit code: EVENKEEL_EXIT_CODE and EVENKEEL_MESSAGE say
    /// how, EVENKEEL_VERB and EVENKEEL_REPOSITORY of what.
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
