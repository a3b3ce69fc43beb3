//! Brings this program to another host and runs it there, over the user's own `ssh`.
//!
//! One connection does it all: a few lines of shell find a directory for us, say whether the program
//! is there already, take it if not (packed, where there is gzip), check its hash, and become it. Everything before the program
//! speaks is lines that begin with `evenkeel:`; what a login shell says besides is skipped.

use crate::link::Carrier;
use crate::program::Program;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What becomes the program; `@NAME@` is filled in. No single quotes: it stands between them.
const BOOTSTRAP: &str = include_str!("bootstrap.sh");
/// A line of the bootstrap begins with this.
const MARK: &str = "evenkeel:";
/// So much of what is said before the program is looked at.
const PREFACE_MAX: u64 = 1 << 20;
/// So much of what ssh says is kept for the error message.
const SAID_MAX: usize = 2000;
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
    /// Leave the program there for the next run, in the user's cache directory.
    pub keep: bool,
}

/// Why the program over there cannot be reached.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It was there and is not any more.
    Gone,
    /// The connection failed: another attempt may not.
    Failed(Error),
    /// Another attempt will fail too.
    Never(Error),
}

/// Opens a connection to the program over there: `arguments` are for it, in plain letters and
/// digits. Gives up when nothing happens for `limit`, or when `give_up` says so.
pub(crate) fn connect(
    ssh: &Ssh,
    program: &Program,
    arguments: &[String],
    limit: Duration,
    give_up: &(dyn Fn() -> bool + Sync),
) -> Result<Carrier, Refusal> {
    let script = BOOTSTRAP
        .replace("@HASH@", program.hash())
        .replace("@SIZE@", &program.size().to_string())
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
        let talked = preface(&mut reader, &mut stdin, program, &watch);
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

/// Looks after a connection that is being made.
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

/// Talks to the bootstrap until the program is there. Returns how many bytes of it were pushed.
fn preface(
    reader: &mut BufReader<ChildStdout>,
    stdin: &mut ChildStdin,
    program: &Program,
    watch: &Watch,
) -> Result<u64, Refusal> {
    let mut left = PREFACE_MAX;
    let mut pushed = 0;
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(left).read_until(b'\n', &mut line);
        let length =
            read.map_err(|error| Refusal::Failed(Error::failed("ssh ended").because(error)))?;
        left = left.saturating_sub(length as u64);
        if length == 0 {
            return Err(Refusal::Failed(Error::failed("the connection ended")));
        }
        let line = String::from_utf8_lossy(&line);
        let Some(word) = line.trim_end().strip_prefix(MARK) else {
            continue;
        };
        watch.renew();
        match word {
            "need" | "need packed" => {
                let done = program.push(word == "need packed", stdin, &|| watch.renew());
                pushed += done.map_err(|error| {
                    Refusal::Failed(Error::failed("failed to push the program").because(error))
                })?;
            }
            "have" => {}
            "ready" => return Ok(pushed),
            "gone" => return Err(Refusal::Gone),
            other => return Err(Refusal::Never(Error::refused(other.to_owned()))),
        }
    }
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

/// What ssh says on its standard error, the last of it.
struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl Said {
    fn listen(child: &mut Child) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let listener = child.stderr.take().map(|mut stderr| {
            let text = text.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(length) = stderr.read(&mut buffer)
                    && length > 0
                {
                    let mut text = text.lock().unwrap_or_else(|e| e.into_inner());
                    text.extend_from_slice(&buffer[..length]);
                    let surplus = text.len().saturating_sub(SAID_MAX);
                    text.drain(..surplus);
                }
            })
        });
        Self { text, listener }
    }

    /// Adds what ssh said to a failure.
    fn explain(mut self, ssh: &Ssh, refusal: Refusal) -> Refusal {
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let text = self.text.lock().unwrap_or_else(|e| e.into_inner());
        let text = String::from_utf8_lossy(&text);
        let text = text.trim().replace('\n', "; ");
        let wrap = |kind: ErrorKind, error: Error| {
            let message = format!(
                "failed to reach {} by {}",
                ssh.destination,
                ssh.command.join(" ")
            );
            let why = match text.is_empty() {
                true => error.chain(),
                false => format!("{}: {text}", error.chain()),
            };
            Error::new(kind, message)
                .because(io::Error::other(why))
                .hint(format!(
                    "try it by hand: {} {} true",
                    ssh.command.join(" "),
                    ssh.destination
                ))
        };
        match refusal {
            Refusal::Gone => Refusal::Gone,
            Refusal::Failed(error) => Refusal::Failed(wrap(ErrorKind::Unreachable, error)),
            Refusal::Never(error) => Refusal::Never(wrap(error.kind(), error)),
        }
    }
}
