//! Whether a process is the server of a data directory, by what the kernel says of it.
//!
//! The number of the process comes from the server's own answer, and a server that was taken over may name
//! any: a program that runs with root's rights, for example, started by the server's account in the data
//! directory. Such a process must not be stopped, and least of all started again as what it seems to be.

use super::host::is_server;
use evenkeel_op::{Context, Error, Result};
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// User and group that a process runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Account {
    /// Reads it out of `/proc/PID/status`. `None` when real, effective, saved and filesystem numbers are
    /// not all the same: then it runs with rights that whoever started it does not have.
    pub(crate) fn in_status(status: &str) -> Option<Self> {
        let one = |name: &str| -> Option<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let mut all = line.split_whitespace().map(str::parse::<u32>);
            let first = all.next()?.ok()?;
            let mut others = 0;
            for other in all {
                others += 1;
                if other != Ok(first) {
                    return None;
                }
            }
            (others == 3).then_some(first)
        };
        Some(Self {
            user: one("Uid:")?,
            group: one("Gid:")?,
        })
    }
}

/// Returns the account of the server's process `pid`. `Refused` when it is none of a server on `datadir`:
/// another program, of another user than the directory, of two users at once, or one that has none of the
/// directory's files open.
pub(crate) fn server_account(pid: i32, datadir: &Path) -> Result<Account> {
    let refused = |why: String| {
        Err(Error::refused(format!(
            "process {pid} is said to be the server on {}, but it {why}",
            datadir.display()
        ))
        .hint("check what that process is, and which program answers on the server's socket"))
    };
    let proc = format!("/proc/{pid}");
    let status = fs::read_to_string(format!("{proc}/status"))
        .context(|| format!("failed to look at process {pid}"))?;
    let owner = owner_of(datadir)?;
    let Some(account) = Account::in_status(&status) else {
        return refused("runs with the rights of two accounts at once".to_owned());
    };
    if account.user != owner {
        return refused(format!(
            "runs as user {}, while the directory belongs to user {owner}",
            account.user
        ));
    }
    if !is_server(pid) {
        return refused("is called neither mysqld nor mariadbd".to_owned());
    }
    let program = fs::metadata(format!("{proc}/exe"));
    if program.is_ok_and(|program| program.mode() & SET_ID != 0) {
        return refused("has a setuid or setgid program".to_owned());
    }
    match has_files_of(pid, datadir) {
        Some(false) => refused("has none of its files open".to_owned()),
        _ => Ok(account),
    }
}

/// Refuses a process that is none of a server on `datadir`. For whoever has taken hold of it since it was
/// found: what has its number may be another program by now.
pub fn refuse_strangers(pid: i32, datadir: &Path) -> Result<()> {
    server_account(pid, datadir).map(drop)
}

/// The bits of programs that run as their owner or group.
const SET_ID: u32 = 0o6000;

/// The user whose server may work on a directory. `Refused` for one of root's that others can write to:
/// whoever does would be taken for root.
fn owner_of(datadir: &Path) -> Result<u32> {
    let found = fs::metadata(datadir)
        .context(|| format!("failed to look at the data directory {}", datadir.display()))?;
    if found.uid() == 0 && found.mode() & 0o022 != 0 {
        return Err(Error::refused(format!(
            "the data directory {} belongs to root, and other users can write to it",
            datadir.display()
        ))
        .hint("change its owner to the account that the server runs as"));
    }
    Ok(found.uid())
}

