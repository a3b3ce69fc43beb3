//! Runs a tool: what it writes is taken by the caller, what it says is listened to, and it never
//! outlives us.
//!
//! The tool takes its locks by itself, so what is known of them is what it says. While it waits for
//! one longer than the limit, or makes writes wait longer than the limit, it is killed: the server
//! drops a dead client's locks at once.

use super::tool::Tool;
use evenkeel_op::{Context, Error, ErrorKind, Result, Run, units};
use evenkeel_server::launch;
use evenkeel_server::lock::Limits;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines that are kept to explain a failure.
const KEPT: usize = 12;
/// The longest line that is kept, in bytes.
const LINE_MAX: u64 = 4096;
/// How often limits and a wish to stop are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a tool that has closed its output may take to end.
const END: Duration = Duration::from_secs(60);
/// What the pipe is asked to hold, in bytes: fewer switches between the tool and us.
const PIPE: usize = 1 << 20;
/// What both tools say last, and only when all went well.
const COMPLETED: &str = "completed OK!";

/// How a tool that did what it should has spent its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// How long any lock was held.
    pub(crate) lock: Duration,
    /// How long writes were paused.
    pub(crate) writes_stopped: Duration,
}

/// A tool that ended well.
#[derive(Debug)]
pub(crate) struct Ended<T> {
    /// What was made of its output.
    pub(crate) taken: T,
    pub(crate) ticks: Ticks,
}

/// What a tool has said so far.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    state: Mutex<ProcessState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ProcessState {
    last: VecDeque<String>,
    completed: bool,
    waiting: Option<Instant>,
    locked: Option<Instant>,
    stopped: Option<Instant>,
    /// It takes the locks that others notice: it must not be kept waiting any more.
    hurry: bool,
    ticks: Ticks,
    /// It closed its output: what is missing then, it did not send.
    silent: bool,
    /// Nobody runs any more.
    over: bool,
}

/// A tool's output, which remembers that the tool ended it.
pub(crate) struct Output<'a> {
    pipe: ChildStdout,
    reported: &'a Reported,
}

impl Read for Output<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.pipe.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.reported.lock().silent = true;
        }
        Ok(read)
    }
}

impl Reported {
    fn lock(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tool must not be kept waiting: others wait for it.
    pub(crate) fn hurry(&self) -> bool {
        self.lock().hurry
    }

    fn finish(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }
}

impl ProcessState {
    /// Takes note of a line.
    fn line(&mut self, line: &str, now: Instant) {
        let says = |words: &str| line.contains(words);
        self.completed |= line.trim_end().ends_with(COMPLETED);
        let read_lock = says("Executing FLUSH TABLES WITH READ LOCK");
        let tables_lock = says("Executing LOCK TABLES FOR BACKUP");
        if says("Starting BACKUP STAGE") && !says("STAGE END") {
            self.waiting = Some(now);
        }
        if says("Acquired locks for BACKUP STAGE") {
            self.waiting = None;
            self.locked.get_or_insert(now);
        }
        if read_lock || tables_lock || says("Executing LOCK INSTANCE FOR BACKUP") {
            self.locked.get_or_insert(now);
        }
        if read_lock || says("Acquired locks for BACKUP STAGE BLOCK_COMMIT") {
            self.stopped.get_or_insert(now);
        }
        self.hurry |= read_lock
            || tables_lock
            || ["FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"]
                .iter()
                .any(|stage| says(&format!("Starting BACKUP STAGE {stage}")));
        if says("All tables unlocked") {
            self.unlocked(now);
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line.trim_end().to_owned());
    }

    fn unlocked(&mut self, now: Instant) {
        let since = |begun: Option<Instant>| begun.map_or(Duration::ZERO, |at| now - at);
        self.ticks.lock += since(self.locked.take());
        self.ticks.writes_stopped += since(self.stopped.take());
        self.waiting = None;
    }

