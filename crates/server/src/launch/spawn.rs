//! Child processes that do not outlive us.
#![allow(unsafe_code)] // pre_exec: the only way to ask for a parent-death signal before exec

use evenkeel_op::{Cancel, Result};
use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How often a child is looked at while waiting for it.
pub(super) const POLL: Duration = Duration::from_millis(20);

type Order = (Command, Sender<std::io::Result<Child>>);

/// Starts a child in a process group of its own (a Ctrl-C at the terminal is for us, and we decide
/// what becomes of the server) that gets SIGKILL when this process dies.
///
/// The kernel sends that signal when the *thread* that forked ends, so one thread that lives as
/// long as the process does all the forking.
pub fn spawn(mut command: Command) -> std::io::Result<Child> {
    static SPAWNER: OnceLock<Option<Sender<Order>>> = OnceLock::new();
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec only prctl and getppid are called, both async-signal-safe;
    // nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above; then no signal will ever come.
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
        });
    }
    let gone = || std::io::Error::other("the thread that starts servers is gone");
    let spawner = SPAWNER
        .get_or_init(start_spawner)
        .as_ref()
        .ok_or_else(gone)?;
    let (answer, child) = channel();
    spawner.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

/// Starts a child in a session of its own, which lives on when this process and its terminal are gone.
pub fn spawn_detached(mut command: Command) -> std::io::Result<Child> {
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::setsid().map(|_| ())?));
    }
    command.spawn()
}

fn start_spawner() -> Option<Sender<Order>> {
    let (orders, queue) = channel::<Order>();
    std::thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || {
            for (mut command, answer) in queue {
                // A receiver that is gone has no use for the child: it dies with the handle below.
                if let Err(unwanted) = answer.send(command.spawn())
                    && let Ok(mut child) = unwanted.0
                {
                    kill_group(&mut child);
                }
            }
        })
        .ok()?;
    Some(orders)
}

/// Waits until the child has ended; `None` when `until` passed first.
pub(super) fn wait(
    child: &mut Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<Option<ExitStatus>> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(Some(status));
        }
        cancel.check()?;
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// Kills the child and whatever it started, and reaps it.
pub fn kill_group(child: &mut Child) {
    // Once reaped, the number may belong to somebody else.
    if !matches!(child.try_wait(), Ok(Some(_))) {
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let _ = child.wait();
    }
}
