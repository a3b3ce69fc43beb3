//! Does a capture of real clients, from an interface, through a tap or from within the server, show each session's statements as the server's
//! general log has them, and as many as the server counted?

use evenkeel_cases::taps::Tap;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, TestServer, cache, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15,
    mysql_9,
};
use evenkeel_testkit::wait::until;
use evenkeel_traffic::source::{GeneralLog, Input};
use evenkeel_traffic::{Command as Asked, Source};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// What each session asked for, in order: `Query SELECT 1`.
type Sessions = BTreeMap<u32, Vec<String>>;

/// What the clients of the terminal are given.
const STATEMENTS: &str = "SELECT 1;\nSELECT 'a\n\tb''c;', \"d\" -- e\n;\nCREATE DATABASE IF NOT EXISTS s; USE s;\n\
     CREATE TABLE IF NOT EXISTS t (a INT);\nINSERT INTO t VALUES (1),(2); SELECT * FROM t; SET @a = 1;\n\
     SHOW WARNINGS;\n";

/// Who logs in: most, and those who know no older method than MySQL's newer one.
const USERS: [&str; 2] = ["app", "newer"];

/// Stands before a connection where its session has no number.
const UNNUMBERED: u64 = 1_000_000;

/// Characters of a statement that are compared.
const LONGEST: usize = 10_000;

const LOGGED: [&str; 2] = ["--general-log=1", "--general-log-file=general.log"];

/// Errors, several results, values of every kind, long texts.
const PYTHON: &str = r#"
import pymysql, sys
door = {"unix_socket": sys.argv[1]} if "/" in sys.argv[1] else {"host": "127.0.0.1", "port": int(sys.argv[1])}
c = pymysql.connect(**door, user="app", password="secret", charset="utf8mb4")
u = c.cursor()
u.execute("CREATE DATABASE py")
c.select_db("py")
u.execute("CREATE TABLE t (a INT PRIMARY KEY, b LONGTEXT, c DATETIME(6)) DEFAULT CHARSET utf8mb4")
for n in range(40):
    u.execute("INSERT INTO t VALUES (%s, %s, NOW(6))", (n, "it's \\ \u20ac \U0001F600 " * n))
u.execute("INSERT INTO t VALUES (1000, %s, NULL)", ("x" * 3_000_000,))
u.execute("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT b FROM t; END")
u.execute("CALL p()")
while u.nextset():
    pass
for wrong in ["SELECT nothing", "INSERT INTO t VALUES (1, '', NULL)"]:
    try:
        u.execute(wrong)
    except pymysql.Error:
        pass
c.ping()
c.rollback()
c.close()
"#;

