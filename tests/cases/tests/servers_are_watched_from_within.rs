//! Does a capture from within a server see that server only, report what it lost, and leave nothing in it?

use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Child, Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A capture in the background; what it shows and says goes to files.
struct Watching {
    child: Child,
    shown: PathBuf,
    said: PathBuf,
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watching {
    fn begin(scratch: &Scratch, args: &[&str]) -> Self {
        let [shown, said] = ["shown", "said"].map(|name| scratch.path().join(name));
        let child = Command::new(PROGRAM)
            .args(["capture", "--json", "--uprobes"])
            .args(args)
            .current_dir(scratch.path())
            .stdout(fs::File::create(&shown).unwrap())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        until("the capture begins", || {
            let said = fs::read_to_string(&said).unwrap();
            assert!(!said.contains("\"kind\""), "{said}");
            said.contains("capturing what process")
        });
        Self { child, shown, said }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn shown(&self) -> String {
        fs::read_to_string(&self.shown).unwrap()
    }

    /// Ends it; returns what it says at the end.
    fn end(&mut self) -> Value {
        self.signal(Signal::TERM);
        self.child.wait().unwrap();
        self.answer()
    }

    fn answer(&self) -> Value {
        let said = fs::read_to_string(&self.said).unwrap();
        let begin = said.find('{').unwrap();
        let answer = serde_json::Deserializer::from_str(&said[begin..]);
        answer.into_iter().next().unwrap().unwrap()
    }
}

fn start(server: &TestServer, scratch: &Scratch, name: &str, args: &[&str]) -> Running {
    server.start(&scratch.path().join(name), args)
}

fn ask(running: &Running, sql: &str) {
    let mut session = running.session().unwrap();
    session.run(sql).unwrap();
}

/// Returns how many bytes of the program in a server's memory are not those of its file.
fn changed_bytes(pid: i32) -> usize {
    let program = fs::read(format!("/proc/{pid}/exe")).unwrap();
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut count = 0;
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[1] != "r-xp" || fields.get(5) != Some(&path.to_str().unwrap()) {
            continue;
        }
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (begin, end) = fields[0].split_once('-').unwrap();
        let (begin, size) = (number(begin), number(end) - number(begin));
        let mut bytes = vec![0; usize::try_from(size).unwrap()];
        memory.seek(SeekFrom::Start(begin)).unwrap();
        memory.read_exact(&mut bytes).unwrap();
        let from = usize::try_from(number(fields[2])).unwrap();
        let pairs = bytes.iter().zip(&program[from..]);
        count += pairs.filter(|(one, other)| one != other).count();
    }
    count
}

#[test]
fn another_server_of_the_same_program_is_not_seen() {
    let scratch = Scratch::new();
    let server = mariadb_10_11();
    let watched = start(&server, &scratch, "watched", &[]);
    let other = start(&server, &scratch, "other", &[]);
    let mut capture = Watching::begin(&scratch, &["--datadir", "watched"]);
    for n in 0..20 {
        ask(&other, &format!("SELECT 'elsewhere', {n}"));
        ask(&watched, &format!("SELECT 'here', {n}"));
    }
    assert!(changed_bytes(watched.pid()) > 0);
    assert_eq!(changed_bytes(other.pid()), 0);
    let answer = capture.end();
    let shown = capture.shown();
    assert_eq!(shown.matches("'here'").count(), 20, "{shown}");
    assert!(!shown.contains("elsewhere"));
    assert_eq!(answer["complete"], true, "{answer}");
    assert_eq!(answer["uprobes"]["connections"], 20, "{answer}");
}

#[test]
fn a_killed_capture_leaves_nothing_in_the_server() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "data", &[]);
        let pid = running.pid();
        assert_eq!(changed_bytes(pid), 0, "{}", server.name);
        let mut capture = Watching::begin(&scratch, &["--pid", &pid.to_string()]);
        assert!(changed_bytes(pid) > 0, "{}", server.name);
        capture.signal(Signal::KILL);
        capture.child.wait().unwrap();
        until("the server's program is as it was", || {
            changed_bytes(pid) == 0
        });
        ask(&running, "SELECT 1");
    }
}

