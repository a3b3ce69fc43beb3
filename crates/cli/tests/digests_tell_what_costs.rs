//! Does `digest` say which statements cost the most, what changed, and what it could not read?

use evenkeel_testkit::Scratch;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BANNER: &str =
    "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:
Tcp port: 0  Unix socket: /run/s
Time                 Id Command    Argument
";

fn entry(second: usize, user: &str, seconds: f64, sql: &str) -> String {
    format!(
        "# Time: 2026-11-28T08:{:02}:{:02}.000000Z\n# User@Host: {user}[{user}] @ web1 [10.0.0.7]  Id:     7\n\
         # Query_time: {seconds:.6}  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 9\nuse shop;\n\
         SET timestamp=1795853835;\n{sql};\n",
        second / 60,
        second % 60
    )
}

/// A minute of statements; `orders` is how long one for orders takes.
fn log(orders: f64, other: &str) -> String {
    let mut log = BANNER.to_owned();
    for second in 0..60 {
        let jitter = (second * 7 % 13) as f64 / 10_000.0;
        log += &entry(
            second,
            "app",
            orders + jitter,
            &format!("SELECT * FROM orders WHERE id = {second}"),
        );
        log += &entry(
            second,
            "app",
            0.001 + jitter,
            &format!("SELECT name FROM users WHERE id IN ({second}, 2)"),
        );
        log += &entry(second, "admin", 0.0001, other);
    }
    log
}

fn digest(room: &Path, words: &[&str], input: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .arg("digest")
        .args(words)
        .current_dir(room)
        .env("TZ", "UTC");
    match input {
        Some(file) => command.stdin(fs::File::open(room.join(file)).unwrap()),
        None => command.stdin(Stdio::null()),
    };
    command.output().unwrap()
}

fn said(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().unwrap(),
    )
}

fn json(room: &Path, words: &[&str], input: Option<&str>) -> Value {
    let (out, err, code) = said(&digest(room, &[words, &["--json"]].concat(), input));
    assert_eq!(code, 0, "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

fn room() -> Scratch {
    let room = Scratch::new();
    fs::write(room.path().join("slow.log"), log(0.02, "SELECT old")).unwrap();
    fs::write(room.path().join("later.log"), log(0.05, "SELECT new")).unwrap();
    room
}

#[test]
fn the_most_expensive_come_first() {
    let room = room();
    let answer = json(room.path(), &["slow.log"], None);
    let classes = answer["classes"].as_array().unwrap();
    let prints: Vec<&str> = classes
        .iter()
        .map(|class| class["fingerprint"].as_str().unwrap())
        .collect();
    let orders = "select * from orders where id = ?";
    let users = "select name from users where id in (...)";
    assert_eq!(prints, [orders, users, "select old"]);
    assert_eq!(
        (&answer["total"]["count"], &classes[0]["count"]),
        (&180.into(), &60.into())
    );
    assert_eq!(classes[0]["rows_examined"], 540);
    assert_eq!(classes[0]["schemas"][0]["name"], "shop");
    assert_eq!(
        classes[0]["sample"]["sql"],
        "SELECT * FROM orders WHERE id = 11"
    );
    let (text, _, code) = said(&digest(room.path(), &["slow.log", "--top", "2"], None));
    assert_eq!(code, 0);
    assert!(
        text.starts_with("slow.log: 180 statements, 3 classes, "),
        "{text}"
    );
    assert!(
        text.contains("████")
            && text.contains(orders)
            && text.contains("… and 1 more with 60 statements"),
        "{text}"
    );
    let by = |sort: &str| {
        json(room.path(), &["slow.log", "--sort", sort], None)["classes"][0]["fingerprint"].clone()
    };
    assert_eq!(by("latency"), orders);
}

#[test]
fn options_choose_statements() {
    let room = room();
    let count = |words: &[&str]| {
        json(room.path(), &[&["slow.log"], words].concat(), None)["total"]["count"].clone()
    };
    assert_eq!(count(&["--user", "admin"]), 60);
    assert_eq!(count(&["--match", "(?i)from (orders|users)"]), 120);
    assert_eq!(count(&["--host", "web1", "--database", "shop"]), 180);
    assert_eq!(count(&["--database", "other"]), 0);
    // They are counted by when they began.
    assert_eq!(
        count(&[
            "--since",
            "2026-11-28 08:00:30",
            "--until",
            "2026-11-28T08:00:40Z"
        ]),
        30
    );
    let (_, err, code) = said(&digest(room.path(), &["slow.log", "--since", "soon"], None));
    assert!(code == 2 && err.contains("'soon' is not a time"), "{err}");
    let (_, err, code) = said(&digest(room.path(), &["slow.log", "--match", "("], None));
    assert!(code == 2 && err.contains("regular expression"), "{err}");
}

#[test]
fn files_are_read_as_one_wherever_they_come_from() {
    let room = room();
    let both = json(room.path(), &["slow.log", "later.log"], None);
    assert_eq!(both["classes"][0]["count"], 120);
    let packed = zstd::encode_all(log(0.02, "SELECT old").as_bytes(), 1).unwrap();
    fs::write(room.path().join("slow.log.zst"), packed).unwrap();
    for (words, input) in [
        (&["-"], Some("slow.log")),
        (&["slow.log.zst"], None),
        (&["./slow.log"], None),
    ] {
        assert_eq!(
            json(room.path(), words, input)["total"]["count"],
            180,
            "{words:?}"
        );
    }
    fs::write(room.path().join("dump.sql"), "INSERT INTO t VALUES (1);\n").unwrap();
    let (_, err, code) = said(&digest(room.path(), &["dump.sql"], None));
    assert!(
        code == 2 && err.contains("neither a slow query log, nor"),
        "{err}"
    );
    let (_, err, code) = said(&digest(room.path(), &["missing.log"], None));
    assert!(code == 2 && err.contains("does not exist"), "{err}");
}

#[test]
fn what_could_not_be_read_is_not_passed_over() {
    let room = room();
    let text = log(0.02, "SELECT old");
    let cut = text.rfind("use shop").unwrap();
    fs::write(room.path().join("cut.log"), &text[..cut]).unwrap();
    let (out, err, code) = said(&digest(room.path(), &["cut.log", "--json"], None));
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("cut.log: 1 entry could not be read and is not counted (line "),
        "{err}"
    );
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&answer["total"]["count"], &answer["files"][0]["unreadable"]),
        (&179.into(), &1.into())
    );
}

