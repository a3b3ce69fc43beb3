//! Does a history keep each digest once, with everything that a comparison needs, and lose nothing?

use evenkeel_testkit::Scratch;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const BANNER: &str =
    "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:
Tcp port: 0  Unix socket: /run/s
Time                 Id Command    Argument
";

/// A minute of statements on a day of November 2026; `orders` is how many seconds one for orders takes.
fn log(day: usize, orders: f64, other: &str) -> String {
    let mut log = BANNER.to_owned();
    let mut add = |second: usize, seconds: f64, sql: String| {
        log += &format!(
            "# Time: 2026-11-{day:02}T08:00:{second:02}.000000Z\n# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7\n\
             # Query_time: {seconds:.6}  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 9\nuse shop;\n\
             SET timestamp=1795853835;\n{sql};\n"
        );
    };
    for second in 0..60 {
        let jitter = (second * 7 % 13) as f64 / 10_000.0;
        let orders_of = format!("SELECT * FROM orders WHERE id = {second}");
        add(second, orders + jitter, orders_of);
        add(
            second,
            0.001 + jitter,
            format!("SELECT name FROM users WHERE id IN ({second}, 2)"),
        );
        add(second, 0.0001, other.to_owned());
    }
    log
}

fn room() -> Scratch {
    let room = Scratch::new();
    for (name, day, orders, other) in [
        ("slow.log.2", 23, 0.02, "SELECT old"),
        ("slow.log.1", 24, 0.05, "SELECT new"),
    ] {
        fs::write(room.path().join(name), log(day, orders, other)).unwrap();
    }
    room
}

fn command(room: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .arg("digest")
        .args(words)
        .current_dir(room)
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    command
}

fn said(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().unwrap_or(-1),
    )
}

fn run(room: &Path, words: &[&str]) -> (String, String, i32) {
    said(&command(room, words).output().unwrap())
}

