//! Does `health run --block` refuse clients of other hosts while the server is not for use, and nobody else, and is
//! nothing left of it?

mod balanced;
mod networked;

use balanced::Balanced;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{Scratch, until};
use networked::{ADDRESSES, OTHERS, OtherHost, is_here, run};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel");

/// A server here, and its clients there.
struct Shop {
    server: Running,
    clients: OtherHost,
    room: Scratch,
}

/// A client that stays connected.
struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Client {
    /// Asks something. Returns the answer, or nothing if the connection is gone.
    fn ask(&mut self) -> Option<String> {
        let mut line = String::new();
        self.to.write_all(b"SELECT 1;\n").ok()?;
        self.from.read_line(&mut line).ok()?;
        (!line.is_empty()).then_some(line)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `health run` in the background.
struct Prober {
    child: Child,
    http: String,
    said: Receiver<String>,
}

impl Prober {
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.http)).unwrap();
        let asked = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn send(&mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shop {
    fn new() -> Self {
        let clients = OtherHost::new();
        let room = Scratch::new();
        let options = ["--bind-address=*", "--skip-name-resolve"];
        let plan = mariadb_10_11().prepare(&room.join("data"), &options);
        let server = mariadb_10_11().run(&plan.with_networking());
        server
            .session()
            .unwrap()
            .run("CREATE USER app@'%'")
            .unwrap();
        Self {
            server,
            clients,
            room,
        }
    }

    fn port(&self) -> String {
        self.server.port().unwrap().to_string()
    }

    fn table(&self) -> String {
        format!("evenkeel_health_{}", self.port())
    }

    fn set_read_only(&self, value: &str) {
        let sql = format!("SET GLOBAL read_only = {value}");
        self.server.session().unwrap().run(&sql).unwrap();
    }

    fn prober(&self, options: &[&str]) -> Command {
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
                "--max-failures=0",
            ])
            .arg(format!("--socket={}", self.server.socket().display()))
            .arg(format!("--block={}", self.port()))
            .args(options)
            .env_remove("NOTIFY_SOCKET");
        command
    }

    fn probe(&self, options: &[&str]) -> Prober {
        let mut command = self.prober(options);
        command.arg("--http=0.0.0.0:0").stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let http = said.by_ref().map_while(Result::ok).find_map(|line| {
            let port = line
                .contains("answers HTTP")
                .then(|| line.rsplit(':').next());
            port.flatten().map(str::to_owned)
        });
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for line in said.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Prober {
            child,
            said: heard,
            http: http.expect("it answers HTTP"),
        }
    }

    /// Returns what a new client at the other host is told.
    fn told(&self, address: &str) -> String {
        let mut client = self.client(address);
        let output = client.args(["-e", "SELECT 'served'"]).output().unwrap();
        let both = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&both).trim().to_owned()
    }

    fn client(&self, address: &str) -> Command {
        let port = self.port();
        let words = [
            "mariadb",
            "--no-defaults",
            "-uapp",
            "-NBn",
            "--skip-reconnect",
            "-h",
            address,
            "-P",
            &port,
        ];
        self.clients.command(&words)
    }

    /// Connects from the other host, for longer.
    fn stays(&self) -> Client {
        let mut client = self.client(ADDRESSES[0]);
        let client = client.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = client.stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let from = BufReader::new(from);
        let mut client = Client { child, to, from };
        assert_eq!(client.ask().as_deref(), Some("1\n"));
        client
    }

    fn is_served(&self, address: &str) -> bool {
        self.told(address) == "served"
    }

    /// Whether a client knows at once that there is nobody. The server's own client does not say why it failed.
    fn is_refused(&self, address: &str) -> bool {
        let reach = format!("exec 3<>/dev/tcp/{address}/{}", self.port());
        let output = self.clients.command(&["bash", "-c", &reach]).output();
        let said = output.unwrap().stderr;
        String::from_utf8_lossy(&said).contains("Connection refused")
    }

    fn has_table(&self) -> bool {
        rules().contains(&self.table())
    }
}

/// Returns all rules of this host.
fn rules() -> String {
    String::from_utf8(run(&["nft", "list", "ruleset"]).stdout).unwrap()
}

