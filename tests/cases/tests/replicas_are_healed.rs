//! Does `replica heal` repair what it may, refuse the rest with the reason, and survive its own death?

mod healed;

use evenkeel_cases::failpoints::HEAL_RELAY_LOG;
use evenkeel_cases::program::{killed_at, run};
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::effort::{self, Part};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{By, TestServer, until};
use healed::Case;
use std::process::Stdio;
use std::time::Duration;

/// Where what was seen and done is kept.
const JOURNAL: &str = "--journal";

const ALL: &str = "--allow=restart,relay-reset,row-repair,resync";

fn servers() -> [(TestServer, By); 6] {
    [
        (mariadb_10_11(), By::Gtid),
        (mysql_8_0_15(), By::Gtid),
        (mariadb_10_11(), By::Position),
        (mysql_5_7_22(), By::Position),
        (mariadb_11_8(), By::Gtid),
        (mysql_9(), By::Gtid),
    ]
}

/// What somebody stopped stays stopped.
fn stopped(case: &Case) {
    case.trio.order(1, "STOP", "");
    case.refuses(1, "stopped", "needs-person", "perhaps on purpose");
    assert_eq!(case.trio.channel(1).applier, ThreadState::Stopped);
    case.trio.order(1, "START", "");
    case.trio.catch_up();
}

/// A SQL thread that gave up waiting for a row is started: not before that is allowed.
fn lock_wait(case: &Case) {
    let trio = &case.trio;
    trio.sql(1, "SET GLOBAL innodb_lock_wait_timeout = 1");
    trio.sql(1, "SET GLOBAL slave_transaction_retries = 0");
    trio.order(1, "STOP", "SQL_THREAD");
    trio.order(1, "START", "SQL_THREAD");
    let mut writer = trio.session(1);
    writer.run("BEGIN").unwrap();
    writer
        .run("UPDATE shop.a SET t = 'held' WHERE id = 2")
        .unwrap();
    trio.sql(0, "UPDATE shop.a SET t = 'TWO' WHERE id = 2");
    trio.until_applier_fails(1);
    drop(writer);

    let plan = case.plan(&["--allow=restart"]);
    assert_eq!(plan.code, Some(4), "{plan:?}");
    let found = case.found(&plan, 1, "lock-wait");
    assert_eq!(
        found["forbidden_by"].as_array().unwrap().len(),
        0,
        "{found}"
    );
    assert_eq!(
        trio.channel(1).applier,
        ThreadState::Stopped,
        "it is a plan"
    );

    let other = case.heal(&["--allow=relay-reset"]);
    assert_eq!(other.code, Some(4), "{other:?}");
    let found = case.found(&other, 1, "lock-wait");
    assert_eq!(found["forbidden_by"][0]["rule"], "not-allowed", "{found}");

    // One at a time, wherever healers run.
    let mut holder = trio.session(0);
    holder
        .value("SELECT GET_LOCK('evenkeel: heal', 0)")
        .unwrap();
    let busy = case.heal(&["--allow=restart"]);
    assert_eq!(busy.code, Some(11), "{busy:?}");
    drop(holder);
    // Backups and comparisons have the replica's lease.
    until("the lock is free", || {
        let free = trio
            .session(0)
            .value("SELECT IS_FREE_LOCK('evenkeel: heal')");
        free.unwrap().as_deref() == Some("1")
    });
    let mut backup = trio.session(1);
    backup
        .value("SELECT GET_LOCK('evenkeel: applier', 0)")
        .unwrap();
    let busy = case.heal(&["--allow=restart"]);
    assert_eq!(busy.code, Some(4), "{busy:?}");
    let found = case.found(&busy, 1, "lock-wait");
    assert_eq!(found["healed"]["outcome"], "failed", "{found}");
    drop(backup);
    until("the lock is free", || {
        let free = trio
            .session(1)
            .value("SELECT IS_FREE_LOCK('evenkeel: applier')");
        free.unwrap().as_deref() == Some("1")
    });
    case.repairs(1, "lock-wait");
    trio.sql(1, "SET GLOBAL innodb_lock_wait_timeout = 50");
    trio.sql(1, "SET GLOBAL slave_transaction_retries = 10");
    trio.order(1, "STOP", "SQL_THREAD");
    trio.order(1, "START", "SQL_THREAD");
}

