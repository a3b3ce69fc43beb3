//! Does `health run` say what servers are, over HTTP and to agents, obey orders, run the action, and remember?

mod probed;

use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{Scratch, until};
use probed::{PROGRAM, Probed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A `health run` in the background.
struct Prober {
    child: Child,
    http: String,
    agent: String,
}

impl Prober {
    fn start(watched: &Probed, options: &[&str]) -> Self {
        Self::start_with(watched, options, None)
    }

    fn start_with(watched: &Probed, options: &[&str], notify: Option<&Path>) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["health", "run", "--no-defaults", "-uroot", "--json"]);
        command.args(["--interval=500ms", "--timeout=500ms", "--hold=0s"]);
        command.args(["--http=127.0.0.1:0", "--agent=127.0.0.1:0"]);
        command.arg(format!("--socket={}", watched.socket().display()));
        command.args(options).env_remove("NOTIFY_SOCKET");
        if let Some(notify) = notify {
            command.env("NOTIFY_SOCKET", notify);
            command.env("WATCHDOG_USEC", "600000");
        }
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut place = |what: &str| {
            let line = said.next().unwrap().unwrap();
            let (_, at) = line.rsplit_once(" at ").unwrap();
            assert!(line.contains(what), "{line}");
            at.to_owned()
        };
        let (http, agent) = (place("HTTP"), place("agent"));
        std::thread::spawn(move || said.for_each(drop));
        Self { child, http, agent }
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let reply = asked(
            &self.http,
            &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"),
        );
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn until_status(&self, what: &str, status: u16) -> Value {
        self.until(what, |now, _| now == status)
    }

    /// Waits until it is down for a cause. It may be down for another one before that: a moment before a probe is given
    /// up, the last one is too long ago.
    fn until_down(&self, what: &str, cause: &str) {
        self.until(what, |now, body| {
            now == 503 && body["reasons"][0]["cause"] == cause
        });
    }

    fn until(&self, what: &str, is_it: impl Fn(u16, &Value) -> bool) -> Value {
        let mut found = Value::Null;
        until(what, || {
            let (now, body) = self.get("/any");
            found = body;
            is_it(now, &found)
        });
        found
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asked(at: &str, sent: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn evenkeel(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM).args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn failures_are_told_and_what_recovers_is_used_again() {
    let mut watched = Probed::new(&mariadb_10_11(), &[]);
    let prober = Prober::start(&watched, &[]);
    let up = prober.until_status("it is proven", 200);
    assert_eq!(
        (&up["state"], &up["writable"]),
        (&"up".into(), &true.into())
    );
    assert_eq!(prober.get("/primary").0, 200);
    assert_eq!(prober.get("/replica").0, 503);
    assert_eq!(prober.get("/nonsense").0, 400);
    assert_eq!(asked(&prober.agent, ""), "up ready 100%\n");
    let server = Pid::from_raw(watched.running().pid()).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    prober.until_down("it is frozen", "hung");
    assert!(asked(&prober.agent, "").starts_with("down #hung: "));
    kill_process(server, Signal::CONT).unwrap();
    prober.until_status("it runs again", 200);
    watched.running.take().unwrap().kill();
    prober.until_down("it is gone", "refused");
    watched.running = Some(mariadb_10_11().run(&mariadb_10_11().plan(&watched.datadir(), &[])));
    watched.link();
    prober.until_status("it is back", 200);
    let metrics = asked(&prober.http, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(
        metrics.contains("evenkeel_health_flaps{server="),
        "{metrics}"
    );
}

#[test]
fn orders_are_obeyed_and_outlast_a_prober_that_was_killed() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let room = Scratch::new();
    let control = format!("--control={}", room.join("run/health.sock").display());
    let state = format!("--state-directory={}", room.join("state").display());
    let prober = Prober::start(&watched, &[&control, &state]);
    prober.until_status("it is proven", 200);
    let (code, said) = evenkeel(&["health", "drain", "--reason=upgrade", &control]);
    assert_eq!(code, Some(0), "{said}");
    let (status, body) = prober.get("/any");
    assert_eq!((status, &body["state"]), (404, &"draining".into()));
    assert_eq!(body["reasons"][0]["text"], "upgrade");
    assert_eq!(asked(&prober.agent, ""), "up drain\n");
    let (code, said) = evenkeel(&["health", "status", &control]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("order: upgrade"), "{said}");
    let (code, said) = evenkeel(&["health", "drain", "other", &control]);
    assert_eq!(code, Some(2), "{said}");
    prober.send(Signal::KILL);
    drop(prober);
    let prober = Prober::start(&watched, &[&control, &state]);
    prober.until_status("it is still drained", 404);
    let (code, said) = evenkeel(&["health", "drain", "--maintenance", &control]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(prober.get("/any").0, 503);
    assert_eq!(asked(&prober.agent, ""), "maint\n");
    let (code, said) = evenkeel(&["health", "undrain", &control]);
    assert_eq!(code, Some(0), "{said}");
    prober.until_status("it is in use", 200);
    assert_eq!(evenkeel(&["health", "status", &control]).0, Some(0));
    // Of the second one beside it.
    let socket = format!("--socket={}", watched.socket().display());
    let second = ["health", "run", "--no-defaults", &socket, &control, &state];
    assert_eq!(evenkeel(&second).0, Some(11));
    prober.send(Signal::TERM);
    let mut prober = prober;
    assert_eq!(prober.child.wait().unwrap().code(), Some(143));
    assert_eq!(evenkeel(&["health", "status", &control]).0, Some(13));
}

#[test]
fn a_prober_that_is_frozen_is_not_taken_for_one_that_is_well() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let room = Scratch::new();
    let notify = room.join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&notify).unwrap();
    manager
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    let hear = || {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let prober = Prober::start_with(&watched, &[], Some(&notify));
    let mut heard = Vec::new();
    until("it says that it is ready and alive", || {
        heard.push(hear());
        let has = |word: &str| heard.iter().any(|one| one == word);
        has("READY=1") && has("WATCHDOG=1")
    });
    prober.until_status("it is proven", 200);
    prober.send(Signal::STOP);
    // Nothing answers, which a load balancer takes for down, and the service manager hears nothing.
    manager.set_nonblocking(true).unwrap();
    let mut buffer = [0; 512];
    until("what was on its way has arrived", || {
        manager.recv(&mut buffer).is_err()
    });
    let mut stream = TcpStream::connect(&prober.http).unwrap();
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(2)))
        .unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(stream.read(&mut buffer).is_err());
    assert!(manager.recv(&mut buffer).is_err());
    prober.send(Signal::CONT);
    prober.until_status("it probes again", 200);
}

#[test]
fn what_would_not_work_is_said_at_the_start() {
    let run = |words: &[&str]| {
        let own = [
            "health",
            "run",
            "--no-defaults",
            "--count=1",
            "--timeout=200ms",
        ];
        evenkeel(&[&own[..], words].concat())
    };
    // Over HTTP, these are other paths.
    for name in ["primary", "replica", "any", "metrics"] {
        let (code, said) = run(&[name, "db2"]);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains("another path"), "{said}");
    }
    let nobody = "--socket=/nonexistent";
    let (code, said) = run(&[nobody, "--write-table=ops.health", "--expect=read-only"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--max-lag"), "{said}");
    let (code, said) = run(&[nobody, "--http=9200"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(":9200 for every address"), "{said}");
    // Too few files for two servers.
    let few = format!("ulimit -n 45; exec {PROGRAM} health run --no-defaults --count=1 {nobody}");
    let output = Command::new("bash").args(["-c", &few]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("may have 45 files open"), "{said}");
}

#[test]
fn the_action_runs_with_the_facts_as_nobody() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let room = Scratch::new();
    let (program, log) = (room.join("action"), room.join("log"));
    std::fs::write(&log, "").unwrap();
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
    std::fs::set_permissions(room.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let body = format!(
        "#!/bin/sh\necho $EVENKEEL_BEFORE-$EVENKEEL_STATE-$EVENKEEL_CAUSE-$(id -un) >> {}\n",
        log.display()
    );
    std::fs::write(&program, body).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let action = format!("--action={}", program.display());
    let prober = Prober::start(&watched, &[&action, "--expect=writable"]);
    let lines = || std::fs::read_to_string(&log).unwrap();
    until("it ran for up", || lines() == "-up--nobody\n");
    watched.sql("SET GLOBAL read_only = ON");
    until("it ran for down", || {
        lines() == "-up--nobody\nup-down-role-nobody\n"
    });
    prober.until_status("it is down", 503);
}
