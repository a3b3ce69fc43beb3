//! A server that somebody started by hand: what it takes to start it like that again.

use crate::files::{Account, server_account};
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
    /// User and group: always those of the data directory's owner.
    account: (u32, u32),
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
    /// Reads how the server's process `pid` was started. `Refused` when it may not be looked at, or is none
    /// of a server on `datadir`.
    pub(super) fn of(pid: i32, datadir: &Path) -> Result<Self> {
        Self::read(pid, || server_account(pid, datadir))
    }

    /// Reads it, and judges last: a process that has become another program meanwhile is refused.
    fn read(pid: i32, judge: impl FnOnce() -> Result<Account>) -> Result<Self> {
        let hidden = |error: std::io::Error| {
            Error::refused(format!("how process {pid} was started cannot be seen"))
                .because(error)
                .hint("run evenkeel as root or as the server's own user")
        };
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let words = split(&fs::read(proc.join("cmdline")).map_err(hidden)?);
        let environment = split(&fs::read(proc.join("environ")).map_err(hidden)?);
        let program = fs::read_link(proc.join("exe")).map_err(hidden)?;
        let (output, errors) = (log_of(&proc, 1), log_of(&proc, 2));
        let account = judge()?;
        Ok(Self {
            program: still_there(program),
            account: (account.user, account.group),
            environment: environment
                .iter()
                .filter_map(|pair| pair_of(pair))
                .collect(),
            words,
            output,
            errors,
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
        let (user, group) = self.account;
        // Root may have started it where its account cannot go: in /root.
        command.current_dir(
            directory
                .filter(|path| path.is_dir() && may_enter(path, self.account))
                .unwrap_or(Path::new("/")),
        );
        if user != rustix::process::geteuid().as_raw() {
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
        path.and_then(|path| open_log(path, self.account.0))
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

/// Whether a user of a group may go to a directory, as far as modes say it.
fn may_enter(directory: &Path, (user, group): (u32, u32)) -> bool {
    let opens = |path: &Path| {
        path.metadata().is_ok_and(|facts| {
            let bit = match facts.uid() == user {
                true => 0o100,
                false if facts.gid() == group => 0o010,
                false => 0o001,
            };
            facts.mode() & bit != 0
        })
    };
    user == 0 || fs::canonicalize(directory).is_ok_and(|real| real.ancestors().all(opens))
}

/// The file at `path` to append to; `None` where it is neither of this owner nor out of everybody's reach
/// but root's.
fn open_log(path: &Path, owner: u32) -> Option<File> {
    let file = OpenOptions::new()
        .append(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    let facts = file.metadata().ok()?;
    // The account can lead the path to any file, but own only what it may write to anyway.
    let is_theirs = facts.uid() == owner;
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
        let ours = || {
            Ok(Account {
                user: rustix::process::geteuid().as_raw(),
                group: rustix::process::getegid().as_raw(),
            })
        };
        let how = ByHand::read(child.id() as i32, ours).unwrap();
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
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().canonicalize().unwrap().join("log");
        fs::write(&log, "").unwrap();
        let words = ["sh", "-c", "id -u; id -g", "--user=root"];
        let how = ByHand {
            program: "/bin/sh".into(),
            words: words.map(OsString::from).into(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            account: (4242, 4243),
            output: Some(log.clone()),
            errors: None,
        };
        how.start().unwrap().wait().unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "4242\n4243\n");
    }

    /// As root's shell has it: in a directory that the server's account cannot enter.
    #[test]
    fn a_server_that_root_started_at_home_starts_again() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let how = ByHand {
            program: "/bin/sh".into(),
            words: ["sh", "-c", "exit 7"].map(OsString::from).into(),
            environment: vec![("PWD".into(), dir.path().into())],
            account: (4242, 4243),
            output: None,
            errors: None,
        };
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!may_enter(dir.path(), how.account));
        assert_eq!(how.start().unwrap().wait().unwrap().code(), Some(7));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(may_enter(dir.path(), how.account));
    }

    /// A program in the data directory that is root's in effect, as `su` is, for which a server that was
    /// taken over passes itself off.
    #[test]
    fn what_runs_with_roots_rights_is_not_started_again() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (data, program) = (dir.path().join("data"), dir.path().join("mysqld"));
        fs::create_dir(&data).unwrap();
        chown(&data, Some(4242), Some(4242)).unwrap();
        fs::copy("/bin/sleep", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let mut command = Command::new(&program);
        let mut child = command
            .arg("1000")
            .uid(4242)
            .current_dir(&data)
            .spawn()
            .unwrap();
        let outcome = ByHand::of(child.id() as i32, &data);
        child.kill().unwrap();
        child.wait().unwrap();
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("two accounts"), "{error}");
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
        assert!(open_log(&at("theirs"), 4242).is_some());
        assert!(open_log(&at("link"), 4242).is_none());
        assert!(open_log(&at("roots"), 0).is_some());
        // Root alone can put another file there.
        assert!(open_log(&at("roots"), 4242).is_some());
        std::os::unix::fs::chown(dir.path(), Some(4242), None).unwrap();
        assert!(open_log(&at("roots"), 4242).is_none());
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
