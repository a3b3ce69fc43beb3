//! Does `replica diagnose` name what is wrong with real replicas, and does what it says repair them?

mod diagnosed;

use diagnosed::{damage, purge, source_log};
use evenkeel_cases::trio::Trio;
use evenkeel_server::replication::{Positioning, ThreadState};
use evenkeel_testkit::servers::{
    TestServer, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::{By, LoopFs};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

fn trio(server: TestServer, by: By, more: &[&'static str]) -> Trio {
    let trio = Trio::start(server, by, more, PROGRAM);
    trio.is_well();
    trio
}

/// Rows of the replica that are not as the source's: the applier fails, and goes on once they are again.
fn rows(trio: &Trio) {
    trio.unlogged(1, &["DELETE FROM shop.a WHERE id = 1"]);
    trio.sql(0, "UPDATE shop.a SET t = 'ONE' WHERE id = 1");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "missing-row-updated");
    assert_eq!(found["class"], "planned");
    assert!(
        found["evidence"].to_string().contains("error 1032"),
        "{found}"
    );
    trio.unlogged(1, &["INSERT INTO shop.a VALUES (1, 10, 'one')"]);
    trio.repair(1, &found);
    trio.catch_up();

    trio.unlogged(1, &["DELETE FROM shop.a WHERE id = 1"]);
    trio.sql(0, "DELETE FROM shop.a WHERE id = 1");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "missing-row-deleted");
    trio.unlogged(1, &["INSERT INTO shop.a VALUES (1, 10, 'ONE')"]);
    trio.repair(1, &found);
    trio.catch_up();

    trio.unlogged(1, &["INSERT INTO shop.a VALUES (4, 400, 'rogue')"]);
    trio.sql(0, "INSERT INTO shop.a VALUES (4, 40, 'four')");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "key-taken");
    assert!(
        found["repair"].to_string().contains("'4' in key 'PRIMARY'"),
        "{found}"
    );
    trio.unlogged(1, &["DELETE FROM shop.a WHERE id = 4"]);
    trio.repair(1, &found);
    trio.catch_up();

    trio.unlogged(1, &["INSERT INTO shop.a VALUES (500, 50, 'rogue')"]);
    trio.sql(0, "INSERT INTO shop.a VALUES (5, 50, 'five')");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "unique-value-taken");
    assert!(
        found["repair"].to_string().contains("'50' in key 'u'"),
        "{found}"
    );
    trio.unlogged(1, &["DELETE FROM shop.a WHERE id = 500"]);
    trio.repair(1, &found);
    trio.catch_up();

    trio.unlogged(1, &["DELETE FROM shop.nokey WHERE id = 1"]);
    trio.sql(0, "UPDATE shop.nokey SET t = 'ONE' WHERE id = 1");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "missing-row-without-key");
    assert_eq!(found["class"], "never");
    trio.unlogged(1, &["INSERT INTO shop.nokey VALUES (1, 'one')"]);
    trio.order(1, "START", "SQL_THREAD");
    trio.catch_up();
}

/// Waits until a thread of the replica says this.
#[track_caller]
fn until_a_thread(trio: &Trio, says: &str) {
    let mut last = Vec::new();
    let is_there = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        evenkeel_testkit::until(says, || {
            last = trio.session(1).rows("SHOW PROCESSLIST").unwrap();
            let mut states = last.iter().filter_map(|row| row.get("State"));
            states.any(|state| state.contains(says))
        });
    }));
    assert!(
        is_there.is_ok(),
        "no thread says '{says}': {last:?} {:?}",
        trio.channel(1)
    );
}