/// Whether a process has a file of a data directory open; `None` when its files cannot be seen.
fn has_files_of(pid: i32, datadir: &Path) -> Option<bool> {
    let identity = |found: &Metadata| (found.dev(), found.ino());
    let entries = fs::read_dir(datadir).ok()?;
    let known: HashSet<_> = entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .filter(Metadata::is_file)
        .map(|found| identity(&found))
        .collect();
    let mut open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    Some(open.any(|one| {
        // In a container the path is another one, so the file itself is compared as well.
        let is_below = || fs::read_link(one.path()).is_ok_and(|path| path.starts_with(datadir));
        let is_known = || fs::metadata(one.path()).is_ok_and(|it| known.contains(&identity(&it)));
        is_below() || is_known()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

    const SOMEBODY: u32 = 4242;

    /// A data directory of an account's, and a program in it.
    struct Fixture {
        dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            assert!(
                rustix::process::geteuid().is_root(),
                "only root can play another account"
            );
            let dir = tempfile::tempdir().unwrap();
            let open = Permissions::from_mode(0o755);
            fs::set_permissions(dir.path(), open).unwrap();
            let fixture = Self { dir };
            fs::create_dir(fixture.datadir()).unwrap();
            fs::write(fixture.datadir().join("ibdata1"), "").unwrap();
            chown(fixture.datadir(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
            fixture
        }

        fn datadir(&self) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join("data")
        }

        /// A program called `name` that sleeps, run by the account, with the system tablespace open.
        fn run(&self, name: &str, mode: u32, holds: bool) -> Running {
            let program = self.dir.path().join(name);
            fs::copy("/bin/sleep", &program).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
            let input = match holds {
                true => File::open(self.datadir().join("ibdata1")).unwrap().into(),
                false => Stdio::null(),
            };
            let child = Command::new(&program)
                .arg("1000")
                .uid(SOMEBODY)
                .gid(SOMEBODY)
                .current_dir(self.datadir())
                .stdin(input)
                .spawn()
                .unwrap();
            Running(child)
        }

        fn judge(&self, running: &Running) -> Result<Account> {
            server_account(running.0.id() as i32, &self.datadir())
        }
    }

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[track_caller]
    fn refused(outcome: Result<Account>, why: &str) {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn a_server_of_the_directorys_owner_is_taken() {
        let fixture = Fixture::new();
        let server = fixture.run("mysqld", 0o755, true);
        let account = fixture.judge(&server).unwrap();
        assert_eq!((account.user, account.group), (SOMEBODY, SOMEBODY));
    }

    /// What the server's account starts can be root's in effect.
    #[test]
    fn a_program_with_rights_of_another_is_no_server() {
        let fixture = Fixture::new();
        for mode in [0o4755, 0o2755] {
            let server = fixture.run("mysqld", mode, true);
            refused(fixture.judge(&server), "two accounts");
        }
    }

    #[test]
    fn a_server_of_another_than_the_directorys_owner_is_none_of_it() {
        let fixture = Fixture::new();
        let server = fixture.run("mysqld", 0o755, true);
        for owner in [0, SOMEBODY + 1] {
            chown(fixture.datadir(), Some(owner), None).unwrap();
            refused(fixture.judge(&server), "while the directory belongs");
        }
        chown(fixture.datadir(), Some(0), None).unwrap();
        fs::set_permissions(fixture.datadir(), Permissions::from_mode(0o775)).unwrap();
        refused(fixture.judge(&server), "other users can write");
    }

    #[test]
    fn what_only_stands_in_the_directory_is_no_server() {
        let fixture = Fixture::new();
        let server = fixture.run("mysqld", 0o755, false);
        refused(fixture.judge(&server), "none of its files");
        let other = fixture.run("sleeper", 0o755, true);
        refused(fixture.judge(&other), "is called neither");
    }

    #[test]
    fn all_four_numbers_have_to_agree() {
        let status = |user: &str| format!("Name:\tx\nUid:\t{user}\nGid:\t9\t9\t9\t9\n");
        assert!(Account::in_status(&status("7\t7\t7\t7")).is_some());
        for user in [
            "0\t7\t7\t7",
            "7\t0\t7\t7",
            "7\t7\t0\t7",
            "7\t7\t7\t0",
            "7\t7",
            "",
        ] {
            assert_eq!(Account::in_status(&status(user)), None, "{user}");
        }
    }
}
