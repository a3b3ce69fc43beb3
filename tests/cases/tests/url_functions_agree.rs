//! Do the servers' functions for URLs agree with the program, keep order and prefixes in indexes, and
//! cope with what they are given?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run, url_library};
use evenkeel_op::{Cancel, Silent};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::{Scratch, TestServer};
use evenkeel_urlcodec::{CodeTable, Mode, Training, train};
use std::path::{Path, PathBuf};

/// A server with a plugin directory of its own.
struct Site {
    scratch: Scratch,
    server: TestServer,
    launch: Launch,
    running: Running,
}

impl Site {
    fn start(server: TestServer) -> Self {
        let scratch = Scratch::new();
        let plugins = scratch.join("plugins");
        std::fs::create_dir(&plugins).expect("a plugin directory");
        let plugin_dir = format!("--plugin-dir={}", plugins.display());
        let mut args = SMALL.to_vec();
        if server.id == "mysql-9" {
            args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        }
        args.push(&plugin_dir);
        let launch = server
            .prepare(&scratch.join("data"), &args)
            .with_networking();
        let running = server.run(&launch);
        Self {
            scratch,
            server,
            launch,
            running,
        }
    }

    fn session(&self) -> Session {
        self.running.session().expect("a session")
    }

    fn restart(self) -> Self {
        self.running.stop(SERVER_DEADLINE).expect("a stop");
        let running = self.server.run(&self.launch);
        Self { running, ..self }
    }

    fn plugins(&self) -> PathBuf {
        self.scratch.join("plugins")
    }

    /// What lies in the plugin directory, sorted.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.plugins()).expect("the plugin directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn plugin(&self, verb: &str, flags: &[&str]) -> Ended {
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command =
            program.command(&["plugin", verb, "url", "--no-defaults", "-u", "root", "-S"]);
        command.arg(self.running.socket()).args(flags);
        if verb == "install" && !flags.iter().any(|flag| flag.starts_with("--library")) {
            command.arg("--library").arg(url_library());
        }
        run(command)
    }

    #[track_caller]
    fn done(&self, verb: &str, flags: &[&str]) -> serde_json::Value {
        let ended = self.plugin(verb, flags);
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", self.server.name);
        ended.answer
    }
}

