//! Does `bench showdown` measure a backup by a snapshot of a logical volume like any other way, and leave
//! no snapshot behind, also when it is killed?

use evenkeel_cases::program::{Ended, run};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{LoopFs, Lvm};
use evenkeel_vm::{MIB, evenkeel};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Only hangs take that long.
const LONG: Duration = Duration::from_secs(300);

/// A showdown whose tables lie on the volume that `work` is on.
fn command(work: &Path) -> Command {
    let mut command = evenkeel().command(&["bench", "showdown", "--quick", "--tiny", "--seed=5"]);
    command
        .args(["-c2", "-r300ms", "-l5", "--only=evenkeel-lvm"])
        .args([
            "--buffer-pool=64M",
            "--server-option=--innodb-log-file-size=32M",
        ])
        .arg("--server")
        .arg(&mariadb_10_11().binary.path)
        .arg("--work")
        .arg(work);
    command
}

#[test]
fn thin() {
    let lvm = Lvm::new("evk-show");
    lvm.pool("pool", 3600 * MIB, &["--chunksize=64k"]);
    let device = lvm.thin("pool", "mysql", 3300 * MIB);
    let fs = LoopFs::on(&device, "xfs");
    let work = fs.join("w");
    let kept = || lvm.volumes().len() > 2;

    let mut killed = command(&work);
    let piped = killed.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("it starts");
    until_within(LONG, "a snapshot is there, or it has ended", || {
        kept() || child.try_wait().expect("a state").is_some()
    });
    // Killed is what it is to be; another end is told.
    let _ = child.kill();
    let ended = Ended::of(&child.wait_with_output().expect("it ends"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");

    let ended = run(command(&work));
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let methods = ended.answer["methods"].as_array().expect("methods");
    let ours = methods
        .iter()
        .find(|method| method["method"] == "evenkeel-lvm");
    let ours = ours.unwrap_or_else(|| panic!("{}", ended.said));
    assert_eq!(ours["state"], "measured", "{ours}");
    assert_eq!(ours["is_sound"], true, "{ours}");
    assert!(ours["restore_s"]["median"].as_f64() > Some(0.0), "{ours}");
    assert_eq!(lvm.volumes(), ["mysql", "pool"], "{}", ended.said);
}