/// Returns what a start says that closes no port.
fn said_without_block() -> String {
    let words = [
        "health",
        "run",
        "--no-defaults",
        "--count=1",
        "--socket=/nonexistent",
    ];
    let output = run(&[&[PROGRAM], &words[..]].concat());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_server_that_is_down_is_refused_to_others() {
    if !is_here("a_server_that_is_down_is_refused_to_others") {
        return;
    }
    let shop = Shop::new();
    let [v4, v6, of_others] = ADDRESSES;
    let others = "add table inet firewall; \
        add chain inet firewall in { type filter hook input priority 0; policy accept; }; \
        add rule inet firewall in tcp dport 9 drop";
    assert!(run(&["nft", others]).status.success());
    let before = rules();
    let exempt = format!("--block-exempt={OTHERS}");
    let mut prober = shop.probe(&[&exempt]);
    until("it is proven", || {
        prober.get("/any").starts_with("HTTP/1.1 200 ")
    });
    assert_eq!(rules(), before);
    let mut connected = shop.stays();
    shop.set_read_only("ON");
    for address in [v4, v6] {
        until("clients are refused", || shop.is_refused(address));
    }
    // Who is connected or exempt, this host, and other ports.
    assert_eq!(connected.ask().as_deref(), Some("1\n"));
    assert!(shop.is_served(of_others));
    let (port, here) = (
        shop.port(),
        ["mariadb", "--no-defaults", "-uapp", "-h127.0.0.1"],
    );
    let here = [&here[..], &["-P", &port, "-e", "SELECT 1"]].concat();
    assert!(run(&here).status.success());
    let other_port = format!("exec 3<>/dev/tcp/{v4}/{}", prober.http);
    let reached = shop.clients.command(&["bash", "-c", &other_port]).status();
    assert!(reached.unwrap().success());
    let is_told = |line: &str| line.starts_with("evenkeel_health_blocked{") && line.ends_with(" 1");
    until("metrics say so", || {
        prober.get("/metrics").lines().any(is_told)
    });
    // Somebody loads a firewall again.
    assert!(run(&["nft", "flush", "ruleset"]).status.success());
    assert!(run(&["nft", others]).status.success());
    until("clients are refused again", || shop.is_refused(v4));
    shop.set_read_only("OFF");
    for address in [v4, v6] {
        until("clients are served", || shop.is_served(address));
    }
    assert_eq!(rules(), before);
    shop.set_read_only("ON");
    until("clients are refused", || shop.is_refused(v4));
    // An orderly end lets nobody to a server that is down, and says how to. Nor does the next start.
    assert_eq!(prober.send(Signal::TERM), Some(143));
    let said: Vec<String> = prober.said.iter().collect();
    let remove = format!("nft delete table inet {}", shop.table());
    assert!(said.iter().any(|line| line.contains(&remove)), "{said:?}");
    assert!(shop.is_refused(v4));
    // Whoever closes no port says of one that nobody opens.
    assert!(said_without_block().contains(&remove));
    let mut prober = shop.probe(&[]);
    assert!(shop.is_refused(v4));
    assert!(!said_without_block().contains(&remove));
    shop.set_read_only("OFF");
    until("clients are served", || shop.is_served(v4));
    assert_eq!(prober.send(Signal::TERM), Some(143));
    assert_eq!(rules(), before);
}

#[test]
fn what_a_killed_prober_leaves_is_taken_over() {
    if !is_here("what_a_killed_prober_leaves_is_taken_over") {
        return;
    }
    let shop = Shop::new();
    let v4 = ADDRESSES[0];
    // It has never been up.
    shop.set_read_only("ON");
    let mut prober = shop.probe(&[]);
    until("clients are refused", || shop.is_refused(v4));
    let second = shop.prober(&["--count=1"]).output().unwrap();
    assert_eq!(second.status.code(), Some(11), "{second:?}");
    prober.send(Signal::KILL);
    assert!(shop.is_refused(v4));
    // Nobody gets through while the next one does not know better.
    let mut prober = shop.probe(&["--rise=3", "--fall=3"]);
    assert!(shop.is_refused(v4));
    prober.send(Signal::KILL);
    shop.set_read_only("OFF");
    assert!(shop.has_table());
    let mut prober = shop.probe(&[]);
    until("clients are served", || shop.is_served(v4));
    assert!(!shop.has_table(), "{}", rules());
    assert_eq!(prober.send(Signal::TERM), Some(143));
    // One that was left stays without a verdict, also where the end is orderly.
    shop.set_read_only("ON");
    let mut prober = shop.probe(&[]);
    until("clients are refused", || shop.is_refused(v4));
    prober.send(Signal::KILL);
    let ended = shop.prober(&["--count=1", "--fall=9"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("is still blocked"), "{said}");
    assert!(said.contains("stays blocked"), "{said}");
    assert!(shop.has_table(), "{}", rules());
}

/// It looks at the port alone, and never heard of evenkeel.
#[test]
fn haproxy_sends_nobody_to_a_blocked_port() {
    if !is_here("haproxy_sends_nobody_to_a_blocked_port") {
        return;
    }
    let shop = Shop::new();
    let options = ["--bind-address=*", "--skip-name-resolve", "--server-id=2"];
    let plan = mariadb_10_11().prepare(&shop.room.join("second"), &options);
    let second = mariadb_10_11().run(&plan.with_networking());
    let mut session = second.session().unwrap();
    session.run("CREATE USER app@'%'").unwrap();
    let ports = [shop.server.port().unwrap(), second.port().unwrap()];
    let mut prober = shop.probe(&[]);
    let haproxy = Balanced::start(&shop.clients, shop.room.path(), ports);
    for number in [1, 2] {
        haproxy.until_used(number);
    }
    shop.set_read_only("ON");
    until("the port is blocked", || shop.has_table());
    // From now on, also before HAProxy knows: who is refused is sent to the other server, and nobody gets none.
    let served = haproxy.next(30);
    assert!(served.iter().all(|server| *server == Some(2)), "{served:?}");
    until("HAProxy knows", || haproxy.status(1) == "DOWN");
    // Whoever kills the prober does not open the port.
    prober.send(Signal::KILL);
    let served = haproxy.next(10);
    assert!(served.iter().all(|server| *server == Some(2)), "{served:?}");
    shop.set_read_only("OFF");
    let _prober = shop.probe(&[]);
    haproxy.until_used(1);
    assert!(!shop.has_table(), "{}", rules());
}

#[test]
fn those_who_are_connected_are_ended_on_request() {
    if !is_here("those_who_are_connected_are_ended_on_request") {
        return;
    }
    let shop = Shop::new();
    let _prober = shop.probe(&["--block-sessions"]);
    until("clients are served", || shop.is_served(ADDRESSES[0]));
    let mut connected = shop.stays();
    shop.set_read_only("ON");
    until("the connection has ended", || connected.ask().is_none());
    until("clients are refused", || shop.is_refused(ADDRESSES[0]));
    shop.set_read_only("OFF");
    until("clients are served", || shop.is_served(ADDRESSES[0]));
}

#[test]
fn what_cannot_be_blocked_is_said_at_the_start() {
    if !is_here("what_cannot_be_blocked_is_said_at_the_start") {
        return;
    }
    let starts = |account: &[&str], words: &[&str]| {
        let own = [
            "health",
            "run",
            "--no-defaults",
            "--count=1",
            "--block=3306",
        ];
        let output = run(&[account, &[PROGRAM], &own, words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let poor = [
        "setpriv",
        "--bounding-set=-net_admin",
        "--inh-caps=-net_admin",
    ];
    let (code, said) = starts(&poor, &["--socket=/nonexistent"]);
    assert_eq!(code, Some(14), "{said}");
    assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    // What the service may, and what the page adds.
    let service =
        "--bounding-set=-all,+dac_read_search,+setuid,+setgid,+kill,+net_bind_service,+net_admin";
    let (code, said) = starts(&["setpriv", service], &["--socket=/nonexistent"]);
    assert_eq!(code, Some(4), "{said}");
    // There is no server, so that it stays.
    assert!(said.contains("stays blocked"), "{said}");
    let remove = ["nft", "delete", "table", "inet", "evenkeel_health_3306"];
    assert!(run(&remove).status.success());
    assert!(!rules().contains("evenkeel"), "{}", rules());
    let (code, said) = starts(&[], &["db1", "db2"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("run one 'evenkeel health run --block PORT'"),
        "{said}"
    );
    for wrong in ["office", "0.0.0.0/0"] {
        let exempt = format!("--block-exempt={wrong}");
        let (code, said) = starts(&[], &["--socket=/nonexistent", &exempt]);
        assert_eq!(code, Some(2), "{said}");
    }
    // Another port.
    let (_, said) = starts(&[], &["--host=192.0.2.1", "--port=3307"]);
    assert!(
        said.contains("port 3307 is asked, and port 3306 is blocked"),
        "{said}"
    );
}
