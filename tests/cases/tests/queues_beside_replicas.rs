//! What does a replica get of queues, in each binary log format, with and without the engine?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::replicas::status;
use evenkeel_testkit::{By, Scratch, until, wait_until_caught_up};

const FORMATS: [&str; 3] = ["STATEMENT", "MIXED", "ROW"];

#[test]
fn a_replica_with_the_engine_on_mariadb_10() {
    gets_tables_and_no_rows(Host::MariaDb10);
}

#[test]
fn a_replica_with_the_engine_on_mysql_9() {
    gets_tables_and_no_rows(Host::MySql9);
}

#[test]
fn a_replica_without_the_engine_on_mariadb_10() {
    stops_or_is_told_to_ignore(Host::MariaDb10);
}

#[test]
fn a_replica_without_the_engine_on_mysql_9() {
    stops_or_is_told_to_ignore(Host::MySql9);
}

/// A server with queues whose binary log begins now.
fn source(host: Host) -> QueueSite {
    let site = QueueSite::start_with_networking(host, &["--server-id=1"]);
    By::allow(&site.running);
    let reset = match host {
        Host::MySql9 => "RESET BINARY LOGS AND GTIDS",
        Host::MariaDb10 | Host::MariaDb11 => "RESET MASTER",
    };
    site.session().run(reset).unwrap();
    site
}

fn run(session: &mut Session, sql: &str) {
    session
        .run(sql)
        .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
}

