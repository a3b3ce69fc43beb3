//! Does `bench showdown` measure every way to back up alike, prove what each restores, tell who failed, and
//! leave nothing behind, also when it is interrupted or killed?

use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{Scratch, TestServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Only hangs take that long.
const LONG: Duration = Duration::from_secs(120);

/// A showdown with small tables and short rounds, on an XFS of its own.
fn command(server: &TestServer, work: &Path, flags: &[&str]) -> Command {
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.command(&["bench", "showdown", "--quick", "--tiny", "--seed=5"]);
    command
        .args([
            "-c2",
            "-r300ms",
            "-l1",
            "--filesystem=xfs",
            "--filesystem-size=2G",
        ])
        .args([
            "--buffer-pool=64M",
            "--server-option=--innodb-log-file-size=32M",
            // mydumper's FLUSH TABLES WITH READ LOCK and a row's lock wait for each other until then.
            "--server-option=--innodb-lock-wait-timeout=2",
        ])
        .arg("--server")
        .arg(&server.binary.path)
        .arg("--work")
        .arg(work)
        .args(flags);
    command
}

/// The processes that were given a word that holds this.
fn users_of(below: &Path) -> Vec<i32> {
    let wanted = below.display().to_string();
    let numbers = names_in(Path::new("/proc")).into_iter();
    numbers
        .filter_map(|name| name.parse().ok())
        .filter(|pid: &i32| *pid != std::process::id() as i32)
        .filter(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&wanted)
        })
        .collect()
}

fn is_mounted(below: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the kernel's table");
    table.contains(&below.display().to_string())
}

/// Whether a loop device shows a file below this.
fn is_looped(below: &Path) -> bool {
    let wanted = below.display().to_string();
    let devices = names_in(Path::new("/sys/block")).into_iter();
    devices
        .filter_map(|name| fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok())
        .any(|file| file.contains(&wanted))
}

#[track_caller]
fn assert_nothing_left(work: &Path) {
    assert!(!is_mounted(work), "a filesystem was left");
    assert!(users_of(work).is_empty(), "a process was left");
    until_within(LONG, "the loop device is given back", || !is_looped(work));
    assert_eq!(names_in(work), ["baseline", "lock"]);
}

#[track_caller]
fn standing<'a>(ended: &'a Ended, name: &str) -> &'a Value {
    let methods = ended.answer["methods"].as_array();
    let methods = methods.unwrap_or_else(|| panic!("{}", ended.said));
    let mut found = methods.iter().filter(|method| method["method"] == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {name}: {methods:?}"))
}

/// Each was measured, and what it restored was proved.
#[track_caller]
fn assert_proved(ended: &Ended, names: &[&str]) {
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(ended.answer["schema"], "evenkeel/bench-showdown/1");
    assert_eq!(standing(ended, "none")["percent"]["median"], 100.0);
    for name in names {
        let method = standing(ended, name);
        assert_eq!(method["state"], "measured", "{method}");
        assert_eq!(method["is_sound"], true, "{method}");
        // None may have been done: a lock can outlast the second that is measured.
        assert!(method["tpmc"]["median"].is_number(), "{method}");
        assert!(
            method["stall_ms"]["median"].as_f64() > Some(0.0),
            "{method}"
        );
        assert!(method["first_s"]["median"].as_f64() > Some(0.0), "{method}");
        assert!(
            method["first_cpu_s"]["median"].as_f64() > Some(0.0),
            "{method}"
        );
        assert!(
            method["first_bytes"]["median"].as_f64() > Some(100_000.0),
            "{method}"
        );
        assert!(
            method["restore_s"]["median"].as_f64() > Some(0.0),
            "{method}"
        );
    }
}

