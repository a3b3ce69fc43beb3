//! Does a queue that is SQL over InnoDB hand out each row to one consumer at a time, in order, whatever
//! consumers do, on each server?

use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::queues::over_innodb::{OverInnoDb, call};
use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_queue_admin::procedures::{find, perform, plan_install, plan_uninstall};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_testkit::TestServer;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15, newer_servers};
use evenkeel_testkit::until;
use std::fmt::Debug;
use std::thread;
use std::time::Duration;

const COLUMNS: &str = "id INT NOT NULL, what VARCHAR(50)";

fn ids(session: &mut Session, table: &str) -> Vec<i64> {
    numbers(session, &format!("SELECT id FROM {table}"))
}

#[track_caller]
fn refused<T: Debug>(reported: Result<T, String>, because: &str) {
    let why = reported.unwrap_err();
    assert!(why.contains(because), "{why}");
}

fn filled(queues: &dyn Queues, session: &mut Session, name: &str, rows: i64) {
    queues.create(session, name, COLUMNS).unwrap();
    for id in 1..=rows {
        let sql = format!("INSERT INTO {name} VALUES ({id}, 'row {id}')");
        session.run(&sql).unwrap();
    }
}

fn case(server: TestServer) {
    let site = OverInnoDb::start(server, &[]);
    println!("{}", site.form());
    owners(&site);
    waiting(&site);
    transactions(&site);
    conditions(&site);
    names(&site);
    sources(&site);
    changes(&site);
    privileges(&site);
    versions(&site);
    program(&site);
}

#[test]
fn mariadb() {
    case(mariadb_10_11());
}

#[test]
fn mysql_8() {
    case(mysql_8_0_15());
}

#[test]
fn mysql_5_7() {
    case(mysql_5_7_22());
}

#[test]
fn newer() {
    for server in newer_servers() {
        case(server);
    }
}

fn owners(site: &OverInnoDb) {
    let (mut one, mut other) = (site.open("owners"), site.open("owners"));
    filled(site, &mut one, "mails", 4);
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    assert_eq!(ids(&mut one, "mails"), [1], "an owner sees its row");
    assert_eq!(ids(&mut other, "mails"), [2, 3, 4], "others see the rest");
    assert_eq!(site.row_id(&mut one), Ok(Some(1)));
    assert_eq!(site.abort(&mut one), Ok(1));
    assert_eq!(ids(&mut other, "mails"), [1, 2, 3, 4], "it is where it was");
    assert_eq!(site.wait(&mut one, &["owners.mails"], 0.0), Ok(Some(1)));
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    assert_eq!(ids(&mut one, "mails"), [2], "the next consumes the last");
    assert_eq!(site.end(&mut one), Ok(1));
    assert_eq!(ids(&mut one, "mails"), [3, 4]);
    refused(site.end(&mut one), "queue_wait()");
    refused(site.abort(&mut one), "queue_wait()");
    refused(site.row_id(&mut one), "queue_wait()");
    assert_eq!(site.wait(&mut one, &["none"], 0.0), Ok(None));
    assert_eq!(site.wait(&mut one, &["none.mails"], 0.0), Ok(None));
    // A connection that goes gives back.
    assert_eq!(site.wait_n(&mut other, "mails", 5, 0.0), Ok(Some(1)));
    assert_eq!(ids(&mut other, "mails"), [3, 4]);
    assert_eq!(site.stat(&mut one, "mails", "rows_owned"), 2);
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(0)));
    assert!(ids(&mut one, "mails").is_empty(), "it owns nothing");
    assert_eq!(site.row_id(&mut one), Ok(None));
    site.abort(&mut one).unwrap();
    drop(other);
    until("its rows are back", || ids(&mut one, "mails") == [3, 4]);
    // An owner may delete its row; others pass over it.
    let mut other = site.open("owners");
    assert_eq!(site.wait(&mut other, &["mails"], 0.0), Ok(Some(1)));
    one.run("INSERT INTO mails VALUES (5, 'five')").unwrap();
    one.run("DELETE FROM mails WHERE id < 5").unwrap();
    site.truncate(&mut one, "mails").unwrap();
    one.run("INSERT INTO mails VALUES (6, 'six')").unwrap();
    assert_eq!(ids(&mut one, "mails"), [6]);
    assert_eq!(ids(&mut other, "mails"), [3]);
    other.run("DELETE FROM mails").unwrap();
    site.abort(&mut other).unwrap();
    assert_eq!(ids(&mut other, "mails"), [6]);
    // Locks are what ownership is.
    assert_eq!(site.wait(&mut other, &["mails"], 0.0), Ok(Some(1)));
    other.run("SELECT RELEASE_ALL_LOCKS()").unwrap();
    assert_eq!(ids(&mut one, "mails"), [6]);
    refused(site.end(&mut other), "were returned to the queue");
    assert_eq!(ids(&mut other, "mails"), [6]);
    owners_read_their_rows_alone(site, &mut one);
}

