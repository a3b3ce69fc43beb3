//! Does the program put queues into a server, manage them there and in damaged files, and take them
//! out again?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run, url_library};
use evenkeel_cases::queues::{Host, plugin};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::servers::give_to_server;
use evenkeel_testkit::{Scratch, TestServer, until};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A server with an empty plugin directory.
struct Site {
    scratch: Scratch,
    server: TestServer,
    launch: Launch,
    running: Option<Running>,
}

impl Site {
    fn start(host: Host, args: &[&str]) -> Self {
        let (scratch, server) = (Scratch::new(), host.server());
        fs::create_dir(scratch.join("plugins")).unwrap();
        let plugin_dir = format!("--plugin-dir={}", scratch.join("plugins").display());
        let mut args = args.to_vec();
        args.push(&plugin_dir);
        let launch = server.prepare(&scratch.join("data"), &args);
        let running = Some(server.run(&launch));
        Self {
            scratch,
            server,
            launch,
            running,
        }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    fn stop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.stop(SERVER_DEADLINE).unwrap();
    }

    fn again(&mut self) {
        self.running = Some(self.server.run(&self.launch));
    }

    fn session(&self) -> Session {
        self.running().session().unwrap()
    }

    fn value(&self, sql: &str) -> Option<String> {
        self.session().value(sql).unwrap()
    }

    fn datadir(&self) -> PathBuf {
        self.scratch.join("data")
    }

