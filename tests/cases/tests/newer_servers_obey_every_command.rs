//! Does every command that touches a server or its backups work with servers newer than those of
//! the matrix?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::assert_unharmed;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_11_4, mariadb_11_8, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};
use serde_json::Value;
use std::process::Command;

const GIB: u64 = 1 << 30;

fn evenkeel(args: &[&str]) -> Command {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")).command(args)
}

/// Runs a command to its end and returns its answer.
#[track_caller]
fn answer(command: Command) -> Value {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    ended.answer
}

/// A command on the site's server.
fn on_server(site: &Site, verb: &str, flags: &[&str]) -> Command {
    let mut command = evenkeel(&[verb, "--no-defaults", "-u", "root", "-S"]);
    command.arg(site.running().socket()).args(flags);
    command
}

fn on_repository(site: &Site, verb: &str, flags: &[&str]) -> Command {
    let mut command = evenkeel(&[verb]);
    command.arg(site.repository()).args(flags);
    command
}

fn case(server: TestServer) {
    let site = Site::start(server, LoopFs::xfs(4 * GIB), 500, &[]);
    let doctor = answer(on_server(&site, "doctor", &[]));
    assert_eq!(doctor["ready"], true, "{doctor:#}");

    let mut session = site.running().session().expect("a session");
    for generation in 1..=3 {
        let sql = format!("CREATE TABLE bank.made_{generation} (id INT PRIMARY KEY)");
        session.run(&sql).expect("a table");
        let report = answer(on_server(&site, "backup", &[&path(&site)]));
        assert_eq!(report["generation"], generation, "{report:#}");
        assert_eq!(report["pages_corrupt"], 0, "{report:#}");
        assert!(report["coordinates"]["gtid"].is_string(), "{report:#}");
    }
    lock_stops_writes(&site);
    let list = answer(on_repository(&site, "generations", &[]));
    assert_eq!(list["generations"].as_array().map(Vec::len), Some(3));

    // The program is the one that was backed up: nobody names it here.
    let proof = answer(on_repository(&site, "verify", &["--boot"]));
    assert_eq!(proof["boot"]["proven"], true, "{proof:#}");
    assert_eq!(
        proof["boot"]["server"],
        site.server.binary.version.to_string()
    );
    assert!(
        proof["boot"]["tables_checked"].as_u64() > Some(10),
        "{proof:#}"
    );

    answer(on_repository(
        &site,
        "forget",
        &["--keep-last", "1", "--execute"],
    ));
    answer(on_repository(&site, "prune", &["--execute"]));
    let list = answer(on_repository(&site, "generations", &[]));
    assert_eq!(list["generations"].as_array().map(Vec::len), Some(1));
    let target = site.fs.join("restored");
    answer(on_repository(
        &site,
        "restore",
        &["--target", &target.display().to_string()],
    ));
    assert!(target.join("data/bank").is_dir() || target.join("bank").is_dir());
    assert_unharmed(site.running(), "at the end");
}

fn path(site: &Site) -> String {
    site.repository().display().to_string()
}

/// The command under the lock gets the coordinates that the server says, and a write waits for its
/// end.
fn lock_stops_writes(site: &Site) {
    let inner = "SET SESSION lock_wait_timeout=1; CREATE TABLE bank.not_made (id INT PRIMARY KEY)";
    let script = format!(
        "echo $EVENKEEL_GTID; ! mariadb --no-defaults --skip-ssl -uroot -S {} -e '{inner}' 2>&1",
        site.running().socket().display()
    );
    let mut command = on_server(site, "lock", &[]);
    command.args(["--", "sh", "-c", &script]);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {output:?}");
    assert!(
        said.contains("ERROR 1205"),
        "the lock was in the way: {said}"
    );
    let mut session = site.running().session().expect("a session");
    let gtid = match site.server.name.starts_with("MySQL") {
        true => "SELECT @@global.gtid_executed",
        false => "SELECT @@gtid_binlog_pos",
    };
    let gtid = session.value(gtid).expect("a value").expect("a GTID");
    assert_eq!(said.lines().next(), Some(gtid.trim()));
}

/// One of the three in each run.
fn in_turn(server: TestServer, nth: usize) {
    share("servers that obey", &[server], Part::new(nth, 3))
        .into_iter()
        .for_each(case);
}

#[test]
fn mariadb_11_4_obeys() {
    in_turn(mariadb_11_4(), 0);
}

#[test]
fn mariadb_11_8_obeys() {
    in_turn(mariadb_11_8(), 1);
}

#[test]
fn mysql_9_obeys() {
    in_turn(mysql_9(), 2);
}