#[track_caller]
fn value(session: &mut Session, sql: &str) -> Option<String> {
    let value = session.value(sql);
    value.unwrap_or_else(|e| panic!("{}", e.chain()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// URLs, and strings that only look for trouble.
fn texts() -> Vec<Vec<u8>> {
    let hosts = [
        "example.com",
        "www.example.org",
        "ä.example",
        "example.co.jp",
    ];
    let mut texts: Vec<Vec<u8>> = (0..2_000_u32)
        .map(|number| {
            let host = hosts[number as usize % hosts.len()];
            let part = number * 7 % 90;
            format!("https://{host}/shop/{part}/item?id={number}&q=%e3%81%82").into_bytes()
        })
        .collect();
    texts
        .extend([&b""[..], b"\0", b"\0\0a", b"\x01", b"\xff\xfe", b"https://"].map(<[u8]>::to_vec));
    texts.push("https://例え.テスト/あいう".as_bytes().to_vec());
    let mut long = b"https://example.com/".repeat(200);
    long.truncate(4_000);
    texts.push(long);
    texts
}

/// What the texts begin with, and what none does.
fn prefixes() -> Vec<Vec<u8>> {
    let mut prefixes: Vec<Vec<u8>> = (0..90)
        .step_by(9)
        .map(|part| format!("https://example.com/shop/{part}/").into_bytes())
        .collect();
    let more = [
        "https://example.com",
        "https://example.com/",
        "https://example.c",
        "https://ä",
        "https://example.com/shop/14/item?id=2&q=%e3%81",
        "https://example.com/https://example.com/",
        "https://nobody.example/",
        "http",
        "",
        "\0",
    ];
    prefixes.extend(more.map(|text| text.as_bytes().to_vec()));
    prefixes.push(b"\xff".to_vec());
    prefixes
}

/// The form that is documented: a range in every server.
fn begins_with(prefix: &[u8]) -> String {
    let prefix = format!("X'{}'", hex(prefix));
    format!(
        "c BETWEEN url_prefix_low({prefix}) AND url_prefix_high({prefix}) \
         AND c < url_prefix_high({prefix})"
    )
}

/// A table whose compressed column a trigger keeps.
fn fill(session: &mut Session) {
    for sql in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE links (id INT PRIMARY KEY, u VARBINARY(4100), c VARBINARY(3000), KEY (c))",
        "CREATE TRIGGER links_i BEFORE INSERT ON links FOR EACH ROW SET NEW.c = url_compress(NEW.u)",
        "CREATE TRIGGER links_u BEFORE UPDATE ON links FOR EACH ROW SET NEW.c = url_compress(NEW.u)",
        "INSERT INTO links (id, u) VALUES (-1, NULL)",
    ] {
        session.run(sql).unwrap();
    }
    let rows: Vec<String> = texts()
        .iter()
        .enumerate()
        .map(|(id, text)| format!("({id}, X'{}')", hex(text)))
        .collect();
    session
        .run(&format!(
            "INSERT INTO links (id, u) VALUES {}",
            rows.join(", ")
        ))
        .unwrap();
    session
        .run("UPDATE links SET u = CONCAT(u, '') WHERE id = 3")
        .unwrap();
    session.run("ANALYZE TABLE links").unwrap();
}

/// The codes are those of the program, sort as the texts do and come back.
fn assert_agree(session: &mut Session, table: &CodeTable, name: &str) {
    let rows = session
        .rows("SELECT HEX(c) FROM links WHERE id >= 0 ORDER BY id")
        .unwrap();
    assert_eq!(rows.len(), texts().len());
    for (row, text) in rows.iter().zip(texts()) {
        let code = hex(&table.compress(&text).unwrap());
        assert_eq!(row.at(0), Some(&*code), "{name}: {}", hex(&text));
    }
    let wrong = "SELECT COUNT(*) FROM links WHERE NOT (url_decompress(c) <=> u)";
    assert_eq!(value(session, wrong).as_deref(), Some("0"), "{name}");
    let ids = |session: &mut Session, by: &str| {
        let sql = format!("SELECT id FROM links ORDER BY {by}");
        let rows = session.rows(&sql).unwrap();
        rows.iter()
            .map(|row| row.at(0).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    session.run("SET SESSION max_sort_length = 8192").unwrap();
    assert_eq!(ids(session, "c"), ids(session, "u"), "{name}");
    for prefix in prefixes() {
        let found = format!("SELECT COUNT(*) FROM links WHERE {}", begins_with(&prefix));
        let there = format!(
            "SELECT COUNT(*) FROM links WHERE LEFT(u, {}) = X'{}'",
            prefix.len(),
            hex(&prefix)
        );
        assert_eq!(
            value(session, &found),
            value(session, &there),
            "{name}: {}",
            hex(&prefix)
        );
    }
}

/// An index is used, in the form that is documented.
fn assert_ranges(session: &mut Session, name: &str) {
    for (condition, kinds) in [
        (begins_with(b"https://example.com/shop/14/"), &["range"][..]),
        (
            "c = url_compress('https://example.com/x')".to_owned(),
            &["ref", "const"],
        ),
    ] {
        let plan = session.one(&format!(
            "EXPLAIN FORMAT=TRADITIONAL SELECT id FROM links WHERE {condition}"
        ));
        let plan = plan.unwrap().expect("a plan");
        let kind = plan.get("type").unwrap_or_default();
        let key = plan.get("key");
        assert!(
            kinds.contains(&kind) && key == Some("c"),
            "{name}: {kind}, {key:?}"
        );
    }
}

/// What is no code is NULL, and harms neither the server nor the rows behind it.
fn assert_junk_is_null(session: &mut Session, seed: u64, name: &str) {
    let mut random = fastrand::Rng::with_seed(seed);
    session
        .run("CREATE TEMPORARY TABLE junk (id INT PRIMARY KEY, b BLOB)")
        .unwrap();
    let rows: Vec<String> = (0..500)
        .map(|id| {
            let bytes: Vec<u8> = (0..random.usize(20..60)).map(|_| random.u8(1..)).collect();
            format!("({id}, X'{}')", hex(&bytes))
        })
        .collect();
    session
        .run(&format!("INSERT INTO junk VALUES {}", rows.join(", ")))
        .unwrap();
    session
        .run("INSERT INTO junk VALUES (1000, url_compress('http://a.example/'))")
        .unwrap();
    let rows = session
        .rows("SELECT url_decompress(b) FROM junk ORDER BY id")
        .unwrap();
    let junk = rows.iter().filter(|row| row.at(0).is_none()).count();
    assert!(junk > 400, "{name}, seed {seed}: {junk} of 500 are NULL");
    let last = rows.last().and_then(|row| row.at(0));
    assert_eq!(
        last,
        Some("http://a.example/"),
        "{name}, seed {seed}: rows behind junk"
    );
    let warnings = session.rows("SHOW WARNINGS").unwrap();
    assert!(warnings.is_empty(), "{name}: {warnings:?}");
}

/// Arguments of another number or kind are refused, or turned into text.
fn assert_arguments(session: &mut Session, name: &str) {
    for (sql, why) in [
        ("SELECT url_compress()", "one argument"),
        ("SELECT url_compress('a', 'b')", "one argument"),
        ("SELECT url_decompress(17)", "number"),
        ("SELECT url_table_id(1)", "no argument"),
    ] {
        let error = session.value(sql).expect_err(sql).to_string();
        assert!(
            error.contains("ERROR 1123") && error.contains(why),
            "{name}: {error}"
        );
    }
    for (number, text) in [("17", "17"), ("-1.50", "-1.50"), ("4e0", "4")] {
        let sql = format!("SELECT url_decompress(url_compress({number}))");
        assert_eq!(value(session, &sql).as_deref(), Some(text), "{name}");
    }
    let nulls = "SELECT COALESCE(url_compress(NULL), url_decompress(NULL), url_prefix_low(NULL), \
                 url_prefix_high(NULL), url_compress(REPEAT('a', 1048577)))";
    assert_eq!(value(session, nulls), None, "{name}");
}

fn binlog_end(session: &mut Session) -> Option<String> {
    let rows = session.rows("SHOW BINARY LOGS").unwrap();
    rows.last()
        .map(|row| format!("{:?} {:?}", row.at(0), row.at(1)))
}

/// Trained on other URLs, quick.
fn other_table(path: &Path) -> CodeTable {
    let texts: Vec<Vec<u8>> = (0..3_000)
        .map(|number| format!("http://shop.example/{number}").into_bytes())
        .collect();
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let training = Training {
        mode: Mode::Fast,
        bytes: 200_000,
    };
    let table = train(&texts, training, &Silent, &Cancel::new()).expect("a table");
    std::fs::write(path, table.file()).expect("a table's file");
    table
}

fn installed(site: &Site, table: &CodeTable) {
    let mut session = site.session();
    assert_eq!(site.done("status", &[])["state"], "absent");
    let before = binlog_end(&mut session);
    let first = site.done("install", &[]);
    assert_eq!(
        first["created"].as_array().map(Vec::len),
        Some(5),
        "{first}"
    );
    assert_eq!(first["table_id"], table.id());
    let again = site.done("install", &[]);
    for nothing in ["written", "created", "dropped", "removed"] {
        assert_eq!(again[nothing], serde_json::json!([]), "{again}");
    }
    assert_eq!(
        binlog_end(&mut session),
        before,
        "replicas would need the library"
    );
    assert_eq!(site.done("status", &[])["state"], "working");
    assert_eq!(site.files().len(), 2, "{:?}", site.files());
}

/// Another table only comes when it is asked for; the old one's file stays.
fn change_the_table(site: &Site, old: &CodeTable) -> (CodeTable, PathBuf) {
    let path = site.scratch.join("other.urltable");
    let other = other_table(&path);
    let flag = format!("--table={}", path.display());
    let refused = site.plugin("install", &[&flag]);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains(&old.id()), "{refused:?}");
    let planned = site.done("install", &[&flag, "--change-table"]);
    assert_eq!(planned["executed"], false);
    let mut session = site.session();
    let id = "SELECT url_table_id()";
    assert_eq!(value(&mut session, id), Some(old.id()));
    let changed = site.done("install", &[&flag, "--change-table", "--execute"]);
    assert_eq!(changed["table_id_before"], old.id());
    assert_eq!(value(&mut session, id), Some(other.id()));
    let files = site.files();
    assert_eq!(files.len(), 3, "one library, both tables: {files:?}");
    assert!(files.contains(&format!("evenkeel_url_{}.urltable", old.id())));
    (other, path)
}

/// A library that the server cannot use leaves the functions that it had.
fn useless_libraries_change_nothing(site: &Site, table: &CodeTable, path: &Path) {
    let before = site.files();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped here");
    let other = maps
        .split_whitespace()
        .find(|word| word.contains("libgcc_s"));
    let other = format!("--library={}", other.expect("a library of something else"));
    let table_flag = format!("--table={}", path.display());
    let ended = site.plugin("install", &[&table_flag, &other, "--execute"]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains("ERROR 1127"), "{ended:?}");
    assert_eq!(site.files(), before);
    assert_eq!(site.done("status", &[])["table_id"], table.id());
    assert_eq!(
        site.done("install", &[&table_flag])["created"],
        serde_json::json!([])
    );
}

/// A damaged table is never used, nor another in its place; installing again repairs it.
fn damage_the_table(site: Site, other: &CodeTable, path: &Path) -> Site {
    let file = site
        .plugins()
        .join(format!("evenkeel_url_{}.urltable", other.id()));
    let mut bytes = other.file().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let site = site.restart();
    let name = site.server.name;
    let mut session = site.session();
    let error = session
        .value("SELECT url_compress('a')")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("damaged: its checksum differs"),
        "{name}: {error}"
    );
    let status = site.plugin("status", &[]);
    assert_eq!(
        (status.code, &status.answer["state"]),
        (Some(4), &"broken".into())
    );
    std::fs::remove_file(&file).unwrap();
    let error = session
        .value("SELECT url_table_id()")
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not beside"), "{name}: {error}");
    // The functions are those from before the restart: only the file was missing.
    let repaired = site.done("install", &[&format!("--table={}", path.display())]);
    assert_eq!(repaired["created"], serde_json::json!([]), "{repaired}");
    assert_eq!(
        value(&mut session, "SELECT url_table_id()"),
        Some(other.id())
    );
    site
}

fn uninstall(site: &Site) {
    let planned = site.done("uninstall", &[]);
    assert_eq!(planned["executed"], false);
    assert_eq!(site.done("status", &[])["state"], "working");
    site.done("uninstall", &["--execute"]);
    assert_eq!(site.files(), [""; 0]);
    let mut session = site.session();
    let left = "SELECT COUNT(*) FROM mysql.func";
    assert_eq!(value(&mut session, left).as_deref(), Some("0"));
    assert!(session.value("SELECT url_compress('a')").is_err());
}

fn case(server: TestServer) -> Site {
    let name = server.name;
    let seed = fastrand::u64(..);
    let table = CodeTable::shipped().expect("the table that is built in");
    let site = Site::start(server);
    installed(&site, &table);
    let mut session = site.session();
    fill(&mut session);
    assert_agree(&mut session, &table, name);
    assert_ranges(&mut session, name);
    assert_junk_is_null(&mut session, seed, name);
    assert_arguments(&mut session, name);
    site
}

fn with_another_table(site: Site) -> Site {
    let table = CodeTable::shipped().expect("the table that is built in");
    let (other, path) = change_the_table(&site, &table);
    useless_libraries_change_nothing(&site, &other, &path);
    damage_the_table(site, &other, &path)
}

/// Where the server cannot take the functions, the error says so, and it is left as it was.
fn refusals_say_what_to_do(site: &Site) {
    let elsewhere = site.scratch.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let ended = site.plugin("install", &["--plugin-dir", elsewhere.to_str().unwrap()]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains("ERROR 1126"), "{ended:?}");
    let hints = ended.answer["hints"].to_string();
    assert!(
        hints.contains("AppArmor") && hints.contains("as before"),
        "{hints}"
    );
    assert_eq!(site.done("status", &[])["state"], "absent");

    let mut session = site.session();
    session.run("CREATE USER reader").unwrap();
    session.run("GRANT SELECT ON *.* TO reader").unwrap();
    let ended = site.plugin("install", &["-u", "reader"]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let hints = ended.answer["hints"].to_string();
    assert!(
        hints.contains("INSERT and DELETE on the database mysql"),
        "{hints}"
    );

    session
        .run("CREATE FUNCTION url_compress RETURNS STRING SONAME 'stranger.so'")
        .unwrap_err();
    session
        .run("INSERT INTO mysql.func VALUES ('url_compress', 0, 'stranger.so', 'function')")
        .unwrap();
    for verb in ["install", "uninstall"] {
        let ended = site.plugin(verb, &[]);
        assert_eq!(ended.code, Some(14), "{ended:?}");
        assert!(ended.message().contains("another library"), "{ended:?}");
    }
    session.run("DELETE FROM mysql.func").unwrap();
}

/// From another host, the command says what to copy where, and goes on when that was done.
fn far_servers_get_their_files_by_hand(site: &Site) {
    let mut session = site.session();
    session.run("CREATE USER far").unwrap();
    session.run("GRANT ALL ON *.* TO far").unwrap();
    let port = site.running.port().expect("a port").to_string();
    // The server still has the other one loaded, and would not look for a file of that name.
    let newer = site.scratch.join("newer.so");
    let mut bytes = std::fs::read(url_library()).unwrap();
    bytes.push(0);
    std::fs::write(&newer, bytes).unwrap();
    let install = || {
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = program.command(&["plugin", "install", "url", "--no-defaults"]);
        command.args(["-u", "far", "-h", "127.0.0.1", "-P", &port]);
        command.arg("--library").arg(&newer);
        run(command)
    };
    let ended = install();
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains("not on this host"), "{ended:?}");
    let hint = ended.answer["hints"][0].as_str().expect("a hint");
    let place = hint.split_whitespace().find(|word| word.starts_with('/'));
    let place = Path::new(place.expect("a path"));
    assert_eq!(place.parent(), Some(&*site.plugins()));
    std::fs::copy(&newer, place).unwrap();
    let ended = install();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    uninstall(site);
}

/// Many connections at once, again and again: the server's memory must not grow with each round.
fn assert_nothing_leaks(site: &Site) {
    let connections = rounds("connections at once", 32, 64);
    let round = || {
        std::thread::scope(|scope| {
            let work = || {
                let sql = "SELECT COUNT(url_decompress(url_compress(u))) FROM shop.links";
                let mut session = site.session();
                for _ in 0..3 {
                    assert_eq!(value(&mut session, sql), Some(texts().len().to_string()));
                    let long = "SELECT LENGTH(url_decompress(url_compress(REPEAT('url/', 30000))))";
                    assert_eq!(value(&mut session, long).as_deref(), Some("120000"));
                }
            };
            for _ in 0..connections {
                scope.spawn(work);
            }
        });
        let status = std::fs::read_to_string(format!("/proc/{}/status", site.running.pid()));
        let status = status.expect("the server's status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        kib.map(|kib: u64| kib / 1024).expect("its memory")
    };
    round();
    // The answers of 32 connections have 40 MiB, those of statements' last calls 10: if they stayed, each round would
    // show it. What an allocator keeps shows once.
    let mut before = round();
    for _ in 0..3 {
        let after = round();
        if after < before + 8 {
            return;
        }
        before = after;
    }
    panic!("each round takes more memory, now {before} MiB");
}

#[test]
fn mariadb() {
    let site = with_another_table(case(mariadb_10_11()));
    assert_nothing_leaks(&site);
    uninstall(&site);
    refusals_say_what_to_do(&site);
    far_servers_get_their_files_by_hand(&site);
}

/// Of two that follow each other, one is of MySQL.
#[test]
fn others() {
    let cases: [fn() -> Site; 4] = [
        || with_another_table(case(mysql_8_0_15())),
        || case(mariadb_11_8()),
        || with_another_table(case(mysql_5_7_22())),
        || case(mysql_9()),
    ];
    for case in draw("servers besides", &cases, 2) {
        uninstall(&case());
    }
}
