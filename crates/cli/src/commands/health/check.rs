//! `health check`: one probe, in the form that Nagios plugins have.

use crate::args::HealthCheck;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{HealthCheckAnswer, NagiosStatus};
use evenkeel_health::probe::Observed;
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::socket_path;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often a request to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command. Whatever keeps it from checking is UNKNOWN: another exit code could be taken for a verdict.
pub(super) fn run(args: &HealthCheck, ui: &Ui) -> Result<u8> {
    let answer = match checked(args, ui) {
        Ok(answer) => answer,
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Terminated) => {
            return Err(error);
        }
        Err(error) => HealthCheckAnswer::unknown(&error),
    };
    if ui.is_quiet() && answer.status != NagiosStatus::Ok {
        ui.warn(answer.line().trim());
    }
    ui.answer(&answer);
    Ok(answer.exit_code)
}

/// Returns the exit code for a command line that is not understood: of `health check`, UNKNOWN.
pub(crate) fn refused(code: ExitCode, is_wrong: bool, words: &[OsString]) -> ExitCode {
    let mut verbs = words.iter().skip(1).filter(|word| {
        let bytes = word.as_encoded_bytes();
        !bytes.starts_with(b"-")
    });
    let is_check = verbs.next().is_some_and(|word| word == "health")
        && verbs.next().is_some_and(|word| word == "check");
    match is_wrong && is_check {
        true => ExitCode::from(NagiosStatus::Unknown.exit_code()),
        false => code,
    }
}

fn checked(args: &HealthCheck, ui: &Ui) -> Result<HealthCheckAnswer> {
    let checks = settings::health_checks(&args.checks)?;
    let options = settings::connect(&args.connection, "health", ui)?;
    settings::refuse_far_disk(&checks, &options)?;
    let name = match (&options.host, options.means_socket()) {
        (Some(host), false) => format!("{host}:{}", options.port.unwrap_or(3306)),
        _ => socket_path(&options).display().to_string(),
    };
    let timeout = args.checks.timeout;
    if timeout.is_zero() {
        return Err(Error::usage("--timeout is 0").hint("give it at least some milliseconds"));
    }
    let target = Target {
        name: name.clone(),
        options,
        checks: Arc::new(checks.clone()),
    };
    let timing = Timing {
        interval: timeout,
        timeout,
    };
    let observed = probed(target, timing, ui)?;
    Ok(HealthCheckAnswer::new(
        name,
        observed,
        &checks,
        timeout,
        args.warn_lag,
    ))
}

fn probed(target: Target, timing: Timing, ui: &Ui) -> Result<Observed> {
    let mut watch = Watch::new(vec![target], timing);
    loop {
        ui.cancel().check()?;
        if let Some((_, observed)) = watch.next(LOOK).pop() {
            return Ok(observed);
        }
    }
}
