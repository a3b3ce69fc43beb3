//! Are files that a file names run where they are named, and nothing else of this host?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::mariadb_10_11;
use std::path::Path;
use std::process::Command;

const TABLE: &str =
    "CREATE TABLE t (i INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(50)) ENGINE=InnoDB";

fn start(scratch: &Scratch) -> Running {
    let server = mariadb_10_11();
    server.run(&server.prepare(&scratch.join("data"), &SMALL))
}

fn fresh(running: &Running) {
    let mut session = running.session().unwrap();
    for sql in [
        "DROP DATABASE IF EXISTS d",
        "CREATE DATABASE d",
        "USE d",
        TABLE,
    ] {
        session.run(sql).unwrap();
    }
}

fn rows(running: &Running) -> String {
    let mut session = running.session().unwrap();
    let sql = "SELECT COALESCE(GROUP_CONCAT(v ORDER BY i), '') FROM d.t";
    session.value(sql).unwrap().unwrap_or_default()
}

fn import(running: &Running, file: &Path, flags: &[&str]) -> Ended {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&["import", "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket()).arg(file).args(flags);
    command.args(["--database", "d"]);
    run(command)
}

fn insert(value: &str) -> String {
    format!("INSERT INTO t (v) VALUES ('{value}');\n")
}

/// Two levels, a directory further down, a delimiter that outlives its file, and a rest of the line.
fn write(scratch: &Scratch) -> std::path::PathBuf {
    let below = scratch.join("below");
    std::fs::create_dir_all(&below).unwrap();
    let top = format!(
        "{}source below/one.sql\n{}//\nSELECT 1// source {}//\n{}//\n",
        insert("a"),
        insert("d").trim_end_matches(";\n"),
        below.join("two.sql").display(),
        insert("f").trim_end_matches(";\n"),
    );
    let one = format!("{}\\. two.sql\n{}DELIMITER //\n", insert("b"), insert("c"));
    std::fs::write(scratch.join("top.sql"), top).unwrap();
    std::fs::write(below.join("one.sql"), one).unwrap();
    std::fs::write(below.join("two.sql"), "INSERT INTO t (v) VALUES ('two')").unwrap();
    scratch.join("top.sql")
}

#[test]
fn files_are_run_where_they_are_named() {
    let scratch = Scratch::new();
    let running = start(&scratch);
    let top = write(&scratch);
    fresh(&running);
    let ended = import(&running, &top, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&running), "a,b,two,c,d,two,f");
    let length = |name: &str| std::fs::metadata(scratch.join(name)).unwrap().len();
    let all = length("top.sql") + length("below/one.sql") + 2 * length("below/two.sql");
    assert_eq!(ended.answer["bytes"], all);
    // The client makes the same of it, from the directory of the one file and from that of the other.
    fresh(&running);
    let flat = std::fs::read_to_string(&top)
        .unwrap()
        .replace("source below/", "source ");
    std::fs::write(scratch.join("below/flat.sql"), flat).unwrap();
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-u", "root", "d", "-S"])
        .arg(running.socket())
        .current_dir(scratch.join("below"))
        .stdin(std::fs::File::open(scratch.join("below/flat.sql")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(rows(&running), "a,b,two,c,d,two,f");
}

/// What fails in a named file is told by that file's name and line, and the rest follows.
#[test]
fn a_failure_in_a_named_file_is_named_and_the_rest_follows() {
    let scratch = Scratch::new();
    let running = start(&scratch);
    let top = write(&scratch);
    fresh(&running);
    let one = scratch.join("below/one.sql");
    let good = std::fs::read_to_string(&one).unwrap();
    std::fs::write(&one, good.replace("VALUES ('c')", "VALUE OF c")).unwrap();
    let ended = import(&running, &top, &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let place = format!("stopped at line 3, column 1 of {}:", one.display());
    assert!(ended.message().contains(&place), "{}", ended.message());
    assert_eq!(rows(&running), "a,b,two");
    std::fs::write(&one, good).unwrap();
    let hints = ended.answer["hints"].to_string();
    let flags = &hints[hints.rfind("--from-line ").expect("a line")..];
    let flags: Vec<&str> = flags.split('"').next().unwrap().split(' ').collect();
    let ended = import(&running, &top, &flags);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&running), "a,b,two,c,d,two,f");
}

/// A file that would have others run that are none, itself, or a program, stops there.
#[test]
fn nothing_else_is_run() {
    let scratch = Scratch::new();
    let running = start(&scratch);
    let proof = scratch.join("proof");
    let pipe = scratch.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::fs::write(scratch.join("b.sql"), insert("b")).unwrap();
    std::fs::write(scratch.join("loop.sql"), "source top.sql\n").unwrap();
    let touch = format!("touch {}", proof.display());
    for (line, flags, said) in [
        (format!("system {touch}"), &[][..], "does not run programs"),
        (format!("\\! {touch}"), &[], "does not run programs"),
        (
            format!("SELECT 1 \\! {touch}"),
            &[],
            "does not run programs",
        ),
        (
            format!("edit\nsystem {touch}"),
            &[],
            "does not run programs",
        ),
        ("source pipe".to_owned(), &[], "is not a regular file"),
        ("source nowhere.sql".to_owned(), &[], "failed to open"),
        ("source loop.sql".to_owned(), &[], "runs itself"),
        ("source b.sql".to_owned(), &["--no-source"], "--no-source"),
        ("\\-\nsource b.sql".to_owned(), &[], "sandbox"),
        (
            "/*M!999999\\- enable the sandbox mode */\n\\. b.sql".to_owned(),
            &[],
            "sandbox",
        ),
        ("connect d".to_owned(), &[], "another session"),
        (
            "LOAD DATA LOCAL INFILE 'b.sql' INTO TABLE t;".to_owned(),
            &[],
            "LOAD DATA LOCAL",
        ),
    ] {
        fresh(&running);
        let top = scratch.join("top.sql");
        let text = format!("{}{line}\n{}", insert("a"), insert("c"));
        std::fs::write(&top, &text).unwrap();
        let ended = import(&running, &top, flags);
        assert_eq!(ended.code, Some(3), "{line}: {ended:?}");
        assert!(
            ended.message().contains(said),
            "{line}: {}",
            ended.message()
        );
        assert_eq!(rows(&running), "a", "{line}");
        // With --force what stands behind it is run, and it is not.
        fresh(&running);
        let ended = import(&running, &top, &[flags, &["--force"]].concat());
        assert_eq!(ended.code, Some(3), "{line}: {ended:?}");
        assert_eq!(rows(&running).split(',').next_back(), Some("c"), "{line}");
        assert!(!rows(&running).contains('b'), "{line}");
        assert!(!proof.exists(), "{line}");
    }
}

/// What a file takes back, and forbids, when it has others run.
#[test]
fn files_leave_to_others_what_the_client_does() {
    let scratch = Scratch::new();
    let running = start(&scratch);
    let below = format!("/*M!999999\\- enable the sandbox mode */\n{}", insert("a"));
    std::fs::write(scratch.join("dump.sql"), below).unwrap();
    let begins = format!("START TRANSACTION;\n{}", insert("b"));
    std::fs::write(scratch.join("begins.sql"), begins).unwrap();
    let top = scratch.join("top.sql");
    let text = "source dump.sql\nsource dump.sql\nsource begins.sql\nROLLBACK;\n";
    std::fs::write(&top, text).unwrap();
    fresh(&running);
    let ended = import(&running, &top, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&running), "a,a");
}

/// A file that begins a transaction is read twice; what comes through a pipe, whose writer is gone by then, is not.
#[test]
fn pipes_are_read_once() {
    let scratch = Scratch::new();
    let running = start(&scratch);
    fresh(&running);
    let pipe = scratch.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let text = format!("BEGIN;\n{}COMMIT;\n", insert("a"));
    let writes = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text)
    });
    let ended = import(&running, &pipe, &[]);
    writes.join().unwrap().unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&running), "a");
}
