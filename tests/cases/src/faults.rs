//! Faults of files, for a program that reads or writes them: sectors that cannot be read, files that
//! are closed to it, files that are gone when it comes to them.

use crate::program::{Ended, run};
use evenkeel_testkit::servers::account;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Powers of root to open what its mode closes to it.
const POWERS: &str = "-dac_override,-dac_read_search";

/// Runs a command, with a system call answered by strace instead of the kernel where it is about one
/// path: `fault` is strace's, `error=EIO:when=2..7`.
#[must_use]
pub fn failing(command: &Command, path: &Path, call: &str, fault: &str) -> Ended {
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-o", "/dev/null", "-P"])
        .arg(path);
    traced.args(["-e", &format!("trace={call}")]);
    traced.args(["-e", &format!("inject={call}:{fault}")]);
    traced.arg(command.get_program()).args(command.get_args());
    run(traced)
}

/// Runs a command to which one path is gone when it opens it, though it is listed.
#[must_use]
pub fn gone(command: &Command, path: &Path) -> Ended {
    failing(command, path, "openat", "error=ENOENT")
}

/// Runs a command to which one path is closed, as it is to who may not open it.
#[must_use]
pub fn closed(command: &Command, path: &Path) -> Ended {
    failing(command, path, "openat", "error=EACCES")
}

/// The same where strace does not see how it is opened: as root who may read a data directory by its group
/// alone, and is in that group.
#[must_use]
pub fn closed_by_mode(command: &Command, datadir: &Path, path: &Path) -> Ended {
    let chmod = Command::new("chmod")
        .args(["-R", "g+rX"])
        .arg(datadir)
        .status();
    assert!(chmod.expect("chmod runs").success());
    let mode = fs::metadata(path).expect("a path").permissions();
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("a mode");
    let mut powerless = Command::new("setpriv");
    powerless.args(["--bounding-set", POWERS, "--inh-caps", POWERS]);
    if let Some(account) = account() {
        powerless.args(["--groups", &account.gid.to_string()]);
    }
    powerless
        .arg(command.get_program())
        .args(command.get_args());
    let ended = run(powerless);
    fs::set_permissions(path, mode).expect("a mode");
    ended
}
