//! Does a dump that is piped into a client make the same server again?

#[path = "../../../crates/logical/tests/nasty/mod.rs"]
mod nasty;

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{checksums, make_hard, make_special};
use evenkeel_cases::program::Evenkeel;
use evenkeel_logical::objects::{Closeness, Objects, Selection, differences, read};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15, newer_servers};
use evenkeel_testkit::{Bank, Scratch, TestServer};
use std::fs::File;
use std::path::Path;
use std::process::Command;

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    let mut args = SMALL.to_vec();
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    if server.id.starts_with("mysql") {
        args.push("--log-bin-trust-function-creators=1");
    }
    server.start(&scratch.join(name), &args)
}

/// Dumps into a file as a script.
fn stream(running: &Running, file: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let mut command =
        program().command(&["dump", "--no-defaults", "-u", "root", "--output", "-", "-S"]);
    command.arg(running.socket()).args(flags);
    command.stdout(File::create(file).unwrap());
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), said)
}

/// Runs a script by the real client.
fn load(running: &Running, file: &Path) {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-u", "root", "--binary-mode", "--comments"]);
    client.args(["--default-character-set=utf8mb4", "--max-allowed-packet=1G"]);
    client.arg("-S").arg(running.socket());
    let ended = client.stdin(File::open(file).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
}

fn objects(running: &Running) -> Objects {
    let selection = Selection {
        accounts: true,
        ..Selection::default()
    };
    let mut session = running.session().unwrap();
    let mut objects = read(&mut session, &selection).unwrap_or_else(|e| panic!("{}", e.chain()));
    for database in &mut objects.databases {
        // It cannot be made.
        database.views.retain(|view| view.broken.is_none());
    }
    objects
}

/// Without the nasty schema where a server does not print it as it is: 11.8 leaves backticks in the
/// names of foreign keys single.
fn case(server: &TestServer, with_nasty: bool) {
    let scratch = Scratch::new();
    let source = start(server, &scratch, "source");
    let mut session = source.session().unwrap();
    if with_nasty {
        nasty::make(&mut session, server);
    }
    let mut session = source.session().unwrap();
    make_hard(&mut session);
    make_special(&mut session, server.binary.flavour);
    let bank = Bank::load(&mut session, 3000).unwrap();
    let traffic = bank.start(&source.connect_options(), 2).unwrap();
    traffic.wait_for(20);
    let script = scratch.join("script.sql");
    let flags = ["--threads=5", "--chunk-size=64K", "--users"];
    let before = traffic.marks();
    let (code, said) = stream(&source, &script, &flags);
    let after = traffic.marks();
    assert_eq!(code, Some(0), "{}: {said}", server.name);
    traffic.assert_undisturbed();
    drop(traffic);
    assert!(said.contains(r#""schema":"evenkeel/dump/1""#), "{said}");
    let text = std::fs::read(&script).unwrap();
    assert!(text.ends_with(b"-- end of the dump\n"), "{}", server.name);

    let target = start(server, &scratch, "target");
    load(&target, &script);
    let found = differences(&objects(&source), &objects(&target), Closeness::Same);
    let counters = |one: &String| one.contains("bank.");
    let found: Vec<String> = found.into_iter().filter(|one| !counters(one)).collect();
    assert!(found.is_empty(), "{}: {}", server.name, found.join("\n\n"));
    let mut loaded = target.session().unwrap();
    assert_eq!(
        checksums(&mut loaded),
        checksums(&mut source.session().unwrap()),
        "{}",
        server.name
    );
    let bank = Bank::find(&mut loaded).unwrap();
    let state = bank.check(&mut loaded);
    let state = state.unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
    state.check_between(&before, &after).unwrap();
}

// In each run one of the older servers, and one of the newer.

#[test]
fn mariadb() {
    for server in share("streamed", &[mariadb_10_11()], Part::new(2, 3)) {
        case(&server, true);
    }
}

#[test]
fn mysql() {
    for server in share(
        "streamed",
        &[mysql_8_0_15(), mysql_5_7_22()],
        Part::new(1, 3),
    ) {
        case(&server, true);
    }
}

#[test]
fn newer() {
    for server in draw("newer servers", &newer_servers(), 1) {
        case(&server, false);
    }
}

/// From one flavour and version to another, as far as the other can hold it.
#[test]
fn other_servers_take_it_too() {
    let pairs = [
        (mariadb_10_11(), mysql_5_7_22()),
        (mysql_5_7_22(), mysql_8_0_15()),
        (mysql_5_7_22(), mariadb_10_11()),
    ];
    for (from, to) in draw("streamed to others", &pairs, 1) {
        let scratch = Scratch::new();
        let source = start(&from, &scratch, "source");
        let mut session = source.session().unwrap();
        make_hard(&mut session);
        Bank::load(&mut session, 500).unwrap();
        for sql in [
            "USE bank",
            "CREATE VIEW rich AS SELECT id FROM accounts_0 WHERE id > 10",
            "CREATE PROCEDURE p() BEGIN SELECT ';'; END",
            "CREATE TRIGGER t BEFORE INSERT ON accounts_0 FOR EACH ROW SET @n = NEW.id",
        ] {
            session.run(sql).unwrap();
        }
        let script = scratch.join("script.sql");
        let (code, said) = stream(&source, &script, &["--definer=drop"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            !std::fs::read(&script)
                .unwrap()
                .windows(8)
                .any(|w| w == b"DEFINER=")
        );
        let target = start(&to, &scratch, "target");
        load(&target, &script);
        let names = format!("{} to {}", from.name, to.name);
        let mut loaded = target.session().unwrap();
        let counts = |list: Vec<(String, String, String)>| -> Vec<(String, String)> {
            list.into_iter()
                .map(|(name, _, count)| (name, count))
                .collect()
        };
        assert_eq!(
            counts(checksums(&mut loaded)),
            counts(checksums(&mut session)),
            "{names}"
        );
        let text = "SELECT 0, SHA2(GROUP_CONCAT(id, HEX(COALESCE(u, '')), HEX(COALESCE(s, '')), \
                    HEX(COALESCE(w, '')) ORDER BY id), 256) FROM `hard ``s%/ch`.texts";
        assert_eq!(
            loaded
                .one(text)
                .unwrap()
                .and_then(|row| row.at(1).map(str::to_owned)),
            session
                .one(text)
                .unwrap()
                .and_then(|row| row.at(1).map(str::to_owned)),
            "{names}"
        );
        Bank::find(&mut loaded).unwrap().check(&mut loaded).unwrap();
        let rich = "SELECT COUNT(*) FROM bank.rich";
        assert_eq!(loaded.value(rich).unwrap(), session.value(rich).unwrap());
    }
}

/// What ends early has no end mark and no exit code 0; so has what nobody takes.
#[test]
fn unfinished_scripts_tell() {
    let scratch = Scratch::new();
    let source = start(&mariadb_10_11(), &scratch, "source");
    Bank::load(&mut source.session().unwrap(), 3000).unwrap();
    let mut command = program().command(&["dump", "--no-defaults", "-u", "root", "-o", "-", "-S"]);
    command.arg(source.socket());
    command.stdout(File::create("/dev/full").unwrap());
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for flags in [&["--format=tab"][..], &["--compress=gzip"]] {
        let script = scratch.join("x");
        let (code, said) = stream(&source, &script, flags);
        assert_eq!(code, Some(2), "{said}");
        // What goes to a client is the script, and nothing that is none.
        assert_eq!(std::fs::read(&script).unwrap(), b"");
        assert!(said.contains(r#""schema":"evenkeel/error/1""#), "{said}");
    }
}
