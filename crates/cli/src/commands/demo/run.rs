//! `demo`.

use super::{DemoRequest, demo};
use crate::args::Demo;
use crate::show::Ui;
use evenkeel_op::{Result, Run, exit};
use evenkeel_server::launch::Binary;
use std::path::PathBuf;

/// Where Debian and others put the server program.
pub(crate) const PROGRAMS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/bin"];
/// Rows that do not change: about 150 MB.
const ARCHIVE_ROWS: u64 = 400_000;

/// Runs the command.
pub fn run(args: &Demo, ui: &Ui) -> Result<u8> {
    let server = match &args.server_binary {
        Some(path) => Binary::inspect(path)?,
        None => Binary::find(&PROGRAMS.map(PathBuf::from))?,
    };
    let request = DemoRequest {
        parent: args.dir.clone().unwrap_or_else(std::env::temp_dir),
        server,
        clients: 4,
        archive_rows: ARCHIVE_ROWS,
    };
    let report = demo(
        &request,
        Run {
            progress: ui.progress(),
            cancel: ui.cancel(),
        },
    )?;
    ui.answer(&report);
    Ok(if report.held {
        exit::DONE
    } else {
        exit::DIFFERS
    })
}