/// Counts what the server reads: an owner's SELECT does not go through the whole queue.
fn owners_read_their_rows_alone(site: &OverInnoDb, one: &mut Session) {
    let many = vec!["(7, 'seven')"; 1000].join(", ");
    one.run(&format!("INSERT INTO mails VALUES {many}"))
        .unwrap();
    assert_eq!(site.wait(one, &["mails"], 0.0), Ok(Some(1)));
    one.run("PREPARE own FROM 'SELECT id FROM mails'").unwrap();
    for sql in ["SELECT id FROM mails", "EXECUTE own"] {
        one.run("FLUSH STATUS").unwrap();
        assert_eq!(numbers(one, sql), [6]);
        let reads = one
            .rows("SHOW SESSION STATUS LIKE 'Handler_read%'")
            .unwrap();
        let reads = reads.iter().map(|row| row.at(1).unwrap());
        let reads: u64 = reads.map(|text| text.parse::<u64>().unwrap()).sum();
        assert!(reads < 20, "{}: {sql}: {reads} rows read", site.form());
    }
    site.abort(one).unwrap();
    assert_eq!(numbers(one, "EXECUTE own").len(), 1001);
}

fn waiting(site: &OverInnoDb) {
    let queues: &dyn Queues = site;
    let (mut one, mut other) = (site.open("waiting"), site.open("waiting"));
    filled(site, &mut one, "urgent", 0);
    filled(site, &mut one, "later", 1);
    assert_eq!(
        site.wait(&mut other, &["urgent", "later"], 0.0),
        Ok(Some(2))
    );
    assert_eq!(ids(&mut other, "later"), [1]);
    assert!(ids(&mut other, "urgent").is_empty());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            let answer = site.wait(&mut other, &["urgent", "later"], 60.0);
            (answer, ids(&mut other, "urgent"))
        });
        queues.until_waiting(&mut one, "urgent", 1);
        one.run("INSERT INTO urgent VALUES (7, 'now')").unwrap();
        assert_eq!(first.join().unwrap(), (Ok(Some(1)), vec![7]));
    });
    assert_eq!(queues.waiters(&mut one, "later"), 0);
    let id = other.id();
    thread::scope(|scope| {
        let killed = scope.spawn(|| site.wait(&mut other, &["later"], 60.0));
        queues.until_waiting(&mut one, "later", 1);
        // MySQL 5.7 forgets one that comes between two statements of a procedure.
        while !killed.is_finished() {
            one.run(&format!("KILL QUERY {id}")).unwrap();
            thread::sleep(Duration::from_millis(300));
        }
        refused(killed.join().unwrap(), "interrupted");
    });
    thread::scope(|scope| {
        let dropped = scope.spawn(|| site.wait(&mut other, &["later"], 60.0));
        queues.until_waiting(&mut one, "later", 1);
        site.discard(&mut one, "later").unwrap();
        assert_eq!(dropped.join().unwrap(), Ok(None));
    });
    assert_eq!(site.end(&mut other), Ok(1));
}

