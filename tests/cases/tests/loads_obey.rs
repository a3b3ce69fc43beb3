//! Does a load do what its options say, cope with what the account may not do, and name what it could
//! not make?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{HARD, done, dump, load_into};
use evenkeel_cases::loads::{Source, local_infile, objects};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_logical::objects::Closeness;
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{
    mariadb_10_11, mysql_5_7_22, mysql_8_0_15, newer_servers, servers,
};

const COLLATION: &str = "--collation=utf8mb4_0900_ai_ci=utf8mb4_unicode_ci";

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn load(source: &Source, target: &Running, flags: &[&str]) -> std::process::Command {
    load_into(&program(), target, &source.dump, flags)
}

fn value(session: &mut Session, sql: &str) -> String {
    let value = session
        .value(sql)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    value.unwrap_or_default()
}

/// INSERT files load as well, also after a kill.
#[test]
fn statements_are_loaded_too() {
    for server in draw("servers of statements", &servers(), 1) {
        let scratch = Scratch::new();
        let flags = ["--format=sql", "--compress=gzip", "--chunk-size=64K"];
        let source = Source::make(&program(), server, &scratch, true, &flags);
        let target = source.server.start(&scratch.join("target"), &SMALL);
        let killed = run(killed_at(
            load(&source, &target, &[]),
            "load::before_commit#6",
        ));
        assert_eq!(killed.signal, Some(9), "{killed:?}");
        let ended = done(run(load(&source, &target, &["--verify"])));
        assert_eq!(ended.answer["differs"], serde_json::json!([]));
        source.assert_same(&target, source.server.name, Closeness::Same);
    }
}

/// Comma-separated files load as well, by either way.
#[test]
fn comma_separated_rows_are_loaded_too() {
    let scratch = Scratch::new();
    let flags = ["--format=csv", "--chunk-size=64K"];
    let source = Source::make(&program(), mariadb_10_11(), &scratch, true, &flags);
    let target = source.server.start(&scratch.join("target"), &SMALL);
    for flags in [
        &["--verify"][..],
        &["--verify", "--method=insert", "--replace", "--execute"],
    ] {
        let ended = done(run(load(&source, &target, flags)));
        assert_eq!(ended.answer["differs"], serde_json::json!([]));
        source.assert_same(&target, source.server.name, Closeness::Same);
    }
}

/// An account that may not switch `local_infile` on gets its rows in by INSERT.
#[test]
fn accounts_without_power_insert() {
    let server = mysql_8_0_15();
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, true, &["--chunk-size=64K"]);
    let target = source
        .server
        .start(&scratch.join("target"), &["--innodb-buffer-pool-size=64M"]);
    let mut session = target.session().unwrap();
    for sql in [
        "CREATE USER lo@localhost IDENTIFIED WITH mysql_native_password BY ''",
        "GRANT ALL ON *.* TO lo@localhost",
        "REVOKE SUPER, SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN ON *.* FROM lo@localhost",
        "SET GLOBAL log_bin_trust_function_creators = 1",
    ] {
        // The last privilege came later than this server.
        let _ = session.run(sql);
    }
    assert_eq!(local_infile(&target).as_deref(), Some("OFF"));
    let as_lo = |flags: &[&str]| {
        let mut command = program().command(&["load", "--no-defaults", "-u", "lo", "-S"]);
        command.arg(target.socket()).args(flags).arg(&source.dump);
        run(command)
    };
    let refused = as_lo(&["--method=load-data", "--definer=drop"]);
    assert_eq!(refused.code, Some(14), "{}", refused.message());
    assert!(
        refused.message().contains("local_infile"),
        "{}",
        refused.message()
    );
    let ended = done(as_lo(&["--definer=drop", "--verify"]));
    assert!(ended.said.contains("with INSERT"), "{}", ended.said);
    assert_eq!(ended.answer["resumed"], true);
    assert_eq!(ended.answer["differs"], serde_json::json!([]));
    assert_eq!(local_infile(&target).as_deref(), Some("OFF"));
    let definer = "SELECT DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_NAME = 'loud'";
    assert_eq!(value(&mut session, definer), "lo@localhost");
}