/// Tables that are not as the source's, and locks.
fn tables(trio: &Trio) {
    trio.unlogged(1, &["RENAME TABLE shop.nokey TO shop.elsewhere"]);
    trio.sql(0, "INSERT INTO shop.nokey VALUES (3, 'three')");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "definition-differs");
    trio.unlogged(1, &["RENAME TABLE shop.elsewhere TO shop.nokey"]);
    trio.repair(1, &found);
    trio.catch_up();

    let mut reader = trio.session(1);
    reader.run("BEGIN").unwrap();
    reader.rows("SELECT * FROM shop.a").unwrap();
    trio.sql(0, "ALTER TABLE shop.a COMMENT = 'changed'");
    until_a_thread(trio, "metadata lock");
    let found = trio.finds(1, "sql-thread-blocked");
    let kill = format!("KILL {}", reader.id());
    assert!(found["repair"].to_string().contains(&kill), "{found}");
    trio.repair(1, &found);
    trio.catch_up();

    // Long before the SQL thread gives up.
    let mut writer = trio.session(1);
    writer.run("BEGIN").unwrap();
    let held = "UPDATE shop.a SET t = 'held' WHERE id = 2";
    writer.run(held).unwrap();
    trio.sql(0, "UPDATE shop.a SET t = 'Two' WHERE id = 2");
    evenkeel_testkit::until("the SQL thread waits for a row", || {
        // InnoDB fills this table again only if nobody has read it for a tenth of a second.
        std::thread::sleep(Duration::from_millis(200));
        let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX \
                       WHERE trx_wait_started < NOW() - INTERVAL 2 SECOND";
        trio.session(1).value(waiting).unwrap().as_deref() == Some("1")
    });
    let found = trio.finds(1, "sql-thread-blocked");
    let kill = format!("KILL {}", writer.id());
    assert!(found["repair"].to_string().contains(&kill), "{found}");
    assert!(found["evidence"].to_string().contains("a row"), "{found}");
    trio.repair(1, &found);
    trio.catch_up();

    trio.sql(1, "SET GLOBAL innodb_lock_wait_timeout = 1");
    trio.sql(1, "SET GLOBAL slave_transaction_retries = 0");
    trio.order(1, "STOP", "SQL_THREAD");
    trio.order(1, "START", "SQL_THREAD");
    let mut writer = trio.session(1);
    writer.run("BEGIN").unwrap();
    writer.run(held).unwrap();
    trio.sql(0, "UPDATE shop.a SET t = 'TWO' WHERE id = 2");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "lock-wait");
    assert_eq!(found["class"], "automatic");
    let session = format!("session {} of root", writer.id());
    assert!(found["evidence"].to_string().contains(&session), "{found}");
    drop(writer);
    trio.repair(1, &found);
    trio.catch_up();
}

/// Sources that do not answer, or do not let replicas in.
fn sources(trio: &Trio) {
    trio.order(1, "STOP", "");
    let found = trio.finds(1, "stopped");
    assert_eq!(found["class"], "planned");
    trio.repair(1, &found);
    trio.catch_up();

    trio.order(1, "STOP", "IO_THREAD");
    let password = |word: &str| match trio.is_mariadb() {
        true => format!("SET PASSWORD FOR repl@'%' = PASSWORD('{word}')"),
        false => format!("ALTER USER repl@'%' IDENTIFIED BY '{word}'"),
    };
    trio.sql(0, &password("other"));
    trio.order(1, "START", "IO_THREAD");
    trio.until(1, "it is not let in", |channel| {
        channel.receiver_error.is_some()
    });
    let found = trio.finds(1, "login-refused");
    trio.sql(0, &password("s3cret"));
    trio.repair(1, &found);
    trio.catch_up();

    // Nothing listens at the port of TCP's multiplexer.
    let port = trio.port(0);
    let place = |port: u16| {
        trio.order(1, "STOP", "IO_THREAD");
        // MariaDB by GTID wants all of it stopped.
        trio.order(1, "STOP", "");
        trio.change(1, &format!("MASTER_PORT={port}"));
        trio.order(1, "START", "");
    };
    place(1);
    trio.until(1, "it is refused", |channel| {
        channel.receiver_error.is_some()
    });
    let found = trio.finds(1, "source-unreachable");
    assert_eq!(found["class"], "wait");
    place(port);
    trio.catch_up();

    let source = Pid::from_raw(trio.running(0).pid()).unwrap();
    kill_process(source, Signal::STOP).unwrap();
    let ended = trio.diagnose(&[1, 2], &["--timeout=3s"]);
    let among = trio.diagnose(&[0, 1, 2], &["--timeout=3s"]);
    kill_process(source, Signal::CONT).unwrap();
    // In its first seconds, only who asks the source can know.
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(among.code, Some(4), "{among:?}");
    let said = among.answer["findings"].to_string();
    assert!(
        said.contains("source-frozen") && said.contains("no-answer"),
        "{said}"
    );
    trio.catch_up();
    trio.is_well();
}

