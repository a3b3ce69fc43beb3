//! Two servers behind HAProxy, each with what probes it, and a ledger of who got which server.

mod checked;
mod ledger;

pub(crate) use checked::Asks;
use checked::{Checked, FALL};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{Scratch, until};
use ledger::Ledger;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
/// What HAProxy calls those that are driven by evenkeel: by [`Asks`].
pub(crate) const OURS: [&str; 2] = ["by_http", "by_agent"];
/// So many clients must be seen at the other server, besides those who came before.
const CLIENTS: usize = 20;

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, and what says how it is.
pub(crate) struct Member {
    number: u32,
    room: PathBuf,
    running: Option<Running>,
    port: u16,
    socket: PathBuf,
    prober: Option<Ends>,
    /// What HAProxy asks, by [`Asks`].
    checked: [Arc<Checked>; 2],
}

impl Member {
    fn start(number: u32, room: &Path) -> Self {
        let id = format!("--server-id={number}");
        let options = [&id, "--max-connect-errors=1000000", "--max-connections=30"];
        let plan = mariadb_10_11().prepare(&room.join(format!("data{number}")), &options);
        let running = mariadb_10_11().run(&plan.with_networking());
        let mut member = Self {
            number,
            room: room.to_owned(),
            port: running.port().unwrap(),
            socket: running.socket().to_owned(),
            running: Some(running),
            prober: None,
            checked: [Asks::Http, Asks::Agent].map(Checked::listen),
        };
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT)",
            "CREATE USER app@'%'",
            "CREATE USER haproxy@'%'",
        ] {
            member.sql(sql);
        }
        member.probe();
        member
    }

    fn control(&self) -> String {
        let path = self.room.join(format!("run/health{}.sock", self.number));
        format!("--control={}", path.display())
    }

    /// Starts what probes it.
    pub(crate) fn probe(&mut self) {
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
                "--table=shop.orders",
                "--min-connections=5",
                "--interval=1s",
                "--timeout=1s",
                "--hold=0s",
            ])
            .args(["--fall=2", "--max-failures=0"])
            .args(["--http=127.0.0.1:0", "--agent=127.0.0.1:0"])
            .arg(format!("--socket={}", self.socket.display()))
            .arg(self.control())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        for checked in &self.checked {
            let line = said.next().unwrap().unwrap();
            let (_, at) = line.rsplit_once(" at ").unwrap_or_else(|| panic!("{line}"));
            checked.leads_to(at);
        }
        std::thread::spawn(move || said.for_each(drop));
        self.prober = Some(Ends(child));
    }

    pub(crate) fn kill_prober(&mut self) {
        self.prober = None;
    }

    pub(crate) fn kill_server(&mut self) {
        self.running.take().unwrap().kill();
    }

    pub(crate) fn send(&self, signal: Signal) {
        let pid = self.running.as_ref().unwrap().pid();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    pub(crate) fn order(&self, verb: &str) {
        let mut command = Command::new(PROGRAM);
        let ended = command.args(["health", verb]).arg(self.control()).output();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }

    pub(crate) fn session(&self, user: &str) -> evenkeel_op::Result<Session> {
        Session::open(&ConnectOptions::over_socket(&self.socket, user))
    }

    pub(crate) fn sql(&self, sql: &str) {
        self.session("root").unwrap().run(sql).unwrap();
    }

    /// Its line for HAProxy.
    fn line(&self, more: &str) -> String {
        let (number, port) = (self.number, self.port);
        format!("    server db{number} 127.0.0.1:{port} {more}\n")
    }
}

/// Two servers behind HAProxy.
pub(crate) struct Pool {
    pub(crate) members: [Member; 2],
    /// Of those who come through [`OURS`].
    ledgers: [Ledger; 2],
    admin: PathBuf,
    haproxy: Ends,
    room: Scratch,
}

impl Pool {
    pub(crate) fn start() -> Self {
        let room = Scratch::new();
        let members = [1, 2].map(|number| Member::start(number, room.path()));
        let file = room.join("haproxy.cfg");
        std::fs::write(&file, Self::configured(&members, room.path())).unwrap();
        let mut haproxy = Command::new("haproxy");
        let haproxy = haproxy.arg("-db").arg("-f").arg(&file).spawn();
        let haproxy = Ends(haproxy.expect("haproxy is installed: run testkit/setup tests"));
        let admin = room.join("admin");
        until("HAProxy listens", || UnixStream::connect(&admin).is_ok());
        let fronts = OURS.map(|backend| room.join(backend));
        let pool = Self {
            ledgers: [Asks::Http, Asks::Agent].map(|asks| {
                let checked = &members[0].checked[asks as usize];
                Ledger::begin(fronts[asks as usize].clone(), checked.clone())
            }),
            members,
            admin,
            haproxy,
            room,
        };
        pool.both_are_used();
        pool
    }

