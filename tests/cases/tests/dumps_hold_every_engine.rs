//! Do dumps hold the tables of every engine that the server has, and come back from them?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into, manifest};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;
use std::process::Stdio;

const ENGINES: [&str; 8] = [
    "InnoDB",
    "MyISAM",
    "Aria",
    "CSV",
    "ARCHIVE",
    "MEMORY",
    "BLACKHOLE",
    "MRG_MyISAM",
];

/// Makes a table in each engine there is; returns the engines.
fn make(session: &mut Session) -> Vec<&'static str> {
    for plugin in ["ha_archive", "ha_blackhole"] {
        // Elsewhere they are built in.
        let _ = session.run(&format!("INSTALL SONAME '{plugin}'"));
    }
    let sql = "SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')";
    let rows = session.rows(sql).unwrap();
    let there: Vec<_> = rows.iter().filter_map(|row| row.at(0)).collect();
    let is_there = |name: &&str| there.iter().any(|one| one.eq_ignore_ascii_case(name));
    let engines: Vec<_> = ENGINES.into_iter().filter(is_there).collect();
    session.run("CREATE DATABASE e").unwrap();
    for engine in &engines {
        let union = match *engine {
            "MRG_MyISAM" => " UNION = (e.myisam) INSERT_METHOD = LAST",
            _ => "",
        };
        let name = engine.to_lowercase();
        let sql = format!("CREATE TABLE e.{name} (a INT NOT NULL) ENGINE = {engine}{union}");
        session.run(&sql).unwrap();
        for number in 0..3 {
            let sql = format!("INSERT INTO e.{name} VALUES ({number})");
            session.run(&sql).unwrap();
        }
    }
    engines
}

fn counts(session: &mut Session, engines: &[&str]) -> Vec<String> {
    let count = |engine: &&str| format!("SELECT COUNT(*) FROM e.{}", engine.to_lowercase());
    let counts = engines.iter().map(count);
    counts
        .map(|sql| session.value(&sql).unwrap().unwrap())
        .collect()
}

fn every_engine(server: &TestServer) {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let scratch = Scratch::new();
    let launch = server.prepare(&scratch.join("data"), &SMALL);
    let running = server.run(&launch.arg("--local-infile=1"));
    let mut session = running.session().unwrap();
    let engines = make(&mut session);
    for engine in ["ARCHIVE", "MEMORY", "CSV", "BLACKHOLE", "MRG_MyISAM"] {
        assert!(engines.contains(&engine), "{}: {engines:?}", server.name);
    }
    let before = counts(&mut session, &engines);
    for round in 0..3 {
        let dir = scratch.join(format!("dump-{round}"));
        done(run(dump(&program, &running, &dir, &["--database=e"])));
        let tables = manifest(&dir)["tables"].as_array().unwrap().len();
        assert_eq!(tables, engines.len(), "{}", server.name);
        let mut script = dump(&program, &running, Path::new("-"), &["--database=e"]);
        let script = script.stdout(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&script.stderr);
        assert_eq!(script.status.code(), Some(0), "{said}");
        session.run("DROP DATABASE e").unwrap();
        done(run(load_into(&program, &running, &dir, &[])));
        assert_eq!(counts(&mut session, &engines), before, "{}", server.name);
    }
}

#[test]
fn of_mariadb() {
    every_engine(&mariadb_10_11());
}

#[test]
fn of_mysql_8() {
    every_engine(&mysql_8_0_15());
}

#[test]
fn of_mysql_5_7() {
    every_engine(&mysql_5_7_22());
}
