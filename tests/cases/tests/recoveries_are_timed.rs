//! Does `bench recovery` start each server both ways from the same crash, see who reads what, and
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
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TABLES: u64 = 40;
/// A machine that is short of memory may drop what was read before the server gets to it, but not each time.
const TRIES: u32 = 4;
/// Only hangs take that long.
const LONG: Duration = Duration::from_secs(120);
/// So slow that a start is under way for long enough to be met in it.
const SLOW: &str = "250";

fn command(server: &TestServer, work: &Path, flags: &[&str]) -> Command {
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.command(&["bench", "recovery", "--repeat", "1", "--seed", "7"]);
    command
        .arg(format!("--tables={TABLES}"))
        .arg("--server")
        .arg(&server.binary.path)
        .arg("--work")
        .arg(work)
        .args(flags);
    command
}

/// The processes that have these words among theirs.
fn processes(wanted: &str) -> Vec<i32> {
    let numbers = names_in(Path::new("/proc")).into_iter();
    numbers
        .filter_map(|name| name.parse().ok())
        .filter(|pid: &i32| *pid != std::process::id() as i32)
        .filter(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(wanted)
        })
        .collect()
}

/// The processes that were given a path below a directory.
fn users_of(below: &Path) -> Vec<i32> {
    processes(&below.display().to_string())
}

fn is_mounted(below: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the kernel's table");
    table.contains(&below.display().to_string())
}

#[track_caller]
fn assert_nothing_left(work: &Path) {
    assert!(!is_mounted(work), "a filesystem was left");
    assert!(users_of(work).is_empty(), "a process was left");
    assert_eq!(names_in(work), ["crashed", "lock"]);
}

fn round<'a>(case: &'a Value, mode: &str) -> &'a Value {
    let rounds = case["rounds"].as_array().expect("rounds");
    let mut of_mode = rounds.iter().filter(|round| round["mode"] == mode);
    of_mode.next().expect("a round of each kind")
}

/// How many reads of tables reached the storage while the server started.
fn reads(case: &Value, mode: &str) -> u64 {
    let round = round(case, mode);
    round["reads"]["of_tables"].as_u64().expect("a count")
}

/// Measures, and returns the only case; what every server's has is looked at here.
fn measured(server: &TestServer, work: &Path) -> Value {
    let plot = work.with_extension("svg");
    let mut command = command(server, work, &["--latency-ms", "1", "--plot"]);
    command.arg(&plot);
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let answer = &ended.answer;
    assert_eq!(answer["schema"], "evenkeel/bench-recovery/1");
    assert_eq!(
        (answer["seed"].as_u64(), answer["repeat"].as_u64()),
        (Some(7), Some(1))
    );
    assert_eq!(answer["latency_ms"], 1.0);
    let cases = answer["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 1, "{answer}");
    let case = cases[0].clone();
    let name = case["server"].as_str().expect("a name");
    assert!(name.starts_with(server.name), "{name}");
    assert_eq!(case["tables"], TABLES);
    assert_eq!(case["changed_tables"], 1);
    for mode in ["own", "prewarmed"] {
        assert_steps_add_up(round(&case, mode));
        let slowest = &case[mode]["slowest_step"];
        let steps = case[mode]["steps"].as_array().expect("steps");
        assert!(steps.len() > 4, "the log was not understood: {steps:?}");
        assert!(steps.iter().any(|step| step["name"] == *slowest), "{case}");
    }
    let drawn = fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.contains(&format!("{name}, prewarm included")));
    assert_nothing_left(work);
    case
}

#[track_caller]
fn assert_steps_add_up(round: &Value) {
    let steps = round["steps"].as_array().expect("steps").iter();
    let sum: f64 = steps.map(|step| step["seconds"].as_f64().unwrap()).sum();
    let start = round["start_seconds"].as_f64().expect("a time");
    assert!((sum - start).abs() < 1e-6, "{round}");
    let before = round["prewarm_seconds"].as_f64().unwrap_or(0.0);
    let whole = round["seconds"].as_f64().expect("a time");
    assert!((before + start - whole).abs() < 1e-6, "{round}");
}

fn finds_every_header_in_memory(server: &TestServer, work: &Path) {
    let is_found = (0..TRIES).any(|_| {
        let case = measured(server, work);
        assert_eq!(case["reads_every_table"], true);
        assert!(reads(&case, "own") >= TABLES, "{case}");
        println!("{case}");
        reads(&case, "prewarmed") * 2 < reads(&case, "own")
    });
    assert!(is_found, "what was read is not in memory");
}

/// Starts a run and waits until a server starts on its slow storage.
fn under_way(server: &TestServer, work: &Path) -> Child {
    let mut command = command(server, work, &["--latency-ms", SLOW]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("it starts");
    let server = format!("--datadir={}", work.join("slow").display());
    until_within(LONG, "a server starts on slow storage", || {
        !processes(&server).is_empty()
    });
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).expect("a process"), signal).expect("it runs");
}

#[test]
fn mysql_5_7_is_timed_and_what_is_stopped_midway_leaves_nothing() {
    let (server, scratch) = (mysql_5_7_22(), Scratch::on_disk());
    let work: PathBuf = scratch.join("w");
    finds_every_header_in_memory(&server, &work);

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
    finds_every_header_in_memory(&server, &work);
}

/// Each second run: 5.7 is asked the same in each.
#[test]
fn mysql_8_0_is_timed() {
    for server in share("timed beside 5.7", &[mysql_8_0_15()], Part::new(0, 2)) {
        let scratch = Scratch::on_disk();
        finds_every_header_in_memory(&server, &scratch.join("w"));
    }
}

#[test]
fn mariadb_reads_few_tables_of_its_own() {
    let scratch = Scratch::on_disk();
    let case = measured(&mariadb_10_11(), &scratch.join("w"));
    assert_eq!(case["reads_every_table"], false);
    assert!(reads(&case, "own") < TABLES, "{case}");
}

#[test]
fn a_run_without_a_directory_of_its_own_leaves_none() {
    let scratch = Scratch::on_disk();
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.command(&["bench", "recovery", "--tables=3", "--repeat=1"]);
    command.args(["--latency-ms=0", "--server=mariadb"]);
    command.env("TMPDIR", scratch.path());
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(ended.answer["cases"][0]["rounds"][0]["reads"].is_null());
    assert_eq!(names_in(scratch.path()), Vec::<String>::new());
}
