//! Is no original value of a masked column in anything that a dump writes, and is all else as it was?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into, manifest};
use evenkeel_cases::masked::{self, CUSTOMERS, MASKS, Originals, PEOPLE, write_key};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// What is not masked, and how often what is masked comes again: it must not change.
const SAME: [&str; 8] = [
    "SELECT SHA2(GROUP_CONCAT(CONCAT_WS('|', id, age, seal, name IS NULL, phone IS NULL, born IS NULL, \
     YEAR(seen), YEAR(stamp), token IS NULL, big IS NULL, raw IS NULL, CHAR_LENGTH(name), CHAR_LENGTH(phone), \
     salary IS NULL, YEAR(born), SIGN(salary), LENGTH(salary)) ORDER BY id), 256) FROM shop.people",
    "SELECT SHA2(GROUP_CONCAT(CONCAT_WS('|', id, total) ORDER BY id), 256) FROM shop.orders",
    "SELECT SHA2(GROUP_CONCAT(CONCAT_WS('|', o.id, c.filler, n.filler) ORDER BY o.id), 256) FROM shop.orders o \
     JOIN shop.customers c ON c.code = o.code JOIN shop.numbers n ON n.no = o.no",
    "SELECT CONCAT_WS('|', COUNT(DISTINCT mail), COUNT(DISTINCT name), COUNT(DISTINCT phone), COUNT(DISTINCT token), \
     COUNT(DISTINCT big), COUNT(DISTINCT wide)) FROM shop.people",
    "SELECT CONCAT_WS('|', COUNT(*), COUNT(DISTINCT a), COUNT(DISTINCT b), MAX(b) < 0, MIN(LENGTH(b)), MAX(LENGTH(b))) FROM shop.pairs",
    "SELECT CONCAT_WS('|', COUNT(*), SUM(LENGTH(filler))) FROM shop.customers",
    "SELECT CONCAT_WS('|', COUNT(*), MIN(LENGTH(no)), MAX(LENGTH(no))) FROM shop.numbers",
    // Where two people have one name, they have one mask.
    "SELECT COUNT(*) FROM shop.people a JOIN shop.people b ON a.name = b.name AND a.id < b.id",
];

/// What masked values look like: 1 each.
const SHAPES: [&str; 14] = [
    "SELECT SUM(mail <> '' AND mail NOT REGEXP '^user-[0-9a-f]{24}@example[.]com$') = 0 FROM shop.people",
    "SELECT SUM(mail = '') = 1 FROM shop.people",
    "SELECT SUM(name NOT REGEXP '^[A-Z][a-z]{2} .[A-Z]. [a-z0-9]{16}$') = 0 FROM shop.people",
    "SELECT SUM(nick <> CONCAT('it', X'27', 's ', X'5C', 'me')) = 0 AND COUNT(nick) = COUNT(name) FROM shop.people",
    "SELECT SUM(born NOT LIKE '____-01-01') = 0 FROM shop.people",
    "SELECT SUM(seen NOT LIKE '____-01-01 00:00:00.000') = 0 FROM shop.people",
    "SELECT SUM(stamp NOT LIKE '____-01-01 00:00:00') = 0 FROM shop.people",
    "SELECT SUM(note <> '') = 0 AND SUM(LENGTH(big) <> 32) = 0 FROM shop.people",
    "SELECT COUNT(bin) = 0 AND COUNT(doc) = 0 AND COUNT(spot) = 0 FROM shop.people",
    "SELECT SUM(raw <> 'gone') = 0 AND SUM(CHAR_LENGTH(wide) <> 32) = 0 FROM shop.people",
    "SELECT SUM(kind <> 'plain') = 0 AND SUM(LENGTH(token) <> 16) = 0 FROM shop.people",
    "SELECT SUM(loud <> UPPER(name)) = 0 FROM shop.people",
    "SELECT SUM(code NOT REGEXP '^[0-9a-f]{32}$') = 0 FROM shop.customers",
    "SELECT SUM(HEX(name) = HEX(UPPER(name))) = 0 FROM shop.people",
];

fn facts(session: &mut Session, all: &[&str]) -> Vec<String> {
    session
        .run("SET SESSION group_concat_max_len = 100000000, time_zone = '+00:00'")
        .unwrap();
    let ask = |sql: &&str| {
        session
            .value(sql)
            .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()))
            .unwrap_or_default()
    };
    all.iter().map(ask).collect()
}

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut flags: Vec<&str> = MASKS.iter().flat_map(|mask| ["--mask", *mask]).collect();
    flags.extend(more);
    flags
}

