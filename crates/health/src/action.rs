//! A program of the operator's that is run when a server's state changes: without a shell, for a limited time, and
//! not as root unless that was asked for. One that fails is run again.

use crate::board::Shown;
use crate::ended::{PATH, ended};
use crate::machine::HealthState;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// From a failure to the next try.
const RETRY: Duration = Duration::from_secs(5);
/// In the end, how long what runs is waited for; then how long its death is.
const LAST: Duration = Duration::from_secs(5);
const DEATH: Duration = Duration::from_secs(1);

/// What is run.
#[derive(Debug, Clone)]
pub struct Action {
    /// The program, without arguments.
    pub program: PathBuf,
    /// User and group that it runs as; `None` for our own.
    pub account: Option<(u32, u32)>,
    /// After this, its process group is killed.
    pub timeout: Duration,
}

/// Runs it, for each server one at a time.
#[derive(Debug)]
pub struct Actor {
    action: Action,
    seats: Vec<ActorSeat>,
    /// What runs is to be killed.
    stop: Arc<AtomicBool>,
}

/// What has been done for a server.
#[derive(Debug, Default)]
struct ActorSeat {
    /// It ran well for this state, and for nothing since: what failed may have been done all the same.
    done: Option<HealthState>,
    /// It ran well for this state last.
    before: Option<HealthState>,
    running: Option<(HealthState, Receiver<Result<(), String>>)>,
    /// For this state not before this time.
    retry: Option<(HealthState, Instant)>,
}

impl Actor {
    /// Makes it for so many servers.
    #[must_use]
    pub fn new(action: Action, servers: usize) -> Self {
        let seats = std::iter::repeat_with(ActorSeat::default);
        Self {
            action,
            seats: seats.take(servers).collect(),
            stop: Arc::default(),
        }
    }

    /// Runs the program if the server is not what it was run for last. Returns what failed.
    pub fn step(
        &mut self,
        server: usize,
        shown: impl FnOnce() -> Shown,
        state: HealthState,
    ) -> Option<String> {
        let seat = &mut self.seats[server];
        let mut failure = None;
        if let Some((was, running)) = &seat.running {
            let ended = match running.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err("its thread is gone".to_owned()),
                Ok(ended) => ended,
            };
            match ended {
                Ok(()) => (seat.done, seat.before) = (Some(*was), Some(*was)),
                Err(why) => {
                    seat.done = None;
                    seat.retry = Some((*was, Instant::now() + RETRY));
                    failure = Some(why);
                }
            }
            seat.running = None;
        }
        let retry = seat.retry.filter(|(of, _)| *of == state);
        let is_early = retry.is_some_and(|(_, at)| Instant::now() < at);
        if state == HealthState::Starting || seat.done == Some(state) || is_early {
            return failure;
        }
        let (tell, running) = sync_channel(1);
        let (action, shown, before) = (self.action.clone(), shown(), seat.before);
        let stop = self.stop.clone();
        let thread = std::thread::Builder::new().name("action".to_owned());
        let started = thread.spawn(move || {
            let _ = tell.send(action.run(&shown, before, &stop));
        });
        match started {
            Ok(_) => {
                (seat.running, seat.retry) = (Some((state, running)), None);
                failure
            }
            Err(error) => {
                seat.retry = Some((state, Instant::now() + RETRY));
                Some(error.to_string())
            }
        }
    }

    /// Waits a moment for what runs, and then kills it. Returns what failed, and for which server.
    pub fn end(&mut self) -> Vec<(usize, String)> {
        let until = Instant::now() + LAST;
        let mut failed = Vec::new();
        for (server, seat) in self.seats.iter_mut().enumerate() {
            let Some((_, running)) = seat.running.take() else {
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            let ended = running.recv_timeout(left).or_else(|_| {
                self.stop.store(true, Ordering::Relaxed);
                running.recv_timeout(DEATH)
            });
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(why)) => failed.push((server, why)),
                Err(_) => failed.push((server, "the action still runs".to_owned())),
            }
        }
        failed
    }
}

impl Action {
    /// Runs it to its end, or until it has to stop. Errors: why it is not done.
    ///
    /// # Errors
    ///
    /// What went wrong, in words.
    pub fn run(
        &self,
        shown: &Shown,
        before: Option<HealthState>,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        let cause = shown.reasons.first().map(|reason| reason.cause.word());
        // No variable holds such a byte.
        let reason = shown.why().replace('\0', " ");
        command
            .env_clear()
            .env("PATH", PATH)
            .env("EVENKEEL_SERVER", &shown.server)
            .env("EVENKEEL_STATE", shown.state.word())
            .env("EVENKEEL_BEFORE", before.map_or("", HealthState::word))
            .env("EVENKEEL_CAUSE", cause.unwrap_or_default())
            .env("EVENKEEL_REASON", reason)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        if let Some((user, group)) = self.account {
            // Groups of ours are given up with it.
            command.uid(user).gid(group);
        }
        let shown = self.program.display();
        let mut child = command
            .spawn()
            .map_err(|error| format!("failed to start {shown}: {error}"))?;
        match ended(&mut child, self.timeout, stop) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(format!("{shown}: {status}")),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                Err(format!("{shown} was killed: the prober ends"))
            }
            Ok(None) => Err(format!(
                "{shown} was killed: it had not ended within {}",
                evenkeel_op::units::duration(self.timeout)
            )),
            Err(error) => Err(format!("failed to wait for {shown}: {error}")),
        }
    }
}