#[test]
fn mariadb_is_backed_up_in_every_way_and_who_fails_is_reported() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let (work, page) = (scratch.join("w"), scratch.join("page.html"));
    let plot = scratch.join("left über.svg");
    let (paged, plotted) = (page.to_str().unwrap(), plot.to_str().unwrap());
    let ended = run(command(
        &server,
        &work,
        &["--report", paged, "--plot", plotted],
    ));
    assert!(fs::read_to_string(&plot).expect("a plot").contains("<svg"));
    let all = [
        "mariadb-dump",
        "mariadb-dump-gzip",
        "mariadb-dump-replica",
        "mydumper",
        "evenkeel-dump",
        "mariadb-backup",
        "evenkeel-reflink",
        "evenkeel-engine",
    ];
    assert_proved(&ended, &all);
    for name in ["mysqldump", "evenkeel-btrfs", "evenkeel-lvm"] {
        assert_eq!(standing(&ended, name)["state"], "left-out");
    }
    let rounds = ended.answer["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), all.len() + 1);
    // One round each has no spread, so nobody has won.
    assert!(ended.answer["verdict"]["least_disturbing"].is_null());
    let page = fs::read_to_string(page).expect("a page");
    assert!(all.iter().all(|name| page.contains(name)));
    assert!(page.contains("--snapshot reflink") && page.contains("--seed=5"));
    assert_nothing_left(&work);

    let dump = "{evenkeel} dump --no-defaults -u root -S {socket} --output {output} --threads 1";
    let load = "{evenkeel} load {output} --no-defaults -u root -S {socket} && mariadb --no-defaults \
                -u root -S {socket} -e 'DELETE FROM tpcc.new_orders LIMIT 1'";
    let ended = run(command(
        &server,
        &work,
        &[
            "--only=none",
            "--method=full=cat /dev/zero > /dev/full",
            "--method=assassin=kill -9 $(cat $(dirname {socket})/pid)",
            &format!("--method=short={dump} --database tpcc"),
            &format!("--restore=short={load}"),
        ],
    ));
    assert_eq!(ended.code, Some(4), "{}", ended.said);
    let why = |name: &str| standing(&ended, name)["why"].as_str().unwrap_or_default();
    assert!(why("full").contains("No space left"), "{}", ended.said);
    assert!(
        why("assassin").contains("the server died"),
        "{}",
        ended.said
    );
    assert_eq!(standing(&ended, "short")["is_sound"], false);
    assert_nothing_left(&work);
}

/// It is asked nothing that the others are not: a sample has it in every third run.
#[test]
fn mysql_8_is_compared() {
    let ways = ["--only=evenkeel-dump", "--only=evenkeel-reflink"];
    for server in share("more servers", &[mysql_8_0_15()], Part::new(0, 3)) {
        let scratch = Scratch::new();
        let ended = run(command(&server, &scratch.join("w"), &ways));
        assert_proved(&ended, &["evenkeel-dump", "evenkeel-reflink"]);
    }
}

/// Starts a run and waits until its method is under way.
fn under_way(server: &TestServer, work: &Path) -> Child {
    let method = "--method=slow=: > {output}/begun; sleep 600";
    let mut command = command(server, work, &["--only=none", method]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("it starts");
    until_within(LONG, "the method runs", || {
        work.join("output/0/begun").exists()
    });
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).expect("a process"), signal).expect("it runs");
}

#[test]
fn mysql_5_7_is_compared_and_what_is_stopped_midway_leaves_nothing() {
    let (server, scratch) = (mysql_5_7_22(), Scratch::new());
    let work = scratch.join("w");
    let interrupted = under_way(&server, &work);
    signal(&interrupted, Signal::INT);
    let ended = Ended::of(&interrupted.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_nothing_left(&work);

    let killed = under_way(&server, &work);
    let busy = run(command(&server, &work, &[]));
    assert_eq!(busy.code, Some(11), "{}", busy.said);
    signal(&killed, Signal::KILL);
    let ended = Ended::of(&killed.wait_with_output().expect("it ends"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    until_within(LONG, "its server is gone", || users_of(&work).is_empty());
    assert!(is_mounted(&work), "there is nothing to be healed");
    let ways = ["--only=evenkeel-dump", "--only=evenkeel-reflink"];
    let ended = run(command(&server, &work, &ways));
    assert_proved(&ended, &["evenkeel-dump", "evenkeel-reflink"]);
    assert_nothing_left(&work);
}
