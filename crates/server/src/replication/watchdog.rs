//! The process that starts the applier when nobody else does.
//!
//! It is a program of its own, started before the stop: a bare fork could not speak to a server. It
//! connects before the stop, too, so that no login is in the way later. What to do, with the
//! password, comes over its standard input, which says by its end that the other process is gone.

use super::note::{self, Address, ServerRun, SourceServer, Standing, Threads};
use crate::abilities::Abilities;
use crate::connect::Session;
use crate::options::{ConnectOptions, Secret, ServerKey};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, Result, exit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The watchdog's exit code when the time was up.
const DEADLINE: u8 = 3;
/// What is said to it when the applier runs again.
const DONE: &str = "done\n";
/// What is said to it when it is on its way, not standing: the time counts from here.
const LATER: &str = "later\n";
/// What it says when it is ready.
const READY: &str = "ready";
/// For how long it tries to start an applier that it has to start.
const TRIES_FOR: Duration = Duration::from_secs(3600);
const PAUSE: Duration = Duration::from_secs(1);
/// How long it may take to be ready, besides the connection.
const READY_WAIT: Duration = Duration::from_secs(20);
/// How often it looks whether what it started continues.
const LOOKS: u32 = 4;
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// How to start the watchdog: a program that calls [`watch`] with its standard streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// What the watchdog receives first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    place: SavedConnection,
    /// Who their source is, with its number, where it matters what that has.
    source: Option<(SavedConnection, u64)>,
    from: Option<Vec<Address>>,
    pub(super) process: ServerRun,
    pub(super) channels: Vec<String>,
    threads: Threads,
    /// Removed once the applier runs again.
    pub(super) note: PathBuf,
    pub(super) limit: Duration,
}

/// [`ConnectOptions`], written down.
#[derive(Debug, Serialize, Deserialize)]
struct SavedConnection {
    host: Option<String>,
    port: Option<u16>,
    socket: Option<PathBuf>,
    user: Option<String>,
    password: Option<String>,
    ssl_mode: String,
    ssl_files: [Option<PathBuf>; 3],
    server_key: ServerKey,
    connect_timeout: Duration,
}

impl SavedConnection {
    fn of(options: &ConnectOptions) -> Self {
        // The watchdog works in another directory.
        let whole = |path: &Option<PathBuf>| path.as_deref().map(absolute);
        Self {
            host: options.host.clone(),
            port: options.port,
            socket: whole(&options.socket),
            user: options.user.clone(),
            password: options.password.as_ref().map(|one| one.reveal().to_owned()),
            ssl_mode: options.ssl_mode.name().to_owned(),
            ssl_files: [&options.ssl_ca, &options.ssl_cert, &options.ssl_key].map(whole),
            server_key: match &options.server_key {
                ServerKey::File(path) => ServerKey::File(absolute(path)),
                other => other.clone(),
            },
            connect_timeout: options.connect_timeout,
        }
    }

    fn options(self) -> Result<ConnectOptions> {
        let [ssl_ca, ssl_cert, ssl_key] = self.ssl_files;
        Ok(ConnectOptions {
            host: self.host,
            port: self.port,
            socket: self.socket,
            user: self.user,
            password: self.password.map(Secret::new),
            ssl_mode: self.ssl_mode.parse()?,
            ssl_ca,
            ssl_cert,
            ssl_key,
            server_key: self.server_key,
            connect_timeout: self.connect_timeout,
            packet_max: None,
        })
    }
}

impl Order {
    /// What to watch on a server, and where its source is.
    pub(super) fn new(
        (options, source): (&ConnectOptions, Option<&SourceServer>),
        noted: &note::Noted,
        note: PathBuf,
        limit: Duration,
    ) -> Self {
        Self {
            place: SavedConnection::of(options),
            source: source.map(|one| (SavedConnection::of(&one.options), one.number)),
            from: noted.from.clone(),
            process: noted.process.clone(),
            channels: noted.channels.clone(),
            threads: noted.threads,
            note,
            limit,
        }
    }
}

