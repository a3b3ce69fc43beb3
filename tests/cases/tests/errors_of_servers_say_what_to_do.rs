//! Does what goes wrong with a server say what it is and what to do next?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table, mark, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::provoked::{WrittenDown, closed_port, port_of_ssh};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;
use std::os::unix::fs::FileExt;

const PAGE: usize = 16 << 10;

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
        "copy-of-a-running-server",
        "backup --no-defaults --user=root --socket=/run/db.sock --snapshot=copy /backup/shop",
    ),
    (
        "no-engine-tool",
        "backup --no-defaults --user=root --socket=/run/db.sock --snapshot=engine --engine-tool=/nowhere /backup/shop",
    ),
    (
        "no-snapshot-method",
        "backup --no-defaults --user=root --socket=/run/blog.sock --snapshot=reflink /backup/blog",
    ),
    (
        "another-server",
        "backup --no-defaults --user=root --socket=/run/blog.sock --snapshot=engine /backup/shop",
    ),
    (
        "no-such-transaction",
        "restore /backup/shop --target=/srv/restored --to=gtid:0-1-4711 --server-binary=/usr/sbin/db",
    ),
    (
        "point-beyond-the-archive",
        "restore /backup/shop --target=/srv/restored --to=2099-01-01T00:00:00 --server-binary=/usr/sbin/db",
    ),
    (
        "point-before-the-first",
        "restore /backup/shop --target=/srv/restored --to=2020-01-01T00:00:00 --server-binary=/usr/sbin/db",
    ),
];

#[test]
fn on_mariadb_10_11() {
    let mut said = WrittenDown::of("servers", PROGRAM);
    // Recovery would repair the page that is damaged at the end from there.
    let options = ["--innodb-doublewrite=0"];
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 10, &options);
    let blog = Site::start(mariadb_10_11(), LoopFs::ext4(2 << 30), 10, &[]);
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
        (blog.running().socket(), "/run/blog.sock"),
        (&*blog.repository(), "/backup/blog"),
        (&*site.fs.join("data"), "/var/lib/shop"),
        (&*blog.fs.join("data"), "/var/lib/blog"),
    ] {
        said.call(what.display(), name);
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    said.call(format!(" {}:", host.trim()), " db7.example:");
    said.call(closed_port(), "3399");
    said.call(port_of_ssh(), "2222");
    let restore = "restore /backup/shop --target=/srv/restored --to=binlog.000001:4 --server-binary=/usr/sbin/db";
    said.say("no-archived-log", restore);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    // To the second, as messages say it.
    let image_at = made.answer["image_at"].as_str().unwrap();
    let second = image_at[..19].replace('T', " ");
    said.call(format!("{second} UTC"), "2026-11-20 02:00:00 UTC");
    call_the_end(&mut said, &evenkeel, &site);
    for (name, line) in ERRORS {
        said.say(name, line);
    }
    damage(&site);
    let backup = "backup --no-defaults --user=root --socket=/run/db.sock --quiet /backup/shop";
    said.say("corrupt-page", backup);
    said.assert_all();
}

/// Gives names to what is another each time: where the archive ends and when, a process, a
/// tablespace.
fn call_the_end(said: &mut WrittenDown, evenkeel: &Evenkeel, site: &Site) {
    let end = mark(&mut site.running().session().unwrap());
    said.call(end.moved(0), "binlog.000042:4711");
    let late = restore_to(
        evenkeel,
        site,
        &site.fs.join("restored"),
        "2099-01-01T00:00:00",
    );
    let hint = late.answer["hints"][0].as_str().unwrap();
    let time = hint.rsplit(' ').next().unwrap();
    said.call(time, "2026-11-20T02:15:00Z");
    let space =
        "SELECT SPACE FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME = 'points/n'";
    let space = site.running().session().unwrap().value(space).unwrap();
    said.call(format!("(space {},", space.unwrap()), "(space 42,");
    said.call(
        format!("process {} (", site.running().pid()),
        "process 4711 (",
    );
}

/// Writes rubbish over a page of a table that nobody changes.
fn damage(site: &Site) {
    let mut session = site.running().session().unwrap();
    session.run("FLUSH TABLES points.n FOR EXPORT").unwrap();
    session.run("UNLOCK TABLES").unwrap();
    let file = fs::File::options()
        .write(true)
        .open(site.fs.join("data/points/n.ibd"));
    let file = file.unwrap();
    file.write_all_at(&[0xA5; PAGE], 3 * PAGE as u64).unwrap();
    file.sync_all().unwrap();
}
