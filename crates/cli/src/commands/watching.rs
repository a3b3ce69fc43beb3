//! What views of running servers share: rounds until the end, what is said of servers meanwhile, and how it ends.

use crate::args::Watched;
use crate::settings;
use crate::show::Ui;
use evenkeel_live::poll::{Extent, Poll, PollState, Server};
use evenkeel_op::{Error, ErrorKind, Result, exit, open_files, units};
use std::time::Duration;

/// How often servers may be asked.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// Servers that are being watched.
pub(super) struct Watching {
    poll: Poll,
    count: Option<u64>,
    /// What was said last of each server.
    said: Vec<(String, Option<String>)>,
    /// As they were seen last.
    servers: Vec<Server>,
}

impl Watching {
    /// Finds out which servers are meant, and starts asking them.
    pub(super) fn start(typed: &Watched, verb: &str, extent: Extent, ui: &Ui) -> Result<Self> {
        if !INTERVALS.contains(&typed.interval) {
            return Err(Error::usage("--interval is out of range").hint("give from 100ms to 1h"));
        }
        let targets = settings::watched(&typed.which, verb, ui)?;
        // Each server is a connection.
        open_files::raise();
        let said = targets.iter().map(|target| (target.name.clone(), None));
        Ok(Self {
            said: said.collect(),
            count: typed.count,
            poll: Poll::start(targets, typed.interval, extent)?,
            servers: Vec::new(),
        })
    }

    /// Ends after so many intervals.
    pub(super) fn end_after(&mut self, count: u64) {
        self.count = Some(count);
    }

    /// Returns whether only the user ends it.
    pub(super) fn is_endless(&self) -> bool {
        self.count.is_none()
    }

    /// Returns the servers, to be asked by the caller.
    pub(super) fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    /// Takes how the servers were seen last by a caller that asked them.
    pub(super) fn seen(&mut self, servers: Vec<Server>) {
        self.servers = servers;
    }

    /// Returns the servers' names.
    pub(super) fn names(&self) -> Vec<String> {
        self.said.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Shows each interval until the last one, or until nobody reads any more. `show` returns whether somebody does.
    /// Returns the exit code.
    pub(super) fn run(
        &mut self,
        show: &mut dyn FnMut(&[Server]) -> Result<bool>,
        ui: &Ui,
    ) -> Result<u8> {
        let mut shown = 0;
        // What the first round says is what the second one is compared with.
        let mut is_first = true;
        while self.count.is_none_or(|count| shown < count) {
            match self.poll.round(ui.cancel()) {
                Ok(servers) => self.servers = servers,
                Err(stopped) => return self.end(Err(stopped), ui),
            }
            self.say(ui);
            if !std::mem::take(&mut is_first) {
                if !show(&self.servers)? {
                    return Ok(exit::DONE);
                }
                shown += 1;
            }
        }
        self.end(Ok(exit::DONE), ui)
    }

    /// Says what has changed about servers.
    fn say(&mut self, ui: &Ui) {
        for (server, (name, said)) in self.servers.iter().zip(&mut self.said) {
            match &server.state {
                PollState::Failed(error) if said.as_ref() != Some(&error.chain()) => {
                    ui.warn_of(&format!("{name}: "), error);
                    *said = Some(error.chain());
                }
                PollState::Failed(_) | PollState::Starting => {}
                PollState::Slow(waiting) if said.is_none() => {
                    let waiting = units::duration(*waiting);
                    ui.warn(&format!("{name}: no answer for {waiting} so far"));
                    *said = Some(String::new());
                }
                PollState::Slow(_) => {}
                PollState::Restarted => {
                    ui.warn(&format!("{name}: the server was restarted"));
                    *said = None;
                }
                PollState::Answers | PollState::Counted(_) => {
                    if said.take().is_some() {
                        ui.note(&format!("{name}: answers again"));
                    }
                }
            }
        }
    }

    /// Returns how it ends: servers that have never answered count more than how the end came.
    pub(super) fn end(&self, outcome: Result<u8>, ui: &Ui) -> Result<u8> {
        let never = self.servers.iter().filter(|server| server.never.is_some());
        let never: Vec<&Server> = never.collect();
        if never.is_empty() {
            return outcome;
        }
        let names: Vec<&str> = never.iter().map(|server| server.name.as_str()).collect();
        let names = names.join(", ");
        if never.len() < self.servers.len() {
            ui.warn(&format!("never answered: {names}"));
            return Ok(exit::PARTIAL);
        }
        let failures = never
            .iter()
            .filter_map(|server| server.never.as_ref()?.as_deref());
        Err(none_answered(&names, &failures.collect::<Vec<_>>()))
    }
}

/// Returns the error for servers of which none has answered, with what is known of why.
pub(super) fn none_answered(names: &str, failures: &[&Error]) -> Error {
    let kinds: Vec<ErrorKind> = failures.iter().map(|error| error.kind()).collect();
    let kind = match kinds.first() {
        Some(first) if kinds.iter().all(|kind| kind == first) => *first,
        Some(_) => ErrorKind::Failed,
        // Each is still being waited for.
        None => ErrorKind::Unreachable,
    };
    let what = format!("no server has answered: {names}");
    match failures.first() {
        Some(first) => first.hints().into_iter().fold(
            Error::new(kind, format!("{what}: {}", first.chain())),
            |error, hint| error.hint(hint),
        ),
        None => Error::new(kind, what),
    }
}

/// Returns the time now.
pub(super) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Returns the time of day here, for people.
pub(super) fn time() -> String {
    let zoned = now().to_zoned(jiff::tz::TimeZone::system());
    zoned.strftime("%H:%M:%S").to_string()
}
