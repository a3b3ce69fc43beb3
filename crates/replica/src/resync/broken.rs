//! The broken server: who it is, and how it is stopped and started.

use super::ResyncRequest;
use super::beside::Beside;
use super::refuse;
use evenkeel_op::open_directory::OpenDirectory;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files::{self, refuse_strangers};
use evenkeel_server::launch::Binary;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Channel, ThreadState};
use evenkeel_server::service::{Commands, Service};
use evenkeel_server::stopped::server_uuid;
use rustix::fs::{self as sys, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A command that does nothing: for a server that does not run.
const NOTHING: &str = "true";

/// What is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Broken {
    pub(super) service: Service,
    /// Whether it ran before.
    pub(super) ran: bool,
    pub(super) socket: PathBuf,
    pub(super) program: PathBuf,
    /// User and group of its data directory.
    pub(super) owner: (u32, u32),
    pub(super) server_id: Option<u64>,
    pub(super) server_uuid: Option<String>,
    pub(super) version: Option<String>,
    /// Options that say what its relay logs are called.
    pub(super) relay: Vec<String>,
    /// Sources that it has.
    pub(super) channels: usize,
    /// `HOST:PORT` of the first, and its number.
    pub(super) source: String,
    pub(super) source_server_id: Option<u64>,
    pub(super) source_server_uuid: Option<String>,
    /// Whether its IO thread ran, and its SQL thread.
    pub(super) receives: bool,
    pub(super) applies: bool,
    /// Replicas that it has.
    pub(super) replicas: u64,
}

impl Broken {
    /// Finds out. Errors: `Refused` for what cannot be made new.
    pub(super) fn find(request: &ResyncRequest, beside: &Beside) -> Result<Self> {
        let broken = match files::process_in(&beside.datadir) {
            Some(pid) => Self::running(request, beside, pid)?,
            None => Self::stopped(request, beside)?,
        };
        refuse::no_replica(request, &broken)?;
        refuse::sibling(&request.sibling, &broken)?;
        refuse::other_source(request, &broken)?;
        refuse::other_version(&request.sibling, &broken)?;
        Ok(broken)
    }

    fn running(request: &ResyncRequest, beside: &Beside, pid: i32) -> Result<Self> {
        refuse_strangers(pid, &beside.datadir)?;
        let commands = match (&request.stop_with, &request.start_with) {
            (Some(stop), Some(start)) => Some(Commands {
                stop: stop.clone(),
                start: start.clone(),
            }),
            (None, Some(_)) => {
                return Err(Error::usage(
                    "the broken server runs, and how it is stopped was not said",
                )
                .hint("give --stop-with COMMAND, too, or leave --start-with out"));
            }
            _ => None,
        };
        let service = Service::of(pid, &beside.datadir, commands)?;
        let socket = match &request.socket {
            Some(socket) => socket.clone(),
            None => socket_of(pid).ok_or_else(|| {
                Error::refused(format!(
                    "the socket of the server's process {pid} was not found"
                ))
                .hint("name it with --broken-socket")
            })?,
        };
        let mut session = Session::open(&at(&request.options, &socket))
            .map_err(|error| error.hint("the broken server has to be asked who it is"))?;
        let abilities = Abilities::probe(&mut session)?;
        let found = files::discover(&mut session, &abilities)?;
        if found.pid != Some(pid) || found.datadir != beside.datadir {
            return Err(Error::refused(format!(
                "the server that answers at {} is not the one on {}",
                socket.display(),
                beside.datadir.display()
            ))
            .hint("name its socket with --broken-socket"));
        }
        refuse::outside(&found)?;
        let channels = Channel::all(&mut session, &abilities)?;
        let first = channels.first();
        // Until the receiver has a connection, these are of the source before.
        let known = first.filter(|one| one.receiver == ThreadState::Running);
        let replicas = session.value(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'",
        )?;
        let server_id = session.value("SELECT @@GLOBAL.server_id")?;
        Ok(Self {
            service,
            ran: true,
            socket,
            program: program(request, Some(pid))?,
            owner: owner(beside)?,
            server_id: server_id.and_then(|id| id.parse().ok()),
            server_uuid: session.variable("server_uuid")?,
            version: Some(abilities.version_text.clone()),
            relay: relay(&mut session, &beside.datadir)?,
            channels: channels.len(),
            source: first.map_or_else(String::new, |one| {
                format!("{}:{}", one.host, one.port.unwrap_or(3306))
            }),
            source_server_id: known.and_then(|one| one.source_id),
            source_server_uuid: known.and_then(|one| one.source_uuid.clone()),
            receives: first.is_some_and(|one| one.receiver != ThreadState::Stopped),
            applies: first.is_some_and(|one| one.applier != ThreadState::Stopped),
            replicas: replicas.and_then(|count| count.parse().ok()).unwrap_or(0),
        })
    }

