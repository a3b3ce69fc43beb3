//! What is left of a stop when everybody who could end it was killed: a note of what it stopped.
//!
//! The note lies in a directory that does not outlive the machine's uptime, is written before the
//! stop and removed after it. Whoever stopped the applier holds a lock on it, so a note that nobody
//! holds is one of a run that died. Its first line is a JSON object ([`Noted`]); once the appliers
//! stand, another line says where: one that is somewhere else by then was started since, and is
//! not ours to start. Where appliers are moved on by us, the last line counts. Only notes of the same user count: a note makes somebody run `START SLAVE`.

use super::statements::{self, Order};
use super::status::{Channel, Position, Positioning, Replication, ThreadState};
use crate::abilities::Abilities;
use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::boot::boot_id;
use evenkeel_op::notes::Notes;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where root's notes are. Not beside those of paused processes, which are read by others too.
const OF_ROOT: &str = "/run/evenkeel/appliers";
/// Where everybody else's are, each in a directory of their own.
const OF_OTHERS: &str = "/tmp/evenkeel-applier-";
/// By how many seconds two answers about one start may differ: both are whole seconds, of two moments.
const CLOCK_S: u64 = 2;
/// How long a source may take to say what it has.
const ANSWER: Duration = Duration::from_secs(5);
/// A repair that was interrupted longer ago is left to a person.
const REPAIR_S: i64 = 3600;
/// More than any note is long.
const LENGTH_MAX: u64 = 1 << 20;

/// A process, for as long as the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    boot: String,
    pid: i32,
    /// Clock ticks since boot: field 22 of `/proc/PID/stat`.
    start: u64,
}

impl Process {
    pub(super) fn of(pid: i32) -> Result<Self> {
        let failed = || format!("failed to look at process {pid}");
        Ok(Self {
            boot: boot_id().context(failed)?,
            pid,
            start: start_of(pid).context(failed)?,
        })
    }

    fn name(&self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// Whether it is there, and the same.
    pub(super) fn is_there(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

fn start_of(pid: i32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses, which may hold anything.
    let fields = text.rsplit_once(')').map(|(_, rest)| rest);
    let start = fields.and_then(|fields| fields.split_whitespace().nth(19)?.parse().ok());
    start.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// One run of a server, from its start to its end: a later one has its own way with its appliers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ServerRun {
    /// Of a server on this host.
    Process(Process),
    /// Of one elsewhere: what it says of itself.
    Elsewhere {
        /// A number for its identity.
        server_number: u64,
        /// Since when it runs, in Unix time by its own clock.
        since_s: i64,
    },
}

impl ServerRun {
    /// Returns the run of the server of a session; `pid` is its process if it is on this host.
    pub(super) fn of(session: &mut Session, pid: Option<i32>) -> Result<Self> {
        if let Some(pid) = pid {
            return Ok(Self::Process(Process::of(pid)?));
        }
        Ok(Self::Elsewhere {
            server_number: number(session)?,
            since_s: since(session)?,
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Process(process) => process.name(),
            Self::Elsewhere { server_number, .. } => format!("elsewhere-{server_number:016x}"),
        }
    }

    /// Whether it may last, as far as this host knows.
    pub(super) fn may_last(&self) -> bool {
        match self {
            Self::Process(process) => process.is_there(),
            Self::Elsewhere { .. } => true,
        }
    }

    /// Whether it lasts, for the server of a session that is of this run or a later one.
    ///
    /// Errors: those of the session; `Failed` if another server has its address.
    pub(super) fn lasts(&self, session: &mut Session) -> Result<bool> {
        match self {
            Self::Process(process) => Ok(process.is_there()),
            Self::Elsewhere {
                server_number,
                since_s,
            } => match number(session)? == *server_number {
                true => Ok(since(session)?.abs_diff(*since_s) <= CLOCK_S),
                false => Err(Error::failed("another server has its address by now")),
            },
        }
    }
}

/// Returns a number for the identity of a session's server.
fn number(session: &mut Session) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    identity(session)?.hash(&mut hasher);
    Ok(hasher.finish())
}

/// Returns since when a server runs, in Unix time by its clock.
fn since(session: &mut Session) -> Result<i64> {
    let row = session.one("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
    let uptime: Option<i64> = row.and_then(|row| row.at(1)?.parse().ok());
    let now = session.value("SELECT UNIX_TIMESTAMP()")?;
    let now: Option<i64> = now.and_then(|now| now.parse().ok());
    let since = now.zip(uptime).map(|(now, uptime)| now - uptime);
    since.ok_or_else(|| Error::failed("the server does not say how long it has been running"))
}

/// What a note says of a server, and of the channels whose appliers are stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) process: ServerRun,
    /// Host, port, id and data directory, as the server says them.
    pub(super) server: String,
    pub(super) channels: Vec<String>,
    #[serde(default)]
    pub(super) threads: Threads,
    /// Where the channels fetch from; not said of those whose SQL thread alone is stopped.
    #[serde(default)]
    pub(super) from: Option<Vec<Address>>,
    /// When that was, in Unix time by this host's clock.
    #[serde(default)]
    pub(super) time_s: i64,
}

/// Which threads of a channel are stopped, and started again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Threads {
    /// The one that applies.
    #[default]
    Applier,
    /// Both.
    Both,
}

impl Threads {
    fn start(self, channel: &str, abilities: &Abilities) -> String {
        match self {
            Self::Applier => statements::applier(Order::Start, channel, abilities),
            Self::Both => statements::of_channel("START", "", Some(channel), abilities),
        }
    }
}

/// What stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) channels: &'a [String],
    pub(super) threads: Threads,
    /// Where the channels fetched from when they were stopped, if that was noted.
    pub(super) from: Option<&'a [Address]>,
    /// The source, if it can be asked.
    pub(super) source: Option<&'a SourceServer>,
}

impl Standing<'_> {
    /// Whether a channel is still what was stopped: one that fetches from elsewhere by now was changed by somebody.
    fn has(&self, channel: &Channel) -> bool {
        let is_from = |all: &[Address]| all.contains(&address(channel));
        self.channels.contains(&channel.name) && self.from.is_none_or(is_from)
    }

