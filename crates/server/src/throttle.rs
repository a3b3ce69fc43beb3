//! Readers rest between chunks while the server, or a replica, has too much to do.

use crate::abilities::Abilities;
use crate::connect::Session;
use crate::options::ConnectOptions;
use crate::replication::Channel;
use evenkeel_op::{Cancel, Error, Progress, Result, units};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer of the server holds.
const FRESH: Duration = Duration::from_secs(1);
/// How often who rests looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// How long readers rest in one go before they give up: their view keeps the server from clearing old
/// rows all the while.
const REST_AT_MOST: Duration = Duration::from_secs(3600);

/// When readers are to rest.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// While the server runs more statements of others than this, by `Threads_running`.
    pub threads_running: Option<u64>,
    /// While a replica is farther behind.
    pub lag: Option<Duration>,
    /// The replicas; the server itself when there are none.
    pub replicas: Vec<ConnectOptions>,
}

/// Who asks.
#[derive(Debug)]
struct Watcher {
    source: Session,
    replicas: Vec<(Session, Abilities)>,
    asked: Option<Instant>,
    /// Why to rest, as of then.
    reason: Option<String>,
    /// The reason was reported.
    noted: bool,
    /// When all readers began to rest, as far as is known.
    since: Option<Instant>,
    rested: Duration,
}

/// Has readers rest.
#[derive(Debug)]
pub struct Throttle {
    limits: Limits,
    watcher: Option<Mutex<Watcher>>,
    /// Readers that have a statement running.
    reading: AtomicU64,
}

/// A reader that is at work, until dropped.
#[derive(Debug)]
pub struct Reading<'a>(&'a AtomicU64);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Throttle {
    /// Connects, where there is a limit.
    ///
    /// Errors: those of sessions; `Usage` for a limit on the lag of a server that is no replica.
    pub fn open(options: &ConnectOptions, limits: &Limits) -> Result<Self> {
        let mut watcher = None;
        if limits.threads_running.is_some() || limits.lag.is_some() {
            let mut opened = Watcher {
                source: Session::open(options)?,
                replicas: Vec::new(),
                asked: None,
                reason: None,
                noted: false,
                since: None,
                rested: Duration::ZERO,
            };
            if limits.lag.is_some() {
                let own = [options.clone()];
                let replicas = match limits.replicas.as_slice() {
                    [] => &own[..],
                    named => named,
                };
                opened.replicas = replicas.iter().map(replica).collect::<Result<_>>()?;
            }
            watcher = Some(Mutex::new(opened));
        }
        Ok(Self {
            limits: limits.clone(),
            watcher,
            reading: AtomicU64::new(0),
        })
    }

    /// Takes note that a reader works.
    #[must_use]
    pub fn reading(&self) -> Reading<'_> {
        self.reading.fetch_add(1, Ordering::SeqCst);
        Reading(&self.reading)
    }

    /// Waits until there is nothing to rest for, or all must stop.
    ///
    /// Errors: those of the sessions; `Failed` after an hour without a chance to continue.
    pub fn wait(&self, stop: &AtomicBool, progress: &dyn Progress, cancel: &Cancel) -> Result<()> {
        let Some(watcher) = &self.watcher else {
            return Ok(());
        };
        loop {
            cancel.check()?;
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
            if watcher.asked.is_none_or(|asked| asked.elapsed() >= FRESH) {
                let own = self.reading.load(Ordering::SeqCst);
                watcher.reason = watcher.ask(&self.limits, own)?;
                watcher.asked = Some(Instant::now());
            }
            match watcher.note(progress)? {
                true => drop(watcher),
                false => return Ok(()),
            }
            std::thread::sleep(TICK);
        }
    }

    /// Returns for how long readers rested.
    #[must_use]
    pub fn rested(&self) -> Duration {
        let Some(watcher) = &self.watcher else {
            return Duration::ZERO;
        };
        watcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .rested
    }
}

/// Connects to a replica.
fn replica(options: &ConnectOptions) -> Result<(Session, Abilities)> {
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    if Channel::all(&mut session, &abilities)?.is_empty() {
        let place = session.place().to_owned();
        return Err(Error::usage(format!(
            "--max-lag needs a replica, and {place} is not a replica"
        ))
        .hint("name one with --throttle-host"));
    }
    Ok((session, abilities))
}

impl Watcher {
    /// Asks whether there is something to rest for; `own` readers are at work.
    fn ask(&mut self, limits: &Limits, own: u64) -> Result<Option<String>> {
        if let Some(most) = limits.threads_running {
            let sql = "SHOW GLOBAL STATUS LIKE 'Threads_running'";
            let row = self.source.one(sql)?;
            let running = row.and_then(|row| row.at(1)?.parse::<u64>().ok());
            // This statement runs too.
            let others = running.unwrap_or(0).saturating_sub(own + 1);
            if others > most {
                return Ok(Some(format!(
                    "the server runs {others} statements of other sessions, more than {most}"
                )));
            }
        }
        let Some(most) = limits.lag else {
            return Ok(None);
        };
        for (session, abilities) in &mut self.replicas {
            let channels = Channel::all(session, abilities)?;
            let lags: Option<Vec<u64>> = channels.iter().map(|one| one.lag_s).collect();
            let worst = lags.and_then(|lags| lags.into_iter().max());
            let place = session.place();
            match worst {
                None => return Ok(Some(format!("{place} is not replicating"))),
                Some(lag) if Duration::from_secs(lag) > most => {
                    let most = units::duration(most);
                    return Ok(Some(format!("{place} is {lag} s behind, more than {most}")));
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    /// Keeps the time, and says once what readers rest for; returns whether they are to rest.
    fn note(&mut self, progress: &dyn Progress) -> Result<bool> {
        let Some(reason) = &self.reason else {
            if let Some(since) = self.since.take() {
                self.rested += since.elapsed();
                progress.note(format!(
                    "resuming after {}",
                    units::duration(since.elapsed())
                ));
            }
            self.noted = false;
            return Ok(false);
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= REST_AT_MOST {
            let limit = units::duration(REST_AT_MOST);
            return Err(Error::failed(format!("rested for {limit}: {reason}"))
                .hint("raise the limit, or run it when the server is less busy"));
        }
        if !self.noted {
            progress.note(format!("resting: {reason}"));
            self.noted = true;
        }
        Ok(true)
    }
}
