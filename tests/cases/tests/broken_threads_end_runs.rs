//! Does a run end, and not well, when one of its threads breaks off?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel};
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Who hangs does so for ever.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a command in which a thread panics at a fail point: `point=2*off->panic`.
#[track_caller]
fn broken(mut command: Command, point: &str) -> Ended {
    let mut child = command
        .env("FAILPOINTS", point)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > DEADLINE {
            child.kill().expect("a kill");
            panic!("{point}: it hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = Ended::of(&child.wait_with_output().expect("its output"));
    assert!(ended.said.contains("panicked at"), "{point}: {ended:?}");
    assert!(
        ended.code.is_some_and(|code| code != 0),
        "{point}: {ended:?}"
    );
    ended
}

fn server(scratch: &Scratch) -> Running {
    let running = mariadb_10_11().start(&scratch.join("data"), &SMALL);
    let mut session = running.session().unwrap();
    session.run("CREATE DATABASE shop").unwrap();
    running
}

fn command(running: &Running, verb: &str) -> Command {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&[verb, "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket());
    command
}

#[test]
fn an_import() {
    let scratch = Scratch::new();
    let running = server(&scratch);
    let mut text = "USE shop;\nCREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(90));\n".to_owned();
    for id in 0..2000 {
        writeln!(text, "INSERT INTO t VALUES ({id}, '{}');", "x".repeat(80)).unwrap();
        if id % 50 == 0 {
            writeln!(text, "CREATE TABLE t{id} (id INT);").unwrap();
        }
    }
    let file = scratch.join("shop.sql");
    std::fs::write(&file, text).unwrap();
    for point in [
        "import.statement=700*off->panic",
        "import.before-commit=1*panic",
    ] {
        let mut import = command(&running, "import");
        import.arg("--threads=3").arg(&file);
        let ended = broken(import, point);
        assert!(ended.message().contains("stopped at"), "{point}: {ended:?}");
        let mut session = running.session().unwrap();
        session.run("DROP DATABASE shop").unwrap();
        session.run("CREATE DATABASE shop").unwrap();
    }
}

#[test]
fn a_dump_to_a_pipe() {
    let scratch = Scratch::new();
    let running = server(&scratch);
    let mut session = running.session().unwrap();
    session.run("USE shop").unwrap();
    for table in 0..6 {
        session
            .run(&format!("CREATE TABLE t{table} (id INT PRIMARY KEY)"))
            .unwrap();
        session
            .run(&format!("INSERT INTO t{table} VALUES (1), (2)"))
            .unwrap();
    }
    for point in [
        "dump.stream-range=1*panic",
        "dump.stream-range=3*off->1*panic",
    ] {
        let mut dump = command(&running, "dump");
        dump.args(["--threads=3", "--output=-"]);
        broken(dump, point);
    }
}