fn run(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(output.status.success(), "{what}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// Not among the statements are those of which servers write more or less into the log than was sent: several in one
// text, PREPARE as text, and what no parser takes.
fn client(door: &Door) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-uapp", "-psecret"]);
    match door {
        Door::Port(port) => client.arg("-h127.0.0.1").arg(format!("-P{port}")),
        Door::File(path) => client.arg("-S").arg(path),
    };
    client
}

/// Where clients connect.
#[derive(Debug, Clone)]
enum Door {
    Port(u16),
    File(PathBuf),
}

fn sysbench(door: &Door, mode: &str, verb: &str) {
    let mut sysbench = Command::new("sysbench");
    sysbench
        .args(["oltp_read_write", "--mysql-user=app"])
        .args([
            "--mysql-password=secret",
            "--mysql-db=s",
            "--tables=2",
            "--table-size=200",
        ])
        .args(["--threads=3", "--events=60", "--time=0"])
        .arg(format!("--db-ps-mode={mode}"));
    match door {
        Door::Port(port) => sysbench
            .arg("--mysql-host=127.0.0.1")
            .arg(format!("--mysql-port={port}")),
        Door::File(path) => sysbench.arg(format!("--mysql-socket={}", path.display())),
    };
    run(sysbench.arg(verb), "sysbench");
}

/// A driver for Java, a database, and how the driver is used.
type Java = (&'static str, &'static str, &'static str);

const JAVA: [Java; 6] = [
    (CONNECTOR_J, "java", ""),
    (CONNECTOR_J, "java", PREPARED),
    (CONNECTOR_J, "java", IN_BATCHES),
    (MARIADB_CLIENT, "java_too", ""),
    (MARIADB_CLIENT, "java_too", PREPARED),
    (MARIADB_CLIENT, "java_too", IN_BATCHES),
];
const CONNECTOR_J: &str = "mysql-connector-j";
const MARIADB_CLIENT: &str = "mariadb-java-client";
const PREPARED: &str = "&useServerPrepStmts=true";
const IN_BATCHES: &str = "&rewriteBatchedStatements=true&allowMultiQueries=true";

/// Runs a program with the driver for Go and one with the drivers for Java.
fn programs(port: u16, java: &[Java]) {
    let client = cache().join("go-client/client");
    let address = format!("127.0.0.1:{port}");
    run(
        Command::new(client).args([&address, USERS[0], "secret"]),
        "Go",
    );
    let classes = Scratch::new();
    let source = evenkeel_testkit::checkout().join("testkit/clients/Client.java");
    let mut javac = Command::new("javac");
    run(javac.arg("-d").arg(classes.path()).arg(source), "javac");
    for (driver, database, options) in java {
        let jar = cache().join(format!("java-drivers/{driver}.jar"));
        let login = "user=app&password=secret&sslMode=DISABLED";
        let scheme = match *driver {
            CONNECTOR_J => "mysql",
            _ => "mariadb",
        };
        let url = format!("jdbc:{scheme}://{address}/?{login}{options}");
        let mut java = Command::new("java");
        // Each runs for a second: what the second compiler would gain, it costs.
        java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]);
        let classes = classes.path().display();
        java.arg(format!("{}:{classes}", jar.display()));
        java.args(["Client", &url, database]);
        run(&mut java, &url);
    }
}

/// Runs the mysql client of MySQL 9, by an account of the method that it knows.
fn newest_client(port: u16, statements: &str) {
    let mut client = Command::new(cache().join("mysql-9-client/usr/bin/mysql"));
    client.args(["--no-defaults", "-h127.0.0.1", "-psecret", "-u", USERS[1]]);
    client.args(["--ssl-mode=DISABLED", "--get-server-public-key"]);
    client.arg(format!("-P{port}")).args(["-e", statements]);
    run(&mut client, "mysql");
}

/// Runs all clients; one of them by TLS, where the server has that.
fn clients(door: &Door, socket: &Path, has_tls: bool) {
    let mut plain = client(door);
    run(plain.args(["--skip-ssl", "-e", STATEMENTS]), "mariadb");
    let mut python = Command::new("/usr/bin/python3");
    let at = match door {
        Door::Port(port) => port.to_string(),
        Door::File(path) => path.display().to_string(),
    };
    run(python.args(["-c", PYTHON, &at]), "PyMySQL");
    if has_tls {
        let hidden = run(client(door).args(["--ssl", "-e", HIDDEN]), "TLS");
        assert!(hidden.contains("hidden"));
    }
    // Not on the wire: the log has it alone.
    let mut local = Command::new("mariadb");
    local.args([
        "--no-defaults",
        "-uroot",
        "-e",
        "SELECT 'by the socket'",
        "-S",
    ]);
    run(local.arg(socket), "the socket");
}

/// Returns a statement as it is compared: without the white space at its end, which no log keeps, and of a long one the
/// beginning and its length.
fn entry(command: &str, text: &str, bytes: u64) -> String {
    let begin: String = text.trim_end().chars().take(LONGEST).collect();
    match bytes > LONGEST as u64 {
        true => format!("{command} of {bytes} bytes: {begin}"),
        false => format!("{command}: {begin}"),
    }
}