    /// Refuses a start that would delete relay logs which nobody could send again.
    fn may_start(&self, channel: &Channel, abilities: &Abilities) -> Result<()> {
        let stands = |thread| matches!(thread, ThreadState::Stopped | ThreadState::Unknown);
        let deletes = self.threads == Threads::Both
            && abilities.gtid_start_deletes_relay_logs
            && channel.positioning == Positioning::Gtid
            && stands(channel.receiver)
            && stands(channel.applier);
        // What was fetched and applied is needed no more.
        let fetched = channel.received.as_ref().filter(|_| deletes);
        let fetched = fetched.filter(|at| Some(*at) != channel.executed.as_ref());
        let Some(fetched) = fetched else {
            return Ok(());
        };
        let refused = |why: &str| {
            Error::new(
                ErrorKind::Unreachable,
                format!(
                    "the threads of channel '{}' stay stopped: a start would delete relay logs, and {why}",
                    channel.name
                ),
            )
        };
        let applied = channel.executed.as_ref();
        let applied = applied.ok_or_else(|| refused("where the SQL thread is, is not known"))?;
        match self.source.map(|source| source.has(applied, fetched)) {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => Err(refused("the source does not have what is in them any more")),
            Some(Err(error)) => Err(refused("the source does not answer").because(error)),
            None => Err(refused("its source cannot be asked from here")
                .hint("start them once the source has what it has sent")),
        }
    }
}

/// Where a channel fetches from.
pub(super) type Address = (String, Option<u16>);

pub(super) fn address(channel: &Channel) -> Address {
    (channel.host.clone(), channel.port)
}

/// A source that was asked before, and who it was.
#[derive(Debug, Clone)]
pub(super) struct SourceServer {
    pub(super) options: ConnectOptions,
    pub(super) number: u64,
}

impl SourceServer {
    pub(super) fn meet(options: &ConnectOptions) -> Result<Self> {
        let number = number(&mut Session::open(options)?)?;
        let options = options.clone();
        Ok(Self { options, number })
    }

