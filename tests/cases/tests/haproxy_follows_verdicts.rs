//! Does HAProxy send nobody to a server that evenkeel says is down, where its own checks send clients there?

use evenkeel_op::Cancel;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11};
use evenkeel_testkit::{Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
/// So many clients come after each verdict. On a busy machine, one late answer is no failure: two are.
const CLIENTS: u32 = 20;

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and what says how it is.
struct Member {
    number: u32,
    running: Running,
    prober: Option<Ends>,
    /// Of the answers to HTTP checks and to agents.
    ports: [u16; 2],
}

impl Member {
    fn start(number: u32, room: &Path) -> Self {
        let id = format!("--server-id={number}");
        let datadir = room.join(format!("data{number}"));
        let args = [&id, "--max-connect-errors=1000000"];
        let plan = mariadb_10_11().prepare(&datadir, &args).with_networking();
        let running = plan.start(SERVER_DEADLINE, &Cancel::new()).unwrap();
        let mut session = running.session().unwrap();
        session.run("CREATE USER app@'%'").unwrap();
        session.run("CREATE USER haproxy@'%'").unwrap();
        let mut member = Self {
            number,
            running,
            prober: None,
            ports: [0; 2],
        };
        member.probe(room);
        member
    }

    fn control(&self, room: &Path) -> String {
        let path = room.join(format!("run/health{}.sock", self.number));
        format!("--control={}", path.display())
    }

    /// Starts what probes it, at the ports of the one before.
    fn probe(&mut self, room: &Path) {
        let [http, agent] = self.ports;
        let mut command = Command::new(PROGRAM);
        command
            .args([
                "health",
                "run",
                "--no-defaults",
                "-uroot",
                "--expect=writable",
            ])
            .args([
                "--interval=1s",
                "--timeout=1s",
                "--hold=0s",
                "--fall=2",
                "--max-failures=0",
            ])
            .arg(format!("--socket={}", self.running.socket().display()))
            .arg(format!("--http=127.0.0.1:{http}"))
            .arg(format!("--agent=127.0.0.1:{agent}"))
            .arg(self.control(room))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut port = || {
            let line = said.next().unwrap().unwrap();
            let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
            port.unwrap_or_else(|| panic!("{line}"))
        };
        self.ports = [port(), port()];
        std::thread::spawn(move || said.for_each(drop));
        self.prober = Some(Ends(child));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.running.pid()).unwrap(), signal).unwrap();
    }

    fn order(&self, verb: &str, room: &Path) {
        let ended = Command::new(PROGRAM)
            .args(["health", verb])
            .arg(self.control(room))
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }

    fn set_read_only(&self, value: &str) {
        let mut session = self.running.session().unwrap();
        session
            .run(&format!("SET GLOBAL read_only = {value}"))
            .unwrap();
    }

    /// Its line for HAProxy.
    fn line(&self, more: &str) -> String {
        let port = self.running.port().unwrap();
        format!(
            "    server db{} 127.0.0.1:{port} check {more}\n",
            self.number
        )
    }
}

/// Two servers behind HAProxy.
struct Pool {
    members: [Member; 2],
    port: u16,
    _haproxy: Ends,
    room: Scratch,
}

impl Pool {
    fn start() -> Self {
        let room = Scratch::new();
        let members = [1, 2].map(|number| Member::start(number, room.path()));
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = port.local_addr().unwrap().port();
        let admin = room.join("admin");
        let ours = members.each_ref().map(|member| {
            let [http, agent] = member.ports;
            member.line(&format!(
                "port {http} agent-check agent-port {agent} agent-inter 500ms"
            ))
        });
        let theirs = members.each_ref().map(|member| member.line(""));
        let file = room.join("haproxy.cfg");
        let text = format!(
            "global\n    stats socket {}\ndefaults\n    mode tcp\n    timeout connect 5s\n    timeout client 60s\n    \
             timeout server 60s\n    timeout check 3s\n    default-server inter 500ms fall 2 rise 1 weight 100\n\
             listen ours\n    bind 127.0.0.1:{port}\n    option httpchk GET /any\n    http-check disable-on-404\n{}\
             backend by_port\n{}backend by_login\n    option mysql-check user haproxy\n{}",
            admin.display(),
            ours.concat(),
            theirs.concat(),
            theirs.concat()
        );
        std::fs::write(&file, text).unwrap();
        let haproxy = Command::new("haproxy")
            .arg("-db")
            .arg("-f")
            .arg(&file)
            .spawn();
        let pool = Self {
            members,
            port,
            _haproxy: Ends(haproxy.unwrap()),
            room,
        };
        until("HAProxy listens", || admin.exists());
        for backend in ["ours", "by_port", "by_login"] {
            pool.wait(backend, 1, "UP");
            pool.wait(backend, 2, "UP");
        }
        pool
    }