#[test]
fn times_that_are_not_the_servers_are_named() {
    let room = room();
    let entry = |session: u32, at: i64| {
        format!(
            "# User@Host: app[app] @ web1 []\n# Thread_id: {session}  Schema: shop  QC_hit: No\n\
             # Query_time: 0.500000  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1\n\
             SET timestamp={at};\nSELECT {session};\n"
        )
    };
    let log = [(3, 0), (4, 1), (5, -900_000_000), (3, 2)];
    let log = log.map(|(session, after)| entry(session, 1_795_853_835 + after));
    fs::write(room.path().join("own.log"), log.concat()).unwrap();
    let (out, err, code) = said(&digest(room.path(), &["own.log", "--json"], None));
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("own.log: 1 entry has the time of a session"),
        "{err}"
    );
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["from"], "2026-11-28T08:17:15Z");
    assert_eq!(answer["files"][0]["own_clocks"], 1);

    let broken = log
        .concat()
        .replace("timestamp=1795853837", "timestamp=99999999999999");
    fs::write(room.path().join("broken.log"), broken).unwrap();
    let (out, err, code) = said(&digest(room.path(), &["broken.log", "--json"], None));
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains(
            "broken.log: 1 entry has a time that cannot be read, first in line 19; it counts"
        ),
        "{err}"
    );
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&answer["files"][0]["untimed"], &answer["total"]["count"]),
        (&1.into(), &4.into())
    );
}

#[test]
fn what_was_read_of_a_log_that_is_cut_off_is_reported() {
    let room = room();
    let one = |number: usize| {
        let sql = format!("SELECT * FROM orders WHERE id = {}", number * 7919 % 10_007);
        entry(number % 3600, "app", number as f64 / 1e6, &sql)
    };
    let log = (0..7000).map(one).collect::<String>();
    let zstd = zstd::encode_all(log.as_bytes(), 1).unwrap();
    fs::write(room.path().join("all.log"), &log).unwrap();
    let gzip = Command::new("gzip")
        .args(["-c", "all.log"])
        .current_dir(room.path())
        .output();
    for (name, packed) in [("cut.log.zst", zstd), ("cut.log.gz", gzip.unwrap().stdout)] {
        // Far inside, and where all was read that tells what it is.
        for part in [packed.len() / 2, packed.len() - 4] {
            fs::write(room.path().join(name), &packed[..part]).unwrap();
            let (out, err, code) = said(&digest(room.path(), &[name, "--json"], None));
            assert_eq!(code, 3, "{name}: {err}");
            assert!(
                err.contains(&format!("{name}: "))
                    && err.contains("the rest could not be read and is not counted"),
                "{err}"
            );
            let answer: Value = serde_json::from_str(&out).unwrap();
            assert!(answer["total"]["count"].as_u64() > Some(0), "{name}");
            assert!(
                answer["files"][0]["unreadable"].as_u64() > Some(0),
                "{name}"
            );
        }
    }
}