/// Numbers of servers.
fn numbers(trio: &Trio) {
    let number = |at: usize, id: u32| {
        trio.order(at, "STOP", "IO_THREAD");
        trio.sql(at, &format!("SET GLOBAL server_id = {id}"));
        trio.order(at, "START", "IO_THREAD");
    };
    number(2, 2);
    let found = trio.finds(1, "server-id-twice");
    assert_eq!(found["class"], "never");
    trio.finds(2, "server-id-twice");
    number(2, 3);
    number(1, 1);
    trio.finds(1, "server-id-of-source");
    number(1, 2);
    trio.catch_up();
}

/// Damaged relay logs: in the middle, and where the newest begins.
fn relay_logs(trio: &Trio) {
    damaged_relay_log(trio, 100, |length| length / 2);
    damaged_relay_log(trio, 120, |_| 4);
}

fn damaged_relay_log(trio: &Trio, first: u32, at: impl Fn(u64) -> u64) {
    trio.damage_relay_log(1, first, at);
    let found = trio.finds(1, "relay-log-damaged");
    assert_eq!(found["class"], "automatic");
    trio.repair(1, &found);
    trio.catch_up();
}

/// Logs that the source has purged; the donor's way where GTIDs allow it.
fn purged(trio: &Trio) {
    trio.order(1, "STOP", "");
    trio.sql(0, "INSERT INTO shop.a VALUES (200, 200, 'purged')");
    trio.sql(0, "FLUSH BINARY LOGS");
    trio.sql(0, "INSERT INTO shop.a VALUES (201, 201, 'kept')");
    evenkeel_testkit::wait_until_caught_up(trio.running(0), trio.running(2));
    purge(trio);
    trio.order(1, "START", "");
    trio.until(1, "it cannot fetch", |channel| {
        channel.receiver == ThreadState::Stopped && channel.receiver_error.is_some()
    });
    let found = trio.finds(1, "log-purged");
    assert_eq!(found["class"], "planned");
    let donor = trio.running(2).socket().display().to_string();
    if trio.by == By::Gtid {
        assert!(found["repair"].to_string().contains(&donor), "{found}");
        trio.order(1, "STOP", "");
        trio.change(1, &format!("MASTER_PORT={}", trio.port(2)));
        trio.order(1, "START", "");
        evenkeel_testkit::until("the donor helped", || {
            let count = trio
                .session(1)
                .value("SELECT COUNT(*) FROM shop.a WHERE id = 201")
                .unwrap();
            count.as_deref() == Some("1")
        });
        trio.order(1, "STOP", "");
        trio.change(1, &format!("MASTER_PORT={}", trio.port(0)));
        trio.order(1, "START", "");
        trio.sql(0, "INSERT INTO shop.a VALUES (202, 202, 'after')");
        trio.catch_up();
    }
}

/// MariaDB: a donor that was loaded without its binary log: its position says that it has what its log lacks.
fn hole(trio: &Trio) {
    let before = source_log(trio);
    trio.order(1, "STOP", "");
    trio.order(2, "STOP", "");
    let loaded = "INSERT INTO shop.a VALUES (210, 210, 'loaded')";
    trio.sql(0, loaded);
    let at = trio.session(0).value("SELECT @@gtid_binlog_pos").unwrap();
    let position = format!("SET GLOBAL gtid_slave_pos = '{}'", at.unwrap());
    trio.unlogged(2, &[loaded]);
    trio.sql(2, &position);
    trio.order(2, "START", "");
    trio.sql(0, "INSERT INTO shop.a VALUES (211, 211, 'purged')");
    trio.sql(0, "FLUSH BINARY LOGS");
    trio.sql(0, "INSERT INTO shop.a VALUES (212, 212, 'kept')");
    evenkeel_testkit::wait_until_caught_up(trio.running(0), trio.running(2));
    purge(trio);
    assert_ne!(source_log(trio), before);
    trio.order(1, "START", "");
    trio.until(1, "it cannot fetch", |channel| {
        channel.receiver == ThreadState::Stopped && channel.receiver_error.is_some()
    });
    let found = trio.finds(2, "donor-incomplete");
    assert_eq!(found["class"], "never");
    let found = trio.finds(1, "log-purged");
    let donor = trio.running(2).socket().display().to_string();
    assert!(!found["repair"].to_string().contains(&donor), "{found}");
    // As whoever rebuilds it would have it.
    trio.order(1, "STOP", "");
    trio.unlogged(1, &[loaded]);
    trio.sql(1, &position);
    trio.change(1, &format!("MASTER_PORT={}", trio.port(2)));
    trio.order(1, "START", "");
    evenkeel_testkit::until("the rest came from the other", || {
        let sql = "SELECT COUNT(*) FROM shop.a WHERE id IN (211, 212)";
        trio.session(1).value(sql).unwrap().as_deref() == Some("2")
    });
    trio.order(1, "STOP", "");
    trio.change(1, &format!("MASTER_PORT={}", trio.port(0)));
    trio.order(1, "START", "");
    trio.catch_up();
}

