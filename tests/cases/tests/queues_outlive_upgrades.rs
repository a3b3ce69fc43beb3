//! Do servers and their own tools leave the files of queues alone, and see no database in them: scans, upgrade, dump and
//! restore of all databases, DROP DATABASE, RENAME TABLE?

use evenkeel_cases::queues::tools::tool;
use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use std::fs::{self, File};
use std::process::{Command, Stdio};

/// Schemas that each server has, and what the test makes.
const KNOWN: [&str; 7] = [
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
    "test",
    "shop",
    "other",
];

fn names(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session
        .rows(sql)
        .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

fn make(site: &QueueSite) {
    let mut session = site.open("shop");
    site.create(&mut session, "jobs", "id INT NOT NULL, what TEXT")
        .unwrap();
    session
        .run("INSERT INTO jobs VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        .unwrap();
}

fn jobs(session: &mut Session) -> Vec<i64> {
    numbers(session, "SELECT id FROM shop.jobs")
}

/// What a server lists is what was made, and it says nothing of it in its log.
fn is_seen_by_no_scan(site: &QueueSite) {
    let mut session = site.open("shop");
    for sql in [
        "SHOW DATABASES",
        "SELECT schema_name FROM information_schema.schemata",
        "SELECT DISTINCT table_schema FROM information_schema.tables",
        "SELECT DISTINCT table_schema FROM information_schema.columns",
    ] {
        let seen = names(&mut session, sql);
        let strange: Vec<_> = seen
            .iter()
            .filter(|name| !KNOWN.contains(&&***name))
            .collect();
        assert!(strange.is_empty(), "{sql}: {strange:?}");
        assert!(seen.iter().any(|name| name == "shop"), "{sql}: {seen:?}");
    }
    assert_eq!(names(&mut session, "SHOW TABLES FROM shop"), ["jobs"]);
    let log = fs::read_to_string(site.running.log_path()).unwrap();
    let said: Vec<_> = log.lines().filter(|line| line.contains("queue")).collect();
    assert!(said.is_empty(), "{said:?}");
}

fn succeeds(command: &mut Command) {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn an_upgrade_changes_nothing(site: &QueueSite) {
    succeeds(tool(site, "mariadb-upgrade").arg("--force"));
    assert_eq!(jobs(&mut site.open("shop")), [1, 2, 3]);
}

fn all_databases_come_back_from_a_dump(site: &QueueSite) {
    let file = site.launch.datadir.with_extension("sql");
    let mut dump = tool(site, "mariadb-dump");
    dump.args(["--all-databases", "--add-drop-database"]);
    succeeds(dump.stdout(File::create(&file).unwrap()));
    let text = fs::read(&file).unwrap();
    assert!(!String::from_utf8_lossy(&text).contains("sqlqueue"));
    let mut session = site.open("shop");
    session.run("DELETE FROM shop.jobs WHERE id = 2").unwrap();
    drop(session);
    succeeds(tool(site, "mariadb").stdin(File::open(&file).unwrap()));
    assert_eq!(jobs(&mut site.open("shop")), [1, 2, 3]);
}

fn a_queue_moves_to_another_database_and_goes_with_it(site: &QueueSite) {
    let mut session = site.open("other");
    session.run("RENAME TABLE shop.jobs TO other.jobs").unwrap();
    assert_eq!(
        numbers(&mut session, "SELECT id FROM other.jobs"),
        [1, 2, 3]
    );
    session.run("DROP DATABASE shop").unwrap();
    assert_eq!(
        numbers(&mut session, "SELECT id FROM other.jobs"),
        [1, 2, 3]
    );
    session.run("DROP DATABASE other").unwrap();
    assert!(!site.launch.datadir.join("other").exists());
    assert_eq!(
        fs::read_dir(site.rows()).unwrap().count(),
        0,
        "rows are left"
    );
}

fn case(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    make(&site);
    is_seen_by_no_scan(&site);
    if host != Host::MySql9 {
        an_upgrade_changes_nothing(&site);
        all_databases_come_back_from_a_dump(&site);
        is_seen_by_no_scan(&site);
    }
    let site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    assert_eq!(jobs(&mut site.open("shop")), [1, 2, 3]);
    a_queue_moves_to_another_database_and_goes_with_it(&site);
}

#[test]
fn in_mariadb_10() {
    case(Host::MariaDb10);
}

#[test]
fn in_mariadb_11() {
    case(Host::MariaDb11);
}

#[test]
fn in_mysql() {
    case(Host::MySql9);
}