    /// Asks whether it has its binary log between two places. One that is frozen is not waited for.
    fn has(&self, from: &Position, to: &Position) -> Result<bool> {
        let (own, from, to) = (self.clone(), from.clone(), to.clone());
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new()
            .name("source".to_owned())
            .spawn(move || tell.send(own.asks(&from, &to)))
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        let limit = self.options.connect_timeout + ANSWER;
        told.recv_timeout(limit)
            .unwrap_or_else(|_| Err(Error::failed("it does not answer in time")))
    }

    fn asks(&self, from: &Position, to: &Position) -> Result<bool> {
        let mut session = Session::open(&self.options)?;
        if number(&mut session)? != self.number {
            return Err(Error::failed("another server has its address"));
        }
        let files = session.rows("SHOW BINARY LOGS")?;
        let has = |at: &Position| {
            files.iter().any(|row| {
                let bytes: Option<u64> = row.at(1).and_then(|text| text.parse().ok());
                row.at(0) == Some(&*at.file) && bytes.is_some_and(|bytes| bytes >= at.position)
            })
        };
        Ok(has(from) && has(to))
    }
}

impl Noted {
    pub(super) fn standing(&self) -> Standing<'_> {
        Standing {
            channels: &self.channels,
            threads: self.threads,
            from: self.from.as_deref(),
            source: None,
        }
    }

    /// Whether it is a repair's, and too old to be resumed.
    fn is_out_of_date(&self) -> bool {
        let now = now_s();
        self.threads == Threads::Both && now - self.time_s >= REPAIR_S
    }
}

/// Returns the time, in seconds since 1970.
pub(super) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

/// Returns what tells a server from another.
pub(super) fn identity(session: &mut Session) -> Result<String> {
    let sql = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)";
    Ok(session.value(sql)?.unwrap_or_default())
}

/// Where each applier stands, by channel.
pub(super) type Stands = Vec<(String, Option<Position>)>;

/// The note of a stop that lasts. Whoever ends the stop removes it.
#[derive(Debug)]
pub(super) struct Note {
    notes: Notes,
    name: OsString,
    /// Open for the lock on it.
    file: File,
}

impl Note {
    /// Notes what is about to be stopped. `Busy` when another run does so now.
    pub(super) fn write(noted: &Noted) -> Result<Self> {
        let (notes, name) = (own_notes()?, OsString::from(noted.process.name()));
        let failed = || format!("failed to write {}", notes.path(&name).display());
        let busy = "another run of evenkeel has stopped this server's SQL thread";
        let file = notes.claim(&name, busy)?;
        file.set_len(0).context(failed)?;
        line(&file, noted).context(failed)?;
        Ok(Self { notes, name, file })
    }

    /// Adds where the appliers stand. Without it a later run can only go by that they stand.
    pub(super) fn stands(&self, stands: &Stands) {
        let _ = line(&self.file, &Some(stands));
    }

    /// Adds that they are about to stand elsewhere: what was said before does not count any more.
    pub(super) fn moves(&self) -> io::Result<()> {
        line(&self.file, &None::<Stands>)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.notes.path(&self.name)
    }

    pub(super) fn remove(self) {
        self.notes.remove(&self.name);
    }
}