#[test]
fn a_period_needs_a_name_or_none() {
    let room = room();
    let words = ["slow.log", "--history", "shop.db", "--history-name", ""];
    let (_, err, code) = said(&digest(room.path(), &words, None));
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("--history-name is empty") && err.contains("--history-name shop"),
        "{err}"
    );
    assert!(!room.path().join("shop.db").exists());
}

#[test]
fn two_digests_say_what_changed() {
    let room = room();
    let before = digest(room.path(), &["slow.log", "--json"], None);
    fs::write(room.path().join("before.json"), &before.stdout).unwrap();
    let answer = json(
        room.path(),
        &["later.log", "--compare", "before.json"],
        None,
    );
    let changes = answer["changes"].as_array().unwrap();
    let of = |print: &str| {
        let found = changes.iter().find(|change| change["fingerprint"] == print);
        found.unwrap()["change"].as_str().unwrap().to_owned()
    };
    assert_eq!(of("select * from orders where id = ?"), "slower");
    assert_eq!(of("select name from users where id in (...)"), "same");
    assert_eq!(
        (of("select new"), of("select old")),
        ("new".to_owned(), "gone".to_owned())
    );
    let (text, _, _) = said(&digest(
        room.path(),
        &["later.log", "--compare", "before.json"],
        None,
    ));
    assert!(
        text.contains("slower") && text.contains("No clear difference in 1 class"),
        "{text}"
    );
    let other = [
        "later.log",
        "--compare",
        "before.json",
        "--fingerprint",
        "pt",
    ];
    let (_, err, code) = said(&digest(room.path(), &other, None));
    assert!(
        code == 2 && err.contains("fingerprints of other rules"),
        "{err}"
    );
}

#[test]
fn neither_secrets_nor_orders_to_terminals_are_shown() {
    let room = room();
    let mut text = BANNER.to_owned();
    text += &entry(
        1,
        "<b>\u{1b}[31m",
        1.0,
        "CREATE USER u IDENTIFIED BY 'hunter2'",
    );
    text += &entry(
        2,
        "app",
        0.5,
        "SELECT '\u{1b}[2J</pre><script>alert(1)</script>' FROM `<script>`",
    );
    fs::write(room.path().join("odd.log"), text).unwrap();
    let (out, err, code) = said(&digest(
        room.path(),
        &["odd.log", "--html", "odd.html"],
        None,
    ));
    assert_eq!(code, 0, "{err}");
    let html = fs::read_to_string(room.path().join("odd.html")).unwrap();
    let answer = digest(room.path(), &["odd.log", "--json"], None).stdout;
    for shown in [&out, &html, &String::from_utf8(answer).unwrap()] {
        assert!(
            !shown.contains("hunter2") && !shown.contains('\u{1b}'),
            "{shown}"
        );
    }
    assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
    assert!(
        html.contains("<svg") && html.contains("&lt;script&gt;"),
        "{html}"
    );
}

#[test]
fn classes_beyond_the_limit_are_counted_together() {
    let room = room();
    let answer = json(room.path(), &["slow.log", "--classes", "1"], None);
    assert_eq!(answer["classes"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&answer["others"]["count"], &answer["total"]["count"]),
        (&120.into(), &180.into())
    );
    let (text, _, _) = said(&digest(room.path(), &["slow.log", "--classes", "1"], None));
    assert!(
        text.contains("Classes beyond --classes are counted together: 120 statements"),
        "{text}"
    );
}

#[test]
fn identifiers_are_those_of_percona_when_asked_for() {
    let room = room();
    let answer = json(room.path(), &["slow.log", "--fingerprint", "pt"], None);
    assert_eq!(answer["fingerprints"], "pt");
    let class = &answer["classes"][1];
    assert_eq!(
        class["fingerprint"],
        "select name from users where id in(?+)"
    );
    assert_eq!(class["id"].as_str().unwrap().len(), 32);
}

