//! Who keeps a server running: a unit of systemd, or something that nobody but its owner can stop.

use std::fs;
use std::process::{Command, Stdio};

/// Programs that restart what they supervise when it ends, or end with it.
const SUPERVISORS: [&str; 12] = [
    "mysqld_safe",
    "mariadbd-safe",
    "mysqld_multi",
    "supervisord",
    "runsv",
    "s6-supervise",
    "containerd-shim",
    "conmon",
    "docker-init",
    "tini",
    "dumb-init",
    "monit",
];
/// How far up is looked.
const ANCESTORS: usize = 32;

/// Returns the unit of the system's systemd that a process is the main process of, or descends from
/// the main process of.
pub(super) fn unit_of(pid: i32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let unit = unit_in(&groups)?;
    // A server that was started by hand from within some unit's session is in its group, too.
    let main = Command::new("systemctl")
        .args(["show", "--property=MainPID", "--value", &unit])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let main: i32 = String::from_utf8_lossy(&main.stdout).trim().parse().ok()?;
    (main == pid || ancestors(pid).contains(&main)).then_some(unit)
}

/// Reads the unit out of `/proc/PID/cgroup`: the last part of the unified or systemd's own path.
fn unit_in(groups: &str) -> Option<String> {
    let path = groups.lines().find_map(|line| {
        line.strip_prefix("0::")
            .or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
    })?;
    if !path.starts_with("/system.slice/") {
        return None;
    }
    let unit = path.rsplit('/').find(|part| part.ends_with(".service"))?;
    Some(unit.to_owned())
}

/// Returns what keeps a process running, in words, when that is not systemd and it is known.
pub(super) fn supervisor_of(pid: i32) -> Option<String> {
    for namespace in ["pid", "mnt"] {
        let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{namespace}")).ok();
        let theirs = of(&pid.to_string());
        if theirs.is_some() && theirs != of("self") {
            return Some("a container".to_owned());
        }
    }
    // Farther up it may supervise the login that somebody started the server from.
    ancestors(pid).into_iter().take(2).find_map(|ancestor| {
        let name = fs::read_to_string(format!("/proc/{ancestor}/comm")).ok()?;
        let name = name.trim();
        // The kernel cuts names after 15 bytes.
        let known = |full: &&str| **full == *name || (name.len() == 15 && full.starts_with(name));
        SUPERVISORS
            .iter()
            .any(known)
            .then(|| format!("process {ancestor} ({name})"))
    })
}

fn ancestors(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut at = pid;
    while let Some(parent) = parent(at).filter(|parent| *parent > 1)
        && found.len() < ANCESTORS
    {
        found.push(parent);
        at = parent;
    }
    found
}

fn parent(pid: i32) -> Option<i32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// Returns a process's state and when it started; `None` when it is gone.
pub(super) fn state_of(pid: i32) -> Option<(char, u64)> {
    let stat = stat(pid)?;
    Some((stat.first()?.chars().next()?, stat.get(19)?.parse().ok()?))
}

/// The fields of `/proc/PID/stat` behind the name in parentheses: state, parent and so on.
fn stat(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_out_of_control_groups() {
        let unit = |text: &str| unit_in(text);
        assert_eq!(
            unit("0::/system.slice/mariadb.service\n").as_deref(),
            Some("mariadb.service")
        );
        assert_eq!(
            unit("3:cpu:/x\n1:name=systemd:/system.slice/mysql.service\n").as_deref(),
            Some("mysql.service")
        );
        assert_eq!(
            unit("0::/system.slice/system-mariadb.slice/mariadb@a.service").as_deref(),
            Some("mariadb@a.service")
        );
        assert_eq!(unit("0::/user.slice/user-0.slice/session-1.scope"), None);
        assert_eq!(
            unit("0::/user.slice/user@0.service/app.slice/x.service"),
            None
        );
        assert_eq!(unit("0::/\n"), None);
    }

    #[test]
    fn what_would_start_a_server_again_is_found_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("mysqld_safe");
        fs::write(&script, "#!/bin/sh\nsleep 1000 & echo $!; wait\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).unwrap();
        let mut child = Command::new(&script)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        let found = supervisor_of(pid);
        let id = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(found.unwrap().contains("mysqld_safe"));
    }
}
