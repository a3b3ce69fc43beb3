//! `digest --explain`: how a server would run the samples.

use crate::args;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Result, exit};
use evenkeel_server::connect::Session;
use evenkeel_traffic::digest::fingerprint::Mode;
use evenkeel_traffic::digest::{ExplainOptions, Explained, Explanations, Summary, explain};

/// The server that explains, if one is named.
pub(super) struct Explainer(Option<ExplainOptions>);

impl Explainer {
    /// Finds the server. One that is not there is said before an hour of reading.
    pub(super) fn of(args: &args::Digest, ui: &Ui) -> Result<Self> {
        let Some(place) = &args.explain else {
            return Ok(Self(None));
        };
        let connect = settings::server_named(place, args.defaults_file.as_deref(), "digest", ui)?;
        Session::open(&connect)?;
        Ok(Self(Some(ExplainOptions {
            connect,
            mode: Mode::of(&args.sql_mode),
            sql_mode: args.sql_mode.clone(),
            deadline: args.explain_timeout,
        })))
    }

    /// Explains the first classes.
    pub(super) fn explain(&self, summary: &Summary, top: usize, ui: &Ui) -> Result<Explanations> {
        match &self.0 {
            Some(options) => explain(summary.classes.iter().take(top), options, ui.cancel()),
            None => Ok(Explanations::new()),
        }
    }
}

/// Returns the exit code: what the server did not explain is missing.
pub(super) fn code(plans: &Explanations) -> u8 {
    let is_failed = |one: &Explained| matches!(one, Explained::Failed(_));
    match plans.values().any(is_failed) {
        true => exit::PARTIAL,
        false => exit::DONE,
    }
}
