//! Is a mask that would break the copy, or show what it hides, refused before anything is written?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::masked::write_key;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

const TABLES: [&str; 7] = [
    "CREATE DATABASE d CHARACTER SET utf8mb4",
    "CREATE TABLE d.p (id INT AUTO_INCREMENT PRIMARY KEY, mail VARCHAR(50) NOT NULL, short VARCHAR(20), n INT, born DATE, \
     b BLOB, txt LONGTEXT, f DOUBLE, UNIQUE (mail), UNIQUE s (short), UNIQUE n2 (n, born))",
    "CREATE TABLE d.c (id INT PRIMARY KEY, mail VARCHAR(50), p INT, FOREIGN KEY (mail) REFERENCES p (mail), \
     FOREIGN KEY (p) REFERENCES p (id))",
    "CREATE TABLE d.g (id INT PRIMARY KEY, first VARCHAR(50), last VARCHAR(50), whole VARCHAR(101) AS (CONCAT(first, last)) STORED, \
     loud VARCHAR(50) AS (UPPER(last)) VIRTUAL, UNIQUE (loud))",
    "CREATE TABLE d.parts (n INT, t VARCHAR(9)) PARTITION BY RANGE (n) (PARTITION a VALUES LESS THAN (777), PARTITION b VALUES LESS THAN MAXVALUE)",
    "INSERT INTO d.p (id, mail, born) VALUES (1, 'x@y.z', '2020-02-03'), (4711, 'z@y.z', '2021-02-03')",
    "INSERT INTO d.c VALUES (1, 'x@y.z', 1)",
];

/// Masks, and what is said of them.
const REFUSED: [(&[&str], &str); 31] = [
    (&["d.p.nope=null"], "matches no column"),
    (
        &["d.p.mail=hash", "nope.*\\..*\\.x=null"],
        "'nope.*\\..*\\.x=null' matches no column",
    ),
    (&["d.p.mail"], "is not SCHEMA.TABLE.COLUMN=WAY"),
    (&["d.p.mail=Hash"], "'Hash' is not a way"),
    (&["d.p.(=null"], "not a regular expression"),
    (&["d.p.b=null", "d\\.p\\.b=empty"], "both match d.p.b"),
    (&["d.p.mail=null"], "d.p.mail is NOT NULL"),
    (&["d.p.born=email"], "d.p.born has the type date"),
    (
        &["d.p.short=email"],
        "an address has 25 characters at least",
    ),
    (&["d.p.txt=year"], "only dates keep their year"),
    (&["d.p.n=hash"], "a hash is a text"),
    (&["d.p.n=empty"], "only texts and bytes can be empty"),
    (&["d.p.b=hash"], "a hash is a text"),
    (&["d.p.txt=shape"], "too long"),
    (&["d.p.f=shape"], "only texts and numbers"),
    (&["d.p.n=fixed:x"], "no value 'x'"),
    (&["d.p.born=fixed:2020-02-30"], "no value '2020-02-30'"),
    (
        &["d.p.short=fixed:123456789012345678901"],
        "the text is longer",
    ),
    // What is unique has to stay so.
    (&["d.p.short=hash"], "d.p.short is in a unique key"),
    (&["d.p.short=shape"], "d.p.short is in a unique key"),
    (&["d.p.short=fixed:x"], "d.p.short is in a unique key"),
    (&["d.p.born=year"], "d.p.born is in a unique key"),
    (
        &["d.g.last=hash"],
        "d.g.last is in an expression of a unique key",
    ),
    // What is joined has to stay so.
    (
        &["d.p.mail=hash"],
        "from d.c.mail to d.p.mail, but they are not masked in the same way",
    ),
    (
        &["d.c.mail=hash"],
        "from d.c.mail to d.p.mail, but they are not masked in the same way",
    ),
    (
        &["d.c.mail=hash", "d.p.mail=email"],
        "not masked in the same way",
    ),
    (&["d.p.id=shape"], "from d.c.p to d.p.id"),
    // What is computed shows what it is computed from.
    (&["d.g.whole=hash"], "d.g.whole is a generated column"),
    (
        &["d.g.whole=hash", "d.g.first=hash"],
        "d.g.whole is a generated column",
    ),
    (&["d.parts.n=shape"], "d.parts.n decides which partition"),
    (&["d.parts.n=null"], "d.parts.n decides which partition"),
];

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    let running = server.start(&scratch.join("data"), &args);
    let mut session = running.session().unwrap();
    for sql in TABLES {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
    running
}

#[track_caller]
fn refused(scratch: &Scratch, running: &Running, masks: &[&str], more: &[&str], said: &str) {
    let parent = scratch.join("new");
    let flags = masks.iter().flat_map(|mask| ["--mask", *mask]);
    let flags: Vec<&str> = flags.chain(more.iter().copied()).collect();
    let ended = run(dump(&program(), running, &parent.join("dir"), &flags));
    assert_eq!(ended.code, Some(2), "{masks:?} {more:?}: {ended:?}");
    assert!(
        ended.message().contains(said),
        "{masks:?}: {}",
        ended.message()
    );
    let hints = ended.answer["hints"].as_array().map_or(0, Vec::len);
    assert!(!parent.exists() && hints > 0, "{masks:?} {ended:?}");
}

