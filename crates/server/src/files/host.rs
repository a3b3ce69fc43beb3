//! Is the server on this host, and which process is it?
//!
//! A server on another host may have a data directory of the same name as one that is here: a copy
//! of that would be a backup of the wrong server. So the server is asked for the thread that serves
//! us, and that thread has to be here, in a process that works in the data directory. Whose process it is
//! says the kernel alone: see [`whose`].

use super::whose;
use crate::connect::Session;
use evenkeel_op::{Error, Result};
use rustix::fs::{self as sys, Mode, OFlags};
use rustix::process::{Flock, FlockType, fcntl_getlk};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the server's process; `None` when it is on this host but its process cannot be seen.
///
/// Errors: `Refused` when it is not on this host, or the process is none of a server on `datadir`.
pub(super) fn server_process(
    session: &mut Session,
    datadir: &Path,
    variables: &BTreeMap<String, String>,
) -> Result<Option<i32>> {
    let place = session.place().to_owned();
    let elsewhere = |why: String| {
        Err(
            Error::refused(format!("the server at {place} is not on this host: {why}"))
                .hint("run evenkeel on the server's own host, or in the same container"),
        )
    };
    let Some(own) = identity(datadir) else {
        return elsewhere(format!("there is no directory {}", datadir.display()));
    };
    if let Some(thread) = serving_thread(session) {
        let candidates = working_in(own);
        let pid = process_of(thread)
            .filter(|pid| candidates.contains(pid) || cwd(*pid).is_none() && is_server(*pid))
            .or_else(|| {
                candidates
                    .into_iter()
                    .find(|pid| has_inner_thread(*pid, thread))
            });
        return match pid {
            Some(pid) => whose::server_account(pid, datadir).map(|_| Some(pid)),
            None => elsewhere(format!(
                "no process here uses {} and has the thread {thread}",
                datadir.display()
            )),
        };
    }
    // A MySQL without performance schema does not say its threads: the host's name must do.
    let theirs = variables.get("hostname").map_or("", String::as_str);
    let node = rustix::system::uname();
    let ours = node.nodename().to_string_lossy();
    if theirs != ours {
        return elsewhere(format!(
            "it reports the host name {theirs}, and this host is {ours}"
        ));
    }
    let pid = working_in(own).into_iter().find(|pid| is_server(*pid));
    if let Some(pid) = pid {
        whose::server_account(pid, datadir)?;
    }
    Ok(pid)
}

/// Returns the process of a server that works in `datadir`, if there is one here.
#[must_use]
pub fn process_in(datadir: &Path) -> Option<i32> {
    let own = identity(datadir)?;
    working_in(own).into_iter().find(|pid| is_server(*pid))
}

/// Files that every server locks as long as it runs: InnoDB's and Aria's.
const LOCKED: [&str; 2] = ["ibdata1", "aria_log_control"];

/// Returns the process of a server that runs on `datadir`: one here, or one that locks its files; 0
/// when that cannot be seen from here (another container).
pub(crate) fn server_on(datadir: &Path) -> Option<i32> {
    process_in(datadir).or_else(|| {
        let files = LOCKED.iter().map(|name| datadir.join(name));
        files.filter_map(|file| lock_holder(&file)).next()
    })
}

/// The process that holds a lock which a server would want; 0 for one that cannot be seen.
fn lock_holder(file: &Path) -> Option<i32> {
    // The server's account may have put a pipe there, which is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = sys::open(file, flags, Mode::empty()).ok()?;
    let wanted = Flock::from(FlockType::WriteLock);
    let held = fcntl_getlk(&file, &wanted).ok()??;
    Some(held.pid.map_or(0, rustix::process::Pid::as_raw_pid))
}

/// The kernel's id of the thread that serves this session.
fn serving_thread(session: &mut Session) -> Option<i32> {
    // MariaDB shows it in the process list, MySQL in the performance schema.
    for sql in [
        "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
        "SELECT THREAD_OS_ID FROM performance_schema.threads \
         WHERE PROCESSLIST_ID = CONNECTION_ID()",
    ] {
        // The wrong one fails: there is no such column or table.
        if let Ok(Some(text)) = session.value(sql)
            && let Ok(thread) = text.parse()
            && thread > 0
        {
            return Some(thread);
        }
    }
    None
}

/// Device and inode: the same directory has the same ones under every path.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    let meta = std::fs::metadata(path).ok()?;
    meta.is_dir().then(|| (meta.dev(), meta.ino()))
}

fn cwd(pid: i32) -> Option<Identity> {
    identity(&PathBuf::from(format!("/proc/{pid}/cwd")))
}

/// Every process that works in a directory. A server changes into its data directory at start.
fn working_in(directory: Identity) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| cwd(*pid) == Some(directory))
        .collect()
}

/// Whether a process is a database server, by its name.
pub(crate) fn is_server(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.starts_with("mysqld") || name.starts_with("mariadbd")
}

/// Returns the processes of all servers that can be seen, those in containers among them.
#[must_use]
pub fn server_processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // `mysqld_safe` only starts one.
    let is_one = |pid: &i32| is_server(*pid) && program_of(*pid).is_some();
    let mut all: Vec<i32> = numbers.filter(is_one).collect();
    all.sort_unstable();
    all
}

/// Returns what a server's process runs, unless a shell runs it.
fn program_of(pid: i32) -> Option<PathBuf> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = program.file_name()?.to_str()?;
    (name.starts_with("mysqld") || name.starts_with("mariadbd")).then_some(program)
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> Option<i32> {
    field(&format!("/proc/{thread}/status"), "Tgid:")?
        .trim()
        .parse()
        .ok()
}

/// Whether a process in a container has a thread that is called `thread` in there.
fn has_inner_thread(pid: i32, thread: i32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let inner = |status: PathBuf| {
        let ids = field(&status.to_string_lossy(), "NSpid:")?;
        ids.split_whitespace().last()?.parse::<i32>().ok()
    };
    tasks
        .into_iter()
        .any(|task| inner(task.path().join("status")) == Some(thread))
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix(name).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, (reported, heard)) = (dir.path().join(LOCKED[0]), std::sync::mpsc::channel());
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        std::thread::spawn(move || reported.send(server_on(dir.path())));
        let deadline = std::time::Duration::from_secs(30);
        assert_eq!(heard.recv_timeout(deadline), Ok(None));
    }
}
