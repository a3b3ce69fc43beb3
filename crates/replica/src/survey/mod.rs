//! Many servers asked once, all at the same time, each within a deadline.
//!
//! A full disk makes some servers hang at the very questions that would tell: so the list of threads is asked for first,
//! and what it says decides whether the rest can be asked. A session that hangs all the same is ended.

mod ask;
mod facts;

pub use facts::{Busy, Facts, Identity, LoggedFile, WorkerError};

pub use ask::table_in_error;

use ask::Asking;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, units};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a request to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long the end of a session that hangs may take.
const KILL_TIME: Duration = Duration::from_secs(2);
/// Of a thread that asks: the driver's buffers are on the heap.
const STACK_BYTES: usize = 512 << 10;

/// A server to be asked.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// How to reach it.
    pub options: ConnectOptions,
}

/// What is asked, besides what every server is asked.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    /// A table whose newest row says when it was written, as database and name, quoted.
    pub heartbeat: Option<String>,
}

/// What one server said.
#[derive(Debug)]
pub struct Answered {
    /// What it is called.
    pub name: String,
    /// How it was reached: host and port, unless that was a socket.
    pub address: Option<(String, u16)>,
    /// Its answers; or why there are none.
    pub facts: Result<Facts>,
}

/// What a thread is at, for whoever gives it up.
#[derive(Debug, Default, Clone)]
struct Step {
    session: Option<u64>,
    asks: String,
}

type Shared = Arc<Mutex<Step>>;

/// Asks all of them, and waits at most `timeout` for each.
///
/// # Errors
///
/// `Interrupted` or `Terminated` once a stop was asked for, `Failed` where the system gives no threads.
pub fn survey(
    targets: &[Target],
    questions: &Questions,
    timeout: Duration,
    cancel: &Cancel,
) -> Result<Vec<Answered>> {
    let until = Instant::now() + timeout;
    let asked = targets.iter().map(|target| start(target, questions));
    let asked: Vec<(Shared, Receiver<Result<Facts>>)> = asked.collect::<Result<_>>()?;
    let mut answered = Vec::with_capacity(targets.len());
    for (target, (step, answer)) in targets.iter().zip(asked) {
        let facts = match wait(&answer, until, cancel)? {
            Some(facts) => facts,
            None => Err(given_up(target, &step, timeout)),
        };
        let options = &target.options;
        let address = match (&options.host, options.means_socket()) {
            (Some(host), false) => Some((host.clone(), options.port.unwrap_or(3306))),
            _ => None,
        };
        answered.push(Answered {
            name: target.name.clone(),
            address,
            facts,
        });
    }
    Ok(answered)
}

fn start(target: &Target, questions: &Questions) -> Result<(Shared, Receiver<Result<Facts>>)> {
    let step = Shared::default();
    let (tell, answer) = sync_channel(1);
    let (options, questions, shared) = (target.options.clone(), questions.clone(), step.clone());
    std::thread::Builder::new()
        .name("ask".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let asking = Asking::new(&options, &shared);
            // Nobody listens once it was given up.
            let _ = tell.send(asking.and_then(|asking| asking.all(&questions)));
        })
        .context(|| "failed to start a thread for each server")?;
    Ok((step, answer))
}

fn wait(
    answer: &Receiver<Result<Facts>>,
    until: Instant,
    cancel: &Cancel,
) -> Result<Option<Result<Facts>>> {
    loop {
        cancel.check()?;
        let left = until.saturating_duration_since(Instant::now());
        match answer.recv_timeout(left.min(LOOK)) {
            Ok(facts) => return Ok(Some(facts)),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// Ends a session of ours: behind one address there may be several servers, and numbers are each server's own.
fn kill(session: &mut Session, id: u64) -> Result<()> {
    let sql = format!(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO LIKE 'SHOW %' \
         AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
    );
    match session.value(&sql)? {
        Some(_) => session.run(&format!("KILL {id}")),
        None => Ok(()),
    }
}

/// Says what a server did not answer, and ends the session that hangs there.
fn given_up(target: &Target, step: &Shared, timeout: Duration) -> Error {
    let step = step.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(id) = step.session {
        let mut options = target.options.clone();
        options.connect_timeout = options.connect_timeout.min(KILL_TIME);
        // The thread of a statement that hangs for good would be one more at each call.
        let _ = Session::open(&options).and_then(|mut session| kill(&mut session, id));
    }
    let asked = match step.asks.as_str() {
        "" => "a login",
        asks => asks,
    };
    Error::new(
        ErrorKind::Unreachable,
        format!("no answer within {} to {asked}", units::duration(timeout)),
    )
    .hint("is the server frozen, or is its disk full? --timeout waits longer")
}
