//! Does a tap pass on every byte, however clients and servers behave?

use evenkeel_cases::taps::Tap;
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, servers};
use evenkeel_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A server that lets `app` in by TCP.
fn server(datadir: &Path) -> Running {
    let server = mariadb_10_11();
    let packets = "--max-allowed-packet=64M";
    let running = server.run(&server.prepare(datadir, &[packets]).with_networking());
    account(&running, "");
    running
}

fn account(running: &Running, how: &str) {
    let mut session = running.session().unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let account = format!("app@'{host}'");
        let make = format!("CREATE USER {account} IDENTIFIED {how} BY 'secret'");
        session.run(&make).unwrap();
        let grant = format!("GRANT ALL ON *.* TO {account}");
        session.run(&grant).unwrap();
    }
}

fn tap(scratch: &Scratch, running: &Running, more: &[&str]) -> Tap {
    let to = format!("127.0.0.1:{}", running.port().unwrap());
    Tap::begin(PROGRAM, scratch.path(), "127.0.0.1:0", &to, more)
}

fn client(port: u16) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-h127.0.0.1", "-uapp", "-psecret"]);
    client.args(["--skip-ssl", "--local-infile=1", "-N", "-B", "--quick"]);
    client.args(["--max-allowed-packet=64M"]);
    client.arg(format!("-P{port}"));
    client
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

/// Runs a file of statements; returns what comes back.
fn run(port: u16, file: &Path, more: &[&str]) -> Vec<u8> {
    output(client(port).args(more).stdin(fs::File::open(file).unwrap()))
}

#[test]
fn large_things_are_the_same_as_without_it() {
    for server in draw("servers with large things", &servers(), 1) {
        let scratch = Scratch::new();
        let packets = "--max-allowed-packet=64M";
        let launch = server.prepare(&scratch.join("data"), &[packets, "--local-infile=1"]);
        let running = server.run(&launch.with_networking());
        account(
            &running,
            if server.name.contains("mysql") {
                "WITH mysql_native_password"
            } else {
                ""
            },
        );
        let mut tap = tap(&scratch, &running, &[]);
        let rows: String = (0..200_000).map(|n| format!("{n}\trow {n}\n")).collect();
        fs::write(scratch.join("rows"), rows).unwrap();
        let long = "x".repeat(17 << 20);
        let statements = format!(
            "DROP DATABASE IF EXISTS t; CREATE DATABASE t; USE t;\nCREATE TABLE l (a INT PRIMARY KEY, b TEXT);\n\
             LOAD DATA LOCAL INFILE '{}' INTO TABLE l;\nSELECT * FROM l ORDER BY a;\n\
             CREATE TABLE b (v LONGTEXT);\nINSERT INTO b VALUES ('{long}');\nSELECT MD5(v), LENGTH(v) FROM b;\n\
             SELECT v FROM b;\n",
            scratch.join("rows").display()
        );
        let file = scratch.join("statements");
        fs::write(&file, statements).unwrap();
        let direct = run(running.port().unwrap(), &file, &[]);
        assert!(direct.len() > 20 << 20, "{}", direct.len());
        for more in [&[][..], &["--compress"]] {
            let tapped = run(tap.port(), &file, more);
            assert!(tapped == direct, "{} {more:?} differs", server.name);
        }
        let answer = tap.end();
        let missing = ["bytes_missing", "undecodable", "unseen"].map(|what| &answer[what]);
        assert!(missing.iter().all(|count| **count == 0), "{answer}");
        let of = |start: &str| {
            let all = tap.statements();
            let found = all
                .iter()
                .filter(|one| one["sql"].as_str().unwrap().starts_with(start));
            found
                .map(|one| one["rows_sent"].as_u64().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("SELECT * FROM l"), [200_000; 2], "{}", server.name);
        assert_eq!(of("LOAD DATA"), [0; 2], "{}", server.name);
        running.stop(SERVER_DEADLINE).unwrap();
    }
}

#[test]
fn nobody_who_reads_the_capture_slows_it() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let to = format!("127.0.0.1:{}", running.port().unwrap());
    // A pipe that nobody reads for now.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut tap = Tap::begin_into(
        PROGRAM,
        scratch.path(),
        "127.0.0.1:0",
        &to,
        &["--ring", "1M"],
        Stdio::from(writer),
    );
    let statements = "SELECT REPEAT('x', 10000);\n".repeat(2000);
    let file = scratch.join("statements");
    fs::write(&file, &statements).unwrap();
    let direct = run(running.port().unwrap(), &file, &[]);
    assert!(run(tap.port(), &file, &[]) == direct);
    let read = thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    assert!(run(tap.port(), &file, &[]) == direct);
    let answer = tap.end();
    let missing = answer["bytes_missing"].as_u64().unwrap();
    // All that passed, or most of it, did not fit.
    assert!(missing > 1 << 20, "{answer}");
    assert_eq!(answer["complete"], false, "{answer}");
    let text = read.join().unwrap();
    let shown = text.lines().filter(|line| line.contains("REPEAT")).count();
    assert!((10..4000).contains(&shown), "{shown}");
    running.stop(SERVER_DEADLINE).unwrap();
}

