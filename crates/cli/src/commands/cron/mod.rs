//! `cron`: one run at a time, everything logged, nothing said unless the command fails.

mod lock_file;
mod log;

use crate::args::Cron;
use crate::child;
use crate::show::Ui;
use evenkeel_op::{Context, ErrorKind, Result, exit};
use log::Log;
use std::ffi::OsString;
use std::io::{PipeReader, Read};
use std::process::Child;

/// Runs the command under its lock and returns its exit code.
pub fn run(args: &Cron, ui: &Ui) -> Result<u8> {
    let _held = match &args.lock {
        Some(path) => match lock_file::acquire(path, args.wait, ui.cancel()) {
            Ok(file) => Some(file),
            Err(error) if args.busy_ok && error.kind() == ErrorKind::Busy => return Ok(exit::DONE),
            Err(error) => return Err(error),
        },
        None => None,
    };
    let mut log = Log::open(args.log.as_deref(), args.timestamps)?;
    log.begin(&child::as_line(&args.command));
    let signals = ui.signals().hand_on();
    let ended = match start(&args.command) {
        Ok((child, output)) => {
            let (ended, ()) = child::finish(child, signals, || copy(output, &mut log))?;
            ended
        }
        Err(error) => {
            log.end(&format!("command {}", error.chain()));
            return Err(error);
        }
    };
    log.end(&format!("command {ended}"));
    if args.print_always || !ended.is_success() {
        log.replay(&mut std::io::stdout().lock())?;
    }
    log.finish()?;
    Ok(ended.exit_code())
}

/// Starts the command with both its outputs in one pipe, so that their lines keep their order.
fn start(words: &[OsString]) -> Result<(Child, PipeReader)> {
    let (reader, writer) = std::io::pipe().context(|| "failed to create a pipe")?;
    let mut command = child::command(words)?;
    command.stdout(writer.try_clone().context(|| "failed to create a pipe")?);
    command.stderr(writer);
    Ok((child::start(command)?, reader))
}

/// Copies until every process that inherited the pipe has closed it. Memory is one buffer,
/// whatever the command writes.
fn copy(mut output: PipeReader, log: &mut Log) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => log.write(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                log.note(&format!("failed to read the command's output: {error}"));
                return;
            }
        }
    }
}
