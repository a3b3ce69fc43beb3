//! The server of a variant: brought to the same state before each replay.

use super::others::refuse_others;
use super::variables::Setting;
use crate::args;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_recovery::baseline::{self, RollbackPlan, RollbackRequest, Whose};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::service::Commands;
use evenkeel_traffic::replay::Outcome;
use evenkeel_traffic::replay::rounds::{Turn, letter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long after a failure is waited for a server that starts.
const STARTING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// A variant's server.
pub(super) struct RoundServer {
    variant: usize,
    connect: ConnectOptions,
    /// How its data directory gets to the state at which each replay begins.
    rollback: Option<RollbackRequest>,
    settings: Vec<Setting>,
    /// It is the server of variant A, too.
    is_shared: bool,
    version: String,
    /// What the data directory has, once that was changed.
    state: Option<String>,
    /// Where the data directory is, once the server has said so: later it may not run.
    datadir: Option<PathBuf>,
}

/// What would be rolled back for a variant.
pub struct RoundServerPlan {
    /// The variant's letter.
    pub variant: char,
    /// The data directory and its baseline.
    pub rollback: RollbackPlan,
    /// The variables that it gets.
    pub settings: Vec<String>,
}

impl RoundServer {
    /// Returns the variants that the options name.
    pub(super) fn all(args: &args::Replay, ui: &Ui) -> Result<Vec<Self>> {
        let wanted = &args.rounds;
        let connect = settings::connect(&args.connection, "replay", ui)?;
        let commands = |stop: &Option<String>, start: &Option<String>| {
            let both = stop.clone().zip(start.clone());
            both.map(|(stop, start)| Commands { stop, start })
        };
        let settings = wanted.set.iter().map(|text| Setting::parse(text));
        let settings = settings.collect::<Result<Vec<_>>>()?;
        let first = Self {
            variant: 0,
            rollback: rollback(
                wanted,
                &connect,
                commands(&wanted.stop_with, &wanted.start_with),
            ),
            connect,
            settings: Vec::new(),
            is_shared: false,
            version: String::new(),
            state: None,
            datadir: None,
        };
        let second = match &wanted.against {
            Some(place) => {
                let connect = elsewhere(&first.connect, place)?;
                let commands = commands(&wanted.against_stop_with, &wanted.against_start_with);
                Some((rollback(wanted, &connect, commands), connect))
            }
            None if settings.is_empty() => None,
            None => Some((first.rollback.clone(), first.connect.clone())),
        };
        let second = second.map(|(rollback, connect)| Self {
            variant: 1,
            connect,
            rollback,
            settings,
            is_shared: wanted.against.is_none(),
            version: String::new(),
            state: None,
            datadir: None,
        });
        Ok(std::iter::once(first).chain(second).collect())
    }

    /// Says what would be rolled back.
    pub(super) fn plan(&self) -> Result<RoundServerPlan> {
        let Some(request) = &self.rollback else {
            return Err(Error::usage("there is nothing to roll back"));
        };
        Ok(RoundServerPlan {
            variant: letter(self.variant),
            rollback: baseline::plan_rollback(request).map_err(|error| self.of_variant(error))?,
            settings: self.settings.iter().map(Setting::shown).collect(),
        })
    }

    /// Checks, before anything is changed, that every round can begin.
    pub(super) fn check(&mut self, ui: &Ui) -> Result<()> {
        self.checked(ui).map_err(|error| self.of_variant(error))
    }

    fn checked(&mut self, ui: &Ui) -> Result<()> {
        super::super::resume::resume(&self.connect, ui);
        let mut session = Session::open(&self.connect).map_err(|error| {
            match (error.kind(), &self.rollback) {
                (ErrorKind::Unreachable, Some(request)) => error.hint(format!(
                    "if a killed run has left it stopped: evenkeel baseline rollback {} --datadir DIR --execute",
                    request.name
                )),
                _ => error,
            }
        })?;
        self.version = session.value("SELECT VERSION()")?.unwrap_or_default();
        for setting in &self.settings {
            setting.check(&mut session)?;
        }
        drop(session);
        refuse_others(&self.connect, ui.cancel())?;
        if let Some(request) = &self.rollback {
            self.datadir = Some(baseline::plan_rollback(request)?.datadir);
        }
        Ok(())
    }

    /// Checks that this is another server than that of variant A, by whatever name both are called: a lock that one
    /// session has is seen by all of the same server.
    pub(super) fn refuse_the_same(&self, first: &Self) -> Result<()> {
        if self.is_shared {
            return Ok(());
        }
        let name = format!("evenkeel-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let mut holder = Session::open(&first.connect)?;
        let mut other = Session::open(&self.connect).map_err(|error| self.of_variant(error))?;
        holder.value(&format!("SELECT GET_LOCK('{name}', 0)"))?;
        match other.value(&format!("SELECT IS_USED_LOCK('{name}')"))? {
            None => Ok(()),
            Some(_) => Err(Error::usage(format!(
                "--against {} is the server of variant A",
                shown(&self.connect)
            ))
            .hint("name another server; to compare a setting on one server, use --set")),
        }
    }

    /// Says what the variant is.
    pub(super) fn name(&self) -> String {
        let mut name = format!("{} at {}", self.version, shown(&self.connect));
        if let Some(request) = &self.rollback {
            name.push_str(&format!(", from baseline {}", request.name));
        }
        for setting in &self.settings {
            name.push_str(&format!(", {}", setting.shown()));
        }
        name
    }

    /// Brings the server to the state at which each replay begins, and replays.
    pub(super) fn once(
        &mut self,
        turn: Turn,
        run: Run<'_>,
        play: impl FnOnce(&ConnectOptions) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let outcome = self.prepared(turn, run).and_then(|undo| {
            let played = play(&self.connect);
            match (played, self.undo(&undo)) {
                (Ok(outcome), undone) => undone.map(|()| outcome),
                (Err(error), Ok(())) => Err(error),
                (Err(error), Err(_)) => Err(undo.iter().fold(error, |error, setting| {
                    error.hint(format!("not set back: SET GLOBAL {}", setting.shown()))
                })),
            }
        });
        outcome.map_err(|error| self.failed(turn, error))
    }

    fn prepared(&mut self, turn: Turn, run: Run<'_>) -> Result<Vec<Setting>> {
        refuse_others(&self.connect, run.cancel)?;
        if let Some(request) = &self.rollback {
            baseline::rollback(request, run)?;
            self.state = Some(format!(
                "the state of baseline {} and what round {} with variant {} has changed since",
                request.name,
                turn.round,
                turn.letter()
            ));
            // An application that comes back after the restart.
            refuse_others(&self.connect, run.cancel)?;
        }
        let mut undo = Vec::new();
        if !self.settings.is_empty() {
            let mut session = Session::open(&self.connect)?;
            for setting in &self.settings {
                match setting.set(&mut session) {
                    Ok(before) => undo.push(before),
                    Err(error) => {
                        self.undo(&undo)?;
                        return Err(error);
                    }
                }
            }
        }
        Ok(undo)
    }

    fn undo(&self, settings: &[Setting]) -> Result<()> {
        if settings.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(&self.connect)?;
        settings.iter().try_for_each(|one| one.undo(&mut session))
    }

    /// Says with an error in which state the server is.
    fn failed(&self, turn: Turn, error: Error) -> Error {
        let request = self.rollback.as_ref();
        let whose = format!("round {}, variant {}", turn.round, turn.letter());
        let Some(request) = request else {
            return error.hint(format!("this was {whose}; no data was changed"));
        };
        let is_running = answers(&self.connect, request.start_deadline.min(STARTING));
        let runs = match is_running {
            true => "the server runs",
            false => "the server does not answer yet",
        };
        let state = match &self.state {
            Some(state) => format!("its data directory has {state}"),
            None => "its data directory is what it was, or that of the baseline".to_owned(),
        };
        error
            .hint(format!("this was {whose}; {runs}; {state}"))
            .hint(self.again(&request.name, is_running))
    }

    /// Whether it is the server of variant A, too.
    pub(super) fn shares_the_server(&self) -> bool {
        self.is_shared
    }

    /// Says what the data directory has after the last round.
    pub(super) fn state_at_end(&self) -> Option<String> {
        let (state, request) = self.state.as_ref().zip(self.rollback.as_ref())?;
        Some(format!(
            "The data directory of {} has {state}; {}.",
            shown(&self.connect),
            self.again(&request.name, true)
        ))
    }

    /// Says how to return to the baseline. A server that does not run cannot say where its data directory is.
    fn again(&self, baseline: &str, is_running: bool) -> String {
        let connect = &self.connect;
        let server = match (connect.means_socket(), &connect.socket, &connect.host) {
            _ if !is_running && self.datadir.is_some() => {
                let datadir = self.datadir.as_deref().unwrap_or(Path::new("DIR"));
                format!(" --datadir {}", datadir.display())
            }
            (true, Some(socket), _) => format!(" -S {}", socket.display()),
            (_, _, Some(host)) => {
                let port = connect.port.map(|port| format!(" -P {port}"));
                format!(" -h {host}{}", port.unwrap_or_default())
            }
            _ => String::new(),
        };
        format!("evenkeel baseline rollback {baseline}{server} --execute returns to the baseline")
    }

    fn of_variant(&self, error: Error) -> Error {
        match self.variant {
            0 => error,
            _ => error.hint("this is about the server of variant B"),
        }
    }
}

fn rollback(
    wanted: &args::ReplayRounds,
    connect: &ConnectOptions,
    commands: Option<Commands>,
) -> Option<RollbackRequest> {
    let name = wanted.baseline.as_ref()?;
    let whose = Whose::Running(Box::new(connect.clone()));
    let mut request = RollbackRequest::new(whose, name);
    request.commands = commands;
    request.stop_deadline = wanted.stop_deadline;
    request.start_deadline = wanted.start_deadline;
    Some(request)
}

/// Waits until the server answers.
fn answers(connect: &ConnectOptions, allowed: Duration) -> bool {
    let until = Instant::now() + allowed;
    loop {
        match Session::open(connect) {
            Ok(_) => return true,
            Err(_) if Instant::now() >= until => return false,
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Returns the same account at another place: a socket's path, a host, or a host with its port.
fn elsewhere(connect: &ConnectOptions, place: &str) -> Result<ConnectOptions> {
    let mut other = connect.clone();
    if place.contains('/') {
        other.host = None;
        other.socket = Some(PathBuf::from(place));
        return Ok(other);
    }
    let (host, port) = match place.rsplit_once(':') {
        // An address of IPv6 without a port.
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => (place, None),
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    };
    let wrong = || {
        Error::usage(format!("--against {place} is no server"))
            .hint("write a host, HOST:PORT, or the path of a Unix socket with a slash: ./new.sock")
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(wrong());
    }
    if let Some(port) = port {
        other.port = Some(port.parse().map_err(|_| wrong())?);
    }
    // With a port it is one of TCP, whatever the name.
    other.host = Some(match (host, port) {
        ("localhost", Some(_)) => "127.0.0.1".to_owned(),
        _ => host.to_owned(),
    });
    Ok(other)
}

fn shown(connect: &ConnectOptions) -> String {
    match (&connect.host, &connect.socket) {
        (Some(host), _) if host != "localhost" => match connect.port {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        },
        (_, Some(socket)) => socket.display().to_string(),
        _ => "localhost".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_servers() {
        let base = ConnectOptions::over_socket("/a.sock", "u");
        let read = |place: &str| elsewhere(&base, place).map(|one| shown(&one));
        for (place, expected) in [
            ("./b.sock", "./b.sock"),
            ("db2", "db2"),
            ("db2:3307", "db2:3307"),
            ("[::1]:3307", "::1:3307"),
            ("fe80::1", "fe80::1"),
            ("localhost:3307", "127.0.0.1:3307"),
        ] {
            assert_eq!(read(place).unwrap(), expected, "{place}");
        }
        for wrong in ["db2:x", ":3306", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
