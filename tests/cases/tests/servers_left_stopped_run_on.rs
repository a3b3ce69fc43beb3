//! Does the next command let a server run on that a killed backup left stopped?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::{assert_only_the_base, assert_unharmed};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mysql_5_7_22;
use std::fs;
use std::process::Command;

const GIB: u64 = 1 << 30;

fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

/// Ends a backup in mid-pause together with the watchdog of the pause.
fn kill_everybody(evenkeel: &Evenkeel, site: &Site) {
    let mut backup = killed_at(evenkeel.backup(site, &[]), "snapshot::reflink::cloning");
    backup.env("EVENKEEL_KILL_ALL", "1");
    let ended = run(backup);
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    assert!(is_stopped(site.running().pid()), "nobody could resume it");
}

#[test]
fn after_backup_and_watchdog_were_killed_in_a_pause() {
    // Its DDL cannot be blocked, so the whole clone is made in a pause.
    let site = Site::start(mysql_5_7_22(), LoopFs::xfs(4 * GIB), 100, &[]);
    let pid = site.running().pid();
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let doctor = || {
        let mut doctor = evenkeel.command(&["doctor", "--no-defaults", "-u", "root"]);
        doctor.args(["--connect-timeout", "5s"]);
        doctor.arg("-S").arg(site.running().socket());
        run(doctor)
    };
    let resumed = format!("a killed run of evenkeel had left the server's process {pid} stopped");

    kill_everybody(&evenkeel, &site);
    let ended = doctor();
    assert!(ended.said.contains(&resumed), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_unharmed(site.running(), "after doctor");

    kill_everybody(&evenkeel, &site);
    let ended = run(evenkeel.backup(&site, &[]));
    assert!(ended.said.contains(&resumed), "{ended:?}");
    assert!(ended.generation() > 0);
    assert_unharmed(site.running(), "after the next backup");
    assert_only_the_base(site.fs.path(), "after the next backup");

    // What an administrator stopped is not ours to resume.
    let kill = |signal: &str| {
        let mut kill = Command::new("kill");
        let status = kill.args([signal, &pid.to_string()]).status();
        assert!(status.unwrap().success());
    };
    kill("-STOP");
    let ended = doctor();
    kill("-CONT");
    assert_eq!(ended.code, Some(13), "{ended:?}");
    assert!(
        !ended.said.contains("had left the server's process"),
        "{ended:?}"
    );
}
