//! Brings this program to another host and runs it there, over the user's own `ssh`.
//!
//! One connection does it all: some lines of shell (`ssh/bootstrap.sh`) find a directory for us, say whether the
//! program is there already, take it if not (packed, where there is gzip), check its hash, and become it.
//!
//! The program may lie there from an earlier run. It is run only if, by what is open, it is one regular file of this
//! user with the right hash, and nobody else can write to it, to its directory, or to one above that.

mod preface;
mod said;

use crate::link::Carrier;
use crate::program::Program;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use evenkeel_op::{Context, Error, Result};
use preface::preface;
use said::Said;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What becomes the program; `@NAME@` is filled in. No single quotes: it stands between them.
const BOOTSTRAP: &str = include_str!("bootstrap.sh");
const TICK: Duration = Duration::from_millis(100);

/// How to reach the other host, and what runs there.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The program and its options: `ssh`, `-p`, `2222`.
    pub command: Vec<String>,
    /// `root@db1`: whatever ssh takes.
    pub destination: String,
    /// The program to push.
    pub program: PathBuf,
    /// Run it through `sudo -n`.
    pub sudo: bool,
    /// Leave the program there for the next run, in the user's cache directory; else what is there goes.
    pub keep: bool,
}

/// Why the program on the other host cannot be reached.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It was there and is not any more.
    Gone,
    /// The connection failed: another attempt may not.
    Failed(Error),
    /// Another attempt will fail too.
    Never(Error),
    /// The host was reached, and the program does not run there.
    Unfit(Error),
}

/// Opens a connection to the program on the other host: `arguments` are for it, in plain letters and digits.
/// Gives up when nothing happens for `limit`, or when `give_up` says so. Tells `note` what becomes of the program
/// over there.
pub(crate) fn connect(
    ssh: &Ssh,
    program: &Program,
    arguments: &[String],
    limit: Duration,
    give_up: &(dyn Fn() -> bool + Sync),
    note: &dyn Fn(String),
) -> Result<Carrier, Refusal> {
    let script = BOOTSTRAP
        .replace("@HASH@", program.hash())
        .replace("@SIZE@", &program.size().to_string())
        .replace("@MACHINE@", program.machine())
        .replace("@KEEP@", if ssh.keep { "yes" } else { "" })
        .replace("@SUDO@", if ssh.sudo { "sudo -n" } else { "" })
        .replace("@ARGUMENTS@", &arguments.join(" "));
    let mut child = spawn(ssh, &script).map_err(Refusal::Never)?;
    let said = Said::listen(&mut child);
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Refusal::Never(Error::failed("ssh has no pipes")));
    };
    let mut reader = BufReader::with_capacity(256 << 10, stdout);
    let child = Arc::new(Mutex::new(child));
    let watch = Watch::new(limit);
    let (ended, going_on) = crossbeam_channel::bounded::<()>(0);
    let talked = std::thread::scope(|scope| {
        scope.spawn(|| watch.over(&child, &going_on, give_up));
        let talked = preface(&mut reader, &mut stdin, program, &watch, &|kept| {
            note(kept.reported(&ssh.destination));
        });
        drop(ended);
        talked
    });
    match talked {
        Ok(pushed) => Ok(carrier(child, stdin, reader, pushed)),
        Err(refusal) => {
            // It may be waiting for us; it ends with its pipes.
            drop(stdin);
            end(&child);
            Err(said.explain(ssh, refusal))
        }
    }
}

/// Ends a process; one that has ended is fine.
fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(|e| e.into_inner());
    let _ = child.kill();
    let _ = child.wait();
}

/// Watches a connection that is being made.
struct Watch {
    limit: Duration,
    seen: Mutex<Instant>,
}

impl Watch {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            seen: Mutex::new(Instant::now()),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Instant> {
        self.seen.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Something happened.
    fn renew(&self) {
        *self.seen() = Instant::now();
    }

    /// Ends the process when nothing happens for too long, or `give_up` says so.
    fn over(
        &self,
        child: &Mutex<Child>,
        going_on: &Receiver<()>,
        give_up: &(dyn Fn() -> bool + Sync),
    ) {
        while going_on.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if give_up() || self.seen().elapsed() > self.limit {
                end(child);
                return;
            }
        }
    }
}

fn spawn(ssh: &Ssh, script: &str) -> Result<Child> {
    let Some((program, options)) = ssh.command.split_first() else {
        return Err(Error::usage("the ssh command is empty"));
    };
    // Ctrl-C is for us: we tell the other side to stop, over the connection it would break.
    Command::new("/bin/sh")
        .args(["-c", "trap '' INT; exec \"$@\"", "sh", program])
        .args(options)
        .arg(&ssh.destination)
        .arg(format!("exec /bin/sh -c '{script}'"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(|| format!("failed to run {program}"))
}

fn carrier(
    child: Arc<Mutex<Child>>,
    stdin: ChildStdin,
    reader: BufReader<ChildStdout>,
    pushed: u64,
) -> Carrier {
    Carrier {
        reader: Box::new(reader),
        writer: Box::new(stdin),
        pushed,
        cut: Box::new(move || end(&child)),
    }
}
