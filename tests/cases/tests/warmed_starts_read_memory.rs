//! After a crash, does `prewarm` have in memory what this server's recovery will read, and does it
//! say so where that is nothing?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use rustix::fs::Advice;
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

const TABLES: usize = 120;
const HEADER: u64 = 64 << 10;

/// A server that was killed with some of its changes in the redo log only.
struct Crashed {
    server: TestServer,
    launch: Launch,
    scratch: Scratch,
}

impl Crashed {
    fn new(server: TestServer) -> Self {
        let scratch = Scratch::on_disk();
        let launch = server.prepare(
            &scratch.join("data"),
            &["--innodb-buffer-pool-size=64M", "--performance-schema=OFF"],
        );
        let crashed = Self {
            server,
            launch,
            scratch,
        };
        let running = crashed.start();
        let mut session = running.session().unwrap();
        session.run("CREATE DATABASE shop").unwrap();
        for number in 0..TABLES {
            let sql = format!("CREATE TABLE shop.t{number} (id INT PRIMARY KEY) ENGINE=InnoDB");
            session.run(&sql).unwrap();
        }
        running.stop(SERVER_DEADLINE).unwrap();
        let running = crashed.start();
        let mut session = running.session().unwrap();
        session.run("INSERT INTO shop.t7 VALUES (1), (2)").unwrap();
        running.kill();
        crashed
    }

    fn start(&self) -> Running {
        self.server.run(&self.launch)
    }

    fn datadir(&self) -> PathBuf {
        self.scratch.join("data")
    }

    fn tables(&self) -> Vec<PathBuf> {
        let table = |number| self.datadir().join(format!("shop/t{number}.ibd"));
        (0..TABLES).map(table).collect()
    }

    /// Has the kernel forget every file; returns how many headers it remembers all the same.
    fn forget(&self) -> usize {
        for table in self.tables() {
            let file = File::open(table).unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
        self.resident()
    }

    /// How many tables have at least the beginning of their file in memory. Asked without reading
    /// any: even a read that does not wait has the kernel fetch.
    fn resident(&self) -> usize {
        let tables = self.tables();
        let output = Command::new("fincore")
            .args(["--bytes", "--noheadings", "--output", "RES"])
            .args(&tables)
            .output()
            .expect("fincore");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let resident: Vec<u64> = said
            .lines()
            .map(|line| line.trim().parse().unwrap())
            .collect();
        assert_eq!(resident.len(), TABLES);
        let wanted = |table: &PathBuf| table.metadata().unwrap().len().min(HEADER);
        let both = tables.iter().zip(resident);
        both.filter(|(table, bytes)| *bytes >= wanted(table))
            .count()
    }

    fn prewarm(&self, flags: &[&str]) -> Ended {
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = evenkeel.command(&["prewarm", "--no-defaults", "--datadir"]);
        command.arg(self.datadir()).args(flags);
        run(command)
    }
}

fn step<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let steps = answer["steps"].as_array().unwrap();
    steps.iter().find(|step| step["name"] == name)
}

fn reads_every_header(server: TestServer) {
    let crashed = Crashed::new(server);
    for reader in ["io-uring", "threads"] {
        assert!(crashed.forget() < TABLES / 2, "the kernel forgets nothing");
        let ended = crashed.prewarm(&["--reader", reader]);
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        let answer = &ended.answer;
        assert_eq!(answer["redo"], "crashed", "{answer}");
        assert_eq!(answer["reads_every_tablespace"], true);
        assert!(answer["server"].as_str().unwrap().starts_with("MySQL"));
        let files = step(answer, "tablespace headers").unwrap()["files"].as_u64();
        assert!(files >= Some(TABLES as u64), "{answer}");
        assert_eq!(crashed.resident(), TABLES, "{reader}");
    }
    comes_up_and_is_left_alone(&crashed);
}

/// The server starts on the files, and while it runs there is nothing to be done.
fn comes_up_and_is_left_alone(crashed: &Crashed) {
    let running = crashed.start();
    let mut session = running.session().unwrap();
    let rows = session.value("SELECT COUNT(*) FROM shop.t7").unwrap();
    assert_eq!(rows.as_deref(), Some("2"));
    let ended = crashed.prewarm(&[]);
    assert_eq!(ended.code, Some(14), "{}", ended.said);
    let pid = format!("process {}", running.pid());
    assert!(ended.message().contains(&pid), "{}", ended.message());
    running.stop(SERVER_DEADLINE).unwrap();
}

#[test]
fn mysql_5_7_checks_every_header_after_a_crash_only() {
    let crashed = Crashed::new(mysql_5_7_22());
    crashed.start().stop(SERVER_DEADLINE).unwrap();
    crashed.forget();
    let ended = crashed.prewarm(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(ended.answer["redo"], "clean");
    assert_eq!(ended.answer["reads_every_tablespace"], false);
    assert!(step(&ended.answer, "tablespace headers").is_none());
    let why = ended.answer["useless"][0].as_str().unwrap();
    assert!(why.contains("cleanly"), "{why}");
}

#[test]
fn mysql_5_7_finds_every_header_in_memory() {
    reads_every_header(mysql_5_7_22());
}

#[test]
fn mysql_8_0_finds_every_header_in_memory() {
    reads_every_header(mysql_8_0_15());
}

#[test]
fn mariadb_is_told_to_have_little_to_gain() {
    let server = mariadb_10_11();
    assert_eq!(server.binary.flavour, Flavour::MariaDb);
    let crashed = Crashed::new(server);
    let before = crashed.forget();
    let ended = crashed.prewarm(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(ended.answer["redo"], "crashed");
    assert_eq!(ended.answer["reads_every_tablespace"], false);
    let said = ended.answer["useless"].to_string();
    assert!(
        said.contains("redo log names") && said.contains("O_DIRECT"),
        "{said}"
    );
    assert!(
        crashed.resident() <= before + 1,
        "tables were read for nothing"
    );
    comes_up_and_is_left_alone(&crashed);
}

#[test]
fn the_buffer_pools_pages_are_read_in_few_large_reads() {
    let crashed = Crashed::new(mysql_5_7_22());
    crashed.forget();
    let ended = crashed.prewarm(&["--pages", "buffer-pool"]);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let step = step(&ended.answer, "buffer pool").expect("a list of the shutdown before the crash");
    assert!(step["bytes_read"].as_u64() > Some(1 << 20), "{step}");
    assert_eq!(step["bytes_read"], step["bytes_wanted"]);
}

#[test]
fn limits_end_it_in_part() {
    let crashed = Crashed::new(mysql_5_7_22());
    for (flags, limit) in [
        (["--memory", "1M"], "memory"),
        (["--max-seconds", "0"], "time"),
    ] {
        let ended = crashed.prewarm(&flags);
        assert_eq!(ended.code, Some(3), "{}", ended.said);
        assert_eq!(ended.answer["limit"], limit);
    }
    assert_eq!(crashed.prewarm(&["--iodepth", "0"]).code, Some(2));
}