fn line(mut file: &File, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// An applier that a killed run left standing.
#[derive(Debug)]
pub struct LeftStanding {
    /// The channels; the default one has an empty name.
    pub channels: Vec<String>,
    /// Whether they were started.
    pub started: Result<()>,
    /// What starts them by hand.
    pub statements: Vec<String>,
}

/// Starts the appliers that a killed run of this user left standing on the server that `options`
/// lead to. `None` when there is none, or it is not ours to start. Connects only if there is a note.
#[must_use]
pub fn heal(options: &ConnectOptions) -> Option<LeftStanding> {
    let notes = Notes::open(&directory())?;
    let mut left = None;
    for name in notes.names() {
        left = heal_one(&notes, &name, options).or(left);
    }
    left
}

fn heal_one(notes: &Notes, name: &OsStr, options: &ConnectOptions) -> Option<LeftStanding> {
    let mut file = own(notes, name)?;
    notes.remove_empty(&file, name);
    let noted = read(&mut file)?.noted;
    // When it is locked, its writer lives, and starts the applier itself; one that is not there any more
    // was handled by another command.
    let locked = |file: &File| file.try_lock().is_ok() && notes.has(file, name);
    if !noted.process.may_last() || noted.is_out_of_date() {
        // The server was restarted, and its appliers with it, or they are not meant to run.
        if locked(&file) {
            notes.remove(name);
        }
        return None;
    }
    // Not locked before it is known to be this server's: its own command could not have it then.
    let mut session = Session::open(options).ok()?;
    if identity(&mut session).ok()? != noted.server || !locked(&file) {
        return None;
    }
    if !noted.process.lasts(&mut session).ok()? {
        notes.remove(name);
        return None;
    }
    let Content { noted, stands } = read(&mut file)?;
    let abilities = Abilities::probe(&mut session).ok()?;
    let statement = |channel: &String| noted.threads.start(channel, &abilities);
    let statements: Vec<String> = noted.channels.iter().map(statement).collect();
    let left = start_standing(&mut session, &abilities, &noted.standing(), stands.as_ref());
    let (channels, started) = match left {
        Ok(channels) => (channels, Ok(())),
        Err(error) => (noted.channels, Err(error)),
    };
    // What could not be started should be tried again.
    if started.is_ok() {
        notes.remove(name);
    }
    (started.is_err() || !channels.is_empty()).then_some(LeftStanding {
        channels,
        started,
        statements,
    })
}

/// Opens a note of this user: a note makes somebody run `START SLAVE`.
fn own(notes: &Notes, name: &OsStr) -> Option<File> {
    let file = notes.read(name)?;
    (file.metadata().ok()?.uid() == geteuid().as_raw()).then_some(file)
}

struct Content {
    noted: Noted,
    stands: Option<Stands>,
}

fn read(file: &mut File) -> Option<Content> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(LENGTH_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    Some(Content {
        noted: serde_json::from_str(lines.next()?).ok()?,
        // The last one counts.
        stands: lines
            .last()
            .and_then(|line| serde_json::from_str(line).ok().flatten()),
    })
}

/// Starts those of `channels` that stand where they were left, and returns them.
///
/// Where nothing says how they were left, a stop may still be under way, of an applier that runs
/// until its transaction ends: a start waits for that, so it is asked for in any case. An applier
/// that should stop by itself is one that is closing its gaps for us: it continues for good.
pub(super) fn start_standing(
    session: &mut Session,
    abilities: &Abilities,
    standing: &Standing<'_>,
    stands: Option<&Stands>,
) -> Result<Vec<String>> {
    let now = Replication::read(session, abilities)?;
    let mut started = Vec::new();
    // Who lets clients write is no replica any more, whatever it was when it was to be repaired.
    if standing.threads == Threads::Both && !is_read_only(session)? {
        return Ok(started);
    }
    for channel in now.channels.iter().filter(|one| standing.has(one)) {
        let runs = channel.applier == ThreadState::Running;
        let left = stands.and_then(|all| all.iter().find(|(name, _)| *name == channel.name));
        if left.is_some_and(|(_, place)| runs || *place != channel.executed) {
            continue;
        }
        if runs && channel.until {
            session.run(&statements::applier(Order::Stop, &channel.name, abilities))?;
        }
        standing.may_start(channel, abilities)?;
        session.run(&standing.threads.start(&channel.name, abilities))?;
        started.push(channel.name.clone());
    }
    Ok(started)
}

fn is_read_only(session: &mut Session) -> Result<bool> {
    let value = session.variable("read_only")?;
    Ok(value.is_some_and(|value| !matches!(&*value, "0" | "OFF")))
}

fn directory() -> PathBuf {
    match geteuid() {
        user if user.is_root() => PathBuf::from(OF_ROOT),
        user => PathBuf::from(format!("{OF_OTHERS}{}", user.as_raw())),
    }
}

/// Makes the directory for this user's notes.
fn own_notes() -> Result<Notes> {
    Notes::make(&directory(), 0o755).map_err(|error| {
        error.hint(
            "evenkeel notes there that it stopped the SQL thread, so that the next command can \
             start it if this one is killed",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_no_other() {
        let own = Process::of(std::process::id() as i32).unwrap();
        assert!(own.is_there());
        let other = Process {
            start: own.start + 1,
            ..own
        };
        assert!(!other.is_there());
    }
}