fn transactions(site: &OverInnoDb) {
    let (mut one, mut other) = (site.open("trx"), site.open("trx"));
    filled(site, &mut one, "mails", 0);
    one.run("CREATE TABLE done (id INT)").unwrap();
    // What is not committed is not there; what is rolled back never was.
    other.run("BEGIN").unwrap();
    other.run("INSERT INTO mails VALUES (1, 'one')").unwrap();
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(0)));
    refused(site.wait(&mut other, &["mails"], 0.0), "COMMIT first");
    other.run("COMMIT").unwrap();
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    one.run("BEGIN").unwrap();
    refused(site.end(&mut one), "COMMIT first");
    // The work and the message, both or none.
    for end in ["ROLLBACK", "COMMIT"] {
        one.run("BEGIN").unwrap();
        one.run("INSERT INTO done SELECT id FROM mails").unwrap();
        one.run("DELETE FROM mails").unwrap();
        one.run(end).unwrap();
        let left = usize::from(end == "ROLLBACK");
        assert_eq!(ids(&mut one, "mails").len(), left, "{end}");
    }
    site.abort(&mut one).unwrap();
    assert_eq!(ids(&mut one, "done"), [1]);
    assert!(ids(&mut one, "mails").is_empty());
    // Rows that somebody is about to delete are not handed out.
    for id in [2, 3] {
        let sql = format!("INSERT INTO mails VALUES ({id}, 'x')");
        one.run(&sql).unwrap();
    }
    // Else it would hold every row that it has looked at.
    other
        .run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .unwrap();
    other.run("BEGIN").unwrap();
    other.run("DELETE FROM mails WHERE id = 2").unwrap();
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    assert_eq!(ids(&mut one, "mails"), [3]);
    other.run("ROLLBACK").unwrap();
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    assert_eq!(ids(&mut one, "mails"), [2]);
    site.end(&mut one).unwrap();
    other.run("SET autocommit = 0").unwrap();
    refused(site.wait(&mut other, &["mails"], 0.0), "autocommit");
}

fn conditions(site: &OverInnoDb) {
    let mut session = site.open("conditions");
    let columns = "id INT NOT NULL, size SMALLINT UNSIGNED, what VARCHAR(300), `select` INT, at DATETIME, KEY (size)";
    site.create(&mut session, "q", columns).unwrap();
    let rows = "(1, 65535, 'one; select', 1, '2026-11-22 01:02:03'), (2, NULL, NULL, NULL, NULL), \
                (3, 3, 'it''s', 3, '1000-01-01')";
    session
        .run(&format!("INSERT INTO q VALUES {rows}"))
        .unwrap();
    for (condition, row) in [
        ("id=2", Some(2)),
        ("size > 60000", Some(1)),
        ("size IS NULL", Some(2)),
        ("what = 'it''s'", Some(3)),
        ("what LIKE 'one; select%'", Some(1)),
        ("`select` = 3", Some(3)),
        ("at = 20261122010203", Some(1)),
        ("id BETWEEN 4 AND 9", None),
        ("id = 9 OR id = 3", Some(3)),
    ] {
        let waited = site.wait(&mut session, &[&format!("q:{condition}")], 0.0);
        assert_eq!(waited, Ok(Some(i64::from(row.is_some()))), "{condition}");
        assert_eq!(ids(&mut session, "q"), Vec::from_iter(row), "{condition}");
        site.abort(&mut session).unwrap();
    }
    let first = ["q:id > 5", "q:id >= 2"];
    assert_eq!(site.wait(&mut session, &first, 0.0), Ok(Some(2)));
    assert_eq!(ids(&mut session, "q"), [2]);
    for (condition, why) in [
        ("id > 1; DROP TABLE q", "condition is wrong"),
        ("id > (SELECT 1)", "condition is wrong"),
        ("id > /* x */ 1", "condition is wrong"),
        ("id > 1 -- x", "condition is wrong"),
        ("(@a := id) > 1", "condition is wrong"),
        ("what = \"x\"", "condition is wrong"),
        ("what = 'it''s", "condition is wrong"),
        ("what = 'x\\'", "condition is wrong"),
        ("id > ?", "condition is wrong"),
        (" ", "condition is wrong"),
        ("nothing > 1", "nothing"),
        ("id >", "syntax"),
    ] {
        let what = format!("q:{condition}");
        refused(site.wait(&mut session, &[&what], 0.0), why);
        // It has consumed nothing.
        assert_eq!(ids(&mut session, "q"), [2], "{condition}");
    }
    site.end(&mut session).unwrap();
}

