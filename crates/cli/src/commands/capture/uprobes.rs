//! `capture --uprobes`: which server is watched.

use crate::args;
use crate::show::Ui;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::files::{process_in, server_processes};
use evenkeel_traffic::capture::Options;
use evenkeel_traffic::capture::uprobes::{MOST_TEXT, Settings, Uprobes};
use std::path::Path;

/// Begins to watch the server.
pub(super) fn open(args: &args::Capture, options: &Options, ui: &Ui) -> Result<Uprobes> {
    if options.text_bytes > MOST_TEXT {
        return Err(
            Error::usage("--max-text is out of range").hint("with --uprobes, give at most 1M")
        );
    }
    let pid = match (args.pid, &args.datadir) {
        (Some(pid), _) => pid,
        (None, Some(datadir)) => on(datadir)?,
        (None, None) => the_one()?,
    };
    let server = Uprobes::open(&Settings {
        pid,
        ring_bytes: args.ring,
        text_bytes: options.text_bytes,
        span: args.span,
    })?;
    ui.note(&format!(
        "capturing what process {pid} does for its clients"
    ));
    Ok(server)
}

fn on(datadir: &Path) -> Result<i32> {
    process_in(datadir).ok_or_else(|| {
        Error::new(
            ErrorKind::Unreachable,
            format!(
                "no server that can be seen from here runs on {}",
                datadir.display()
            ),
        )
        .hint("run it on the server's own host, as root, or name the process with --pid")
    })
}

/// Finds the server where none is named.
fn the_one() -> Result<i32> {
    match server_processes()[..] {
        [] => Err(Error::new(
            ErrorKind::Unreachable,
            "no server that can be seen from here is running",
        )
        .hint("run it on the server's own host, as root, or name the process with --pid")),
        [one] => Ok(one),
        ref many => {
            let numbers: Vec<String> = many.iter().map(i32::to_string).collect();
            Err(Error::usage(format!(
                "several servers are running: processes {}",
                numbers.join(", ")
            ))
            .hint("name one with --pid or --datadir"))
        }
    }
}