/// Why the watchdog ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was asked to.
    Reported,
    /// The time was up: it started the applier.
    Deadline,
    /// It was killed, or failed.
    Lost,
}

/// A running watchdog. Dropping it makes it start the applier at once.
#[derive(Debug)]
pub(super) struct Watchdog {
    child: Child,
    line: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts it and waits until it is ready to act.
    pub(super) fn start(program: &Program, order: &Order) -> Result<Self> {
        let failed = || "failed to start the watchdog for the SQL thread";
        let mut child = Command::new(&program.path)
            .args(&program.args)
            // It must not hold a file system that should be unmounted.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context(failed)?;
        let line = child.stdin.take();
        let answers = child.stdout.take();
        let mut watchdog = Self { child, line };
        let mut text =
            serde_json::to_string(order).map_err(|error| Error::failed(failed()).because(error))?;
        text.push('\n');
        watchdog.tell(&text).context(failed)?;
        let answers = answers.ok_or_else(|| Error::failed(failed()))?;
        let (sender, said) = channel();
        // Ends with the watchdog's output, at the latest when it is killed below.
        std::thread::spawn(move || sender.send(is_ready(answers)));
        let limit = order.place.connect_timeout + READY_WAIT;
        let why = match said.recv_timeout(limit) {
            Ok(None) => return Ok(watchdog),
            Ok(Some(why)) => why,
            Err(_) => "it was not ready in time".to_owned(),
        };
        let _ = watchdog.child.kill();
        watchdog.end();
        Err(Error::failed(failed()).because(why))
    }

    fn tell(&mut self, text: &str) -> std::io::Result<()> {
        match &mut self.line {
            Some(line) => line.write_all(text.as_bytes()).and_then(|()| line.flush()),
            None => Ok(()),
        }
    }

    /// Tells it to count its time from now. It may have ended: that is found out at the end.
    pub(super) fn put_off(&mut self) {
        let _ = self.tell(LATER);
    }

    /// Tells it that the applier runs again, waits for its end, and returns why it ended.
    pub(super) fn dismiss(mut self) -> Ending {
        self.end()
    }

    fn end(&mut self) -> Ending {
        // It may have ended by itself; its exit code tells.
        let _ = self.tell(DONE);
        self.line = None;
        let code = self.child.wait().ok().and_then(|status| status.code());
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(exit::DONE) => Ending::Reported,
            Some(DEADLINE) => Ending::Deadline,
            _ => Ending::Lost,
        }
    }
}

/// Reads what a watchdog says until it is ready; else returns why it is not.
fn is_ready(answers: impl Read) -> Option<String> {
    // It may print other things before.
    for answer in BufReader::new(answers)
        .lines()
        .map_while(std::result::Result::ok)
    {
        if answer == READY {
            return None;
        }
        if let Some(why) = answer.strip_prefix("failed: ") {
            return Some(why.to_owned());
        }
    }
    Some("it ended".to_owned())
}

