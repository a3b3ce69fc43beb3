//! Do dumps of mydumper and of MySQL Shell load with every row and object, go on where they stopped, and
//! is what is not understood of them named?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{checksums_of, done, load_into, make_softer};
use evenkeel_cases::loads::{make_objects, objects};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_cases::shell;
use evenkeel_logical::objects::{Closeness, differences};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The schema: a dot and a percent sign are in file names what they are in its name.
const SCHEMA: &str = "soft s%.ch";

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server with the tables, and objects made under its own `sql_mode`, as mydumper does not write it
/// down.
fn source(server: &TestServer, scratch: &Scratch) -> Running {
    let running = server.start(&scratch.join("source"), &SMALL);
    make_softer(&mut running.session().unwrap(), SCHEMA);
    let mut session = running.session().unwrap();
    session
        .run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        .unwrap();
    make_objects(&mut session, SCHEMA);
    // Programs have the sql_mode of who made them.
    let mut plain = running.session().unwrap();
    plain.run(&format!("USE {}", quote_name(SCHEMA))).unwrap();
    for sql in [
        "SET SESSION sql_mode = DEFAULT, time_zone = DEFAULT",
        "DROP FUNCTION twice",
        "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC NO SQL RETURN n * 2",
        "DROP PROCEDURE fill",
        "CREATE PROCEDURE fill() BEGIN INSERT INTO log VALUES (twice(4)); END",
        "DROP TRIGGER loud",
        "CREATE TRIGGER loud AFTER INSERT ON child FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
        "DROP EVENT later",
        "CREATE EVENT later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' \
         DO INSERT INTO log VALUES (1)",
    ] {
        plain.run(sql).unwrap();
    }
    running
}

/// Has mydumper dump the schema. Its version 0.10 now and then does not end on MySQL 8: then again.
fn mydumper(running: &Running, into: &Path, flags: &[&str]) {
    let mut said = String::new();
    for _ in 0..8 {
        let output = Command::new("timeout")
            .args(["2", "mydumper", "--user=root", "--threads=1"])
            .args(["--regex", "^soft", "--triggers", "--routines", "--events"])
            .arg("--socket")
            .arg(running.socket())
            .arg("--outputdir")
            .arg(into)
            .args(flags)
            .output()
            .expect("mydumper");
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return;
        }
        fs::remove_dir_all(into).expect("what it began");
    }
    panic!("mydumper does not end: {said}");
}

/// Under another name a dump comes in beside the database that it was made of.
#[track_caller]
fn assert_loads_beside(source: &Running, dump: &Path) {
    let into = format!("{SCHEMA}=besi`d.e");
    let flags = ["--into", &into, "--verify"];
    let ended = done(run(load_into(&program(), source, dump, &flags)));
    assert_eq!(ended.answer["warnings"], serde_json::json!([]));
    let mut session = source.session().unwrap();
    let sums = checksums_of(&mut session, SCHEMA);
    assert!(sums.len() > 12, "{sums:?}");
    assert_eq!(checksums_of(&mut session, "besi`d.e"), sums);
    for sql in [
        "INSERT INTO `besi``d.e`.child VALUES (70, 5, 'new')",
        "CALL `besi``d.e`.fill()",
    ] {
        session.run(sql).unwrap();
    }
    let logged = |session: &mut evenkeel_server::connect::Session, schema: &str| {
        let sql = format!("SELECT COUNT(*) FROM {}.log", quote_name(schema));
        session.value(&sql).unwrap()
    };
    assert_eq!(logged(&mut session, "besi`d.e").as_deref(), Some("2"));
    assert_eq!(logged(&mut session, SCHEMA).as_deref(), Some("0"));
    session.run("DROP DATABASE `besi``d.e`").unwrap();
}

#[track_caller]
fn assert_same(source: &Running, target: &Running, what: &str) {
    let (mut one, mut other) = (source.session().unwrap(), target.session().unwrap());
    let sums = checksums_of(&mut one, SCHEMA);
    assert!(sums.len() > 12, "{what}");
    assert_eq!(checksums_of(&mut other, SCHEMA), sums, "{what}");
    let found = differences(&objects(source), &objects(target), Closeness::Same);
    assert!(found.is_empty(), "{what}: {}", found.join("\n\n"));
}

