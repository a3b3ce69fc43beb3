//! Does what goes wrong with a server say what it is and what to do next?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::provoked::{WrittenDown, closed_port, port_of_ssh};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

const ERRORS: &[(&str, &str)] = &[
    ("no-socket", "doctor --no-defaults --socket=/nowhere.sock"),
    (
        "no-server",
        "doctor --no-defaults --host=127.0.0.1 --port=3399",
    ),
    ("no-such-host", "doctor --no-defaults --host=db1.invalid"),
    (
        "port-of-something-else",
        "doctor --no-defaults --host=127.0.0.1 --port=2222",
    ),
    (
        "load-at-something-else",
        "import --no-defaults --host=127.0.0.1 --port=2222 /srv/broken.sql",
    ),
    (
        "wrong-password",
        "doctor --no-defaults --user=poor --password=wrong --socket=/run/db.sock",
    ),
    (
        "missing-privilege",
        "backup --no-defaults --user=poor --password=poor --socket=/run/db.sock /backup/shop",
    ),
    (
        "no-such-database",
        "dump --no-defaults --user=root --socket=/run/db.sock --database=shpo --output=/srv/out",
    ),
    (
        "failing-statement",
        "import --no-defaults --user=root --socket=/run/db.sock /srv/broken.sql",
    ),
    (
        "not-a-queue",
        "queue peek --no-defaults --user=root --socket=/run/db.sock points.n",
    ),
    (
        "point-before-the-first",
        "restore /backup/shop --target=/srv/restored --to=2020-01-01T00:00:00 --server-binary=/usr/sbin/db",
    ),
];

#[test]
fn on_mariadb_10_11() {
    let mut said = WrittenDown::of("servers", PROGRAM);
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let _ = add(&mut session, 1);
    let made = run(evenkeel.backup(&site, &[]));
    assert_eq!(made.generation(), 1);
    session
        .run("CREATE USER poor@localhost IDENTIFIED BY 'poor'")
        .unwrap();
    let broken = site.fs.join("broken.sql");
    let text = "CREATE TABLE points.m (id INT);\nINSERT INTO points.gone VALUES (1);\n";
    fs::write(&broken, text).unwrap();
    for (what, name) in [
        (site.running().socket(), "/run/db.sock"),
        (&*site.server.binary.path, "/usr/sbin/db"),
        (&*site.repository(), "/backup/shop"),
        (&*broken, "/srv/broken.sql"),
        (&*site.fs.join("out"), "/srv/out"),
        (&*site.fs.join("restored"), "/srv/restored"),
    ] {
        said.call(what.display(), name);
    }
    said.call(closed_port(), "3399");
    said.call(port_of_ssh(), "2222");
    let restore = "restore /backup/shop --target=/srv/restored --to=binlog.000001:4 --server-binary=/usr/sbin/db";
    said.say("no-archived-log", restore);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    let listed = run(evenkeel.command(&["generations", site.repository().to_str().unwrap()]));
    let created = listed.answer["generations"][0]["created"].as_str().unwrap();
    said.call(
        created.replace('T', " ").replace('Z', " UTC"),
        "2026-11-20 02:00:00 UTC",
    );
    for (name, line) in ERRORS {
        said.say(name, line);
    }
    said.assert_all();
}