fn what_does_not_suit(server: &TestServer, own: &[(&str, &[&str], &str)]) {
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    for (masks, said) in REFUSED {
        refused(&scratch, &running, masks, &[], said);
    }
    refused(
        &scratch,
        &running,
        &["d.c.mail=hash"],
        &["--table=d.c"],
        "d.p.mail, which is not in this dump",
    );
    for (sql, masks, said) in own {
        running
            .session()
            .unwrap()
            .run(sql)
            .unwrap_or_else(|e| panic!("{}", e.chain()));
        refused(&scratch, &running, masks, &[], said);
    }
    assert!(!scratch.join("new").exists());
    // Of both sides the same way is taken, and the counter does not tell the largest number.
    let masks = [
        "d\\.(p|c)\\.mail=hash",
        "d\\.p\\.id=shape",
        "d\\.c\\.p=shape",
        "d\\.p\\.n=null",
    ];
    let flags: Vec<&str> = masks.iter().flat_map(|mask| ["--mask", *mask]).collect();
    let dir = scratch.join("dir");
    done(run(dump(&program(), &running, &dir, &flags)));
    let text = std::fs::read_to_string(dir.join("d/p.table.sql")).unwrap();
    assert!(!text.contains("4712"), "{text}");
    let mut session = running.session().unwrap();
    session.run("DROP DATABASE d").unwrap();
    done(run(load_into(&program(), &running, &dir, &["--verify"])));
    let joined = "SELECT COUNT(*) FROM d.c JOIN d.p ON p.mail = c.mail AND p.id = c.p";
    assert_eq!(session.value(joined).unwrap().as_deref(), Some("1"));
}

#[test]
fn on_mariadb_10_11() {
    assert_eq!(mariadb_10_11().binary.flavour, Flavour::MariaDb);
    what_does_not_suit(
        &mariadb_10_11(),
        &[
            (
                "CREATE TABLE d.k (a INT, b VARCHAR(9) CHECK (b <> 'x'), j JSON, CONSTRAINT ck CHECK (a > 0))",
                &["d.k.a=shape"],
                "d.k.a has a CHECK",
            ),
            ("DO 1", &["d.k.b=hash"], "d.k.b has a CHECK"),
            ("DO 1", &["d.k.j=fixed:x"], "d.k.j has a CHECK"),
            (
                "CREATE TABLE d.o (e INT PRIMARY KEY, mail VARCHAR(30), FOREIGN KEY (mail) REFERENCES p (mail))",
                &["d\\.[pco]\\.mail=hash"],
                "not masked in the same way",
            ),
            (
                "DROP TABLE d.o",
                &["d.c.mail=hash"],
                "not masked in the same way",
            ),
        ],
    );
}

#[test]
fn on_mysql_8_0_15() {
    what_does_not_suit(
        &mysql_8_0_15(),
        &[(
            "CREATE TABLE d.x (a VARCHAR(50), UNIQUE KEY ((LOWER(a))))",
            &["d.x.a=hash"],
            "d.x.a is in an expression of a unique key",
        )],
    );
}

#[test]
fn on_mysql_9() {
    what_does_not_suit(
        &mysql_9(),
        &[(
            "CREATE TABLE d.k (a INT CHECK (a > 0))",
            &["d.k.a=null"],
            "d.k.a has a CHECK",
        )],
    );
}

#[test]
fn keys_that_others_may_read() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    let key = scratch.join("key");
    let flag = format!("--mask-key-file={}", key.display());
    let masks = ["d.g.first=hash"];
    refused(&scratch, &running, &masks, &[&flag], "does not exist");
    write_key(&key, 1);
    for mode in [0o640, 0o604, 0o620, 0o644] {
        std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        refused(
            &scratch,
            &running,
            &masks,
            &[&flag],
            "users other than its owner",
        );
    }
    // Root could read it, and so could its owner.
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&key, Some(1), None).unwrap();
    refused(
        &scratch,
        &running,
        &masks,
        &[&flag],
        "belongs to another user",
    );
    std::fs::remove_file(&key).unwrap();
    write_key(&key, 1);
    std::fs::write(&key, "too short").unwrap();
    refused(
        &scratch,
        &running,
        &masks,
        &[&flag],
        "a key must have 32 to",
    );
    std::fs::remove_file(&key).unwrap();
    std::fs::create_dir(&key).unwrap();
    refused(&scratch, &running, &masks, &[&flag], "is not a key file");
    refused(
        &scratch,
        &running,
        &masks,
        &["--resume"],
        "--resume needs --mask-key-file",
    );
}