/// What a session asks for that is compressed, and then encrypted.
const SMALL: &str = "SELECT 'small'; SELECT REPEAT('a', 10000)";

/// What the one session by TLS asks for.
const HIDDEN: &str = "SELECT 'hidden'";

/// Returns the sessions of a general log, without those that came by the socket, and the one by TLS where that is hidden.
fn logged(path: &Path, hides_tls: bool) -> Sessions {
    let mut all = Sessions::new();
    let mut log = GeneralLog::new(Input::open(path).unwrap(), TimeZone::system());
    let mut each = |one: &evenkeel_traffic::Statement<'_>| {
        let is_asked = matches!(one.command, Asked::Query | Asked::Prepare | Asked::Execute);
        if is_asked && one.user.is_some_and(|user| USERS.contains(&user)) {
            // So MariaDB writes down a value of that type.
            let text = String::from_utf8_lossy(one.sql).replace("TIMESTAMP'", "'");
            let asked = all.entry(one.session.unwrap()).or_default();
            let command = format!("{:?}", one.command);
            asked.push(entry(&command, &text, one.sql_bytes));
        }
        Ok(())
    };
    let coverage = log.read(&mut each, &evenkeel_op::Cancel::new()).unwrap();
    assert_eq!(coverage.undecodable, 0);
    all.retain(|_, asked| !hides_tls || !asked.iter().any(|one| one.ends_with(HIDDEN)));
    all
}

/// Returns the sessions that a capture shows.
fn captured(documents: &[Value]) -> Sessions {
    let mut all = Sessions::new();
    for one in documents {
        let command = one["command"].as_str().unwrap();
        // MySQL cannot prepare BEGIN, and logs nothing of the attempt.
        let is_refused = command == "Prepare" && !one["error"].is_null();
        if ["Query", "Prepare", "Execute"].contains(&command) && !is_refused {
            let user = one["user"].as_str().unwrap();
            assert!(USERS.contains(&user), "{one}");
            let session = one["session"].as_u64();
            let session = session.or_else(|| Some(UNNUMBERED + one["connection"].as_u64()?));
            let session = u32::try_from(session.unwrap()).unwrap();
            let asked = all.entry(session).or_default();
            let bytes = one["sql_bytes"].as_u64().unwrap();
            asked.push(entry(command, one["sql"].as_str().unwrap(), bytes));
        }
    }
    all
}

/// Returns sessions in an order that depends only on what they asked for: MariaDB does not show all their numbers. Left out
/// is what depends on how a statement ended, which is not known, either: MySQL logs PREPARE once it worked, which it does
/// not for BEGIN, and again when it prepares the statement for other types; 9 does not log what its parser refuses.
fn without_numbers(sessions: Sessions) -> Sessions {
    let mut all: Vec<Vec<String>> = sessions.into_values().collect();
    for session in &mut all {
        let mut prepared = BTreeSet::new();
        session.retain(|one| match one.as_str() {
            "Prepare: BEGIN" | "Query: select $$" => false,
            one => !one.starts_with("Prepare") || prepared.insert(one.to_owned()),
        });
    }
    all.sort_unstable();
    (0..).zip(all).collect()
}

/// Returns how many statements the server counted: as commands of the protocol, and by what they are.
fn counts(session: &mut Session) -> [u64; 3] {
    let mut sum = |names: &str| {
        let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({names})");
        let rows = session.rows(&sql).unwrap();
        let number = |row: &evenkeel_server::connect::Row| -> u64 {
            row.at(1).and_then(|text| text.parse().ok()).unwrap()
        };
        rows.iter().map(number).sum()
    };
    [
        sum("'Com_stmt_prepare'"),
        sum("'Com_stmt_execute'"),
        sum("'Com_select', 'Com_insert', 'Com_update', 'Com_delete', 'Com_begin', 'Com_commit'"),
    ]
}