    /// What lies in the plugin directory.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.scratch.join("plugins")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    fn program(&self, words: &[&str]) -> Ended {
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        run(program.command(words))
    }

    fn on_server(&self, words: &[&str]) -> Ended {
        let socket = self.running().socket().to_str().unwrap();
        let connection = ["--no-defaults", "-u", "root", "-S", socket];
        self.program(&[words, &connection].concat())
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> Value {
        let ended = self.on_server(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        ended.answer
    }

    #[track_caller]
    fn refused(&self, words: &[&str], because: &str) {
        let ended = self.on_server(words);
        assert_eq!(ended.code, Some(14), "{words:?}: {ended:?}");
        assert!(ended.message().contains(because), "{ended:?}");
        let hints = ended.answer["hints"].as_array();
        assert!(hints.is_some_and(|hints| !hints.is_empty()), "{ended:?}");
    }

    /// Both libraries: that of the server, and another build of it. What they are called says nothing true.
    fn libraries(&self) -> (String, String) {
        let mut bytes = fs::read(plugin(Host::MariaDb10, &self.server)).unwrap();
        let one = self.file("evenkeel_queue-mariadb-10.11.1.so", &bytes);
        bytes.push(0);
        (one, self.file("queue.so", &bytes))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.scratch.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// That of another version of the server, called as that of this one.
    fn of_another_version(&self) -> String {
        let version = self.value("SELECT VERSION()").unwrap();
        let version = version.split('-').next().unwrap();
        let numbers: Vec<u32> = version.split('.').map(|one| one.parse().unwrap()).collect();
        // As servers have it in the version of an engine's interface.
        let word =
            |patch: u32| ((numbers[0] * 10_000 + numbers[1] * 100 + patch) << 8).to_le_bytes();
        let mut bytes = fs::read(plugin(Host::MariaDb10, &self.server)).unwrap();
        for at in 0..bytes.len() - 4 {
            if bytes[at..at + 4] == word(numbers[2]) {
                bytes[at..at + 4].copy_from_slice(&word(1));
            }
        }
        self.file(&format!("evenkeel_queue-mariadb-{version}.so"), &bytes)
    }
}

#[test]
fn from_its_first_day_to_its_last() {
    let mut site = Site::start(Host::MariaDb10, &SMALL);
    let (one, other) = site.libraries();
    let install = ["plugin", "install", "queue", "--library", &one];
    is_refused_where_it_cannot_be(&site, &install);
    site.stop();
    site.launch
        .extra_args
        .push("--plugin-maturity=experimental".into());
    site.again();
    is_installed(&site, &install);
    is_seen(&site);
    gives_way_to_another(&site, &other);
    let busy = site.program(&["queue", "check", site.datadir().to_str().unwrap()]);
    assert_eq!(busy.code, Some(14), "{busy:?}");
    assert!(busy.message().contains("is running"), "{busy:?}");
    is_salvaged(&mut site, &one);
    is_taken_out(&site);
}

fn is_refused_where_it_cannot_be(site: &Site, install: &[&str]) {
    site.refused(install, "only plugins of maturity");
    let of = |library: &str| -> Ended {
        site.on_server(&["plugin", "install", "queue", "--library", library])
    };
    let wrong = of(&site.of_another_version());
    assert_eq!(wrong.code, Some(14), "{wrong:?}");
    assert!(
        wrong.message().contains("built for mariadb-10.11.1,"),
        "{wrong:?}"
    );
    let stranger = of(url_library().to_str().unwrap());
    assert_eq!(stranger.code, Some(2), "{stranger:?}");
    let why = "is not a library of the queue engine";
    assert!(stranger.message().contains(why), "{stranger:?}");
    let status = site.done(&["plugin", "status", "queue"]);
    assert_eq!(status["state"], "absent", "{status}");
    assert!(site.files().is_empty(), "{:?}", site.files());
}

fn is_installed(site: &Site, install: &[&str]) {
    let answer = site.done(install);
    assert_eq!(answer["executed"], true, "{answer}");
    assert_eq!(answer["created"].as_array().unwrap().len(), 8, "{answer}");
    assert_eq!(site.files(), [answer["library"].as_str().unwrap()]);
    let again = site.done(install);
    for nothing in ["written", "created", "dropped", "removed"] {
        assert_eq!(again[nothing], json!([]), "{again}");
    }
    assert_eq!(again["installed"], Value::Null, "{again}");
    let status = site.done(&["plugin", "status", "queue"]);
    assert_eq!(
        (&status["state"], &status["problem"]),
        (&json!("working"), &Value::Null)
    );
    let left =
        "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'evenkeel%'";
    assert_eq!(site.value(left).as_deref(), Some("0"));
    // One function is dropped by hand: it is broken, and repaired.
    site.session().run("DROP FUNCTION queue_rowid").unwrap();
    let broken = site.on_server(&["plugin", "status", "queue"]);
    assert_eq!(
        (broken.code, &broken.answer["state"]),
        (Some(4), &json!("broken"))
    );
    assert_eq!(site.done(install)["created"], json!(["queue_rowid"]));
}

fn is_seen(site: &Site) {
    let mut session = site.session();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.jobs (id INT NOT NULL, what VARCHAR(50)) ENGINE=QUEUE",
        "INSERT INTO shop.jobs SELECT seq, CONCAT('job ', seq) FROM shop.numbers",
    ] {
        if sql.contains("numbers") {
            session.run("CREATE TABLE shop.numbers (seq INT)").unwrap();
            let numbers: Vec<String> = (1..=50).map(|number| format!("({number})")).collect();
            let sql = format!("INSERT INTO shop.numbers VALUES {}", numbers.join(", "));
            session.run(&sql).unwrap();
        }
        session.run(sql).unwrap();
    }
    session
        .run("SELECT queue_wait_n('shop.jobs', 2, 0)")
        .unwrap();
    let metrics = site.scratch.join("queues.prom");
    let status = ["queue", "status", "--metrics", metrics.to_str().unwrap()];
    let status = &site.done(&status)["queues"][0];
    assert_eq!(
        (&status["database"], &status["table"]),
        (&json!("shop"), &json!("jobs"))
    );
    assert_eq!(
        (&status["rows"], &status["owned"]),
        (&json!(50), &json!(2)),
        "{status}"
    );
    assert_eq!(
        (&status["written"], &status["waiters"]),
        (&json!(50), &json!(0)),
        "{status}"
    );
    let connection = session.value("SELECT CONNECTION_ID()").unwrap().unwrap();
    let connection: u64 = connection.parse().unwrap();
    assert!(status["oldest_s"].is_u64(), "{status}");
    assert_eq!(
        status["owners"],
        json!([{ "connection": connection, "rows": 2 }])
    );
    let text = fs::read_to_string(metrics).unwrap();
    assert!(
        text.contains("\nevenkeel_queue_oldest_row_seconds{database=\"shop\",table=\"jobs\"} ")
    );
    let line = format!(
        "\nevenkeel_queue_rows_owned_by{{database=\"shop\",table=\"jobs\",connection=\"{connection}\"}} 2\n"
    );
    assert!(text.contains(&line), "{text}");
    let line = "evenkeel_queue_rows_owned{database=\"shop\",table=\"jobs\"} 2";
    assert!(text.lines().any(|one| one == line), "{text}");
    // Owned rows are passed over, and none is taken.
    let peek = ["queue", "peek", "shop.jobs", "--limit", "2"];
    for _ in 0..2 {
        let answer = site.done(&peek);
        assert_eq!(answer["columns"], json!(["id", "what"]));
        assert_eq!(answer["rows"], json!([["3", "job 3"], ["4", "job 4"]]));
    }
    site.refused(&["queue", "peek", "shop.numbers"], "not a queue");
    site.refused(&["queue", "status", "shop.numbers"], "not a queue");
    session.run("SELECT queue_end()").unwrap();
    let compacted = site.done(&["queue", "compact", "shop.jobs"]);
    assert_eq!(compacted["rows"], 48, "{compacted}");
    assert!(compacted["bytes_before"].as_u64() > Some(0), "{compacted}");
}

fn gives_way_to_another(site: &Site, other: &str) {
    let install = ["plugin", "install", "queue", "--library", other];
    let before = site.files();
    let plan = site.done(&install);
    assert_eq!(
        (&plan["executed"], &plan["removed"]),
        (&json!(false), &json!(before))
    );
    assert_eq!(site.files(), before);
    let install = [&install[..], &["--execute"]].concat();
    let mut consumer = site.session();
    consumer.run("SELECT queue_wait('shop.jobs', 0)").unwrap();
    site.refused(&install, "shop.jobs has 1 owned rows");
    let status = site.done(&["plugin", "status", "queue"]);
    assert_eq!(status["state"], "working", "{status}");
    drop(consumer);
    until("its row is back", || {
        site.value("SELECT COUNT(*) FROM shop.jobs").as_deref() == Some("48")
    });
    let changed = site.done(&install);
    assert_eq!(site.files(), [changed["library"].as_str().unwrap()]);
    assert_ne!(site.files(), before);
    assert_eq!(
        site.value("SELECT COUNT(*) FROM shop.jobs").as_deref(),
        Some("48")
    );
}

/// A queue that cannot be opened keeps nobody from another library: a newer one may be what it needs.
fn gives_way_beside_a_damaged_queue(site: &mut Site, one: &str) {
    site.again();
    let status = site.on_server(&["queue", "status"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    let before = site.files();
    let install = ["plugin", "install", "queue", "--library", one, "--execute"];
    site.done(&install);
    assert_ne!(site.files(), before);
    site.stop();
}

/// Breaks a file of rows, and has what is whole in its place.
fn is_salvaged(site: &mut Site, one: &str) {
    site.stop();
    let datadir = site.datadir();
    let sound = site.program(&["queue", "check", datadir.to_str().unwrap()]);
    assert_eq!(
        (sound.code, &sound.answer["sound"]),
        (Some(0), &json!(true)),
        "{sound:?}"
    );
    let table = fs::read_dir(datadir.join("#sqlqueue"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let entries = fs::read_dir(&table)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let part = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "part"));
    let part = part.expect("compaction made one");
    let mut bytes = fs::read(&part).unwrap();
    let at = bytes.windows(6).position(|text| text == b"job 30").unwrap();
    bytes[at] = b'J';
    fs::write(&part, &bytes).unwrap();
    gives_way_beside_a_damaged_queue(site, one);
    let anchor = datadir.join("shop/jobs.QUE");
    let broken = site.program(&["queue", "check", anchor.to_str().unwrap()]);
    assert_eq!(
        (broken.code, &broken.answer["sound"]),
        (Some(4), &json!(false)),
        "{broken:?}"
    );
    assert_eq!(
        broken.answer["tables"][0]["damage"][0]["file"],
        part.to_str().unwrap()
    );
    let into = site.scratch.join("salvaged");
    let words = [anchor.to_str().unwrap(), "--output", into.to_str().unwrap()];
    let kept = site.program(&[&["queue", "salvage"][..], &words].concat());
    assert_eq!(kept.code, Some(3), "{kept:?}");
    let reported = &kept.answer["tables"][0];
    assert_eq!(
        (&reported["rows"], &reported["rows_missing"]),
        (&json!(47), &json!(1)),
        "{kept:?}"
    );
    assert_eq!(
        fs::read(&part).unwrap(),
        bytes,
        "the damaged file is as it was"
    );
    fs::rename(&table, site.scratch.join("aside")).unwrap();
    put(&into, &datadir);
    give_to_server(&datadir);
    site.again();
    let rows = "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.jobs";
    let expected: Vec<String> = (3..=50)
        .filter(|id| *id != 30)
        .map(|id| id.to_string())
        .collect();
    assert_eq!(site.value(rows), Some(expected.join(",")));
    assert_eq!(
        site.value("SELECT queue_wait('shop.jobs', 0)").as_deref(),
        Some("1")
    );
}

/// Copies a salvaged tree to the same places below a data directory.
fn put(from: &Path, datadir: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = datadir.join(from.file_name().unwrap());
        if from.is_dir() {
            fs::create_dir_all(&to).unwrap();
            put(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

fn is_taken_out(site: &Site) {
    let uninstall = ["plugin", "uninstall", "queue", "--execute"];
    site.refused(&uninstall, "shop.jobs");
    site.session().run("DROP TABLE shop.jobs").unwrap();
    let plan = site.done(&uninstall[..3]);
    assert_eq!(
        (
            &plan["executed"],
            &plan["dropped"].as_array().unwrap().len()
        ),
        (&json!(false), &8)
    );
    site.done(&uninstall);
    assert_eq!(site.done(&["plugin", "status", "queue"])["state"], "absent");
    assert!(site.files().is_empty());
}

/// Installs, looks and uninstalls, by a library whose file has another name.
fn on_a_newer_server(host: Host, args: &[&str]) {
    let mut site = Site::start(host, args);
    let library = fs::read(plugin(host, &site.server)).unwrap();
    let library = site.file("queue.so", &library);
    let installed = site.done(&["plugin", "install", "queue", "--library", &library]);
    assert_eq!(installed["executed"], true, "{installed}");
    let mut session = site.session();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.jobs (id INT) ENGINE=QUEUE",
        "INSERT INTO shop.jobs VALUES (1), (2)",
    ] {
        session.run(sql).unwrap();
    }
    let status = &site.done(&["queue", "status"])["queues"][0];
    assert_eq!(
        (&status["rows"], &status["problem"]),
        (&json!(2), &Value::Null)
    );
    let peeked = site.done(&["queue", "peek", "shop.jobs"]);
    assert_eq!(peeked["rows"], json!([["1"], ["2"]]));
    assert_eq!(site.done(&["queue", "compact", "shop.jobs"])["rows"], 2);
    let again = site.done(&["plugin", "install", "queue", "--library", &library]);
    assert_eq!(again["installed"], Value::Null, "{again}");
    if host == Host::MySql9 {
        is_kept_while_it_is_used(&site, &mut session, &library);
    }
    drop(session);
    comes_back_when_it_was_missing(&mut site, &library);
    is_taken_out(&site);
}

/// As on a server that was restored: it started without the library.
fn comes_back_when_it_was_missing(site: &mut Site, library: &str) {
    site.stop();
    for name in site.files() {
        fs::remove_file(site.scratch.join("plugins").join(name)).unwrap();
    }
    site.again();
    let install = [
        "plugin",
        "install",
        "queue",
        "--execute",
        "--library",
        library,
    ];
    site.done(&install);
    let status = site.done(&["plugin", "status", "queue"]);
    assert_eq!(status["state"], "working", "{status}");
    let owned = site.value("SELECT queue_wait('shop.jobs', 0)");
    assert_eq!(owned.as_deref(), Some("1"));
    site.stop();
    site.again();
    let owned = site.value("SELECT queue_wait('shop.jobs', 0)");
    assert_eq!(owned.as_deref(), Some("1"));
}

/// MySQL does not take out an engine that a connection uses; MariaDB takes it out when that has ended.
fn is_kept_while_it_is_used(site: &Site, session: &mut Session, library: &str) {
    let mut bytes = fs::read(library).unwrap();
    bytes.push(0);
    let other = site.file("other.so", &bytes);
    session.run("SELECT queue_wait('shop.jobs', 0)").unwrap();
    session.run("SELECT queue_abort()").unwrap();
    let install = [
        "plugin",
        "install",
        "queue",
        "--execute",
        "--library",
        &other,
    ];
    site.refused(&install, "connections that used queues are open");
    let status = site.done(&["plugin", "status", "queue"]);
    assert_eq!(status["state"], "working", "{status}");
}

#[test]
fn on_mariadb_11_8() {
    on_a_newer_server(Host::MariaDb11, &["--plugin-maturity=experimental"]);
}

#[test]
fn on_mysql_9() {
    on_a_newer_server(Host::MySql9, &["--innodb-buffer-pool-size=64M"]);
}