fn names(site: &OverInnoDb) {
    let database = "da`ta 'b' ü";
    let mut session = site.open(database);
    let long = "x".repeat(64);
    for name in ["a`b", "it's", "ünï \\ cöde", "select", "two words", &long] {
        site.create(&mut session, name, COLUMNS).unwrap();
        let view = quote_name(name);
        let sql = format!("INSERT INTO {view} VALUES (1, 'x'), (2, 'y')");
        session.run(&sql).unwrap();
        assert_eq!(site.wait(&mut session, &[name], 0.0), Ok(Some(1)), "{name}");
        assert_eq!(ids(&mut session, &view), [1], "{name}");
        let from = format!("{database}.{name}:id = 2");
        let several = [&*from, name];
        assert_eq!(site.wait(&mut session, &several, 0.0), Ok(Some(1)));
        assert_eq!(ids(&mut session, &view), [2], "{name}");
        site.end(&mut session).unwrap();
        assert_eq!(site.stat(&mut session, name, "rows"), 0);
        assert_eq!(site.compact(&mut session, name), Ok(Some(1)));
        site.discard(&mut session, name).unwrap();
    }
    for name in ["", "a.b", "a:b", "[a"] {
        refused(site.create(&mut session, name, COLUMNS), "queue's name");
    }
    // What fails leaves nothing.
    refused(site.create(&mut session, "q", "id INT, id INT"), "id");
    session.run("CREATE TABLE taken (id INT)").unwrap();
    refused(site.create(&mut session, "taken", COLUMNS), "taken");
    refused(site.discard(&mut session, "taken"), "no queue");
    let left = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    assert_eq!(numbers(&mut session, left), [3]);
    assert_eq!(site.compact(&mut session, "none"), Ok(None));
    assert_eq!(site.stats(&mut session, "none"), Ok(None));
}

fn sources(site: &OverInnoDb) {
    let mut session = site.open("sources");
    filled(site, &mut session, "mails", 0);
    let insert = |mode: &str, id: i64, rows: &str| {
        format!("queue_insert_from('mails', 3, '{mode}', {id}, '{rows}')")
    };
    let two = "VALUES (9, ''a''), (10, ''b'')";
    for (mode, id, taken) in [("a", 5, "1"), ("a", 5, "0"), ("a", 6, "1"), ("w", 5, "1")] {
        let answer = call(&mut session, &insert(mode, id, two));
        assert_eq!(answer.unwrap().as_deref(), Some(taken), "{mode} {id}");
    }
    assert_eq!(ids(&mut session, "mails"), [9, 10, 9, 10, 9, 10]);
    // What was refused or rolled back may come again.
    refused(
        call(&mut session, &insert("a", 7, "VALUES (NULL, 1)")),
        "null",
    );
    session.run("BEGIN").unwrap();
    let answer = call(&mut session, &insert("a", 7, two));
    assert_eq!(answer.unwrap().as_deref(), Some("1"));
    session.run("ROLLBACK").unwrap();
    assert_eq!(ids(&mut session, "mails").len(), 6);
    let answer = call(&mut session, &insert("a", 7, "(id) VALUES (11)"));
    assert_eq!(answer.unwrap().as_deref(), Some("1"));
    assert_eq!(ids(&mut session, "mails").last(), Some(&11));
    refused(
        site.set_source(&mut session, 3, "a", 8),
        "queue_insert_from",
    );
    let wrong = "queue_insert_from('mails', 64, 'a', 1, 'VALUES (1, 1)')";
    refused(call(&mut session, wrong), "0 to 63");
}

fn changes(site: &OverInnoDb) {
    let (mut one, mut other) = (site.open("changes"), site.open("changes"));
    filled(site, &mut one, "mails", 2);
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(Some(1)));
    let change = "ADD COLUMN priority INT NOT NULL DEFAULT 5, DROP COLUMN what";
    site.alter(&mut other, "mails", change).unwrap();
    site.rename(&mut other, "mails", "letters").unwrap();
    assert_eq!(ids(&mut one, "letters"), [1]);
    let others = numbers(&mut other, "SELECT id * 10 + priority FROM letters");
    assert_eq!(others, [25]);
    assert_eq!(site.compact(&mut other, "letters"), Ok(Some(1)));
    let next = site.wait(&mut one, &["letters:priority = 5"], 0.0);
    assert_eq!(next, Ok(Some(1)));
    assert_eq!(ids(&mut one, "letters"), [2]);
    site.end(&mut one).unwrap();
    assert_eq!(site.wait(&mut one, &["mails"], 0.0), Ok(None));
}

