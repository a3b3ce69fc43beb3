//! Does `qps` count exactly what others asked, whatever happens to the servers meanwhile?

mod watched;

use evenkeel_testkit::servers::{
    TestServer, mariadb_10_11, mysql_5_7_22, mysql_8_0_15, mysql_9, servers,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Command;
use watched::{PROGRAM, View, Watched, is, is_counted};

/// Adds up a count of one server over intervals.
#[derive(Default)]
struct Sums([u64; 6]);

const NAMES: [&str; 6] = [
    "queries", "selects", "inserts", "updates", "deletes", "commits",
];

impl Sums {
    fn add(&mut self, server: &Value) {
        if !is_counted(server) {
            return;
        }
        for (sum, name) in self.0.iter_mut().zip(NAMES) {
            *sum += server[name].as_u64().unwrap_or_else(|| panic!("{server}"));
        }
        let rate = server["queries_per_s"].as_f64().unwrap();
        let seconds = server["seconds"].as_f64().unwrap();
        assert_eq!(
            (rate * seconds).round(),
            server["queries"].as_f64().unwrap()
        );
    }
}

/// Runs a known number of statements while it is watched.
fn counts_are_exact(server: &TestServer) {
    let watched = Watched::new(server, &[]);
    watched.sql("CREATE DATABASE shop");
    watched.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB");
    let mut session = watched.running().session().unwrap();
    session.run("SELECT 1").unwrap();
    let mut view = View::start("qps", &[&watched.socket()], &[]);
    let mut sums = Sums::default();
    sums.add(&view.until(|frame| is(frame, 0, "up"))["servers"][0]);
    assert_eq!(sums.0, [0; 6], "nobody else asks anything");
    for id in 0..40 {
        session.run("BEGIN").unwrap();
        session
            .run(&format!("INSERT INTO shop.orders VALUES ({id})"))
            .unwrap();
        session.run("SELECT COUNT(*) FROM shop.orders").unwrap();
        session
            .run(&format!(
                "UPDATE shop.orders SET id = id + 1000 WHERE id = {id}"
            ))
            .unwrap();
        session.run("COMMIT").unwrap();
        session.run("DELETE FROM shop.orders WHERE id < 0").unwrap();
    }
    while sums.0[0] < 240 {
        sums.add(&view.next()["servers"][0]);
    }
    // And nothing that is not of these.
    for _ in 0..3 {
        sums.add(&view.until(|frame| is(frame, 0, "up"))["servers"][0]);
    }
    assert_eq!(sums.0, [240, 40, 40, 40, 40, 40], "{}", server.name);
    let (code, said) = view.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn counts_are_exact_on_mariadb() {
    counts_are_exact(&mariadb_10_11());
}

#[test]
fn counts_are_exact_on_mysql_8() {
    counts_are_exact(&mysql_8_0_15());
}

#[test]
fn counts_are_exact_on_mysql_5_7() {
    counts_are_exact(&mysql_5_7_22());
}

#[test]
fn counts_are_exact_on_mysql_9() {
    counts_are_exact(&mysql_9());
}

#[test]
fn a_server_that_dies_and_comes_back_says_so_and_nobody_waits() {
    for server in &servers()[..2] {
        let other = Watched::new(&mariadb_10_11(), &[]);
        let mut watched = Watched::new(server, &[]);
        let mut view = View::start("qps", &[&watched.socket(), &other.socket()], &[]);
        view.until(|frame| is(frame, 0, "up"));
        // Killed.
        watched.running = None;
        let down = view.until(|frame| is(frame, 0, "down") && is(frame, 1, "up"));
        assert_eq!(down["servers"][0]["queries"], Value::Null);
        let failure = &down["servers"][0]["failure"]["message"];
        assert!(failure.is_string(), "{down}");
        assert_eq!(down["total"]["servers"], 1, "{down}");
        watched.running = Some(server.run(&server.plan(&watched.datadir(), &[])));
        watched.link();
        view.until(|frame| is(frame, 0, "restart"));
        let up = view.until(|frame| is(frame, 0, "up") && is(frame, 1, "up"));
        assert_eq!(up["servers"][0]["queries"], 0, "{up}");
        assert_eq!(up["total"]["servers"], 2, "{up}");
        let (code, said) = view.end();
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains("the server was restarted"), "{said}");
    }
}

/// Stops a server's process while this lives.
struct Frozen(Pid);

impl Frozen {
    fn new(watched: &Watched) -> Self {
        let pid = Pid::from_raw(watched.running().pid()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_frozen_server_delays_nobody_and_its_statements_are_not_lost() {
    let [other, watched] = [mariadb_10_11(), mysql_8_0_15()].map(|one| Watched::new(&one, &[]));
    let mut session = watched.running().session().unwrap();
    let mut view = View::start("qps", &[&watched.socket(), &other.socket()], &[]);
    view.until(|frame| is(frame, 0, "up"));
    let frozen = Frozen::new(&watched);
    let mut slow = Value::Null;
    for _ in 0..3 {
        slow = view.until(|frame| is(frame, 0, "slow") && is(frame, 1, "up"));
    }
    let waiting = slow["servers"][0]["waiting_seconds"].as_f64();
    assert!(waiting > Some(0.5), "{slow}");
    drop(frozen);
    for _ in 0..25 {
        session.run("SELECT 1").unwrap();
    }
    let mut sum = 0;
    while sum < 25 {
        let up = view.until(|frame| is(frame, 0, "up"));
        sum += up["servers"][0]["queries"].as_u64().unwrap();
    }
    // One statement of ours was waiting there, not one for each interval.
    let up = view.until(|frame| is(frame, 0, "up"));
    sum += up["servers"][0]["queries"].as_u64().unwrap();
    assert_eq!(sum, 25);
    view.end();
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    watched::run("qps", args)
}

#[test]
fn who_is_not_let_in_is_named() {
    let watched = Watched::new(&mariadb_10_11(), &[]);
    watched.sql("CREATE USER app@localhost IDENTIFIED BY 's3same'");
    let place = watched.socket();
    let place = place.to_str().unwrap();
    let account = ["-uapp", "--interval=2s", "--count=2", place];
    let with = |password: &'static str, more: &[&'static str]| {
        run(&[&[password], more, account.as_slice()].concat())
    };
    let (code, seen, said) = with("--password=0pensesame", &[]);
    assert_eq!(code, Some(14), "{said}");
    assert!(
        said.contains("no server has answered") && said.contains("Access denied"),
        "{said}"
    );
    assert!(seen.contains("refused"), "{seen}");
    assert!(
        !format!("{seen}{said}").contains("0pensesame"),
        "{seen}{said}"
    );
    // Others are shown, and the end says who was not.
    let (code, seen, said) = with("--password=s3same", &["/nowhere/socket"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("never answered: /nowhere/socket"), "{said}");
    assert!(seen.contains("down"), "{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines.len(), 3, "{seen}");
    let columns = |line: &str| line.split_whitespace().count();
    assert_eq!((columns(lines[0]), columns(lines[1])), (9, 9), "{seen}");
    let (code, ..) = with("--password=s3same", &[]);
    assert_eq!(code, Some(0));
}

#[test]
fn lists_are_those_of_fleets() {
    let watched = Watched::new(&mariadb_10_11(), &[]);
    let room = tempfile::tempdir().unwrap();
    let list = room.path().join("fleet.toml");
    let text = format!(
        "[every]\nrepository = \"/backup/{{name}}\"\nuser = \"root\"\nkeep-daily = 7\n\
         [[server]]\nname = \"shop\"\nsocket = \"{}\"\n\
         [[server]]\nname = \"blog\"\nssh = \"root@blog\"\n",
        watched.socket().display()
    );
    std::fs::write(&list, text).unwrap();
    let list = list.to_str().unwrap();
    // Long enough for a server on a busy host.
    let once = ["--fleet", list, "--count=1", "--interval=3s", "--json"];
    let (code, seen, said) = run(&[&once[..], &["shop"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["servers"][0]["server"], "shop");
    assert_eq!(seen["servers"][0]["queries"], 0, "{seen}");
    for (more, reported) in [
        (&[][..], "reached over ssh"),
        (&["shop", "nobody"], "no server 'nobody'"),
        (&["shop", "-S", "/x"], "servers are named already"),
        (&["shop", "--interval=1ms"], "--interval is out of range"),
    ] {
        let (code, seen, said) = run(&[&once[..], more].concat());
        assert_eq!(code, Some(2), "{seen}{said}");
        assert!(
            format!("{seen}{said}").contains(reported),
            "{reported}: {seen}{said}"
        );
    }
}

#[test]
fn it_ends_when_nobody_reads() {
    let watched = Watched::new(&mariadb_10_11(), &[]);
    let line = format!(
        "{PROGRAM} qps --no-defaults -u root --interval 100ms {} | head -n 2; \
         echo ${{PIPESTATUS[0]}}",
        watched.socket().display()
    );
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(
        seen.starts_with("time") && seen.ends_with("\n0\n"),
        "{seen}"
    );
}

#[test]
fn who_wants_quiet_has_it() {
    let watched = Watched::new(&mariadb_10_11(), &[]);
    let place = watched.socket();
    let place = place.to_str().unwrap();
    for (verb, counts) in [("qps", "--count=2"), ("top", "--once")] {
        // Long enough for a server on a busy host.
        let words = ["-uroot", "-q", counts, "--interval=3s", place];
        let (code, out, said) = watched::run(verb, &words);
        assert_eq!(
            (code, out.as_str(), said.as_str()),
            (Some(0), "", ""),
            "{verb}"
        );
    }
}