/// What fails once the rows are in is named, and the rest is there; the next run tries it again.
#[test]
fn what_could_not_be_made_is_named() {
    let scratch = Scratch::new();
    let source = mysql_8_0_15().start(&scratch.join("source"), &SMALL);
    let mut session = source.session().unwrap();
    for sql in [
        "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, u BINARY(16))",
        "INSERT INTO shop.t VALUES (1, 'x')",
        "CREATE VIEW shop.fails AS SELECT BIN_TO_UUID(u) AS u FROM shop.t",
        "CREATE VIEW shop.works AS SELECT id FROM shop.t",
    ] {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
    let output = scratch.join("dump");
    done(run(dump(
        &program(),
        &source,
        &output,
        &["--database=shop"],
    )));
    let target = mariadb_10_11().start(&scratch.join("target"), &SMALL);
    let flags = ["--definer=drop", COLLATION];
    for resumed in [false, true] {
        let ended = run(load_into(&program(), &target, &output, &flags));
        assert_eq!(ended.code, Some(3), "{}", ended.message());
        let failed = ended.answer["failed"].as_array().unwrap();
        assert_eq!(failed.len(), 1, "{failed:?}");
        let said = failed[0]["message"].as_str().unwrap();
        assert!(said.contains("view shop.fails"), "{said}");
        assert_eq!(ended.answer["resumed"], resumed);
        let mut there = target.session().unwrap();
        assert_eq!(value(&mut there, "SELECT id FROM shop.works"), "1");
    }
    // Another load has to wait for this one's end, also one of the same dump with other options.
    let other = run(load_into(
        &program(),
        &target,
        &output,
        &["--no-views", COLLATION],
    ));
    assert_eq!(other.code, Some(2), "{}", other.message());
    assert!(
        other.message().contains("started with other options"),
        "{}",
        other.message()
    );
    let again = scratch.join("again");
    done(run(dump(&program(), &source, &again, &["--database=shop"])));
    let other = run(load_into(&program(), &target, &again, &flags));
    assert_eq!(other.code, Some(14), "{}", other.message());
    assert!(
        other.message().contains("another load"),
        "{}",
        other.message()
    );
    let mut again = target.session().unwrap();
    again.run("DROP DATABASE shop").unwrap();
    again.run("DROP DATABASE evenkeel_load").unwrap();
    done(run(load_into(
        &program(),
        &target,
        &output,
        &["--no-views", COLLATION],
    )));
    assert_eq!(value(&mut again, "SELECT COUNT(*) FROM shop.t"), "1");
}

/// What MariaDB alone has is named, and can be left out.
#[test]
fn what_does_not_fit_is_named() {
    let scratch = Scratch::new();
    let source = Source::make(&program(), mariadb_10_11(), &scratch, true, &[]);
    let mut session = source.running.session().unwrap();
    session
        .run(&format!("CREATE SEQUENCE {}.counted", quote_name(HARD)))
        .unwrap();
    let output = scratch.join("again");
    done(run(dump(&program(), &source.running, &output, &[])));
    for server in draw("what does not fit", &[mysql_8_0_15(), mysql_5_7_22()], 1) {
        let target = server.start(&scratch.join(server.id), &SMALL);
        let refused = run(load_into(&program(), &target, &output, &[]));
        assert_eq!(refused.code, Some(14), "{}", refused.message());
        for name in ["counted", "unseen", "times"] {
            assert!(
                refused.message().contains(name),
                "{name}: {}",
                refused.message()
            );
        }
        assert!(objects(&target).databases.is_empty(), "something was made");
        let flags = [
            "--no-sequences",
            "--exclude=.*\\.(unseen|times)",
            "--verify",
        ];
        let ended = done(run(load_into(&program(), &target, &output, &flags)));
        assert_eq!(
            ended.answer["differs"],
            serde_json::json!([]),
            "{}",
            server.name
        );
    }
}

/// One at a time; nothing in the binary log if that is asked for; accounts on request; no dump.
#[test]
fn options_are_obeyed() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, true, &[]);
    source
        .running
        .session()
        .unwrap()
        .run("CREATE USER clerk@'%' IDENTIFIED BY 'x'")
        .unwrap();
    let output = scratch.join("users");
    done(run(dump(
        &program(),
        &source.running,
        &output,
        &["--users"],
    )));
    let target = source.server.start(&scratch.join("target"), &SMALL);
    let mut session = target.session().unwrap();
    assert_eq!(
        value(&mut session, "SELECT GET_LOCK('evenkeel_load', 0)"),
        "1"
    );
    let busy = run(load_into(&program(), &target, &output, &[]));
    assert_eq!(busy.code, Some(11), "{}", busy.message());
    session.run("DO RELEASE_LOCK('evenkeel_load')").unwrap();
    let written = |session: &mut Session| {
        let row = session.one("SHOW MASTER STATUS").unwrap().unwrap();
        (row.at(0).map(str::to_owned), row.at(1).map(str::to_owned))
    };
    let before = written(&mut session);
    let flags = [
        "--no-binlog",
        "--users",
        "--no-views",
        "--no-events",
        "--no-triggers",
    ];
    done(run(load_into(&program(), &target, &output, &flags)));
    assert_eq!(written(&mut session), before);
    let clerk = "SELECT COUNT(*) FROM mysql.user WHERE User = 'clerk'";
    assert_eq!(value(&mut session, clerk), "1");
    let made = objects(&target);
    let database = &made.databases[0];
    assert!(database.views.is_empty() && database.events.is_empty());
    assert!(database.triggers.is_empty() && database.routines.len() == 2);
    for (path, code) in [(scratch.join("nowhere"), 2), (scratch.join("target"), 2)] {
        let ended = run(load_into(&program(), &target, &path, &[]));
        assert_eq!(ended.code, Some(code), "{}", ended.message());
    }
    let wrong = run(load_into(&program(), &target, &output, &["--execute"]));
    assert_eq!(wrong.code, Some(2), "{}", wrong.said);
}

#[test]
fn newer_servers_load() {
    for server in draw("newer servers", &newer_servers(), 1) {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("source"), &["--innodb-buffer-pool-size=64M"]);
        let mut session = running.session().unwrap();
        evenkeel_cases::dumps::make_hard(&mut session);
        let output = scratch.join("dump");
        done(run(dump(
            &program(),
            &running,
            &output,
            &["--chunk-size=64K"],
        )));
        let target = server.start(&scratch.join("target"), &["--innodb-buffer-pool-size=64M"]);
        let killed = run(killed_at(
            load_into(&program(), &target, &output, &[]),
            "load::committed#4",
        ));
        assert_eq!(killed.signal, Some(9), "{killed:?}");
        let ended = done(run(load_into(&program(), &target, &output, &["--verify"])));
        assert_eq!(
            ended.answer["differs"],
            serde_json::json!([]),
            "{}",
            server.name
        );
    }
}
