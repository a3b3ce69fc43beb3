//! A server that somebody started by hand: what it takes to start it like that again.

use crate::launch::{Binary, spawn_detached};
use evenkeel_op::{Context, Error, Result};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
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
    /// User and group, when they are others than ours.
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
            account: account(&status, rustix::process::geteuid().as_raw()),
            environment: environment
                .iter()
                .filter_map(|pair| pair_of(pair))
                .collect(),
            words,
            output: log_of(&proc, 1),
            errors: log_of(&proc, 2),
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
            .stdout(self.appended(self.output.as_deref()))
            .stderr(self.appended(self.errors.as_deref()));
        spawn_detached(command).context(|| format!("failed to start {}", self.program.display()))
    }

    /// Opens a log to write on: a file of the server's account, or one where nobody but root can put
    /// another in its place.
    fn appended(&self, path: Option<&Path>) -> Stdio {
        let owner = self.account.map(|(user, _)| user);
        path.and_then(|path| open_log(path, owner))
            .map_or_else(Stdio::null, Stdio::from)
    }
}

/// The program's path; when a newer one has taken its place since, the newer one's.
fn still_there(program: PathBuf) -> PathBuf {
    match program.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) if !program.exists() => PathBuf::from(OsStr::from_bytes(path)),
        _ => program,
    }
}

/// The account to start a server under: its own, unless it is ours. Words and program are what the
/// process says they are: a `--user` among them is no reason to run them as root.
fn account(status: &str, ours: u32) -> Option<(u32, u32)> {
    let effective = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let (user, group) = (effective("Uid:")?, effective("Gid:")?);
    (user != ours).then_some((user, group))
}

/// The file at `path` to append to; `None` where it is neither of this owner nor out of everybody's reach
/// but root's.
fn open_log(path: &Path, owner: Option<u32>) -> Option<File> {
    let file = OpenOptions::new()
        .append(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    let facts = file.metadata().ok()?;
    // The account can lead the path to any file, but own only what it may write to anyway.
    let is_theirs = owner.is_none_or(|owner| facts.uid() == owner);
    let has_no_link = || fs::canonicalize(path).is_ok_and(|real| real == path);
    let is_safe = is_theirs || Binary::is_roots_alone(path) && has_no_link();
    (facts.is_file() && is_safe).then_some(file)
}

/// The log that a process writes to by its descriptor `number`, when it is a file that can be opened again.
fn log_of(proc: &Path, number: u32) -> Option<PathBuf> {
    let path = fs::read_link(proc.join(format!("fd/{number}"))).ok()?;
    let facts = fs::read_to_string(proc.join(format!("fdinfo/{number}"))).ok()?;
    (is_for_writing(&facts)? && path.metadata().is_ok_and(|facts| facts.is_file())).then_some(path)
}

/// Whether a descriptor was opened for writing: a process may hold any file that it can read.
fn is_for_writing(facts: &str) -> Option<bool> {
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    let way = OFlags::from_bits_retain(flags) & OFlags::ACCMODE;
    Some(way == OFlags::WRONLY || way == OFlags::RDWR)
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

    /// What a process says of itself does not make it root's.
    #[test]
    fn a_server_gets_its_own_account_whatever_its_words_are() {
        let status = "Name:\tx\nUid:\t0\t104\t104\t104\nGid:\t0\t105\t105\t105\n";
        assert_eq!(account(status, 0), Some((104, 105)));
        assert_eq!(account(status, 104), None);
    }

    #[test]
    fn logs_are_not_led_to_files_of_others() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give a file away"
        );
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for (name, owner) in [("theirs", 4242), ("roots", 0)] {
            fs::write(at(name), "").unwrap();
            std::os::unix::fs::chown(at(name), Some(owner), None).unwrap();
        }
        std::os::unix::fs::symlink(at("roots"), at("link")).unwrap();
        assert!(open_log(&at("theirs"), Some(4242)).is_some());
        assert!(open_log(&at("link"), Some(4242)).is_none());
        assert!(open_log(&at("roots"), None).is_some());
        // Root alone can put another file there.
        assert!(open_log(&at("roots"), Some(4242)).is_some());
        std::os::unix::fs::chown(dir.path(), Some(4242), None).unwrap();
        assert!(open_log(&at("roots"), Some(4242)).is_none());
    }

    #[test]
    fn what_was_opened_to_be_read_is_no_log() {
        for (flags, expected) in [
            ("0100000", Some(false)),
            ("02100001", Some(true)),
            ("0100002", Some(true)),
            ("x", None),
        ] {
            let facts = format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n");
            assert_eq!(is_for_writing(&facts), expected, "{flags}");
        }
    }

    #[test]
    fn a_replaced_program_is_found_by_its_name() {
        let path = still_there(PathBuf::from("/usr/sbin/nothing-here (deleted)"));
        assert_eq!(path, Path::new("/usr/sbin/nothing-here"));
    }
}