/// Runs sysbench in a mode, and returns by how much the server's counts grew.
fn counted(running: &Running, door: &Door, mode: &str) -> [u64; 3] {
    let mut session = running.session().unwrap();
    let before = counts(&mut session);
    sysbench(door, mode, "run");
    let after = counts(&mut session);
    [0, 1, 2].map(|n| after[n] - before[n])
}

/// Counts the statements of a capture between two times in the same way.
fn shown_between(documents: &[Value], span: &RangeInclusive<Timestamp>) -> [u64; 3] {
    let within = |one: &&Value| {
        let time: Timestamp = one["time"].as_str().unwrap().parse().unwrap();
        span.contains(&time)
    };
    let mut sums = [0; 3];
    for one in documents.iter().filter(within) {
        match one["command"].as_str().unwrap() {
            "Prepare" => sums[0] += 1,
            "Execute" => {
                sums[1] += 1;
                sums[2] += 1;
            }
            "Query" => sums[2] += 1,
            _ => {}
        }
    }
    sums
}

fn make_account(running: &Running, user: &str, how: &str) {
    let mut session = running.session().unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let account = format!("{user}@'{host}'");
        let make = format!("CREATE USER {account} IDENTIFIED {how} BY 'secret'");
        session.run(&make).unwrap();
        session
            .run(&format!("GRANT ALL ON *.* TO {account}"))
            .unwrap();
    }
}

fn has_tls(running: &Running) -> bool {
    let mut session = running.session().unwrap();
    // The newest servers always have it, and no longer say so.
    let known = session.variable("have_ssl").unwrap();
    known.is_none_or(|known| known == "YES")
}

/// Makes a certificate in a directory, `cert.pem` with `key.pem`.
fn make_certificate(dir: &Path) {
    let make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tap -keyout key.pem -out cert.pem && \
                chmod 644 key.pem";
    let mut openssl = Command::new("sh");
    run(openssl.args(["-c", make]).current_dir(dir), "openssl");
}

/// A capture that has begun: the program's standard output and error go to files.
struct Captured {
    child: Child,
    out: PathBuf,
    said: PathBuf,
}

impl Captured {
    fn begin(scratch: &Scratch, source: &[String]) -> Self {
        let [out, said] = ["captured", "said"].map(|name| scratch.path().join(name));
        let child = Command::new(PROGRAM)
            .args(["capture", "--json"])
            .args(source)
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        until("the capture begins", || {
            let said = fs::read_to_string(&said).unwrap();
            said.contains("capturing ")
        });
        Self { child, out, said }
    }

    /// Ends it as a service is ended; returns the statements, and what it says of all.
    fn end(mut self) -> (Vec<Value>, Value) {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        let text = fs::read_to_string(&self.out).unwrap();
        let parsed = |line: &str| serde_json::from_str(line).unwrap();
        let said = fs::read_to_string(&self.said).unwrap();
        let begin = said.find('{').unwrap();
        let answer = serde_json::Deserializer::from_str(&said[begin..]);
        let answer = answer.into_iter().next().unwrap().unwrap();
        (text.lines().map(parsed).collect(), answer)
    }
}

/// What sees the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Interface,
    Tap,
    /// A tap that is the end of TLS.
    TapWithTls,
    /// A tap between socket files.
    TapOfFiles,
    /// The server's own functions.
    Server,
}

impl Through {
    /// Which programs in Java are seen, where any are: at the interface half of them, from within the others.
    fn java(self) -> Option<Vec<Java>> {
        let mut all = JAVA;
        match self {
            Self::Interface => {}
            Self::Server => all.rotate_left(3),
            Self::Tap | Self::TapWithTls | Self::TapOfFiles => return None,
        }
        Some(draw("programs in Java", &all, 3))
    }
}