    fn configured(members: &[Member; 2], room: &Path) -> String {
        let of = |what: &dyn Fn(&Member) -> String| members.each_ref().map(what).concat();
        let by_http = of(&|member| {
            let port = member.checked[Asks::Http as usize].port();
            member.line(&format!("check port {port}"))
        });
        let by_agent = of(&|member| {
            let port = member.checked[Asks::Agent as usize].port();
            member.line(&format!("agent-check agent-port {port} agent-inter 300ms"))
        });
        let theirs = of(&|member| member.line("check"));
        let [http, agent] = OURS.map(|backend| room.join(backend).display().to_string());
        let admin = room.join("admin");
        format!(
            "global\n    stats socket {}\ndefaults\n    mode tcp\n    retries 2\n    option redispatch 1\n    \
             timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n    timeout check 3s\n    \
             default-server inter 300ms fall {FALL} rise 1 weight 100\n\
             listen by_http\n    bind unix@{http}\n    option httpchk GET /any\n    \
             http-check disable-on-404\n{by_http}\
             listen by_agent\n    bind unix@{agent}\n{by_agent}\
             backend by_port\n    option tcp-check\n{theirs}\
             backend by_login\n    option mysql-check user haproxy\n{theirs}",
            admin.display(),
        )
    }

    /// Returns what HAProxy says of a server.
    fn row(&self, backend: &str, number: u32) -> Vec<String> {
        let begin = format!("{backend},db{number},");
        let mut admin = UnixStream::connect(&self.admin).expect("HAProxy answers");
        admin.write_all(b"show stat\n").unwrap();
        let mut text = String::new();
        admin.read_to_string(&mut text).unwrap();
        let row = text.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("no {begin} in {text}"));
        row.split(',').map(str::to_owned).collect()
    }

    pub(crate) fn is_used(&self, backend: &str, number: u32) -> bool {
        // With an agent alone, one that is up is not checked.
        let status = &self.row(backend, number)[17];
        status.starts_with("UP") || status == "no check"
    }

    pub(crate) fn wait(&self, backend: &str, number: u32, is_used: bool) {
        until(&format!("{backend} uses db{number}: {is_used}"), || {
            self.is_used(backend, number) == is_used
        });
    }

    /// HAProxy has looked more than twice, as often as it looks at the other server, and found nothing.
    pub(crate) fn still_used_after_checks(&self, backend: &str, number: u32) {
        for _ in 0..2 {
            for checked in &self.members[1].checked {
                checked.until_more();
            }
        }
        assert!(self.is_used(backend, number), "{backend} found it");
    }

    /// Waits until the first server is declared down. No client who comes later than the checks that HAProxy is
    /// given for it reaches that server.
    pub(crate) fn nobody_goes_to_the_first(&self) {
        self.nobody_goes_to_the_first_once(|_| {});
    }

    /// The same, after something that has to be done again and again until then.
    pub(crate) fn nobody_goes_to_the_first_once(&self, mut again: impl FnMut(&Member)) {
        let member = &self.members[0];
        until("HAProxy has been told often enough", || {
            again(member);
            member.checked.iter().all(|checked| checked.is_over())
        });
        for ledger in &self.ledgers {
            ledger.until_more_at(2, CLIENTS);
            ledger.nobody_came_late();
        }
        for backend in OURS {
            assert!(!self.is_used(backend, 1), "{backend}");
        }
    }

    pub(crate) fn both_are_used(&self) {
        for backend in [OURS[0], OURS[1], "by_port", "by_login"] {
            for number in [1, 2] {
                self.wait(backend, number, true);
            }
        }
        for ledger in &self.ledgers {
            for number in [1, 2] {
                ledger.until_more_at(number, 1);
            }
        }
    }

    /// Connects until the first server has the session.
    pub(crate) fn connect_to_the_first(&self) -> Session {
        let mut found = None;
        until("a client reaches the first server", || {
            let front = self.room.join(OURS[0]);
            let session = Session::open(&ConnectOptions::over_socket(&front, "app"));
            let mut session = session.unwrap();
            let number = session.value("SELECT @@server_id").unwrap();
            found = (number.as_deref() == Some("1")).then_some(session);
            found.is_some()
        });
        found.unwrap()
    }

    /// Ends all, and looks at the ledgers once more.
    pub(crate) fn end(self) {
        for ledger in self.ledgers {
            ledger.nobody_came_late();
            ledger.end();
        }
        drop(self.haproxy);
    }
}