/// A source that has lost its history.
fn reset(trio: &Trio) {
    trio.order(1, "STOP", "");
    let sql = match trio.server.id {
        "mysql-9" => "RESET BINARY LOGS AND GTIDS",
        _ => "RESET MASTER",
    };
    trio.sql(0, sql);
    trio.sql(0, "INSERT INTO shop.a VALUES (990, 990, 'another history')");
    trio.order(1, "START", "");
    trio.until(1, "it cannot fetch", |channel| {
        channel.receiver_error.is_some()
    });
    let found = trio.finds(1, "history-differs");
    assert_eq!(found["class"], "never");
}

/// A write of the replica's own.
fn own(trio: &Trio) {
    trio.sql(2, "INSERT INTO shop.a VALUES (900, 900, 'errant')");
    let found = trio.finds(2, "own-transactions");
    assert_eq!(found["class"], "never");
    assert!(
        found["evidence"].to_string().contains("read_only is OFF"),
        "{found}"
    );
}

/// A server that was killed while its source is gone.
fn at_risk(trio: &mut Trio) {
    trio.order(1, "STOP", "SQL_THREAD");
    trio.sql(0, "INSERT INTO shop.a VALUES (600, 600, 'fetched')");
    trio.until_fetched(1);
    trio.kill(0);
    trio.until(1, "the source is gone", |channel| {
        channel.receiver == ThreadState::Connecting
    });
    let found = trio.finds(1, "fetched-logs-at-risk");
    assert_eq!(found["class"], "automatic");
    trio.repair(1, &found);
    evenkeel_testkit::until("what was fetched is applied", || {
        let count = trio
            .session(1)
            .value("SELECT COUNT(*) FROM shop.a WHERE id = 600")
            .unwrap();
        count.as_deref() == Some("1")
    });
    trio.restart(0, &[]);
    trio.catch_up();
}

/// Relay logs that are not there.
fn gone(trio: &mut Trio) {
    trio.stop(1);
    for (_, path) in trio.relay_files(1) {
        std::fs::remove_file(path).unwrap();
    }
    trio.restart(1, &["--skip-slave-start"]);
    trio.sql(0, "INSERT INTO shop.a VALUES (610, 610, 'gone')");
    let place = trio.channel(1);
    let found = trio.finds(1, "relay-log-gone");
    assert_eq!(found["class"], "planned");
    let position = match (place.positioning, place.executed) {
        (Positioning::File, Some(at)) => format!(
            "MASTER_USE_GTID=no, MASTER_LOG_FILE='{}', MASTER_LOG_POS={}",
            at.file, at.position
        ),
        _ => "MASTER_USE_GTID=slave_pos".to_owned(),
    };
    for step in found["repair"].as_array().unwrap() {
        match step["sql"].as_str() {
            Some(sql) => trio.sql(1, sql),
            None => trio.change(
                1,
                &format!(
                    "MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
                     MASTER_CONNECT_RETRY=1, {position}",
                    trio.port(0)
                ),
            ),
        }
    }
    trio.catch_up();
}

