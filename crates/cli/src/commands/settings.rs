//! `settings`: what would be used, and why.

use crate::args::Settings;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::SettingsAnswer;
use evenkeel_op::{Error, Result, exit};

/// Shows every setting with its origin.
pub fn run(args: &Settings, ui: &Ui) -> Result<u8> {
    let verb = args.verb.as_deref().unwrap_or("settings");
    if crate::command().find_subcommand(verb).is_none() {
        return Err(Error::usage(format!("there is no command '{verb}'"))
            .hint("evenkeel --help lists the commands"));
    }
    let resolved = settings::resolved(&args.connection, verb)?;
    for warning in resolved.warnings.iter().filter(|_| !ui.is_json()) {
        ui.warn(warning);
    }
    let settings = resolved.settings.into_iter().map(Into::into).collect();
    ui.answer(&SettingsAnswer {
        settings,
        warnings: resolved.warnings,
    });
    Ok(exit::DONE)
}