/// Captures, while clients do their work at a port; returns what the work came to.
fn capture<T>(
    scratch: &Scratch,
    running: &Running,
    through: Through,
    work: impl FnOnce(&Door) -> T,
) -> (Vec<Value>, Value, T) {
    let port = running.port().unwrap();
    let source = match through {
        Through::Interface => vec!["--interface=lo".to_owned(), format!("--port={port}")],
        Through::Server => vec!["--uprobes".to_owned(), format!("--pid={}", running.pid())],
        _ => vec![],
    };
    if !source.is_empty() {
        let capture = Captured::begin(scratch, &source);
        let result = work(&Door::Port(port));
        let (documents, answer) = capture.end();
        return (documents, answer, result);
    }
    // The TLS of MySQL 8.0.15 is too old for ours.
    let mut more = vec!["--ssl-mode", "DISABLED"];
    if through == Through::TapWithTls {
        make_certificate(scratch.path());
        more.extend(["--tap-cert", "cert.pem", "--tap-key", "key.pem"]);
    }
    let (listen, to) = match through {
        Through::TapOfFiles => ("./tap.sock", running.socket().display().to_string()),
        _ => ("127.0.0.1:0", format!("127.0.0.1:{port}")),
    };
    let mut tap = Tap::begin(PROGRAM, scratch.path(), listen, &to, &more);
    let result = work(&match through {
        Through::TapOfFiles => Door::File(scratch.join("tap.sock")),
        _ => Door::Port(tap.port()),
    });
    let answer = tap.end();
    (tap.statements(), answer, result)
}

