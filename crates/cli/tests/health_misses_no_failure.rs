//! Is each failure of a long list known within as many checks as it may take, and is no lost check taken for one?

mod probed;

use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::effort;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, until};
use probed::{PROGRAM, Probed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// So many checks in a row have to fail.
const FALL: u64 = 2;
/// A server that is not up again by then never will be.
const LONG: Duration = Duration::from_secs(120);
const OPTIONS: [&str; 1] = ["--max-connections=30"];

/// What is done to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Injected {
    Frozen,
    Killed,
    NoConnectionFree,
    ReadOnly,
    Locked,
    Renamed,
    DiskFull,
    /// It answers one check too late: that is no failure.
    LostCheck,
}

use Injected::{DiskFull, Frozen, Killed, Locked, LostCheck, NoConnectionFree, ReadOnly, Renamed};

const ALL: [Injected; 8] = [
    Frozen,
    Killed,
    NoConnectionFree,
    ReadOnly,
    Locked,
    Renamed,
    DiskFull,
    LostCheck,
];

impl Injected {
    /// Returns what it may be called. Whether a frozen server has answered simpler statements, chance decides.
    fn causes(self) -> &'static [&'static str] {
        match self {
            Frozen | LostCheck => &["hung", "stuck"],
            Killed => &["refused"],
            NoConnectionFree => &["connections"],
            ReadOnly => &["role"],
            Locked => &["stuck"],
            Renamed => &["unreadable"],
            DiskFull => &["disk"],
        }
    }
}

/// Returns so many of them: of eight in a row each one, in an order that the seed decides.
fn list(rounds: u32, seed: u64) -> Vec<Injected> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut all = Vec::new();
    while all.len() < rounds as usize {
        let mut each = ALL.to_vec();
        while !each.is_empty() {
            let at = next(each.len());
            all.push(each.remove(at));
        }
    }
    all.truncate(rounds as usize);
    all
}

/// A server that is probed, and things happen to.
struct Scene {
    server: Probed,
    disk: LoopFs,
    /// What is undone when it is dropped.
    held: Vec<Session>,
    child: Child,
    http: String,
    changes: Receiver<Value>,
}

