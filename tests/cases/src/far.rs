//! Another host: this one, through an ssh daemon of the test's own.

use crate::leftovers::names_in;
use evenkeel_testkit::{Proxy, Sshd, until};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Another host, and the way there.
#[derive(Debug)]
pub struct FarHost {
    sshd: Sshd,
    /// What the connections go through.
    pub proxy: Proxy,
}

impl FarHost {
    /// Makes it. What runs over there has `environment` besides.
    #[must_use]
    pub fn start(environment: &[(&str, &str)]) -> Self {
        let sshd = Sshd::start(environment);
        let proxy = Proxy::to(sshd.port());
        Self { sshd, proxy }
    }

    /// Makes it with `program` kept over there, as an earlier run leaves it. To send it costs more than many a run
    /// does otherwise, and is the question of few tests.
    #[must_use]
    pub fn having(program: &str, environment: &[(&str, &str)]) -> Self {
        let far = Self::start(environment);
        let output = Command::new("sha256sum").arg(program).output();
        let output = output.expect("sha256sum").stdout;
        let hash = String::from_utf8_lossy(&output[..64]);
        let kept = far.kept();
        fs::create_dir_all(&kept).expect("a directory");
        let path = kept.join(format!("program-{hash}"));
        fs::copy(program, &path).expect("a copy");
        for ours in [far.sshd.cache(), kept.as_path(), path.as_path()] {
            fs::set_permissions(ours, Permissions::from_mode(0o700)).expect("a mode");
        }
        far
    }

    /// Makes a run work over there. It gives a lost connection `timeout_s` seconds.
    #[must_use]
    pub fn over(&self, mut command: Command, timeout_s: u32) -> Command {
        command
            .args(["--ssh", "root@127.0.0.1"])
            .arg("--ssh-command")
            .arg(self.sshd.command(self.proxy.port()))
            .arg(format!("--ssh-timeout={timeout_s}s"));
        command
    }

    /// Returns where the program is kept over there.
    #[must_use]
    pub fn kept(&self) -> PathBuf {
        self.sshd.cache().join("evenkeel")
    }

    /// Returns the directory for temporary files over there.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        self.sshd.temporary()
    }

    /// Waits until nothing of ours is left over there but the kept program: no process, no file.
    #[track_caller]
    pub fn assert_clean(&self, reported: &str) {
        until(
            &format!("{reported}: no process is left over there"),
            || self.processes().is_empty(),
        );
        // A shell that has heard that nobody is there any more removes what it made.
        until(&format!("{reported}: no file is left over there"), || {
            names_in(self.sshd.temporary()).is_empty()
        });
    }

    /// Waits until no process is left; one that was killed may leave its program to the next.
    #[track_caller]
    pub fn assert_no_process(&self, reported: &str) {
        until(
            &format!("{reported}: no process is left over there"),
            || self.processes().is_empty(),
        );
    }

    /// Returns the processes of ours over there: those whose program lies in its directories.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        let pids = names_in("/proc".as_ref())
            .into_iter()
            .filter_map(|name| name.parse().ok());
        let is_ours = |pid: &i32| {
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| {
                exe.starts_with(self.sshd.temporary()) || exe.starts_with(self.sshd.cache())
            })
        };
        pids.filter(is_ours).collect()
    }

    /// Returns those that lead a session.
    #[must_use]
    pub fn sessions(&self) -> Vec<i32> {
        let serves = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"serve")
        };
        self.processes().into_iter().filter(serves).collect()
    }
}
