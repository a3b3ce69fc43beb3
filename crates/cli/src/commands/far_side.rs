//! `helper`: what `--ssh` starts on the other host.

use crate::args::{Attach, Helper, HelperVerb, Session};
use crate::settings;
use crate::show::Ui;
use crate::wrong_use;
use evenkeel_op::{Context, Error, Result, exit};
use evenkeel_transport::{Far, LinkTimeouts, SessionId, attach, serve};
use std::ffi::OsString;
use std::io::{stdin, stdout};
use std::os::unix::ffi::OsStringExt;
use std::process::Command;
use std::time::Duration;

/// How long cleaning up may take after a run was asked to stop.
const LAST_RESORT: Duration = Duration::from_secs(300);

/// Runs the command.
pub(super) fn run(args: &Helper, ui: &Ui) -> Result<u8> {
    match &args.verb {
        HelperVerb::Attach(args) => bridge(args)?,
        HelperVerb::Serve(session) => work(session, ui)?,
    }
    Ok(exit::DONE)
}

fn bridge(args: &Attach) -> Result<()> {
    let session = &args.session;
    let start = args.start.then(|| {
        // By this name it can be run even when its file was removed meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.args(["helper", "serve"]).arg(&session.here);
        command.arg(format!("--session={}", session.session));
        command.arg(format!("--stall={}", session.stall));
        command.arg(format!("--loss={}", session.loss));
        command
    });
    attach(&session.here, name(session)?, start, stdin(), stdout())
}

fn work(session: &Session, ui: &Ui) -> Result<()> {
    // The end of the connection that brought us must not be ours. One that leads a session already
    // is as good.
    let _ = rustix::process::setsid();
    let timeouts = LinkTimeouts {
        stall: Duration::from_millis(session.stall),
        loss: Duration::from_millis(session.loss),
    };
    let cancel = ui.cancel().clone();
    std::thread::spawn(move || {
        while !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_secs(1));
        }
        std::thread::sleep(LAST_RESORT);
        std::process::exit(i32::from(exit::FAILED));
    });
    serve(
        &session.here,
        name(session)?,
        timeouts,
        ui.cancel(),
        |far, words, place| obey(far, words, place, ui),
    )
}

/// Does what a command line of the other host says.
fn obey(far: &Far, words: Vec<Vec<u8>>, place: String, ui: &Ui) -> Result<u8> {
    let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
    let cli = crate::parse(words.clone()).map_err(|error| {
        Error::usage("the other host does not understand the command line")
            .because(wrong_use::failure(&error))
    })?;
    let far_face = Ui::far(&cli, ui.signals().clone(), far.clone(), place);
    // What is remote for the other side is local for us.
    let (cli, _) = settings::with_files_here(cli, &words)?;
    super::run(&cli.verb, &far_face)
}

fn name(session: &Session) -> Result<SessionId> {
    let digits = session.session.as_bytes();
    let mut name = [0; 16];
    let pairs: Vec<&[u8]> = digits.chunks(2).collect();
    if pairs.len() != name.len() {
        return Err(Error::usage("a session is named by 32 hexadecimal digits"));
    }
    for (byte, pair) in name.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).context(|| "a session's name is not valid")?;
        *byte = u8::from_str_radix(pair, 16).context(|| "a session's name is not valid")?;
    }
    Ok(name)
}