/// The whole life of the watchdog: reads its order from `input`, says on `output` when it is ready,
/// and starts the applier when that has to be done. Returns its exit code.
pub fn watch(input: impl Read + Send + 'static, mut output: impl Write) -> u8 {
    // Out of reach of a terminal's Ctrl-C and hang-up. Fails for the leader of a process group,
    // which nobody starts us as.
    let _ = rustix::process::setsid();
    let mut input = BufReader::new(input);
    let guard = read_order(&mut input).and_then(Guard::new);
    let mut guard = match guard {
        Ok(guard) => guard,
        Err(error) => {
            let _ = writeln!(output, "failed: {}", error.chain());
            return exit::FAILED;
        }
    };
    if writeln!(output, "{READY}")
        .and_then(|()| output.flush())
        .is_err()
    {
        return exit::FAILED;
    }
    let (sender, reported) = channel();
    std::thread::spawn(move || {
        // Not a word any more: the other process is gone.
        for said in input.lines().map_while(std::result::Result::ok) {
            if sender.send(said + "\n").is_err() {
                return;
            }
        }
    });
    loop {
        match reported.recv_timeout(guard.limit) {
            Ok(said) if said == DONE => return exit::DONE,
            Ok(said) if said == LATER => {}
            Err(RecvTimeoutError::Timeout) => {
                guard.start();
                return DEADLINE;
            }
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    guard.start();
    exit::DONE
}

fn read_order(input: &mut impl BufRead) -> Result<Order> {
    let failed = || "failed to read what to watch";
    let mut text = String::new();
    input.read_line(&mut text).context(failed)?;
    serde_json::from_str(&text).context(failed)
}

struct Guard {
    options: ConnectOptions,
    source: Option<SourceServer>,
    from: Option<Vec<Address>>,
    session: Option<Session>,
    abilities: Abilities,
    process: ServerRun,
    channels: Vec<String>,
    threads: Threads,
    note: PathBuf,
    limit: Duration,
}

impl Guard {
    fn new(order: Order) -> Result<Self> {
        let options = order.place.options()?;
        let source = match order.source {
            None => None,
            Some((saved, number)) => Some(SourceServer {
                options: saved.options()?,
                number,
            }),
        };
        let mut session = Session::open(&options)?;
        // It may have to wait as long as the applier stands.
        session.run("SET SESSION wait_timeout = 28800")?;
        Ok(Self {
            abilities: Abilities::probe(&mut session)?,
            session: Some(session),
            options,
            source,
            from: order.from,
            process: order.process,
            channels: order.channels,
            threads: order.threads,
            note: order.note,
            limit: order.limit,
        })
    }

    /// Starts the applier, again and again until it is started or there is nothing to start any
    /// more. What is left undone after all is what the note is for.
    fn start(&mut self) {
        let until = Instant::now() + TRIES_FOR;
        // A server that was restarted starts its appliers itself, or is meant not to.
        let mut is_done = false;
        while !is_done && self.process.may_last() && Instant::now() < until {
            is_done = self.try_start().is_ok() || self.session.is_none() && self.is_over();
            if !is_done {
                std::thread::sleep(PAUSE);
                // The one that was opened before is kept as long as it can be used: a later login may be in the way.
                let alive = self.session.as_mut().is_some_and(Session::is_alive);
                self.session = self.session.take().filter(|_| alive);
            }
        }
        if is_done || !self.process.may_last() {
            let _ = std::fs::remove_file(&self.note);
        }
    }

    /// Whether the server is known to have been restarted.
    fn is_over(&self) -> bool {
        let asked = Session::open(&self.options).and_then(|mut one| self.process.lasts(&mut one));
        matches!(asked, Ok(false))
    }

    fn try_start(&mut self) -> Result<()> {
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let mut session = Session::open(&self.options)?;
                if !self.process.lasts(&mut session)? {
                    return Err(Error::failed("the server was restarted"));
                }
                none.insert(session)
            }
        };
        // A stop that was sent just before the sender's end may be done only now: look again.
        let standing = Standing {
            channels: &self.channels,
            threads: self.threads,
            from: self.from.as_deref(),
            source: self.source.as_ref(),
        };
        for _ in 0..LOOKS {
            note::start_standing(session, &self.abilities, &standing, None)?;
            std::thread::sleep(LOOK_PAUSE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_means_the_same_elsewhere() {
        let options = ConnectOptions {
            socket: Some("run/server.sock".into()),
            ssl_ca: Some("./ca.pem".into()),
            ..ConnectOptions::default()
        };
        let there = SavedConnection::of(&options).options().unwrap();
        let here = std::env::current_dir().unwrap();
        assert_eq!(there.socket, Some(here.join("run/server.sock")));
        assert_eq!(there.ssl_ca, Some(here.join("ca.pem")));
        assert_eq!(there.ssl_key, None);
    }
}