    /// Returns what HAProxy says of a server. While it starts, it does not answer.
    fn status(&self, backend: &str, number: u32) -> String {
        let row = format!("{backend},db{number},");
        let mut status = None;
        until("HAProxy answers", || {
            let text = self.asked("show stat\n").unwrap_or_default();
            let row = text.lines().find(|line| line.starts_with(&row));
            status = row.and_then(|row| row.split(',').nth(17).map(str::to_owned));
            status.is_some()
        });
        status.unwrap()
    }

    fn asked(&self, command: &str) -> std::io::Result<String> {
        let mut admin = UnixStream::connect(self.room.join("admin"))?;
        admin.write_all(command.as_bytes())?;
        let mut text = String::new();
        admin.read_to_string(&mut text)?;
        Ok(text)
    }

    fn wait(&self, backend: &str, number: u32, status: &str) {
        until(&format!("{backend}: db{number} is {status}"), || {
            self.status(backend, number).starts_with(status)
        });
    }

    /// Connects as a client, and returns the session with the number of the server that has it.
    fn connect(&self) -> (Session, u32) {
        let mut session = Session::open(&ConnectOptions {
            host: Some("127.0.0.1".to_owned()),
            port: Some(self.port),
            user: Some("app".to_owned()),
            ..ConnectOptions::default()
        })
        .unwrap();
        let number = session.value("SELECT @@server_id").unwrap().unwrap();
        (session, number.parse().unwrap())
    }

    /// Returns how many of the next clients each server gets.
    fn ledger(&self) -> [u32; 2] {
        let mut ledger = [0; 2];
        for _ in 0..CLIENTS {
            let (_, number) = self.connect();
            ledger[number as usize - 1] += 1;
        }
        ledger
    }

    fn both_are_used(&self) {
        self.wait("ours", 1, "UP");
        let ledger = self.ledger();
        assert!(ledger.iter().all(|clients| *clients > 0), "{ledger:?}");
    }
}

#[test]
fn a_frozen_server() {
    let pool = Pool::start();
    pool.both_are_used();
    pool.members[0].signal(Signal::STOP);
    pool.wait("ours", 1, "DOWN");
    assert_eq!(pool.ledger(), [0, CLIENTS]);
    // The port is open: HAProxy's own look at it sees nothing.
    assert_eq!(pool.status("by_port", 1), "UP");
    pool.wait("by_login", 1, "DOWN");
    pool.members[0].signal(Signal::CONT);
    pool.both_are_used();
}

#[test]
fn a_server_with_the_wrong_role() {
    let pool = Pool::start();
    pool.members[0].set_read_only("ON");
    pool.wait("ours", 1, "DOWN");
    assert_eq!(pool.ledger(), [0, CLIENTS]);
    assert_eq!(pool.status("by_port", 1), "UP");
    assert_eq!(pool.status("by_login", 1), "UP");
    pool.members[0].set_read_only("OFF");
    pool.both_are_used();
}

#[test]
fn a_server_that_is_drained_and_a_prober_that_is_killed() {
    let mut pool = Pool::start();
    let mut sessions: Vec<_> = (0..4).map(|_| pool.connect()).collect();
    let on_first = sessions
        .iter_mut()
        .find(|(_, number)| *number == 1)
        .unwrap();
    pool.members[0].order("drain", pool.room.path());
    until("it is drained", || pool.status("ours", 1) != "UP");
    assert_eq!(pool.ledger(), [0, CLIENTS]);
    // Who is there stays there.
    assert_eq!(
        on_first.0.value("SELECT @@server_id").unwrap().as_deref(),
        Some("1")
    );
    pool.members[0].order("undrain", pool.room.path());
    pool.both_are_used();
    // Nobody answers for it then.
    pool.members[0].prober = None;
    pool.wait("ours", 1, "DOWN");
    assert_eq!(pool.ledger(), [0, CLIENTS]);
    let room = pool.room.path().to_owned();
    pool.members[0].probe(&room);
    pool.both_are_used();
}