#[track_caller]
fn json(room: &Path, words: &[&str]) -> Value {
    let (out, err, code) = run(room, &[words, &["--json"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

fn periods(room: &Path) -> Vec<Value> {
    let answer = json(room, &["--history", "h.db", "--periods"]);
    answer["periods"].as_array().unwrap().clone()
}

fn change<'a>(answer: &'a Value, print: &str) -> &'a str {
    let changes = answer["changes"].as_array().unwrap();
    let found = changes.iter().find(|change| change["fingerprint"] == print);
    found.unwrap()["change"].as_str().unwrap()
}

#[test]
fn a_period_is_the_digest_that_it_was() {
    let room = room();
    let first = json(room.path(), &["slow.log.2", "--history", "h.db"]);
    assert_eq!(first["history"]["added"]["number"], 1);
    let mode = fs::metadata(room.path().join("h.db"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mut kept = json(room.path(), &["--history", "h.db", "--period", "1"]);
    let mut original = first;
    for answer in [&mut kept, &mut original] {
        let fields = answer.as_object_mut().unwrap();
        fields.remove("history");
        fields.remove("files");
    }
    assert_eq!(kept, original);
}

#[test]
fn two_periods_compare_as_two_logs_do() {
    let room = room();
    for log in ["slow.log.2", "slow.log.1"] {
        json(room.path(), &[log, "--history", "h.db"]);
    }
    for pair in [
        ["1", "2"],
        ["2026-11-23", "2026-11-24"],
        ["2026-11-23T08:00/2h", "2026-11-24T07:30/1h"],
    ] {
        let answer = json(
            room.path(),
            &["--history", "h.db", "--compare", pair[0], pair[1]],
        );
        assert_eq!(
            change(&answer, "select * from orders where id = ?"),
            "slower"
        );
        assert_eq!(
            change(&answer, "select name from users where id in (...)"),
            "same"
        );
        assert_eq!(change(&answer, "select new"), "new");
        assert_eq!(change(&answer, "select old"), "gone");
    }
    // A log with a period, and the page.
    let words = [
        "slow.log.1",
        "--history",
        "h.db",
        "--compare",
        "2026-11-23",
        "--html",
        "page.html",
    ];
    let answer = json(room.path(), &words);
    assert_eq!(
        change(&answer, "select * from orders where id = ?"),
        "slower"
    );
    assert_eq!(answer["history"]["added"]["is_new"], false);
    assert!(room.path().join("page.html").exists());
    let (_, error, code) = run(
        room.path(),
        &["--history", "h.db", "--compare", "2026-11-22", "2"],
    );
    assert!(
        code == 2 && error.contains("no period that '2026-11-22' means"),
        "{error}"
    );
    let (_, error, code) = run(
        room.path(),
        &["--history", "h.db", "--compare", "soon", "2"],
    );
    assert!(
        code == 2 && error.contains("'soon' is not a period"),
        "{error}"
    );
}

#[test]
fn several_periods_add_up() {
    let room = room();
    let both = json(room.path(), &["slow.log.2", "slow.log.1"]);
    for log in ["slow.log.2", "slow.log.1"] {
        json(room.path(), &[log, "--history", "h.db"]);
    }
    let answer = json(
        room.path(),
        &["--history", "h.db", "--period", "2026-11-23/2d"],
    );
    for field in [
        "count",
        "latency_us",
        "rows_sent",
        "users",
        "first_seen",
        "last_seen",
    ] {
        assert_eq!(answer["total"][field], both["total"][field], "{field}");
    }
    let class = |answer: &Value| answer["classes"][0].clone();
    for field in ["id", "count", "latency_us", "sample"] {
        assert_eq!(class(&answer)[field], class(&both)[field], "{field}");
    }
    let counted = |answer: &Value| -> u64 {
        let intervals = answer["total"]["series"].as_array().unwrap().iter();
        intervals.map(|one| one["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(counted(&answer), 360);
}

#[test]
fn nothing_is_counted_twice() {
    let room = room();
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    // It was rotated on, and compressed.
    let log = fs::read(room.path().join("slow.log.1")).unwrap();
    fs::write(
        room.path().join("slow.log.2.zst"),
        zstd::encode_all(&log[..], 1).unwrap(),
    )
    .unwrap();
    let again = json(room.path(), &["slow.log.2.zst", "--history", "h.db"]);
    assert_eq!(again["history"]["added"]["is_new"], false);
    let (text, _, _) = run(room.path(), &["slow.log.1", "--history", "h.db"]);
    assert!(
        text.contains("has these statements already, as period 1"),
        "{text}"
    );
    // A part of it is no other period.
    let part = [
        "slow.log.1",
        "--history",
        "h.db",
        "--since",
        "2026-11-24 08:00:30",
        "--json",
    ];
    let (out, error, code) = run(room.path(), &part);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("its period 1 has other statements of"),
        "{error}"
    );
    // The answer is not lost.
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["total"]["count"],
        87
    );
    assert_eq!(periods(room.path()).len(), 1);
    // Under another name it is something else, and a day of both is ambiguous.
    json(
        room.path(),
        &[
            "slow.log.1",
            "--history",
            "h.db",
            "--history-name",
            "replica",
        ],
    );
    let day = ["--history", "h.db", "--period", "2026-11-24"];
    let (_, error, code) = run(room.path(), &day);
    assert!(code == 2 && error.contains("--history-name"), "{error}");
    let named = json(
        room.path(),
        &[&day[..], &["--history-name", "replica"]].concat(),
    );
    assert_eq!(named["total"]["count"], 180);
}

#[test]
fn statements_run_across_a_rotation() {
    let room = room();
    // It ended in the second minute, and had begun in the first.
    let second = log(24, 0.05, "SELECT new").replace("T08:00:", "T08:01:");
    let long = second.replacen("# Query_time: 0.050000", "# Query_time: 20.000000", 1);
    fs::write(room.path().join("slow.log"), &long).unwrap();
    for name in ["slow.log.1", "slow.log"] {
        let answer = json(room.path(), &[name, "--history", "h.db"]);
        assert_eq!(answer["history"]["added"]["is_new"], true);
    }
    // And the other way around.
    for name in ["slow.log", "slow.log.1"] {
        let answer = json(room.path(), &[name, "--history", "later.db"]);
        assert_eq!(answer["history"]["added"]["is_new"], true);
    }
    // A log that has grown is no log that follows.
    let both = log(24, 0.05, "SELECT new") + &long.replace(BANNER, "");
    fs::write(room.path().join("slow.log"), both).unwrap();
    let (_, error, code) = run(room.path(), &["slow.log", "--history", "h.db"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn old_periods_are_removed_when_asked_for() {
    let room = room();
    let old = log(23, 0.02, "SELECT old").replace("2026-11", "2020-01");
    fs::write(room.path().join("slow.log.3"), old).unwrap();
    for log in ["slow.log.3", "slow.log.1"] {
        json(room.path(), &[log, "--history", "h.db"]);
    }
    let answer = json(room.path(), &["--history", "h.db", "--keep", "900d"]);
    assert_eq!(answer["removed"], serde_json::json!([1]));
    assert_eq!(periods(room.path()).len(), 1);
    // A number is not used again.
    let next = json(room.path(), &["slow.log.2", "--history", "h.db"]);
    assert_eq!(next["history"]["added"]["number"], 3);
}

#[test]
fn what_others_prepared_is_refused() {
    let room = room();
    let theirs = room.path().join("theirs.db");
    fs::write(&theirs, "").unwrap();
    chown(&theirs, Some(12_345), None).unwrap();
    let (_, error, code) = run(room.path(), &["slow.log.1", "--history", "theirs.db"]);
    assert_eq!(code, 14, "{error}");
    assert_eq!(fs::metadata(&theirs).unwrap().len(), 0);
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    let trigger = "import sqlite3; c = sqlite3.connect('h.db'); c.execute('CREATE TRIGGER t BEFORE INSERT ON \
                   digest_class BEGIN SELECT RAISE(IGNORE); END'); c.commit()";
    let mut python = Command::new("python3");
    python.current_dir(room.path()).args(["-c", trigger]);
    assert!(python.status().unwrap().success());
    let (_, error, code) = run(room.path(), &["slow.log.2", "--history", "h.db"]);
    assert_eq!(code, 14, "{error}");
}

#[test]
fn ninety_of_what_is_asked() {
    let room = room();
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    let (_, error, code) = run(room.path(), &["--history", "h.db", "--keep", "90"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("90d for days"), "{error}");
    assert_eq!(periods(room.path()).len(), 1);
}

#[test]
fn what_is_no_history_stays_what_it_is() {
    let room = room();
    let at = |name: &str| room.path().join(name);
    fs::write(at("text"), "SELECT 1;\n".repeat(200)).unwrap();
    let sqlite =
        "import sqlite3,sys; sqlite3.connect(sys.argv[1]).executescript('create table t(a)')";
    let made = Command::new("python3")
        .args(["-c", sqlite])
        .arg(at("other.db"))
        .status();
    assert!(made.unwrap().success());
    for (name, message) in [
        ("text", "no SQLite database"),
        ("other.db", "an SQLite database of another program"),
        ("/dev/null", "not a regular file"),
        (".", "not a regular file"),
        ("none/h.db", "failed to open the history none/h.db"),
    ] {
        let before = fs::read(at(name)).unwrap_or_default();
        let (out, error, code) = run(room.path(), &["slow.log.1", "--history", name]);
        assert!(
            code == 2 && error.contains(message),
            "{name}: {code} {error}"
        );
        assert!(out.is_empty(), "it is said before anything is read: {out}");
        assert_eq!(fs::read(at(name)).unwrap_or_default(), before, "{name}");
    }
    // What is only read is not made.
    let (_, error, code) = run(room.path(), &["--history", "none.db", "--periods"]);
    assert!(
        code == 2 && error.contains("the history none.db does not exist"),
        "{error}"
    );
    assert!(!at("none.db").exists());
    // Nor does a page take its place.
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    let (_, error, code) = run(
        room.path(),
        &["slow.log.1", "--history", "h.db", "--html", "h.db"],
    );
    assert!(code == 2 && error.contains("h.db"), "{error}");
    assert_eq!(periods(room.path()).len(), 1);
}

/// SQLite plays a journal that lies beside a history back into it, whoever wrote it.
#[test]
fn nobody_else_makes_files_beside_a_history() {
    let room = room();
    let open = room.path().join("open");
    fs::create_dir(&open).unwrap();
    let set_mode = |mode| fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
    // As /tmp is: who may not replace a file may put others beside it.
    set_mode(0o1777);
    let (_, error, code) = run(room.path(), &["slow.log.1", "--history", "open/h.db"]);
    assert!(
        code == 14 && error.contains("another user can make files beside open/h.db"),
        "{code} {error}"
    );
    assert!(!open.join("h.db").exists());
    set_mode(0o755);
    json(room.path(), &["slow.log.1", "--history", "open/h.db"]);
    set_mode(0o777);
    let (_, error, code) = run(room.path(), &["--history", "open/h.db", "--periods"]);
    assert!(code == 14, "{code} {error}");
}

#[test]
fn tables_of_a_newer_program_are_left_alone() {
    let room = room();
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    let newer = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('update digest_history set version=2'); c.commit()";
    let made = Command::new("python3")
        .args(["-c", newer])
        .arg(room.path().join("h.db"))
        .status();
    assert!(made.unwrap().success());
    let (_, error, code) = run(room.path(), &["slow.log.2", "--history", "h.db"]);
    assert!(
        code != 0 && error.contains("has version 2 of its tables"),
        "{error}"
    );
}

#[test]
fn a_full_disk_adds_nothing_and_loses_nothing() {
    let room = room();
    json(room.path(), &["slow.log.2", "--history", "h.db"]);
    let size = fs::metadata(room.path().join("h.db")).unwrap().len();
    // The file may not grow.
    let shell = format!(
        "ulimit -f {}; trap '' XFSZ; exec {} digest slow.log.1 --history h.db --json",
        size / 512,
        env!("CARGO_BIN_EXE_evenkeel")
    );
    let mut command = Command::new("sh");
    let out = command
        .args(["-c", &shell])
        .current_dir(room.path())
        .output();
    let (out, error, code) = said(&out.unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("nothing of this run was added") && error.contains("disk"),
        "{error}"
    );
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["total"]["count"],
        180
    );
    assert_eq!(periods(room.path()).len(), 1);
    json(room.path(), &["slow.log.1", "--history", "h.db"]);
    assert_eq!(periods(room.path()).len(), 2);
}

/// Starts a digest that has opened the history, and waits for the end of its input.
fn waiting(room: &Path, name: &str) -> Child {
    let words = ["-", "--history", "h.db", "--history-name", name];
    let mut command = command(room, &words);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn writers_wait_for_each_other() {
    use std::io::Write;
    let room = room();
    let text = log(24, 0.05, "SELECT new");
    let mut all: Vec<Child> = (0..8)
        .map(|n| waiting(room.path(), &format!("db{n}")))
        .collect();
    for child in &mut all {
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }
    // All end at once.
    for child in &mut all {
        child.stdin.take();
    }
    for child in &mut all {
        assert!(child.wait().unwrap().success());
    }
    let all = periods(room.path());
    let mut numbers: Vec<u64> = { all.iter() }
        .map(|one| one["number"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
}

/// Adds a log to the history under `strace`, which kills it as it makes its `nth` call `call` on the history
/// or its journal. Returns whether it came that far.
fn killed_at(room: &Path, call: &str, nth: usize) -> bool {
    let file = room.join("h.db");
    let name = format!("{call}{nth}");
    let words = ["slow.log.1", "--history", "h.db", "--history-name", &name];
    let digest = command(room, &words);
    let ended = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-P"])
        .arg(&file)
        .arg("-P")
        .arg(file.with_extension("db-journal"))
        .arg("-e")
        .arg(format!("inject={call}:signal=SIGKILL:when={nth}"))
        .arg(digest.get_program())
        .args(digest.get_args())
        .current_dir(room)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    // It ends as what it traces does.
    let was_killed = ended.status.signal() == Some(Signal::KILL.as_raw());
    assert!(was_killed || ended.status.success(), "{ended:?}");
    was_killed
}

/// Returns the newest period, and how many there are. Panics unless it is whole.
fn newest_is_whole(room: &Path) -> (Value, usize) {
    let mut all = periods(room);
    all.sort_by_key(|period| period["number"].as_u64());
    let newest = all.last().expect("a period");
    let number = newest["number"].to_string();
    let answer = json(room, &["--history", "h.db", "--period", &number]);
    let classes = answer["classes"].as_array().unwrap();
    assert_eq!(
        (classes.len(), &answer["total"]["count"]),
        (3, &180.into()),
        "{newest}"
    );
    (newest["name"].clone(), all.len())
}

#[test]
fn a_killed_run_leaves_a_period_or_none() {
    let room = room();
    json(room.path(), &["slow.log.2", "--history", "h.db"]);
    let mut before = 1;
    // The last call is the one that commits: it removes the journal.
    for (call, at_least) in [("pwrite64", 10), ("fsync", 3), ("unlink", 1)] {
        let mut nth = 1;
        while killed_at(room.path(), call, nth) {
            let (_, now) = newest_is_whole(room.path());
            assert_eq!(now, before, "killed at {call} {nth}");
            nth += 1;
        }
        assert!(nth > at_least, "{call}: {nth}");
        let (name, now) = newest_is_whole(room.path());
        assert_eq!((name, now), (format!("{call}{nth}").into(), before + 1));
        before = now;
    }
}

#[test]
fn a_command_that_means_nothing_says_what_to_type() {
    let room = room();
    json(room.path(), &["slow.log.2", "--history", "h.db"]);
    for (words, message) in [
        (&[][..], "no log is named"),
        (&["--history", "h.db"], "no period of the history"),
        (
            &["--history", "h.db", "--compare", "1"],
            "two periods are needed",
        ),
        (
            &["--history", "h.db", "--period", "1", "--user", "app"],
            "cannot be filtered",
        ),
        (
            &["slow.log.1", "--history", "h.db", "--compare", "1", "2"],
            "no log is read",
        ),
        (
            &["--history", "mysql://root:secret@db1/x", "--periods"],
            "password does not belong",
        ),
    ] {
        let (out, error, code) = run(room.path(), words);
        assert!(
            code == 2 && error.contains(message),
            "{words:?}: {code} {error}"
        );
        assert!(
            !out.contains("secret") && !error.contains("secret"),
            "{error}"
        );
    }
    // With one file, what follows is a log as it always was.
    fs::write(
        room.path().join("b.json"),
        json(room.path(), &["slow.log.2"]).to_string(),
    )
    .unwrap();
    let answer = json(room.path(), &["--compare", "b.json", "slow.log.1"]);
    assert_eq!(change(&answer, "select new"), "new");
}

#[test]
fn a_period_is_forgotten_only_when_that_is_executed() {
    let room = room();
    for log in ["slow.log.2", "slow.log.1"] {
        json(room.path(), &[log, "--history", "h.db"]);
    }
    let forget = ["--history", "h.db", "--forget", "2026-11-23"];
    let (out, err, code) = run(room.path(), &forget);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("only a plan: add --execute"), "{out}");
    assert_eq!(periods(room.path()).len(), 2);
    let answer = json(room.path(), &[&forget[..], &["--execute"]].concat());
    assert_eq!(answer["schema"], "evenkeel/digest-forget/1");
    assert_eq!(answer["remove"][0]["number"], 1);
    let left = periods(room.path());
    assert_eq!((left.len(), &left[0]["number"]), (1, &2.into()));
    // The same log again: its number is not used twice.
    let again = json(room.path(), &["slow.log.2", "--history", "h.db"]);
    assert_eq!(again["history"]["added"]["number"], 3);
    let (_, err, code) = run(room.path(), &["--history", "h.db", "--forget", "9"]);
    assert_eq!(code, 2, "{err}");
    let (_, err, code) = run(room.path(), &["--history", "h.db", "--execute"]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn a_log_that_was_just_rotated_adds_no_period() {
    let room = room();
    fs::write(room.path().join("slow.log"), BANNER).unwrap();
    let words = |log: &'static str| {
        let time = [
            "--since",
            "2026-11-23T00:00:00Z",
            "--until",
            "2026-11-24T00:00:00Z",
        ];
        [&[log, "--history", "h.db"][..], &time].concat()
    };
    let (out, err, code) = run(room.path(), &words("slow.log"));
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("name its parts together"), "{err}");
    // The part that has them comes later, and nothing is in its way.
    let added = json(room.path(), &words("slow.log.2"));
    assert_eq!(added["history"]["added"]["number"], 1);
}