fn of_mydumper(server: TestServer) {
    let scratch = Scratch::new();
    let source = source(&server, &scratch);
    let plain = scratch.join("plain");
    mydumper(&source, &plain, &["--rows=1000"]);
    let target = server.start(&scratch.join("target"), &SMALL);
    let load = |dump: &Path, flags: &[&str]| load_into(&program(), &target, dump, flags);
    // Where it is killed depends on no server.
    let is_first = server.binary.flavour == Flavour::MariaDb;
    for point in [
        "load::begun",
        "load::before_commit#2",
        "load::committed#3",
        "load::before_note",
        "load::rows",
        "load::phase#2",
    ] {
        if !is_first {
            break;
        }
        let ended = run(killed_at(load(&plain, &["--threads=2"]), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
    }
    let ended = done(run(load(&plain, &["--threads=2", "--verify"])));
    assert_eq!(ended.answer["resumed"], is_first, "{}", ended.answer);
    assert!(
        ended.answer["rows"].as_u64() > Some(4000),
        "{}",
        ended.answer
    );
    assert_same(&source, &target, &format!("{}, killed", server.name));
    assert_loads_beside(&source, &plain);

    let packed = scratch.join("packed");
    mydumper(&source, &packed, &["--compress"]);
    let ended = done(run(load(&packed, &["--replace", "--execute"])));
    assert_eq!(ended.answer["resumed"], false, "{}", ended.answer);
    assert_same(&source, &target, &format!("{}, packed", server.name));
    files_import(&source, &target, &packed);
    if is_first {
        what_is_strange_is_named(&plain, &load);
    }
}

/// `import` takes the files of tables and rows, one behind the other, as a client would.
fn files_import(source: &Running, target: &Running, dump: &Path) {
    let mut session = target.session().unwrap();
    let drop = format!("DROP DATABASE {}", quote_name(SCHEMA));
    session.run(&drop).unwrap();
    let names = fs::read_dir(dump).unwrap().map(|one| one.unwrap().path());
    let mut files: Vec<_> = names.collect();
    let place = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let ends = |ending: &str| name.ends_with(&format!("{ending}.sql.gz"));
        match () {
            () if ends("-schema-create") => Some(0),
            () if name.contains("_view-") || ends("-schema-post") || ends("-triggers") => None,
            () if ends("-schema") => Some(1),
            () => name.ends_with(".sql.gz").then_some(2),
        }
    };
    files.sort_by_key(|path| place(path));
    // The files do not say which sql_mode their rows need; as for a client, it is the server's.
    let mode = "SET GLOBAL sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'";
    session.run(mode).unwrap();
    let joined = dump.with_extension("joined");
    for (places, flags) in [(0..1, &[][..]), (1..3, &["--database", SCHEMA][..])] {
        let some = files
            .iter()
            .filter(|path| place(path).is_some_and(|at| places.contains(&at)));
        let texts: Vec<Vec<u8>> = some.map(|path| fs::read(path).unwrap()).collect();
        fs::write(&joined, texts.concat()).unwrap();
        let mut command = program().command(&["import", "--no-defaults", "-u", "root", "-S"]);
        command.arg(target.socket()).arg(&joined).args(flags);
        done(run(command));
    }
    let sums = checksums_of(&mut source.session().unwrap(), SCHEMA);
    assert_eq!(checksums_of(&mut session, SCHEMA), sums);
}

/// Nothing of a directory is left out in silence.
fn what_is_strange_is_named(dump: &Path, load: &dyn Fn(&Path, &[&str]) -> Command) {
    let refused = |name: &str, text: &[u8], code: u8| {
        let path = dump.join(name);
        let before = fs::read(&path).ok();
        fs::write(&path, text).unwrap();
        let ended = run(load(dump, &["--replace", "--execute"]));
        assert_eq!(ended.code, Some(i32::from(code)), "{name}: {ended:?}");
        match before {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        ended.message().to_owned()
    };
    let named = |name: &str, text: &[u8], code| {
        let message = refused(name, text, code);
        assert!(message.contains(name), "{message}");
    };
    named("notes.txt", b"", 14);
    named(
        "soft s%.ch.nowhere.sql",
        b"INSERT INTO `nowhere` VALUES\n(1);\n",
        14,
    );
    named(
        "soft s%.ch-schema-post.sql",
        b"GRANT ALL ON *.* TO x;\n",
        14,
    );
    let ended = refused("metadata", b"Started dump at: 2026-01-01 00:00:00\n", 2);
    assert!(ended.contains("unfinished"), "{ended}");
    // Half a statement, and rows of another table: the file is named, and none of its rows is in.
    named(
        "soft s%.ch.no_key.sql",
        b"INSERT INTO `no_key` VALUES\n(1,\"x\")",
        1,
    );
}

/// No shell can be had here: what is documented of its dumps, written from a real server's rows.
#[test]
fn what_the_shell_writes() {
    let scratch = Scratch::new();
    let server = mysql_8_0_15();
    let source = source(&server, &scratch);
    // The server itself does not bring this backslash back from UTF-8.
    let table = format!("{}.texts", quote_name(SCHEMA));
    let softer = format!("UPDATE {table} SET s = _sjis X'835C' WHERE s <> ''");
    source.session().unwrap().run(&softer).unwrap();
    let dump = scratch.join("shell");
    shell::write(&source, SCHEMA, &dump);
    let target = server.start(&scratch.join("target"), &SMALL);
    let load = |flags: &[&str]| load_into(&program(), &target, &dump, flags);
    let by_insert = run(load(&["--method=insert"]));
    assert_eq!(by_insert.code, Some(14), "{by_insert:?}");
    target
        .session()
        .unwrap()
        .run("DROP DATABASE evenkeel_load")
        .unwrap();
    for point in ["load::before_commit#3", "load::committed#4"] {
        let ended = run(killed_at(load(&["--replace", "--execute"]), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
    }
    let ended = done(run(load(&["--replace", "--execute", "--verify"])));
    assert_eq!(ended.answer["resumed"], true, "{}", ended.answer);
    assert_eq!(ended.answer["differs"], serde_json::json!([]));
    assert_eq!(ended.answer["coordinates"]["binlog_position"], 157);
    assert_same(&source, &target, "MySQL Shell");
    assert_loads_beside(&source, &dump);
    // The chunk with two signs is the last; without it nobody knows how many there are.
    let last = fs::read_dir(&dump).unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        (name.contains("gaps@@") && name.ends_with(".zst")).then_some(name)
    });
    fs::remove_file(dump.join(last.unwrap())).unwrap();
    let ended = run(load(&["--replace", "--execute"]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("gaps@"), "{}", ended.message());
}

#[test]
fn mydumper_of_mariadb() {
    of_mydumper(mariadb_10_11());
}

/// One of the two in each run.
fn of_mysql_in_turn(server: TestServer, nth: usize) {
    share("mydumper of MySQL", &[server], Part::new(nth, 2))
        .into_iter()
        .for_each(of_mydumper);
}

#[test]
fn mydumper_of_mysql_8() {
    of_mysql_in_turn(mysql_8_0_15(), 0);
}

#[test]
fn mydumper_of_mysql_5_7() {
    of_mysql_in_turn(mysql_5_7_22(), 1);
}