/// MySQL: an IO thread that gave up is started once the source lets it in.
fn gave_up(case: &Case) {
    let trio = &case.trio;
    let tries = |count: u32| {
        trio.order(1, "STOP", "IO_THREAD");
        trio.change(1, &format!("MASTER_RETRY_COUNT={count}"));
        trio.order(1, "START", "IO_THREAD");
    };
    trio.sql(0, "ALTER USER repl@'%' IDENTIFIED BY 'other'");
    tries(1);
    trio.until(1, "it gives up", |channel| {
        channel.receiver == ThreadState::Stopped && channel.receiver_error.is_some()
    });
    trio.sql(0, "ALTER USER repl@'%' IDENTIFIED BY 's3cret'");
    case.repairs(1, "login-refused");
    tries(86_400);
    trio.catch_up();
}

/// MySQL: gaps that parallel workers leave when they are killed are closed.
fn gaps(case: &mut Case) {
    let trio = &mut case.trio;
    for sql in [
        "SET GLOBAL transaction_write_set_extraction = 'XXHASH64'",
        "SET GLOBAL binlog_transaction_dependency_tracking = 'WRITESET'",
    ] {
        trio.sql(0, sql);
    }
    // What is written from here on depends on this, and not on each other.
    trio.sql(0, "ALTER TABLE shop.nokey COMMENT = 'writesets begin'");
    trio.sql(0, "INSERT INTO shop.nokey VALUES (7, 'seven')");
    trio.catch_up();
    let mut held = trio.session(1);
    held.run("BEGIN").unwrap();
    held.run("INSERT INTO shop.a VALUES (700, 700, 'held')")
        .unwrap();
    for id in 700..704 {
        trio.sql(0, &format!("INSERT INTO shop.a VALUES ({id}, {id}, 'gap')"));
    }
    until("later ones are applied", || {
        let count = "SELECT COUNT(*) FROM shop.a WHERE id > 700";
        trio.session(1).value(count).unwrap().as_deref() == Some("3")
    });
    trio.kill(1);
    drop(held);
    trio.restart(1, &["--skip-slave-start", "--read-only=ON"]);
    // Who started it without its threads may not want it to replicate.
    case.refuses(
        1,
        "applied-with-gaps",
        "stopped-thread",
        "perhaps on purpose",
    );
    case.trio.order(1, "START", "IO_THREAD");
    case.trio.until(1, "it fetches", |channel| {
        channel.receiver == ThreadState::Running
    });
    case.repairs(1, "applied-with-gaps");
}