    fn stopped(request: &ResyncRequest, beside: &Beside) -> Result<Self> {
        let lacks = |option: &str, what: &str| {
            Error::refused(format!(
                "no server runs on {}: {what}",
                beside.datadir.display()
            ))
            .hint(format!("give it with {option}, or start the server first"))
        };
        let start = request
            .start_with
            .clone()
            .ok_or_else(|| lacks("--start-with COMMAND", "how it is started is not known"))?;
        let socket = request
            .socket
            .clone()
            .ok_or_else(|| lacks("--broken-socket FILE", "where it will answer is not known"))?;
        refuse::answering(&at(&request.options, &socket), &socket)?;
        let found = files::discover_stopped(&beside.datadir, &request.settings)?;
        refuse::outside(&found)?;
        let data = beside.data()?;
        let source = master_info(&data)?;
        let setting = |name: &str| request.settings.get(name);
        Ok(Self {
            service: Service::Commands(Commands {
                stop: NOTHING.to_owned(),
                start,
            }),
            ran: false,
            socket,
            program: program(request, None)?,
            owner: owner(beside)?,
            server_id: setting("server_id").and_then(|id| id.parse().ok()),
            server_uuid: server_uuid(&data.anchor()),
            version: None,
            relay: Vec::new(),
            channels: usize::from(source.is_some()),
            source: source.unwrap_or_default(),
            source_server_id: None,
            source_server_uuid: None,
            receives: false,
            applies: false,
            replicas: 0,
        })
    }

    /// Where it answers.
    pub(super) fn options(&self, request: &ResyncRequest) -> ConnectOptions {
        at(&request.options, &self.socket)
    }

    /// Its program. Errors: `Refused` for one that others could have put there.
    pub(super) fn binary(&self, request: &ResyncRequest) -> Result<Binary> {
        let is_typed = request.program.is_some();
        let is_root = rustix::process::geteuid().is_root();
        if !is_typed && is_root && !Binary::is_roots_alone(&self.program) {
            return Err(Error::refused(format!(
                "the server's program {} is not root's alone, and evenkeel does not run it",
                self.program.display()
            ))
            .hint("name a program with --server-binary"));
        }
        let binary = Binary::inspect(&self.program)?;
        refuse::other_program(&binary, &request.sibling)?;
        Ok(binary)
    }
}

impl Broken {
    /// As an interrupted run knew it, with what was typed this time.
    pub(super) fn with_typed(mut self, request: &ResyncRequest) -> Self {
        if let Some(start) = &request.start_with {
            let stop = request.stop_with.clone();
            self.service = Service::Commands(Commands {
                stop: stop.unwrap_or_else(|| NOTHING.to_owned()),
                start: start.clone(),
            });
        }
        if let Some(socket) = &request.socket {
            self.socket.clone_from(socket);
        }
        if let Some(program) = &request.program {
            self.program.clone_from(program);
        }
        self
    }
}