/// Starts a server with a general log; with TLS, where that is not in the way of a capture.
fn start(server: &TestServer, scratch: &Scratch, datadir: &Path, has_certificate: bool) -> Running {
    let mut args: Vec<String> = LOGGED.map(str::to_owned).to_vec();
    if has_certificate {
        make_certificate(scratch.path());
        for (option, file) in [("cert", "cert.pem"), ("key", "key.pem")] {
            args.push(format!("--ssl-{option}={}", scratch.join(file).display()));
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    server.run(&server.prepare(datadir, &args).with_networking())
}

/// Compares what was captured with the log, session by session.
fn compare(server: &TestServer, seen: &Sessions, expected: &Sessions) {
    assert!(expected.len() >= 8, "{}: {expected:?}", server.name);
    let ids = |of: &Sessions| of.keys().copied().collect::<Vec<_>>();
    assert_eq!(ids(seen), ids(expected), "{}", server.name);
    for (session, statements) in expected {
        for (one, other) in seen[session].iter().zip(statements) {
            assert_eq!(one, other, "{} session {session}", server.name);
        }
        assert_eq!(seen[session].len(), statements.len(), "{}", server.name);
    }
}

fn case(server: &TestServer, how: &str, through: Through) {
    let scratch = Scratch::new();
    let datadir = scratch.path().join("data");
    // MySQL makes its own certificate.
    let has_certificate = through == Through::Server && how.is_empty();
    let running = start(server, &scratch, &datadir, has_certificate);
    make_account(&running, USERS[0], how);
    // Those of MySQL 5.7 know only the older methods.
    let knows_newer = !how.is_empty() && server.id != "mysql-5.7.22";
    if knows_newer {
        make_account(&running, USERS[1], "WITH caching_sha2_password");
    }
    let (tries_tls, hides_tls) = match through {
        Through::Interface => (has_tls(&running), true),
        Through::Tap | Through::TapOfFiles => (false, true),
        Through::TapWithTls => (true, false),
        Through::Server => (has_tls(&running), false),
    };
    let (mut documents, answer, windows) = capture(&scratch, &running, through, |door| {
        clients(door, running.socket(), tries_tls);
        if through == Through::Server && tries_tls {
            let mut small = client(door);
            run(small.args(["--ssl", "--compress", "-e", SMALL]), "mariadb");
        }
        if let (Door::Port(port), Some(java)) = (door, through.java()) {
            programs(*port, &java);
            if knows_newer {
                newest_client(*port, STATEMENTS);
            }
        }
        sysbench(door, "auto", "prepare");
        ["disable", "auto"].map(|mode| {
            let begin = Timestamp::now();
            let counted = counted(&running, door, mode);
            (begin..=Timestamp::now(), counted)
        })
    });
    running.stop(SERVER_DEADLINE).unwrap();
    // It also sees what comes by the socket, and this test's own questions.
    documents.retain(|one| {
        one["user"]
            .as_str()
            .is_some_and(|user| USERS.contains(&user))
    });

    let mut seen = captured(&documents);
    let mut expected = logged(&datadir.join("general.log"), hides_tls);
    if through == Through::Server {
        (seen, expected) = (without_numbers(seen), without_numbers(expected));
    }
    compare(server, &seen, &expected);
    for (span, counted) in &windows {
        assert_eq!(&shown_between(&documents, span), counted, "{}", server.name);
        assert!(counted[2] > 1000);
    }
    for (what, count) in [
        ("packets_dropped", 0),
        ("bytes_missing", 0),
        ("undecodable", 0),
        ("unseen", 0),
        ("connections_encrypted", u64::from(tries_tls && hides_tls)),
    ] {
        assert_eq!(answer[what], count, "{} {answer}", server.name);
    }
}

/// A server, and how its accounts log in.
type Of = (fn() -> TestServer, &'static str);

const MARIADB_10_11: Of = (mariadb_10_11, "");
const MARIADB_11_8: Of = (mariadb_11_8, "");
const MYSQL_5_7_22: Of = (mysql_5_7_22, "WITH mysql_native_password");
const MYSQL_8_0_15: Of = (mysql_8_0_15, "WITH mysql_native_password");
const MYSQL_9: Of = (mysql_9, "WITH caching_sha2_password");

fn of((server, how): Of, through: Through) {
    case(&server(), how, through);
}

/// A server, if it is its turn.
fn in_turn(server: Of, through: Through, part: Part) {
    for server in share("captures of clients", &[server], part) {
        of(server, through);
    }
}

// Each second run has MySQL 8 from within, and one of MariaDB at the interface; each other run has others from within,
// and MySQL 8 at the interface. So all clients are in each run.

#[test]
fn of_mariadb_10_11() {
    in_turn(MARIADB_10_11, Through::Interface, Part::new(0, 4));
}

#[test]
fn of_mariadb_11_8() {
    in_turn(MARIADB_11_8, Through::Interface, Part::new(2, 4));
}

#[test]
fn of_mysql_8_0_15() {
    in_turn(MYSQL_8_0_15, Through::Interface, Part::new(1, 2));
}

#[test]
fn of_mysql_8_0_15_from_within() {
    in_turn(MYSQL_8_0_15, Through::Server, Part::new(0, 2));
}

#[test]
fn of_other_servers_from_within() {
    // Two of each flavour: one of each is in a run that has any.
    let servers = [MARIADB_10_11, MARIADB_11_8, MYSQL_5_7_22, MYSQL_9];
    for servers in share("captures of clients", &[servers], Part::new(1, 2)) {
        for server in draw("servers from within", &servers, 2) {
            of(server, Through::Server);
        }
    }
}

/// Some of them are each way once.
#[test]
fn through_taps() {
    use Through::{Tap, TapOfFiles, TapWithTls};
    let taps = [
        (MARIADB_10_11, Tap),
        (MYSQL_8_0_15, TapWithTls),
        (MARIADB_11_8, TapOfFiles),
        (MYSQL_8_0_15, Tap),
        (MARIADB_11_8, TapWithTls),
        (MARIADB_10_11, TapOfFiles),
        (MARIADB_11_8, Tap),
        (MARIADB_10_11, TapWithTls),
        (MYSQL_8_0_15, TapOfFiles),
    ];
    for (server, through) in draw("taps", &taps, 3) {
        of(server, through);
    }
}