#[test]
fn a_reader_who_leaves_ends_it() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let to = format!("127.0.0.1:{}", running.port().unwrap());
    let (reader, writer) = std::io::pipe().unwrap();
    let out = Stdio::from(writer);
    let mut tap = Tap::begin_into(PROGRAM, scratch.path(), "127.0.0.1:0", &to, &[], out);
    drop(reader);
    output(client(tap.port()).args(["-e", "SELECT 1"]));
    assert_eq!(tap.wait(), Some(0), "{}", tap.said());
    running.stop(SERVER_DEADLINE).unwrap();
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_traffic() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let to = format!("127.0.0.1:{}", running.port().unwrap());
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let out = Stdio::from(full);
    let mut tap = Tap::begin_into(PROGRAM, scratch.path(), "127.0.0.1:0", &to, &[], out);
    output(client(tap.port()).args(["-e", "SELECT 1"]));
    until("the failure is said", || {
        tap.said().contains("still relays")
    });
    let two = output(client(tap.port()).args(["-e", "SELECT 1 + 1"]));
    assert_eq!(two, b"2\n");
    tap.signal(Signal::TERM);
    assert_eq!(tap.wait(), Some(1), "{}", tap.said());
    running.stop(SERVER_DEADLINE).unwrap();
}

#[test]
fn a_server_that_dies_is_a_lost_connection() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let mut tap = tap(&scratch, &running, &[]);
    let sleeping = client(tap.port())
        .args(["-e", "SELECT SLEEP(1000)"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut session = running.session().unwrap();
    until("the statement runs", || {
        let sql =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
        session.rows(sql).unwrap()[0].at(0) == Some("1")
    });
    let pid = Pid::from_raw(running.pid()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let ended = sleeping.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        said.contains("2013") && said.contains("Lost connection"),
        "{said}"
    );
    let refused = client(tap.port())
        .args(["-e", "SELECT 1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("tap cannot connect to the server"), "{said}");
    let answer = tap.end();
    assert_eq!(answer["tap"]["unreachable"], 1, "{answer}");
    assert!(
        tap.said().contains("the server cannot be reached"),
        "{}",
        tap.said()
    );
    let unanswered = tap
        .statements()
        .iter()
        .filter(|one| one["sql"] == "SELECT SLEEP(1000)" && one["latency_us"].is_null())
        .count();
    assert_eq!(unanswered, 1);
}

#[test]
fn a_client_that_dies_is_gone_for_the_server() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let mut tap = tap(&scratch, &running, &[]);
    let mut open = client(tap.port()).stdin(Stdio::piped()).spawn().unwrap();
    let mut session = running.session().unwrap();
    let mut connections = move || {
        let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";
        session.rows(sql).unwrap()[0].at(0).unwrap().to_owned()
    };
    until("it is connected", || connections() == "1");
    open.kill().unwrap();
    open.wait().unwrap();
    until("the server knows", || connections() == "0");
    tap.end();
    running.stop(SERVER_DEADLINE).unwrap();
}

/// A server and a client of no protocol: who ends, and what the other sees.
fn strangers(dir: &Path) -> (Tap, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let tap = Tap::begin(PROGRAM, dir, "127.0.0.1:0", &to, &[]);
    // With the first one it only looks whether a server is there.
    let (_look, _) = listener.accept().unwrap();
    let client = TcpStream::connect(("127.0.0.1", tap.port())).unwrap();
    let (server, _) = listener.accept().unwrap();
    (tap, client, server)
}

#[test]
fn half_an_end_is_half_an_end() {
    let scratch = Scratch::new();
    let (_tap, mut client, mut server) = strangers(scratch.path());
    // Not a greeting: it passes as it is.
    server.write_all(b"\x03\0\0\0abc").unwrap();
    client.write_all(b"asked").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut asked = String::new();
    server.read_to_string(&mut asked).unwrap();
    assert_eq!(asked, "asked");
    server.write_all(b"answered").unwrap();
    drop(server);
    let mut answered = Vec::new();
    client.read_to_end(&mut answered).unwrap();
    assert_eq!(answered, b"\x03\0\0\0abcanswered");
}

#[test]
fn the_servers_last_words_are_heard() {
    let scratch = Scratch::new();
    let (_tap, mut client, mut server) = strangers(scratch.path());
    // More than the sockets hold; less than with the tap's own buffer.
    let words = vec![b'w'; 1 << 20];
    let mut sent = b"\xff\xff\x7f\0".to_vec();
    sent.extend(&words);
    let writer = thread::spawn(move || {
        server.write_all(&sent).unwrap();
        drop(server);
    });
    let mut heard = vec![0; 1000];
    client.read_exact(&mut heard).unwrap();
    writer.join().unwrap();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), words.len() + 4);
}