/// What the manifest says: the columns and their ways, and no values.
fn reported(dir: &Path) {
    let manifest = manifest(dir);
    let tables = manifest["tables"].as_array().unwrap();
    let of = |name: &str| tables.iter().find(|table| table["name"] == name).unwrap();
    let masked = |table: &str, column: &str| {
        let columns = of(table)["columns"].as_array().unwrap();
        let column = columns.iter().find(|one| one["name"] == column).unwrap();
        column["masked"].as_str().map(str::to_owned)
    };
    assert_eq!(masked("people", "mail").as_deref(), Some("email"));
    assert_eq!(masked("people", "nick").as_deref(), Some("fixed"));
    assert_eq!(masked("people", "age"), None);
    assert_eq!(masked("orders", "code").as_deref(), Some("hash"));
    // Ranges are of what is not masked.
    assert_eq!(of("customers")["key"].as_array().unwrap().len(), 0);
    assert_eq!(of("pairs")["key"], serde_json::json!(["a"]));
    let chunks = |table: &str| of(table)["chunks"].as_array().unwrap().len();
    assert!(
        chunks("pairs") > 1 && chunks("customers") > 1,
        "{} {}",
        chunks("pairs"),
        chunks("customers")
    );
    assert_eq!(
        of("orders")["where"],
        "withheld, because columns are masked"
    );
}

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    let running = server.start(&scratch.join("data"), &args);
    masked::make(&mut running.session().unwrap());
    running
}

fn nothing_is_left(server: &TestServer) {
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    let mut session = running.session().unwrap();
    let before = facts(&mut session, &SAME);
    let originals = Originals::all();
    let key = scratch.join("key");
    write_key(&key, 1);
    let key = key.display().to_string();
    for (format, compress) in [("tab", "zstd"), ("sql", "none"), ("csv-header", "none")] {
        let dir = scratch.join(format);
        let name = format!("{} {format}", server.name);
        let condition = format!(
            "shop.orders=code IS NOT NULL AND code <> '{}'",
            "x".repeat(9)
        );
        let more = [
            "--mask-key-file",
            &key,
            "--format",
            format,
            "--compress",
            compress,
            "--chunk-size",
            "64K",
            "--where",
            &condition,
        ];
        let plain = scratch.join(format!("plain-{format}"));
        done(run(dump(&program(), &running, &plain, &more[2..])));
        assert!(
            originals.below(&plain).is_some(),
            "{name}: the search finds nothing"
        );
        let ended = done(run(dump(&program(), &running, &dir, &flags(&more))));
        assert_eq!(originals.below(&dir), None, "{name}");
        assert_eq!(
            originals.in_bytes(format!("{} {}", ended.answer, ended.said).as_bytes()),
            None
        );
        assert_eq!(ended.answer["masked"]["key"], "file", "{}", ended.answer);
        reported(&dir);
        session.run("DROP DATABASE shop").unwrap();
        done(run(load_into(&program(), &running, &dir, &["--verify"])));
        assert_eq!(facts(&mut session, &SAME), before, "{name}");
        assert_eq!(
            facts(&mut session, &SHAPES),
            [const { "1" }; SHAPES.len()],
            "{name}"
        );
        session.run("DROP DATABASE shop").unwrap();
        done(run(load_into(&program(), &running, &plain, &[])));
    }
    assert_eq!(facts(&mut session, &SAME)[0], before[0]);
    let rows = u64::from(PEOPLE + 2 + 6 * CUSTOMERS);
    let counted = "SELECT (SELECT COUNT(*) FROM shop.people) + (SELECT COUNT(*) FROM shop.customers) + (SELECT COUNT(*) FROM shop.numbers) \
                   + (SELECT COUNT(*) FROM shop.orders) + (SELECT COUNT(*) FROM shop.pairs)";
    assert_eq!(session.value(counted).unwrap(), Some(rows.to_string()));
    assert_none_in_script(&running, &originals, &key);
}

fn assert_none_in_script(running: &Running, originals: &Originals, key: &str) {
    let flags = flags(&["--mask-key-file", key]);
    let mut command = dump(&program(), running, Path::new("-"), &flags);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(output.stdout.ends_with(b"-- end of the dump\n"));
    assert_eq!(originals.in_bytes(&output.stdout), None);
    assert_eq!(originals.in_bytes(&output.stderr), None);
}

// One of the three servers in each run.

#[test]
fn of_mariadb_10_11() {
    for server in share("masked", &[mariadb_10_11()], Part::new(2, 3)) {
        nothing_is_left(&server);
    }
}

#[test]
fn of_mysql() {
    for server in share("masked", &[mysql_8_0_15(), mysql_9()], Part::new(1, 3)) {
        nothing_is_left(&server);
    }
}