fn privileges(site: &OverInnoDb) {
    let mut session = site.open("privileges");
    filled(site, &mut session, "mails", 1);
    for sql in [
        "CREATE USER reader@localhost",
        "GRANT SELECT, INSERT, EXECUTE ON privileges.* TO reader@localhost",
    ] {
        session.run(sql).unwrap();
    }
    let mut options = site.running.connect_options();
    options.user = Some("reader".to_owned());
    let mut reader = Session::open(&options).unwrap();
    reader.run("USE privileges").unwrap();
    refused(
        site.wait(&mut reader, &["mails"], 0.0),
        "DELETE command denied",
    );
    reader.run("INSERT INTO mails VALUES (2, 'mine')").unwrap();
    assert_eq!(ids(&mut reader, "mails"), [1, 2]);
}

/// What another version, or an interrupted run, has left is resumed.
fn versions(site: &OverInnoDb) {
    let mut session = site.open("versions");
    filled(site, &mut session, "mails", 1);
    assert!(plan_install(&mut session, "versions").unwrap().is_done());
    for sql in [
        "DROP PROCEDURE queue_end",
        "ALTER PROCEDURE queue_abort COMMENT 'evenkeel queue of another version'",
        "DROP VIEW mails",
    ] {
        session.run(sql).unwrap();
    }
    let plan = plan_install(&mut session, "versions").unwrap();
    assert_eq!(plan.create, ["queue_end", "queue_abort"]);
    assert_eq!(plan.drop.len(), 1);
    assert!(plan.is_destructive() && !plan.found.is_current());
    perform(&mut session, &plan).unwrap();
    assert!(find(&mut session, "versions").unwrap().is_current());
    assert_eq!(ids(&mut session, "mails"), [1], "and its view is back");
    let refused = plan_uninstall(&mut session, "versions").unwrap_err();
    assert!(refused.to_string().contains("mails"), "{refused}");
    site.discard(&mut session, "mails").unwrap();
    let plan = plan_uninstall(&mut session, "versions").unwrap();
    perform(&mut session, &plan).unwrap();
    let found = find(&mut session, "versions").unwrap();
    assert!(found.routines.is_empty() && found.tables.is_empty());
    // Routines of others stay as they are.
    session
        .run("CREATE PROCEDURE queue_wait() SELECT 1")
        .unwrap();
    let refused = plan_install(&mut session, "versions").unwrap_err();
    assert!(refused.to_string().contains("queue_wait"), "{refused}");
    assert!(plan_uninstall(&mut session, "versions").unwrap().is_done());
    assert!(find(&mut session, "nowhere").is_err());
}

/// The command does what the tests did through the library.
fn program(site: &OverInnoDb) {
    let mut session = site.open("program");
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let plugin = |words: &[&str]| {
        let mut command = evenkeel.command(&["plugin"]);
        command
            .args(words)
            .args(["queue", "--sql", "--no-defaults"]);
        command.args(["-u", "root", "--database", "program", "-S"]);
        command.arg(site.running.socket());
        run(command)
    };
    let state = || plugin(&["status"]).answer["state"].clone();
    assert_eq!(state(), "working", "the site has put them there");
    site.create(&mut session, "t", COLUMNS).unwrap();
    let ended = plugin(&["uninstall", "--execute"]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    site.discard(&mut session, "t").unwrap();
    let planned = plugin(&["uninstall"]);
    assert_eq!(planned.answer["executed"], false, "{planned:?}");
    assert_eq!(state(), "working");
    let ended = plugin(&["uninstall", "--execute"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(state(), "absent");
    let ended = plugin(&["install"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.answer["schema"],
        "evenkeel/plugin-install-queue-sql/1"
    );
    assert_eq!(state(), "working");
    site.create(&mut session, "t", COLUMNS).unwrap();
}
