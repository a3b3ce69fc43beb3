//! Does `queue status` list all other queues where one cannot be read, and say which and why?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn status(site: &QueueSite, words: &[&str]) -> Ended {
    let socket = site.running.socket().to_str().unwrap();
    let connection = ["--no-defaults", "-u", "root", "-S", socket];
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    run(program.command(&[&["queue", "status"][..], words, &connection].concat()))
}

/// The directory of a queue's rows, by the id in its anchor.
fn rows_of(datadir: &Path, anchor: &Path) -> PathBuf {
    let bytes = fs::read(anchor).unwrap();
    let id = u128::from_le_bytes(bytes[16..32].try_into().unwrap());
    datadir.join(format!("#sqlqueue/{id:032x}"))
}

/// Changes a row of a queue whose server does not run.
fn damage(datadir: &Path, anchor: &Path) {
    let path = rows_of(datadir, anchor).join("000000000001.seg");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|text| text == b"mail").unwrap();
    bytes[at] = b'M';
    fs::write(&path, bytes).unwrap();
}

fn on(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.session();
    for name in ["broken", "gone", "jobs"] {
        for sql in [
            format!("CREATE TABLE {name} (what VARCHAR(20)) ENGINE=QUEUE"),
            format!("INSERT INTO {name} VALUES ('mail 1'), ('mail 2')"),
        ] {
            session.run(&sql).unwrap();
        }
    }
    drop(session);
    assert_eq!(status(&site, &[]).code, Some(0));
    let datadir = site.launch.datadir.clone();
    let anchor = |name: &str| datadir.join(format!("shop/{name}.QUE"));
    let site = site.again(|running| {
        running.stop(SERVER_DEADLINE).unwrap();
        damage(&datadir, &anchor("broken"));
        fs::remove_file(anchor("gone")).unwrap();
    });
    let scratch = Scratch::new();
    let metrics = scratch.join("queues.prom");
    let all = status(&site, &["--metrics", metrics.to_str().unwrap()]);
    assert_eq!(all.code, Some(3), "{all:?}");
    let queues = all.answer["queues"].as_array().unwrap();
    let names: Vec<&Value> = queues.iter().map(|one| &one["table"]).collect();
    assert_eq!(names, [&json!("broken"), &json!("gone"), &json!("jobs")]);
    let problem = |at: usize| queues[at]["problem"].as_str().unwrap_or_default();
    assert!(problem(0).contains("evenkeel queue salvage"), "{all:?}");
    assert!(problem(1).contains(".QUE"), "{all:?}");
    assert_eq!(queues[0].get("rows"), None, "{all:?}");
    assert_eq!(
        (&queues[2]["problem"], &queues[2]["rows"]),
        (&Value::Null, &json!(2))
    );
    let text = fs::read_to_string(metrics).unwrap();
    for (table, value) in [("broken", 1), ("gone", 1), ("jobs", 0)] {
        let line =
            format!("\nevenkeel_queue_unreadable{{database=\"shop\",table=\"{table}\"}} {value}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(text.contains("\nevenkeel_queue_rows{database=\"shop\",table=\"jobs\"} 2\n"));
    assert_eq!(status(&site, &["shop.jobs"]).code, Some(0));
    let named = status(&site, &["shop.broken", "shop.jobs"]);
    assert_eq!(named.code, Some(3), "{named:?}");
    assert_eq!(named.answer["queues"][1]["rows"], 2, "{named:?}");
    // What has to be seen is seen when nobody asked for an answer, too.
    let quiet = status(&site, &["--quiet"]);
    assert_eq!(quiet.code, Some(3), "{quiet:?}");
    assert!(quiet.said.contains("shop.broken: "), "{quiet:?}");
    if host != Host::MySql9 {
        the_engine_is_not_there(site);
    }
}

/// The server lists tables of an engine that it could not load.
fn the_engine_is_not_there(mut site: QueueSite) {
    site.launch
        .extra_args
        .retain(|argument| argument != "--plugin-maturity=experimental");
    site.launch
        .extra_args
        .push("--plugin-maturity=stable".into());
    let site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    let all = status(&site, &[]);
    assert_eq!(all.code, Some(3), "{all:?}");
    let problem = |one: &Value| one["problem"].as_str().unwrap_or_default().to_owned();
    let queues = all.answer["queues"].as_array().unwrap();
    assert_eq!(queues.len(), 3, "{all:?}");
    for one in queues {
        assert!(problem(one).contains("is not loaded"), "{all:?}");
    }
}

#[test]
fn on_mariadb_10_11() {
    on(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    on(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    on(Host::MySql9);
}