    /// Returns why the tool must be ended, if it is.
    fn overdue(&self, limits: &Limits, now: Instant) -> Option<Error> {
        let beyond = |begun: Option<Instant>, limit| begun.is_some_and(|at| now - at > limit);
        if beyond(self.waiting, limits.deadline) {
            let limit = units::duration(limits.deadline);
            return Some(
                Error::new(
                    ErrorKind::LockTimeout,
                    format!("the tool waited longer than {limit} for a lock"),
                )
                .hint("end the session that holds it, or allow more time: --lock-deadline"),
            );
        }
        if beyond(self.stopped, limits.hold) {
            let limit = units::duration(limits.hold);
            return Some(
                Error::new(
                    ErrorKind::LockTimeout,
                    format!("the tool blocked writes for longer than {limit}"),
                )
                .hint(
                    "allow more time (--lock-hold-limit), or back up when there are fewer writes",
                ),
            );
        }
        None
    }
}

/// Runs a tool to its end; `take` reads its output. An error unless everything was taken, the tool
/// ended by itself with exit code 0, and said that it completed. No process is left in any case.
pub(crate) fn run<T>(
    tool: &Tool,
    mut command: Command,
    limits: &Limits,
    run: Run<'_>,
    take: impl FnOnce(Output<'_>, &Reported) -> Result<T>,
) -> Result<Ended<T>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let shown = tool.program.display();
    let mut child = launch::spawn(command).context(|| format!("failed to run {shown}"))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        launch::kill_group(&mut child);
        return Err(Error::failed(format!("{shown} has no output")));
    };
    let reported = Reported::default();
    let child = Mutex::new(child);
    let kill = || launch::kill_group(&mut child.lock().unwrap_or_else(PoisonError::into_inner));
    let (taken, status, ended) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(stderr, &reported));
        let watcher = scope.spawn(|| watch(&reported, limits, run, &kill));
        // A smaller pipe only costs time.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        let output = Output {
            pipe: stdout,
            reported: &reported,
        };
        let taken = take(output, &reported);
        if taken.is_err() && !reported.lock().silent {
            kill();
        }
        let status = wait(&child, Instant::now() + END);
        if status.is_none() {
            kill();
        }
        // What it started may hold its standard error open.
        let _ = listener.join();
        reported.finish();
        let ended = watcher.join();
        (taken, status, ended.unwrap_or(None))
    });
    run.cancel.check()?;
    if let Some(why) = ended {
        return Err(why);
    }
    judge(tool, taken, status, &reported)
}

/// The error that came first explains the others.
fn judge<T>(
    tool: &Tool,
    taken: Result<T>,
    status: Option<ExitStatus>,
    reported: &Reported,
) -> Result<Ended<T>> {
    let mut state = reported.lock();
    let name = tool.name;
    let said = state.last.make_contiguous().join("\n");
    let how = match status {
        Some(status) if status.success() && state.completed => None,
        Some(status) if status.success() => Some("it did not report completion".to_owned()),
        Some(status) => Some(format!("{status}")),
        None => Some("it did not exit".to_owned()),
    };
    match (taken, how) {
        (Ok(taken), None) => Ok(Ended {
            taken,
            ticks: state.ticks,
        }),
        // That it was killed by us, or could not write any more, is no news.
        (Err(error), _) if !state.silent => Err(error),
        (Err(error), None) => Err(error),
        (_, Some(how)) => Err(Error::failed(format!(
            "{name} failed: {how}; it said:\n{said}"
        ))),
    }
}

/// Listens until the tool is silent.
fn listen(stderr: impl Read, reported: &Reported) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => return,
            Ok(_) => reported
                .lock()
                .line(&String::from_utf8_lossy(&line), Instant::now()),
        }
    }
}

/// Kills the tool when somebody wishes so or a limit is passed; returns which limit.
fn watch(reported: &Reported, limits: &Limits, run: Run<'_>, kill: &dyn Fn()) -> Option<Error> {
    let mut state = reported.lock();
    while !state.over {
        let overdue = state.overdue(limits, Instant::now());
        if overdue.is_some() || run.cancel.is_cancelled() {
            drop(state);
            kill();
            return overdue;
        }
        let waited = reported.changed.wait_timeout(state, LOOK);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    None
}

fn wait(child: &Mutex<Child>, until: Instant) -> Option<ExitStatus> {
    loop {
        let looked = child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait();
        match looked {
            Ok(Some(status)) => return Some(status),
            _ if Instant::now() >= until => return None,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests;
