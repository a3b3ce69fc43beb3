//! A server that somebody started by hand: what it takes to start it like that again.

use crate::launch::spawn_detached;
use evenkeel_op::{Context, Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How a process was started. Its environment may hold secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByHand {
    /// The program.
    pub program: PathBuf,
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// User and group, when they are others than ours and the server does not choose them itself.
    account: Option<(u32, u32)>,
    output: Option<PathBuf>,
    errors: Option<PathBuf>,
}

impl std::fmt::Debug for ByHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment is nobody's business.
        write!(f, "ByHand {:?}", self.words)
    }
}

impl ByHand {
    /// Reads how the process `pid` was started. `Refused` when it may not be looked at.
    pub(super) fn of(pid: i32) -> Result<Self> {
        let hidden = |error: std::io::Error| {
            Error::refused(format!("how process {pid} was started cannot be seen"))
                .because(error)
                .hint("run evenkeel as root or as the server's own user")
        };
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let words = split(&fs::read(proc.join("cmdline")).map_err(hidden)?);
        let environment = split(&fs::read(proc.join("environ")).map_err(hidden)?);
        let program = fs::read_link(proc.join("exe")).map_err(hidden)?;
        let status = fs::read_to_string(proc.join("status")).map_err(hidden)?;
        Ok(Self {
            program: still_there(program),
            account: account(&status, &words),
            environment: environment
                .iter()
                .filter_map(|pair| pair_of(pair))
                .collect(),
            words,
            output: regular_file(&proc.join("fd/1")),
            errors: regular_file(&proc.join("fd/2")),
        })
    }

    /// Starts it again, in a session of its own. Returns the process, which lives on without us.
    pub(super) fn start(&self) -> Result<Child> {
        let mut command = Command::new(&self.program);
        if let Some((name, words)) = self.words.split_first() {
            command.arg0(name).args(words);
        }
        command.env_clear().envs(self.environment.iter().cloned());
        let started_in = self.environment.iter().find(|(name, _)| name == "PWD");
        let directory = started_in.map(|(_, value)| Path::new(value));
        command.current_dir(
            directory
                .filter(|path| path.is_dir())
                .unwrap_or(Path::new("/")),
        );
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
            .stdin(Stdio::null())
            .stdout(appended(self.output.as_deref()))
            .stderr(appended(self.errors.as_deref()));
        spawn_detached(command).context(|| format!("failed to start {}", self.program.display()))
    }
}

/// The program's path; when a newer one has taken its place since, the newer one's.
fn still_there(program: PathBuf) -> PathBuf {
    match program.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) if !program.exists() => PathBuf::from(OsStr::from_bytes(path)),
        _ => program,
    }
}

/// The account to start a server under: its own, unless it is ours, or we are root and the server
/// was told to change to it.
fn account(status: &str, words: &[OsString]) -> Option<(u32, u32)> {
    let effective = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let (user, group) = (effective("Uid:")?, effective("Gid:")?);
    let is_told = words.iter().any(|word| {
        let word = word.as_bytes();
        word.starts_with(b"--user=") || word.starts_with(b"-u")
    });
    let ours = rustix::process::geteuid();
    (user != ours.as_raw() && !(ours.is_root() && is_told)).then_some((user, group))
}

/// The file that a descriptor leads to, when it is one that can be opened again.
fn regular_file(descriptor: &Path) -> Option<PathBuf> {
    let path = fs::read_link(descriptor).ok()?;
    path.metadata()
        .is_ok_and(|facts| facts.is_file())
        .then_some(path)
}

fn appended(path: Option<&Path>) -> Stdio {
    let open = |path| -> std::io::Result<File> { OpenOptions::new().append(true).open(path) };
    path.and_then(|path| open(path).ok())
        .map_or_else(Stdio::null, Stdio::from)
}

fn split(bytes: &[u8]) -> Vec<OsString> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    whole
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

fn pair_of(pair: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((text(&bytes[..at]), text(&bytes[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn a_process_is_started_again_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut child = Command::new("/bin/sh")
            .args(["-c", "echo \"$0 $1 $SEEN\"; read line", "a b", "c"])
            .env("SEEN", "x=y")
            .stdin(Stdio::piped())
            .stdout(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let line = || {
            let mut text = String::new();
            let mut file = BufReader::new(File::open(&log).unwrap());
            while file.read_line(&mut text).unwrap() > 0 {}
            text
        };
        evenkeel_testkit::until("it has started", || line() == "a b c x=y\n");
        let how = ByHand::of(child.id() as i32).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Its input is at its end, so that it ends by itself.
        how.start().unwrap().wait().unwrap();
        assert_eq!(line(), "a b c x=y\na b c x=y\n");
        assert!(!format!("{how:?}").contains("x=y"));
    }

    #[test]
    fn a_server_that_changes_its_user_itself_is_left_to() {
        let status = "Name:\tx\nUid:\t0\t104\t104\t104\nGid:\t0\t105\t105\t105\n";
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        if rustix::process::geteuid().is_root() {
            assert_eq!(account(status, &words(&["mysqld"])), Some((104, 105)));
            assert_eq!(account(status, &words(&["mysqld", "--user=mysql"])), None);
        }
        let own = rustix::process::geteuid().as_raw();
        let status = format!("Uid:\t{own}\t{own}\nGid:\t1\t1\n");
        assert_eq!(account(&status, &words(&["mysqld"])), None);
    }

    #[test]
    fn a_replaced_program_is_found_by_its_name() {
        let path = still_there(PathBuf::from("/usr/sbin/nothing-here (deleted)"));
        assert_eq!(path, Path::new("/usr/sbin/nothing-here"));
    }
}