#[test]
fn what_finds_no_memory_is_counted() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch, "data", &[]);
    let pid = running.pid().to_string();
    let mut session = running.session().unwrap();
    let mut capture = Watching::begin(&scratch, &["--ring", "1M", "--pid", &pid]);
    capture.signal(Signal::STOP);
    let text = "x".repeat(10_000);
    for n in 0..200 {
        session.run(&format!("SELECT {n}, '{text}'")).unwrap();
    }
    capture.signal(Signal::CONT);
    let answer = capture.end();
    let shown = capture.shown().matches("\"SELECT ").count() as u64;
    let lost = answer["uprobes"]["statements_lost"].as_u64().unwrap();
    assert!(lost > 0 && shown > 0, "{answer}");
    assert_eq!(shown + lost, 200, "{answer}");
    assert_eq!(answer["complete"], false);
    assert_eq!(capture.child.wait().unwrap().code(), Some(143));
}

#[test]
fn statements_that_were_prepared_before_have_their_text() {
    for (server, threads) in [
        (mariadb_10_11(), "--thread-handling=pool-of-threads"),
        (
            mysql_8_0_15(),
            "--thread-handling=one-thread-per-connection",
        ),
    ] {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, "data", &[threads]);
        ask(&running, "CREATE DATABASE s");
        let sysbench = |verb: &str, more: &[&str]| {
            let mut sysbench = Command::new("sysbench");
            sysbench.args(["oltp_point_select", "--mysql-user=root", "--mysql-db=s"]);
            sysbench.arg(format!("--mysql-socket={}", running.socket().display()));
            sysbench.args(["--table-size=100", "--db-ps-mode=auto"]);
            sysbench.args(more).arg(verb);
            sysbench.stdout(fs::File::create(scratch.join("sysbench")).unwrap());
            sysbench.spawn().unwrap()
        };
        assert!(sysbench("prepare", &[]).wait().unwrap().success());
        let more = [
            "--time=0",
            "--events=0",
            "--rate=200",
            "--report-interval=1",
        ];
        let mut load = sysbench("run", &more);
        until("statements run", || {
            let said = fs::read_to_string(scratch.join("sysbench")).unwrap();
            said.contains("thds:")
        });
        let pid = running.pid().to_string();
        let mut capture = Watching::begin(&scratch, &["--pid", &pid]);
        until("texts are known", || {
            capture.shown().contains("SELECT c FROM sbtest1 WHERE id=")
        });
        load.kill().unwrap();
        load.wait().unwrap();
        let answer = capture.end();
        assert_ne!(answer["unseen"], 0, "{}: {answer}", server.name);
    }
}

#[test]
fn the_end_of_the_server_ends_it() {
    let scratch = Scratch::new();
    let running = start(&mysql_8_0_15(), &scratch, "data", &[]);
    let pid = running.pid().to_string();
    let mut capture = Watching::begin(&scratch, &["--pid", &pid]);
    ask(&running, "SELECT 'the last'");
    drop(running);
    let code = capture.child.wait().unwrap().code();
    assert_eq!(code, Some(3));
    assert!(capture.shown().contains("the last"));
    let answer = capture.answer();
    assert_eq!(answer["damage"], "the server ended", "{answer}");
}

fn refused(program: &str, args: &[&str]) -> (i32, String) {
    let output: Output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), said)
}

#[test]
fn what_is_in_the_way_is_said() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch, "data", &[]);
    let (server, none) = (running.pid().to_string(), std::process::id().to_string());
    let datadir = scratch.path().join("nothing");
    let datadir = datadir.to_str().unwrap();
    let capture = ["capture", "--uprobes"];
    for (args, code, what) in [
        (["--pid", &*none], 1, "its symbols were removed"),
        (["--pid", "999999999"], 1, "there is no process"),
        (["--datadir", datadir], 13, "no server that can be seen"),
        (["--max-text", "2M"], 2, "at most 1M"),
        (["--port", "3307"], 2, "--port"),
    ] {
        let (ended, said) = refused(PROGRAM, &[&capture[..], &args].concat());
        assert_eq!(ended, code, "{args:?}: {said}");
        assert!(said.contains(what), "{args:?}: {said}");
    }
    // Not root: what the server runs may be read, and nothing else.
    let nobody = ["--reuid=nobody", "--clear-groups", PROGRAM];
    let args = [&nobody[..], &capture, &["--pid", &server]].concat();
    let (ended, said) = refused("setpriv", &args);
    assert_eq!(ended, 14, "{said}");
    assert!(said.contains("CAP_PERFMON"), "{said}");
}