#[test]
fn a_page_takes_the_place_of_nothing_that_is_read() {
    let room = room();
    let log = fs::read(room.path().join("slow.log")).unwrap();
    fs::write(room.path().join("before.json"), b"{}").unwrap();
    std::os::unix::fs::symlink("slow.log", room.path().join("link")).unwrap();
    for page in ["slow.log", "./slow.log", "link", "-", "/dev/null"] {
        let (_, error, code) = said(&digest(room.path(), &["slow.log", "--html", page], None));
        assert_eq!(code, 2, "{page}: {error}");
        assert_eq!(
            fs::read(room.path().join("slow.log")).unwrap(),
            log,
            "{page}"
        );
    }
    assert!(!room.path().join("-").exists());
    fs::write(room.path().join("page.html"), b"old").unwrap();
    let (_, error, code) = said(&digest(
        room.path(),
        &["slow.log", "--html", "page.html"],
        None,
    ));
    assert_eq!(code, 0, "{error}");
    assert!(
        fs::read_to_string(room.path().join("page.html"))
            .unwrap()
            .contains("orders")
    );
}

#[test]
fn what_no_log_says_is_not_zero() {
    let room = room();
    let general = "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:\n\
        Tcp port: 0  Unix socket: /run/s\nTime                 Id Command    Argument\n\
        2026-11-28T08:00:00.000000Z\t    7 Query\tSELECT 1\n\
        2026-11-28T08:00:01.000000Z\t    7 Query\tSELECT 'a' FROM t\n";
    fs::write(room.path().join("general.log"), general).unwrap();
    let answer = json(room.path(), &["general.log"], None);
    assert!(answer["total"]["rows_sent"].is_null(), "{answer}");
    let (text, error, code) = said(&digest(room.path(), &["general.log", "--top", "1"], None));
    assert_eq!(code, 0, "{error}");
    assert!(
        !text.contains("sent") && text.contains("50.0 % of all"),
        "{text}"
    );
}

#[test]
fn a_wait_for_more_ends_when_it_is_to() {
    let room = room();
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["digest", "-"])
        .current_dir(room.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    // `wait` would close it, and the end of the input could come before the signal.
    let _open = child.stdin.take();
    // Once it has its handlers, it waits for the first byte.
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(line.unwrap_or("0").trim(), 16).unwrap_or(0) & 2 != 0
    };
    while !catches() {
        std::thread::yield_now();
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn an_answer_that_cannot_be_printed_is_a_failure() {
    let room = room();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["digest", "slow.log", "--json"])
        .current_dir(room.path())
        .stdout(full)
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("failed to write to standard output"),
        "{said}"
    );
}

#[test]
fn a_page_that_cannot_be_written_costs_no_answer() {
    let room = room();
    // No file may have a byte: what a full disk is to it.
    let shell = format!(
        "ulimit -f 0; trap '' XFSZ; exec {} digest slow.log --json --html page.html",
        env!("CARGO_BIN_EXE_evenkeel")
    );
    let mut command = Command::new("sh");
    let out = command
        .args(["-c", &shell])
        .current_dir(room.path())
        .output();
    let (out, error, code) = said(&out.unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("failed to write page.html"), "{error}");
    // One document, and nothing beside it.
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert_eq!(answer["schema"], "evenkeel/digest/1");
}

#[test]
fn a_file_counts_once_by_whatever_name() {
    let room = room();
    fs::hard_link(room.path().join("slow.log"), room.path().join("link")).unwrap();
    std::os::unix::fs::symlink("slow.log", room.path().join("soft")).unwrap();
    for other in ["slow.log", "./slow.log", "link", "soft"] {
        let (out, err, code) = said(&digest(room.path(), &["slow.log", other], None));
        assert_eq!(code, 2, "{other}: {out}");
        assert!(err.contains("its statements would count twice"), "{err}");
    }
    let (_, err, code) = said(&digest(room.path(), &["slow.log", "-"], Some("link")));
    assert_eq!(code, 2, "{err}");
    let (_, err, code) = said(&digest(room.path(), &["slow.log", "later.log"], None));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn no_text_turns_the_text_beside_it() {
    let room = Scratch::new();
    let sql = "SELECT 'a\u{202e}b\u{2066}c\u{9b}31m'";
    fs::write(room.path().join("slow.log"), entry(1, "app", 0.01, sql)).unwrap();
    let obeyed = ['\u{202e}', '\u{2066}', '\u{9b}'];
    let words = ["slow.log", "--json", "--html", "page.html"];
    let (out, err, code) = said(&digest(room.path(), &words, None));
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains(obeyed), "{out}");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["classes"][0]["sample"]["sql"], sql);
    let page = fs::read_to_string(room.path().join("page.html")).unwrap();
    assert!(
        !page.contains(obeyed) && page.contains("\\u{202e}"),
        "{page}"
    );
    let (out, ..) = said(&digest(room.path(), &["slow.log"], None));
    assert!(!out.contains(obeyed), "{out}");
}