/// The first column of all rows, as text.
fn ids(session: &mut Session, table: &str) -> Vec<String> {
    let rows = session.rows(&format!("SELECT id FROM {table} ORDER BY id"));
    let rows = rows.unwrap_or_else(|why| panic!("{table}: {}", why.chain()));
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

fn gets_tables_and_no_rows(host: Host) {
    let source = source(host);
    let replica = QueueSite::start_on(host, &["--server-id=2"]);
    By::Position.follow(&source.running, &replica.running);
    for format in FORMATS {
        rows_stay_where_they_are(&source, &replica, format);
    }
    its_own_row_is_not_taken(&source, &replica);
}

/// Everything that is done to a queue in one format; the replica has a queue of the same name with a row of its own.
fn rows_stay_where_they_are(source: &QueueSite, replica: &QueueSite, format: &str) {
    let (mut here, mut there) = (source.session(), replica.session());
    run(&mut here, &format!("SET SESSION binlog_format={format}"));
    for sql in [
        "CREATE TABLE made (id INT NOT NULL) ENGINE=QUEUE",
        "CREATE TABLE plain (id INT NOT NULL) ENGINE=InnoDB",
        "RENAME TABLE made TO q",
    ] {
        run(&mut here, sql);
    }
    wait_until_caught_up(&source.running, &replica.running);
    run(&mut there, "INSERT INTO q VALUES (77)");
    run(&mut here, "INSERT INTO q VALUES (1), (2), (3), (4)");
    for sql in [
        "INSERT INTO plain SELECT id FROM q WHERE id < 3",
        "INSERT INTO plain SELECT queue_compact('q') + 100",
        "LOCK TABLES q READ, plain WRITE",
        "INSERT INTO plain SELECT id FROM q WHERE id = 3",
    ] {
        let done = here.run(sql);
        if format == "STATEMENT" && sql.starts_with("INSERT") {
            let why = done.expect_err(sql).to_string();
            assert!(why.contains("binlog_format=STATEMENT"), "{sql}: {why}");
        } else {
            done.unwrap_or_else(|why| panic!("{format}, {sql}: {}", why.chain()));
        }
    }
    run(&mut here, "UNLOCK TABLES");
    // One that would be there, and not in the log: a later statement about it would stop replicas.
    let refused = here.run("CREATE TABLE made ENGINE=QUEUE SELECT 1 AS id");
    let why = refused.expect_err("CREATE TABLE … SELECT").to_string();
    assert!(why.contains("CREATE TABLE ... SELECT"), "{format}: {why}");
    run(&mut here, "DELETE FROM q WHERE id = 1");
    assert_eq!(
        here.value("SELECT queue_wait('q', 1)").unwrap().as_deref(),
        Some("1")
    );
    assert_eq!(
        here.value("SELECT queue_end()").unwrap().as_deref(),
        Some("1")
    );
    run(&mut here, "TRUNCATE TABLE q");
    wait_until_caught_up(&source.running, &replica.running);
    assert_eq!(ids(&mut there, "q"), ["77"], "{format}");
    let copied = ids(&mut here, "plain");
    assert_eq!(ids(&mut there, "plain"), copied, "{format}");
    let expected: &[&str] = if format == "STATEMENT" {
        &[]
    } else {
        &["1", "2", "3", "101"]
    };
    assert_eq!(copied, expected, "{format}");
    run(&mut here, "DROP TABLE q, plain");
    wait_until_caught_up(&source.running, &replica.running);
    assert!(
        there.rows("SELECT * FROM q").is_err(),
        "{format}: the queue is gone"
    );
}

/// A statement that waits and writes, where the family lets one: on the replica, nobody waits.
fn its_own_row_is_not_taken(source: &QueueSite, replica: &QueueSite) {
    let (mut here, mut there) = (source.session(), replica.session());
    for format in FORMATS {
        run(&mut here, &format!("SET SESSION binlog_format={format}"));
        run(&mut here, "CREATE TABLE q (id INT NOT NULL) ENGINE=QUEUE");
        run(
            &mut here,
            "CREATE TABLE plain (id INT NOT NULL) ENGINE=InnoDB",
        );
        wait_until_caught_up(&source.running, &replica.running);
        run(&mut there, "INSERT INTO q VALUES (77)");
        run(&mut here, "INSERT INTO q VALUES (1)");
        let waited = here.run("INSERT INTO plain SELECT queue_wait('q', 0.1)");
        assert!(
            waited.is_err(),
            "{format}: a wait in a statement that writes"
        );
        run(&mut here, "SELECT queue_wait('q', 1)");
        // As text the replica would call it too.
        let ended = here.run("INSERT INTO plain SELECT queue_end()");
        assert_eq!(ended.is_err(), format == "STATEMENT", "{format}: {ended:?}");
        if ended.is_err() {
            run(&mut here, "SELECT queue_end()");
        }
        wait_until_caught_up(&source.running, &replica.running);
        assert_eq!(ids(&mut there, "q"), ["77"], "{format}");
        run(&mut here, "DROP TABLE q, plain");
    }
}

fn stops_or_is_told_to_ignore(host: Host) {
    let source = source(host);
    let server = host.server();
    let scratch = Scratch::new();
    let start = |name: &str, more: &[&str]| -> Running {
        let mut args = By::Position.options(&server);
        args.extend(["--innodb-buffer-pool-size=32M"]);
        args.extend(more);
        let running = server.start(&scratch.join(name), &args);
        let mut session = running.session().unwrap();
        run(&mut session, "CREATE DATABASE shop");
        By::Position.follow(&source.running, &running);
        running
    };
    let ignores = start(
        "ignores",
        &[
            "--server-id=2",
            "--replicate-wild-ignore-table=queues.%",
            "--replicate-ignore-db=queues",
        ],
    );
    let stops = start("stops", &["--server-id=3"]);
    let mut here = source.session();
    for sql in [
        "CREATE TABLE plain (id INT NOT NULL) ENGINE=InnoDB",
        "CREATE DATABASE queues",
        "USE queues",
        "SET SESSION binlog_format=MIXED",
        // One that only this server shall know.
        "SET SESSION sql_log_bin=0",
        "CREATE TABLE own (id INT NOT NULL) ENGINE=QUEUE",
        "SET SESSION sql_log_bin=1",
        "INSERT INTO own VALUES (5)",
        "INSERT INTO shop.plain SELECT id FROM own",
        // Without that mode a replica takes another engine, as it does for any that it does not have.
        "CREATE TABLE other (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO other VALUES (1)",
    ] {
        run(&mut here, sql);
    }
    for replica in [&ignores, &stops] {
        wait_until_caught_up(&source.running, replica);
        let mut there = replica.session().unwrap();
        assert_eq!(ids(&mut there, "shop.plain"), ["5"]);
    }
    let mut there = stops.session().unwrap();
    assert_eq!(ids(&mut there, "queues.other"), Vec::<String>::new());
    for sql in [
        "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'",
        "CREATE TABLE q (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO q VALUES (6)",
        "INSERT INTO shop.plain SELECT id FROM q",
        "DROP TABLE q",
    ] {
        run(&mut here, sql);
    }
    stops_at_it(&stops);
    if host == Host::MySql9 {
        // It looks for the engine before it asks what to ignore.
        return stops_at_it(&ignores);
    }
    wait_until_caught_up(&source.running, &ignores);
    let mut there = ignores.session().unwrap();
    assert_eq!(ids(&mut there, "shop.plain"), ["5", "6"]);
}

fn stops_at_it(replica: &Running) {
    until("its applier stops", || {
        let status = status(replica);
        let error = status.channels[0].applier_error.clone();
        error.is_some_and(|(code, _)| code == 1286)
    });
}