/// What the journal counts forbids more.
fn too_often(case: &Case) {
    case.trio.damage_relay_log(1, 150, |length| length / 2);
    let ended = case.heal_with(&[ALL, "--max-repairs=1"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let found = case.found(&ended, 1, "relay-log-damaged");
    assert_eq!(found["forbidden_by"][0]["rule"], "rate-limit", "{found}");
    case.repairs(1, "relay-log-damaged");
}

/// A row without a key, and clients that can write: each is refused with its reason.
fn refused(case: &Case) {
    let trio = &case.trio;
    trio.unlogged(1, &["DELETE FROM shop.nokey WHERE id = 1"]);
    trio.sql(0, "UPDATE shop.nokey SET t = 'ONE' WHERE id = 1");
    trio.until_applier_fails(1);
    let found = case.refuses(1, "missing-row-without-key", "on-its-host", "resync");
    assert_eq!(found["hands_over"], "resync");
    trio.unlogged(1, &["INSERT INTO shop.nokey VALUES (1, 'one')"]);
    trio.order(1, "START", "SQL_THREAD");
    trio.catch_up();

    trio.damage_relay_log(1, 180, |length| length / 2);
    trio.sql(2, "SET GLOBAL read_only = OFF");
    case.refuses(1, "relay-log-damaged", "writable", "can write");
    trio.sql(2, "SET GLOBAL read_only = ON");
    case.repairs(1, "relay-log-damaged");
}

/// Rows that an event lacks, or that are in its way: it applies itself, with the rest of its transaction.
fn events(case: &Case) {
    let trio = &case.trio;
    let broken = |unlogged: &str, transaction: &[&str]| {
        trio.unlogged(1, &[unlogged]);
        let mut session = trio.session(0);
        for sql in [&["BEGIN"], transaction, &["COMMIT"]].concat() {
            session.run(sql).unwrap();
        }
        trio.until_applier_fails(1);
    };
    broken(
        "DELETE FROM shop.a WHERE id IN (1, 2)",
        &[
            "INSERT INTO shop.a VALUES (800, 800, 'in the same transaction')",
            "UPDATE shop.a SET t = 'first', id = 801, u = 801 WHERE id = 800",
            "UPDATE shop.a SET t = 'ONE' WHERE id = 1",
            "DELETE FROM shop.a WHERE id = 2",
            "INSERT INTO shop.a VALUES (2, 20, 'two')",
        ],
    );
    case.repairs(1, "missing-row-updated");
    broken(
        "DELETE FROM shop.a WHERE id = 801",
        &["DELETE FROM shop.a WHERE id = 801"],
    );
    case.repairs(1, "missing-row-deleted");
    broken(
        "INSERT INTO shop.a VALUES (810, 810, 'rogue')",
        &["INSERT INTO shop.a VALUES (809, 809, 'a'), (810, 811, 'b')"],
    );
    case.repairs(1, "key-taken");
    broken(
        "INSERT INTO shop.a VALUES (820, 821, 'rogue')",
        &["INSERT INTO shop.a VALUES (821, 821, 'right')"],
    );
    case.repairs(1, "unique-value-taken");
    broken(
        "INSERT INTO shop.a VALUES (830, 831, 'rogue')",
        &["UPDATE shop.a SET u = 831 WHERE id = 821"],
    );
    case.repairs(1, "unique-value-taken");
    // The source has a row with the key of the one in the way: nobody knows which values are right.
    trio.unlogged(1, &["UPDATE shop.a SET u = 841 WHERE id = 821"]);
    trio.sql(0, "INSERT INTO shop.a VALUES (841, 841, 'right')");
    trio.until_applier_fails(1);
    let ended = case.heal(&[ALL]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let found = case.found(&ended, 1, "unique-value-taken");
    let why = found["healed"]["why"].as_str().unwrap();
    assert!(
        why.contains("the source has a row with that key"),
        "{found}"
    );
    trio.unlogged(1, &["UPDATE shop.a SET u = 831 WHERE id = 821"]);
    trio.order(1, "START", "SQL_THREAD");
    trio.catch_up();
    let schemas =
        "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'evenkeel%'";
    let left = trio.session(1).value(schemas).unwrap();
    assert_eq!(left.as_deref(), Some("0"), "a schema was left");
}

/// Rows that differ are made the source's, and not a second time.
fn drift(case: &Case) {
    let trio = &case.trio;
    let vandal = "UPDATE shop.a SET t = 'vandal' WHERE id = 3";
    trio.unlogged(1, &[vandal]);
    let ended = case.heal(&["--find-drift", "--allow=row-repair"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = case.found(&ended, 1, "rows-differ");
    assert_eq!(found["healed"]["outcome"], "repaired", "{found}");
    trio.catch_up();
    trio.unlogged(1, &[vandal]);
    let ended = case.heal(&["--find-drift", "--allow=row-repair"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let found = case.found(&ended, 1, "rows-differ");
    let why = found["healed"]["why"].as_str().unwrap();
    assert!(why.contains("something writes there"), "{found}");
    trio.unlogged(1, &["UPDATE shop.a SET t = 'three' WHERE id = 3"]);
    trio.catch_up();
}

/// Nothing is done while the source does not answer.
fn source_gone(case: &mut Case) {
    case.trio.damage_relay_log(1, 210, |length| length / 2);
    case.trio.kill(0);
    let before = case.trio.channel(1).executed;
    let ended = case.heal_of(&[1, 2], &[ALL]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let found = case.found(&ended, 1, "relay-log-damaged");
    assert_eq!(
        found["forbidden_by"][0]["rule"], "source-unreachable",
        "{found}"
    );
    assert!(found["healed"].is_null(), "{found}");
    assert_eq!(case.trio.channel(1).executed, before);
    case.trio.restart(0, &[]);
    for replica in [1, 2] {
        case.trio.until(replica, "it fetches again", |channel| {
            channel.receiver == ThreadState::Running
        });
    }
    case.repairs(1, "relay-log-damaged");
}

#[test]
fn of_each_server() {
    for (server, by) in effort::draw("servers healed", &servers(), 1) {
        println!("{} {by:?}", server.id);
        let mut case = Case::start(server, by);
        let nothing = case.heal(&[ALL]);
        assert_eq!(nothing.code, Some(0), "{nothing:?}");
        stopped(&case);
        lock_wait(&case);
        too_often(&case);
        refused(&case);
        drift(&case);
        if !case.trio.is_mariadb() {
            gave_up(&case);
        }
        if case.has_workers() {
            gaps(&mut case);
        }
        source_gone(&mut case);
        events(&case);
        case.history_is_whole();
    }
}

/// What the page "Let it heal" grants, for all that a healer does.
fn grants(server: &TestServer) -> &'static str {
    match server.id {
        "mysql-5.7.22" => {
            "SELECT, PROCESS, REPLICATION CLIENT, RELOAD, SUPER, INSERT, DELETE, CREATE, DROP, TRIGGER, \
             REPLICATION SLAVE"
        }
        id if id.starts_with("mysql") => {
            "SELECT, PROCESS, REPLICATION CLIENT, RELOAD, REPLICATION_SLAVE_ADMIN, INSERT, DELETE, CREATE, DROP, TRIGGER, \
             BINLOG_ADMIN, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN, REPLICATION SLAVE"
        }
        _ => {
            "SELECT, PROCESS, BINLOG MONITOR, REPLICA MONITOR, REPLICATION SLAVE ADMIN, INSERT, DELETE, CREATE, DROP, \
             TRIGGER, BINLOG ADMIN, BINLOG REPLAY, READ_ONLY ADMIN, REPLICATION SLAVE"
        }
    }
}

#[test]
fn with_what_the_page_grants() {
    for (server, by) in effort::draw("servers of healers with few privileges", &servers(), 2) {
        println!("{} {by:?}", server.id);
        let case = Case::start(server, by);
        let trio = &case.trio;
        trio.sql(0, "CREATE USER healer@localhost");
        let grants = grants(&trio.server);
        trio.sql(0, &format!("GRANT {grants} ON *.* TO healer@localhost"));
        trio.catch_up();
        trio.unlogged(1, &["DELETE FROM shop.a WHERE id = 1"]);
        trio.sql(0, "UPDATE shop.a SET t = 'ONE' WHERE id = 1");
        trio.until_applier_fails(1);
        let ended = run(case.command_as("healer", &[0, 1, 2], &[ALL]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        case.trio.damage_relay_log(1, 100, |length| length / 2);
        let ended = run(case.command_as("healer", &[0, 1, 2], &[ALL]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        trio.catch_up();
    }
}

/// Where both threads stand.
const STOPPED: &str = "heal::stepped";

/// Killed anywhere, alone or with its watchdog, the same command does the rest.
#[test]
fn kills_are_survived() {
    for (server, by) in effort::draw("servers of killed healers", &servers(), 1) {
        println!("{} {by:?}", server.id);
        let case = Case::start(server, by);
        let points = effort::share("kills of a healer", &HEAL_RELAY_LOG, Part::new(2, 5));
        let everybody = points.iter().filter(|point| **point == STOPPED);
        let everybody = everybody.map(|point| (*point, true));
        let alone = points.iter().map(|point| (*point, false));
        for (at, (point, everybody)) in alone.chain(everybody).enumerate() {
            println!("killed at {point}, everybody: {everybody}");
            let first = 1000 + 30 * u32::try_from(at).unwrap();
            case.trio.damage_relay_log(1, first, |length| length / 2);
            let mut command = killed_at(case.command(&[0, 1, 2], &[ALL]), point);
            if everybody {
                command.env("EVENKEEL_KILL_ALL", "1");
            }
            let ended = run(command);
            assert_eq!(ended.signal, Some(9), "{point} was not reached: {ended:?}");
            if !everybody {
                case.trio
                    .until(1, "the watchdog has started it", |channel| {
                        channel.receiver == ThreadState::Running
                    });
            }
            until("the leases of the killed one are free", || {
                let busy = run(case.command(&[0, 1, 2], &[ALL]));
                busy.code != Some(11)
            });
            let ended = case.heal(&[ALL]);
            assert_eq!(ended.code, Some(0), "{point}: {ended:?}");
            case.trio.catch_up();
        }
    }
}

/// MariaDB by GTID deletes relay logs when its threads are started: not while nobody could send them again.
#[test]
fn a_source_that_dies_meanwhile() {
    let mut case = Case::start(mariadb_10_11(), By::Gtid);
    case.trio.sql(0, "CREATE USER healer@'127.0.0.1'");
    case.trio.sql(0, "GRANT ALL ON *.* TO healer@'127.0.0.1'");
    case.trio.catch_up();
    case.trio.damage_relay_log(1, 100, |length| length / 2);
    let mut command = case.command_over_tcp("healer", &[ALL]);
    command.env("FAILPOINTS", format!("{STOPPED}=sleep(600000)"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut healer = command.spawn().unwrap();
    let trio = &mut case.trio;
    trio.until(1, "both stand", |channel| {
        channel.receiver == ThreadState::Stopped && channel.applier == ThreadState::Stopped
    });
    let fetched = trio.channel(1).received;
    trio.kill(0);
    healer.kill().unwrap();
    healer.wait().unwrap();
    // The watchdog tries each second.
    std::thread::sleep(Duration::from_secs(3));
    let channel = trio.channel(1);
    assert_eq!(channel.receiver, ThreadState::Stopped, "{channel:?}");
    assert_eq!(
        channel.received, fetched,
        "relay logs are gone: {channel:?}"
    );
    trio.restart(0, &[]);
    for replica in [1, 2] {
        trio.until(replica, "it fetches again", |channel| {
            channel.receiver == ThreadState::Running
        });
    }
    until("the lease of the killed one is free", || {
        run(case.command(&[0, 1, 2], &[ALL])).code != Some(11)
    });
    let ended = case.heal(&[ALL]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    case.trio.catch_up();
}

/// Drained through `health run` before, handed to a program if nothing can be done, and looked at again and again.
#[test]
fn others_are_told() {
    let case = Case::start(mariadb_10_11(), By::Gtid);
    let prober = case.prober();
    let log = case.hook();
    case.trio.damage_relay_log(1, 100, |length| length / 2);
    let ended = case.heal(&[ALL, &prober.option(), "--drain-wait=1s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.answer["released"].as_array().unwrap().len(),
        1,
        "{ended:?}"
    );
    let history = case.history();
    let at = |record: &str| history.iter().position(|one| one["record"] == record);
    let (drained, step, released) = (at("drained"), at("step"), at("released"));
    assert!(drained < step && step < released, "{history:?}");
    assert!(drained.is_some(), "{history:?}");

    // Whoever took it out of use may be at work on it.
    case.trio.damage_relay_log(1, 130, |length| length / 2);
    prober.drain(&case, 1);
    let ended = case.heal(&[ALL, &prober.option(), "--drain-wait=1s"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let found = case.found(&ended, 1, "relay-log-damaged");
    let why = found["healed"]["why"].as_str().unwrap();
    assert!(why.contains("taken out of use"), "{found}");
    prober.undrain(&case, 1);

    // The daemon repairs what it finds, and hands over what it may not repair.
    let daemon = case.daemon(&[ALL, "--every=5s", &log.option()]);
    case.trio.until(1, "the daemon has repaired it", |channel| {
        channel.applier == ThreadState::Running && channel.applier_error.is_none()
    });
    case.trio.catch_up();
    case.trio.order(2, "STOP", "");
    until("the hook was run", || {
        log.lines() == "stopped person nobody\n"
    });
    case.trio.order(2, "START", "");
    case.trio.catch_up();
    daemon.ends();
    assert!(
        case.history()
            .iter()
            .any(|one| one["record"] == "handed_over")
    );
}