#[test]
fn connections_are_closed_when_they_are_idle() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let mut tap = tap(&scratch, &running, &["--drain", "60s"]);
    let mut idle = client(tap.port()).stdin(Stdio::piped()).spawn().unwrap();
    let mut busy = client(tap.port());
    let busy = busy
        .args(["-e", "SELECT SLEEP(2), 'slept'"])
        .stdout(Stdio::piped());
    let busy = busy.spawn().unwrap();
    until("both are there", || {
        let sql = "SELECT COUNT(*), SUM(info LIKE 'SELECT SLEEP%') FROM information_schema.processlist \
                   WHERE user = 'app'";
        let rows = running.session().unwrap().rows(sql).unwrap();
        rows[0].at(0) == Some("2") && rows[0].at(1) == Some("1")
    });
    tap.signal(Signal::TERM);
    let ended = busy.wait_with_output().unwrap();
    assert_eq!(ended.stdout, b"0\tslept\n");
    assert_eq!(tap.wait(), Some(143));
    let answer = tap.answer();
    assert_eq!(answer["tap"]["cut_off"], 0, "{answer}");
    assert!(tap.said().contains("2 connections open"), "{}", tap.said());
    idle.kill().unwrap();
    idle.wait().unwrap();
    running.stop(SERVER_DEADLINE).unwrap();
}

#[test]
fn what_is_not_idle_in_time_is_cut_off() {
    let scratch = Scratch::new();
    let running = server(&scratch.join("data"));
    let mut tap = tap(&scratch, &running, &["--drain", "100ms"]);
    let busy = client(tap.port())
        .args(["-e", "SELECT SLEEP(1000)"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it runs", || {
        let sql =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(1%'";
        let rows = running.session().unwrap().rows(sql).unwrap();
        rows[0].at(0) == Some("1")
    });
    let answer = tap.end();
    assert_eq!(answer["tap"]["cut_off"], 1, "{answer}");
    assert!(!busy.wait_with_output().unwrap().status.success());
    running.stop(SERVER_DEADLINE).unwrap();
}