/// From whom a stopped server of MariaDB replicates, as `HOST:PORT`: the fourth and the seventh line of a file.
fn master_info(data: &OpenDirectory) -> Result<Option<String>> {
    let failed = || {
        format!(
            "failed to read {}",
            data.path().join("master.info").display()
        )
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match sys::openat(data, "master.info", flags, Mode::empty()) {
        Ok(file) => fs::File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(std::io::Error::from(error)).context(failed),
    };
    let mut text = String::new();
    file.take(64 << 10)
        .read_to_string(&mut text)
        .context(failed)?;
    Ok(source_in(&text))
}

fn source_in(master_info: &str) -> Option<String> {
    let mut lines = master_info.lines().skip(3);
    let host = lines.next().filter(|host| !host.is_empty())?;
    let port: u16 = lines.nth(2)?.parse().ok()?;
    Some(format!("{host}:{port}"))
}

/// The same account at another socket.
fn at(options: &ConnectOptions, socket: &Path) -> ConnectOptions {
    let mut options = options.clone();
    options.socket = Some(socket.to_owned());
    (options.host, options.port) = (None, None);
    options
}

fn program(request: &ResyncRequest, pid: Option<i32>) -> Result<PathBuf> {
    match (&request.program, pid) {
        (Some(program), _) => Ok(program.clone()),
        (None, Some(pid)) => fs::read_link(format!("/proc/{pid}/exe"))
            .context(|| format!("failed to see the program of process {pid}")),
        (None, None) => Err(Error::refused(
            "no server runs on the data directory: its program is not known",
        )
        .hint("name it with --server-binary, or start the server first")),
    }
}

fn owner(beside: &Beside) -> Result<(u32, u32)> {
    let stat = beside
        .data()?
        .stat()
        .context(|| format!("failed to look at {}", beside.datadir.display()))?;
    Ok((stat.st_uid, stat.st_gid))
}

/// What the relay logs are called, if they are in the data directory.
fn relay(session: &mut Session, datadir: &Path) -> Result<Vec<String>> {
    let mut options = Vec::new();
    for (variable, option) in [
        ("relay_log_basename", "relay-log"),
        ("relay_log_index", "relay-log-index"),
    ] {
        let value = session.variable(variable)?.unwrap_or_default();
        let path = datadir.join(value.trim_start_matches("./"));
        let name = path.strip_prefix(datadir).ok().and_then(Path::to_str);
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('/')) {
            options.push(format!("--{option}={name}"));
        }
    }
    Ok(options)
}

/// The socket that a process listens at.
fn socket_of(pid: i32) -> Option<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let own: HashSet<String> = entries
        .filter_map(|entry| {
            let link = fs::read_link(entry.path()).ok()?;
            let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(number.to_owned())
        })
        .collect();
    let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).ok()?;
    socket_in(&table, &own)
}

/// Finds a socket with a path among those of a process. MySQL's X protocol has one of its own.
fn socket_in(table: &str, own: &HashSet<String>) -> Option<PathBuf> {
    table.lines().find_map(|line| {
        // Number, count, protocol, flags, type and state are one word each; the path may have spaces.
        let (flags, rest) = line.splitn(4, ' ').nth(3)?.split_once(' ')?;
        let rest = rest.splitn(3, ' ').nth(2)?.trim_start();
        let (inode, path) = rest.split_once(' ')?;
        let is_x = || {
            let name = Path::new(path).file_name()?.to_str()?;
            Some(name.starts_with("mysqlx"))
        };
        let listens = flags == "00010000";
        (listens && own.contains(inode) && path.starts_with('/') && is_x() == Some(false))
            .then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_stopped_server_is_in_a_file() {
        let text = "33\nbinlog.000001\n1174\ndb1\nrepl\ns3cret\n3306\n1\n0\n";
        assert_eq!(source_in(text).as_deref(), Some("db1:3306"));
        assert_eq!(source_in("33\n\n4\n\n\n\n3306\n"), None);
    }

    #[test]
    fn the_socket_of_a_process_is_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 100 /run/other.sock\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 201 /run/my sqld/s\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 202 /run/mysqlx.sock\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 203 /run/my sqld/s\n";
        let own = ["201", "202", "203"].map(str::to_owned).into();
        assert_eq!(
            socket_in(table, &own),
            Some(PathBuf::from("/run/my sqld/s"))
        );
        assert_eq!(socket_in(table, &HashSet::new()), None);
    }
}
