//! The processes that work for the servers, and how they are stopped.

use crate::child::{self, Ended};
use crate::settings::FleetMember;
use crate::show::Ui;
use crate::show::answers::Member;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// Of an answer, no more is kept than this many bytes: far more than any has.
const ANSWER_MAX: u64 = 64 << 20;
/// Of a line on standard error, no more than this many bytes are said at once.
const LINE_MAX: u64 = 8 << 10;

/// What is heard of a server.
pub(super) enum Reported {
    /// Its process said this.
    Line { index: usize, line: String },
    /// Its process ended.
    Ended { index: usize, member: Member },
}

/// The processes at work.
pub(super) struct Processes {
    program: PathBuf,
    quiet: bool,
    /// Answers are for people.
    with_text: bool,
    working: Mutex<Working>,
}

#[derive(Default)]
struct Working {
    /// Not reaped yet, so that their numbers are nobody else's.
    pids: Vec<Pid>,
    /// Those that have said something, and so know what to do when they are asked how far they are. Others
    /// would die of it.
    heard: Vec<Pid>,
    stopped: bool,
}

impl Processes {
    /// Makes none yet, of a program.
    pub(super) fn of(program: PathBuf, ui: &Ui) -> Self {
        Self {
            program,
            quiet: ui.is_quiet(),
            with_text: !ui.is_json(),
            working: Mutex::default(),
        }
    }

    /// Asks every process to stop and clean up, once: a second signal would end it on the spot. None
    /// is started after this.
    pub(super) fn stop(&self, kind: ErrorKind) {
        let mut working = self.working();
        if std::mem::replace(&mut working.stopped, true) {
            return;
        }
        let signal = match kind {
            ErrorKind::Interrupted => Signal::INT,
            _ => Signal::TERM,
        };
        for pid in &working.pids {
            // One that has just ended cannot receive; nothing is lost by that.
            let _ = kill_process(*pid, signal);
        }
    }

    /// Asks every process how far it is; it says so as it says anything.
    pub(super) fn ask(&self) {
        for pid in &self.working().heard {
            let _ = kill_process(*pid, Signal::USR1);
        }
    }

    /// Runs what should be done for a server to its end; `None` when it was too late to begin.
    /// `line` gets what it says meanwhile.
    pub(super) fn run(
        &self,
        member: &FleetMember,
        line: impl Fn(String) + Sync,
    ) -> Result<Option<Member>> {
        let began = Instant::now();
        let Some((mut child, out, err)) = self.start(member)? else {
            return Ok(None);
        };
        let pid = Pid::from_child(&child);
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                say(err, &|said| {
                    self.heard(pid);
                    line(said);
                });
            });
            hear(out)
        });
        let ended = self.reap(&mut child)?;
        Ok(Some(Member {
            name: member.name.clone(),
            exit_code: Some(ended.exit_code()),
            seconds: Some(began.elapsed().as_secs_f64()),
            answer: serde_json::from_slice(&answer).unwrap_or_default(),
        }))
    }

    fn start(&self, member: &FleetMember) -> Result<Option<(Child, ChildStdout, ChildStderr)>> {
        let mut command = Command::new(&self.program);
        command.arg("--json").args(self.quiet.then_some("--quiet"));
        command.args(self.with_text.then_some("--with-text"));
        command.args(&member.words);
        // A terminal's Ctrl-C goes to its whole foreground group: they would hear of it twice.
        command.process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Held while it starts: whoever stops all of them knows it, or it knows that they stopped.
        let mut working = self.working();
        if working.stopped {
            return Ok(None);
        }
        let mut child = child::start(command)?;
        working.pids.push(Pid::from_child(&child));
        match (child.stdout.take(), child.stderr.take()) {
            (Some(out), Some(err)) => Ok(Some((child, out, err))),
            _ => Err(Error::failed("a process has no output")),
        }
    }

    fn reap(&self, child: &mut Child) -> Result<Ended> {
        let pid = Pid::from_child(child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(error) = waitid(WaitId::Pid(pid), options) {
            if error != rustix::io::Errno::INTR {
                return Err(Error::failed("failed to wait for a process").because(error));
            }
        }
        let mut working = self.working();
        working.pids.retain(|one| *one != pid);
        working.heard.retain(|one| *one != pid);
        drop(working);
        let status = child.wait().context(|| "failed to wait for a process")?;
        Ok(Ended::of(status))
    }

    /// Notes that a process, which is not reaped before all that it says is heard, has said something.
    fn heard(&self, pid: Pid) {
        let mut working = self.working();
        if !working.heard.contains(&pid) {
            working.heard.push(pid);
        }
    }

    fn working(&self) -> MutexGuard<'_, Working> {
        self.working.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Reads an answer to its end.
fn hear(mut out: ChildStdout) -> Vec<u8> {
    let mut answer = Vec::new();
    // What is not whole is no JSON either.
    let _ = out.by_ref().take(ANSWER_MAX).read_to_end(&mut answer);
    // Whoever writes more must not be held up by it.
    let _ = std::io::copy(&mut out, &mut std::io::sink());
    answer
}

/// Hands on what a process says, line by line.
fn say(err: ChildStderr, line: &impl Fn(String)) {
    let mut lines = BufReader::new(err);
    loop {
        let mut bytes = Vec::new();
        match lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => line(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        }
    }
}