/// A secondary index that cannot be read any more.
fn indexes(trio: &mut Trio) {
    damage(trio, "b", false);
    let found = trio.finds_with(1, "index-damaged", &["--check-table=shop.b"]);
    assert_eq!(found["class"], "planned");
    for step in found["repair"].as_array().unwrap() {
        match step["sql"].as_str() {
            Some(sql) => trio.unlogged(1, &[sql]),
            None if step["says"].to_string().contains("add it again") => {
                trio.unlogged(1, &["ALTER TABLE shop.b ADD KEY t (t)"]);
            }
            None => {}
        }
    }
    let ended = trio.diagnose(&[0, 1, 2], &["--check-table=shop.b"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Rows that cannot be read any more.
fn damaged_rows(trio: &mut Trio) {
    damage(trio, "c", true);
    let found = trio.finds_with(1, "table-damaged", &["--check-table=shop.c"]);
    assert_eq!(found["class"], "never");
    let steps = found["repair"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["sql"].is_null()), "{found}");
    trio.sql(0, "DROP TABLE shop.c");
    trio.catch_up();
}

/// Parallel workers that were killed.
fn gaps(trio: &mut Trio) {
    trio.sql(
        0,
        "SET GLOBAL transaction_write_set_extraction = 'XXHASH64'",
    );
    trio.sql(
        0,
        "SET GLOBAL binlog_transaction_dependency_tracking = 'WRITESET'",
    );
    let mut held = trio.session(1);
    held.run("BEGIN").unwrap();
    held.run("INSERT INTO shop.a VALUES (700, 700, 'held')")
        .unwrap();
    for id in 700..704 {
        trio.sql(0, &format!("INSERT INTO shop.a VALUES ({id}, {id}, 'gap')"));
    }
    evenkeel_testkit::until("later ones are applied", || {
        let count = trio
            .session(1)
            .value("SELECT COUNT(*) FROM shop.a WHERE id > 700")
            .unwrap();
        count.as_deref() == Some("3")
    });
    trio.kill(1);
    drop(held);
    trio.restart(1, &["--skip-slave-start"]);
    let found = trio.finds(1, "applied-with-gaps");
    assert_eq!(found["class"], "automatic");
    let steps = found["repair"].as_array().unwrap();
    trio.sql(1, steps[0]["sql"].as_str().unwrap());
    trio.until(1, "it stops behind the gaps", |channel| {
        channel.applier == ThreadState::Stopped
    });
    trio.sql(1, steps[1]["sql"].as_str().unwrap());
    trio.order(1, "START", "IO_THREAD");
    trio.catch_up();
}

#[test]
fn of_a_full_disk() {
    let fs = LoopFs::ext4(64 << 20);
    std::fs::set_permissions(fs.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let server = mariadb_10_11();
    let trio = Trio::start_with(server, By::Gtid, &[], Some(fs.path()), PROGRAM);
    let filler = fs.join("filler");
    let file = std::fs::File::create(&filler).unwrap();
    let free = rustix::fs::statvfs(fs.path()).unwrap();
    rustix::fs::fallocate(
        &file,
        rustix::fs::FallocateFlags::empty(),
        0,
        (free.f_bavail - 100) * free.f_frsize,
    )
    .unwrap();
    trio.order(1, "STOP", "SQL_THREAD");
    trio.sql(
        0,
        "CREATE TABLE shop.large (id INT PRIMARY KEY, b LONGBLOB)",
    );
    for id in 0..60 {
        trio.sql(
            0,
            &format!("INSERT INTO shop.large VALUES ({id}, REPEAT('x', 50000))"),
        );
    }
    until_a_thread(&trio, "free space");
    let found = trio.finds(1, "disk-full");
    assert_eq!(found["class"], "planned");
    // No session of ours hangs there.
    let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SHOW %STATUS'";
    assert_eq!(trio.session(1).value(sql).unwrap().as_deref(), Some("0"));
    drop(file);
    std::fs::remove_file(&filler).unwrap();
    trio.order(1, "START", "SQL_THREAD");
    trio.catch_up();
}

#[test]
fn of_mariadb_by_gtid() {
    let mut trio = trio(mariadb_10_11(), By::Gtid, &[]);
    rows(&trio);
    tables(&trio);
    sources(&trio);
    numbers(&trio);
    relay_logs(&trio);
    purged(&trio);
    hole(&trio);
    at_risk(&mut trio);
    gone(&mut trio);
    own(&trio);
    reset(&trio);
}

#[test]
fn of_mariadb_by_position() {
    let mut trio = trio(mariadb_10_11(), By::Position, &[]);
    rows(&trio);
    relay_logs(&trio);
    ahead(&trio);
    already(&trio);
    indexes(&mut trio);
    damaged_rows(&mut trio);
    gone(&mut trio);
    purged(&trio);
}

/// MariaDB: the position by GTID is ahead once the receiver was restarted.
fn ahead(trio: &Trio) {
    trio.order(1, "STOP", "SQL_THREAD");
    for id in 300..303 {
        trio.sql(
            0,
            &format!("INSERT INTO shop.a VALUES ({id}, {id}, 'ahead')"),
        );
    }
    trio.until_fetched(1);
    trio.order(1, "STOP", "IO_THREAD");
    trio.order(1, "START", "IO_THREAD");
    trio.until(1, "it fetches", |channel| {
        channel.receiver == ThreadState::Running
    });
    let found = trio.finds(1, "gtid-position-ahead");
    // What it says is right: with that position, a switch to GTID loses nothing.
    trio.order(1, "STOP", "");
    trio.repair(1, &found);
    trio.change(1, "MASTER_USE_GTID=slave_pos");
    trio.order(1, "START", "");
    trio.catch_up();
    let at = trio.session(0).one("SHOW MASTER STATUS").unwrap().unwrap();
    trio.order(1, "STOP", "");
    trio.change(
        1,
        &format!(
            "MASTER_USE_GTID=no, MASTER_LOG_FILE='{}', MASTER_LOG_POS={}",
            at.at(0).unwrap(),
            at.at(1).unwrap()
        ),
    );
    trio.order(1, "START", "");
    trio.catch_up();
}

/// MariaDB: the position by file is older than the data, as after a crash of the system.
fn already(trio: &Trio) {
    let at = trio.session(0).one("SHOW MASTER STATUS").unwrap().unwrap();
    trio.sql(0, "INSERT INTO shop.a VALUES (310, 310, 'already')");
    trio.catch_up();
    trio.order(1, "STOP", "");
    trio.change(
        1,
        &format!(
            "MASTER_LOG_FILE='{}', MASTER_LOG_POS={}",
            at.at(0).unwrap(),
            at.at(1).unwrap()
        ),
    );
    trio.order(1, "START", "");
    trio.until_applier_fails(1);
    let found = trio.finds(1, "applied-already");
    for step in found["repair"].as_array().unwrap() {
        match step["sql"].as_str() {
            Some(sql) => trio.sql(1, sql),
            None => trio.change(1, "MASTER_USE_GTID=slave_pos"),
        }
    }
    trio.sql(0, "INSERT INTO shop.a VALUES (311, 311, 'after')");
    trio.catch_up();
    trio.order(1, "STOP", "");
    let at = trio.session(0).one("SHOW MASTER STATUS").unwrap().unwrap();
    trio.change(
        1,
        &format!(
            "MASTER_USE_GTID=no, MASTER_LOG_FILE='{}', MASTER_LOG_POS={}",
            at.at(0).unwrap(),
            at.at(1).unwrap()
        ),
    );
    trio.order(1, "START", "");
    trio.catch_up();
}

#[test]
fn of_mysql_8_0() {
    let workers = [
        "--slave-parallel-workers=4",
        "--slave-parallel-type=LOGICAL_CLOCK",
    ];
    let mut trio = trio(mysql_8_0_15(), By::Gtid, &workers);
    rows(&trio);
    tables(&trio);
    sources(&trio);
    numbers(&trio);
    relay_logs(&trio);
    gaps(&mut trio);
    gone(&mut trio);
    purged(&trio);
    own(&trio);
    reset(&trio);
}

#[test]
fn of_mysql_5_7_by_position() {
    let mut trio = trio(mysql_5_7_22(), By::Position, &[]);
    rows(&trio);
    relay_logs(&trio);
    gone(&mut trio);
    purged(&trio);
}

#[test]
fn of_newer_servers() {
    for server in [mariadb_11_8(), mysql_9()] {
        let mut trio = trio(server, By::Gtid, &[]);
        rows(&trio);
        relay_logs(&trio);
        if trio.is_mariadb() {
            at_risk(&mut trio);
        }
    }
}