impl Scene {
    fn begin() -> Self {
        let server = Probed::new(&mariadb_10_11(), &OPTIONS);
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT)",
            "CREATE USER app@localhost",
        ] {
            server.sql(sql);
        }
        let disk = LoopFs::ext4(16 << 20);
        let mut child = Command::new(PROGRAM)
            .args(["health", "run", "--no-defaults", "-uroot", "--json"])
            .args([
                "--http=127.0.0.1:0",
                "--interval=1500ms",
                "--timeout=1s",
                "--fall=2",
            ])
            .args(["--hold=0s", "--max-failures=0", "--expect=writable"])
            .args([
                "--table=shop.orders",
                "--min-connections=3",
                "--min-disk=4M",
            ])
            .arg(format!("--datadir={}", disk.path().display()))
            .arg(format!("--socket={}", server.socket().display()))
            .env_remove("NOTIFY_SOCKET")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        let (_, http) = line.rsplit_once(" at ").unwrap_or_else(|| panic!("{line}"));
        std::thread::spawn(move || said.for_each(drop));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tell, changes) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self {
            server,
            disk,
            held: Vec::new(),
            child,
            http: http.to_owned(),
            changes,
        }
    }

    /// Returns a number that the prober counts.
    fn count(&self, name: &str) -> u64 {
        // Whoever asks without end is not answered without end.
        std::thread::sleep(Duration::from_millis(50));
        let mut stream = TcpStream::connect(&self.http).unwrap();
        stream.write_all(b"GET /any HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        let answer: Value = serde_json::from_str(body).unwrap();
        answer[name].as_u64().unwrap()
    }

    /// Returns the next change to a state, and what changed before that.
    fn until_state(&self, what: &str, state: &str) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let change = self.changes.recv_timeout(LONG);
            let change =
                change.unwrap_or_else(|_| panic!("{what}: it never was {state}: {before:?}"));
            if change["state"] == state {
                return (change, before);
            }
            before.push(change);
        }
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(self.server.running().pid()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn inject(&mut self, what: Injected) {
        match what {
            Frozen | LostCheck => self.send(Signal::STOP),
            Killed => self.server.running.take().unwrap().kill(),
            NoConnectionFree => {
                let options = ConnectOptions::over_socket(self.server.socket(), "app");
                while let Ok(session) = Session::open(&options) {
                    self.held.push(session);
                }
            }
            ReadOnly => self.server.sql("SET GLOBAL read_only = ON"),
            Locked => {
                let mut session = self.server.running().session().unwrap();
                session.run("LOCK TABLES shop.orders WRITE").unwrap();
                self.held.push(session);
            }
            Renamed => self.server.sql("RENAME TABLE shop.orders TO shop.gone"),
            DiskFull => {
                // Until there is no more.
                let _ = std::fs::write(self.disk.join("filler"), vec![1; 16 << 20]);
            }
        }
    }

    fn heal(&mut self, what: Injected) {
        match what {
            Frozen | LostCheck => self.send(Signal::CONT),
            Killed => {
                let plan = mariadb_10_11().plan(&self.server.datadir(), &OPTIONS);
                self.server.running = Some(mariadb_10_11().run(&plan));
                self.server.link();
            }
            NoConnectionFree | Locked => self.held.clear(),
            ReadOnly => self.server.sql("SET GLOBAL read_only = OFF"),
            Renamed => self.server.sql("RENAME TABLE shop.gone TO shop.orders"),
            DiskFull => std::fs::remove_file(self.disk.join("filler")).unwrap(),
        }
    }

    /// A failure, until it is over.
    fn fails(&mut self, what: Injected, name: &str) {
        self.inject(what);
        let before = self.count("probes");
        let (down, earlier) = self.until_state(name, "down");
        // The first of the checks may have begun before it was injected.
        let probes = down["probes"].as_u64().unwrap();
        assert!(
            probes <= before + 1 + FALL,
            "{name}: after {before}: {down}"
        );
        assert!(earlier.is_empty(), "{name}: {earlier:?}");
        let cause = down["reasons"][0]["cause"].as_str().unwrap();
        assert!(what.causes().contains(&cause), "{name}: {down}");
        self.heal(what);
        let (_, between) = self.until_state(name, "up");
        let is_down = |change: &Value| change["state"] == "down";
        assert!(between.iter().all(is_down), "{name}: {between:?}");
    }

    /// One check that is answered too late. Returns whether it was just one.
    fn loses_one(&mut self, name: &str) -> bool {
        let failures = self.count("failures");
        self.inject(LostCheck);
        until("a check is lost", || self.count("failures") > failures);
        self.heal(LostCheck);
        let probes = self.count("probes");
        until("checks go on", || self.count("probes") >= probes + FALL);
        let is_one = self.count("failures") == failures + 1;
        if is_one {
            let told: Vec<Value> = self.changes.try_iter().collect();
            assert!(told.is_empty(), "{name}: {told:?}");
        } else {
            // A busy host was late once more, which is a failure then.
            self.until_state(name, "up");
        }
        is_one
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn injected_failures() {
    let rounds = effort::rounds("injected failures", 8, 100);
    let seed = effort::seed();
    let mut scene = Scene::begin();
    scene.until_state("at the beginning", "up");
    for (round, what) in list(rounds, seed).into_iter().enumerate() {
        let name = format!("{what:?}, round {round}, seed {seed}");
        match what {
            LostCheck => {
                let is_seen = (0..5).any(|_| scene.loses_one(&name));
                assert!(is_seen, "{name}: no check was lost alone");
            }
            what => scene.fails(what, &name),
        }
    }
}
