//! Does a repair make a replica's rows those of its source, all of them or none, and can it be taken back?

mod repaired;

use evenkeel_cases::failpoints::{REPAIR, REPAIRED};
use evenkeel_cases::program::{killed_at, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::replicas::wait_until_it_applies;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{By, TestServer, until};
use repaired::{Case, DRIFT, go, launch, logged, mode, refused, rows};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Planned, carried out, found done, taken back, and taken back again.
fn the_whole_way(server: TestServer, by: By) {
    let case = Case::start(server, by);
    let ended = case.plan("nothing.plan");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["plan"], Value::Null);
    assert!(!case.scratch.join("nothing.plan").exists());

    let right = rows(&case.replica);
    case.vandalise(&DRIFT);
    let drifted = rows(&case.replica);
    assert_ne!(right, drifted);
    let before = logged(&case.replica);

    let ended = case.plan("a.plan");
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.answer["schema"], "evenkeel/replica-repair-planned/1");
    let tables: BTreeMap<&str, [u64; 3]> = ended.answer["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let count = |what: &str| one[what].as_u64().unwrap();
            let counts = [count("missing"), count("extra"), count("changed")];
            (one["table"].as_str().unwrap(), counts)
        })
        .collect();
    assert_eq!(tables["plain"], [2, 2, 2]);
    assert_eq!(tables["pair"], [1, 1, 1]);
    assert_eq!(tables["uniq"], [0, 0, 3]);
    assert_eq!(tables["members"], [1, 0, 1]);
    assert_eq!(tables["words"], [2, 2, 1]);
    assert_eq!(tables["odd `na'me\n\x1b[31m"], [1, 0, 1]);
    assert_eq!(tables["kinds"], [14, 0, 12]);
    assert_eq!(tables.len(), 7, "{tables:?}");
    assert_eq!(mode(&case.scratch.join("a.plan")), 0o600);
    assert_eq!(rows(&case.replica), drifted, "a plan changes nothing");
    let again = case.plan("a.plan");
    assert_eq!(again.code, Some(2), "{again:?}");

    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["outcome"], "repaired", "{ended:?}");
    assert_eq!(ended.answer["checksum"]["verdict"], "equal");
    assert_eq!(rows(&case.replica), right);
    case.assert_it_runs();
    let id = ended.answer["id"].as_str().unwrap().to_owned();
    assert_eq!(case.journal(), std::slice::from_ref(&id));
    let journal = case.scratch.join("journal");
    assert_eq!(mode(&journal), 0o700);
    assert_eq!(mode(&journal.join(format!("{id}.journal"))), 0o600);

    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["outcome"], "was_done", "{ended:?}");

    let ended = case.undo(&id);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&case.replica), drifted);
    refused(&case.undo(&id), "was undone already");
    let undone = ended.answer["id"].as_str().unwrap().to_owned();
    let ended = case.undo(&undone);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows(&case.replica), right);
    case.assert_it_runs();
    assert_eq!(logged(&case.replica), before, "it is in the binary log");
    wait_until_caught_up_with_writer(&case);
}

/// What is replicated afterwards is applied without an error.
fn wait_until_caught_up_with_writer(case: &Case) {
    let mut session = case.source.session().unwrap();
    go(
        &mut session,
        "UPDATE d.plain SET n = n + 1 WHERE id IN (5, 7, 9)",
    );
    go(&mut session, "DELETE FROM d.kinds WHERE id LIKE 'k%'");
    go(&mut session, "CREATE TABLE d.done (id INT PRIMARY KEY)");
    until("the replica goes on", || {
        let mut session = case.replica.session().unwrap();
        session.rows("SELECT * FROM d.done").is_ok()
    });
    case.assert_it_runs();
}

#[test]
fn of_mariadb() {
    for server in draw("servers of MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1) {
        the_whole_way(server, By::Gtid);
    }
}

#[test]
fn of_mysql() {
    let variants = [
        (mysql_8_0_15(), By::Gtid),
        (mysql_5_7_22(), By::Position),
        (mysql_9(), By::Gtid),
    ];
    for (server, by) in draw("replicas of MySQL", &variants, 1) {
        the_whole_way(server, by);
    }
}

/// Killed anywhere, everything is done or nothing is, the SQL thread runs, and the next run says which.
fn survives_kills(server: TestServer) {
    let case = Case::start(server, By::Gtid);
    let right = rows(&case.replica);
    case.vandalise(&DRIFT);
    let drifted = rows(&case.replica);
    assert_eq!(case.plan("a.plan").code, Some(4));
    for (at, point) in REPAIR.iter().enumerate() {
        let mut command = killed_at(case.execute("a.plan"), point);
        if at == 3 {
            command.env("EVENKEEL_KILL_ALL", "1");
        }
        let ended = run(command);
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
        if at == 3 {
            case.heal();
        }
        case.assert_it_runs();
        assert_eq!(rows(&case.replica), drifted, "{point}");
    }
    // Each says how the one before it ended.
    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["outcome"], "repaired");
    let notes = ended.answer["notes"].to_string();
    assert_eq!(notes.matches("was not committed").count(), 1, "{notes}");
    assert_eq!(rows(&case.replica), right);
    let mut id = ended.answer["id"].as_str().unwrap().to_owned();
    for point in REPAIRED {
        assert_eq!(case.undo(&id).code, Some(0), "{point}");
        assert_eq!(rows(&case.replica), drifted, "{point}");
        let known = case.journal();
        let ended = run(killed_at(case.execute("a.plan"), point));
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
        case.assert_it_runs();
        assert_eq!(rows(&case.replica), right, "{point}");
        id = case.new_in_journal(&known);
        let ended = run(case.execute("a.plan"));
        assert_eq!(ended.answer["outcome"], "was_done", "{ended:?}");
        let says = ended.answer["notes"].to_string().contains("was committed");
        assert_eq!(says, point == "repair::committed", "{ended:?}");
    }
    // One of which nobody was told how it ended can be taken back, too.
    assert_eq!(case.undo(&id).code, Some(0));
    let known = case.journal();
    let ended = run(killed_at(case.execute("a.plan"), "repair::committed"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    case.assert_it_runs();
    let newest = case.new_in_journal(&known);
    assert_eq!(case.undo(&newest).code, Some(0));
    assert_eq!(rows(&case.replica), drifted);
}

#[test]
fn kills() {
    let servers = [mariadb_10_11(), mysql_8_0_15()];
    for server in draw("servers whose repair is killed", &servers, 1) {
        survives_kills(server);
    }
}

/// What has changed since, on either side or in the plan, is refused, and nothing is done.
#[test]
fn what_changed_since_is_refused() {
    let case = Case::start(mariadb_10_11(), By::Gtid);
    case.vandalise(&DRIFT);
    assert_eq!(case.plan("a.plan").code, Some(4));
    case.vandalise(&["UPDATE d.pair SET c = 'again' WHERE a = 3 AND b = 'it''s 31'"]);
    let drifted = rows(&case.replica);
    let ended = run(case.execute("a.plan"));
    refused(&ended, "1 row was changed since the plan was made");
    assert!(
        ended.message().contains("d.pair a=3, b=it's 31"),
        "{ended:?}"
    );
    assert_eq!(rows(&case.replica), drifted);

    assert_eq!(case.plan("b.plan").code, Some(4));
    let mut session = case.source.session().unwrap();
    go(&mut session, "UPDATE d.members SET v = 9 WHERE e = 'm'");
    drop(session);
    let ended = run(case.execute("b.plan"));
    refused(&ended, "d.members e=3");
    case.assert_it_runs();
    assert_eq!(case.plan("c.plan").code, Some(4));
    changed_plans(&case);
    anothers_plan(&case);
    what_a_repair_left(&case);
}

/// Who changes a plan has none.
fn changed_plans(case: &Case) {
    let path = case.scratch.join("c.plan");
    let text = fs::read_to_string(&path).unwrap();
    // Who changes the plan, its rows or its statements.
    for (what, with) in [
        ("\"row\": \"id=5\"", "\"row\": \"id=6\""),
        (
            "DELETE FROM `d`.`plain` WHERE",
            "DELETE FROM `d`.`plain` -- ",
        ),
        ("{\n  \"schema\"", "{\n  \"more\": 1,\n  \"schema\""),
    ] {
        assert!(text.contains(what), "{what}");
        let changed = text.replacen(what, with, 1);
        fs::write(case.scratch.join("changed.plan"), changed).unwrap();
        let ended = run(case.execute("changed.plan"));
        assert!(matches!(ended.code, Some(2 | 14)), "{what}: {ended:?}");
    }
    let half = &text[..text.len() / 2];
    fs::write(case.scratch.join("changed.plan"), half).unwrap();
    assert_eq!(run(case.execute("changed.plan")).code, Some(2));
    // One that somebody else may have written, and a link to it.
    let mut open = fs::metadata(&path).unwrap().permissions();
    open.set_mode(0o666);
    fs::set_permissions(&path, open.clone()).unwrap();
    assert_eq!(run(case.execute("c.plan")).code, Some(2));
    open.set_mode(0o600);
    fs::set_permissions(&path, open).unwrap();
    std::os::unix::fs::symlink("c.plan", case.scratch.join("link.plan")).unwrap();
    assert_eq!(run(case.execute("link.plan")).code, Some(2));
}

/// It is of another replica of the same source.
fn anothers_plan(case: &Case) {
    let id = "--server-id=3";
    let other = launch(&case.server, case.by, &case.scratch, "other", id);
    case.by.follow(&case.source, &other);
    wait_until_it_applies(&other);
    let mut command = case.evenkeel.command(&["replica", "repair"]);
    command
        .arg(other.socket())
        .arg("--source")
        .arg(case.source.socket())
        .args(["--no-defaults", "-u", "root", "--journal", "journal"])
        .args(["--execute", "c.plan"])
        .current_dir(case.scratch.path());
    refused(&run(command), "is not the replica of this plan");
}

/// What a repair left is taken back only as long as it is so.
fn what_a_repair_left(case: &Case) {
    // Without a place for the journal, nothing is done.
    let ended = run(case.repair(&["--execute", "c.plan"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let ended = run(case.repair(&["--execute", "c.plan", "--journal", "a.plan/journal"]));
    assert!(ended.code != Some(0), "{ended:?}");
    let drifted = rows(&case.replica);
    let ended = run(case.execute("c.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // What the repair left has changed: it is not taken back.
    case.vandalise(&["UPDATE d.plain SET n = 77 WHERE id = 7"]);
    let id = ended.answer["id"].as_str().unwrap();
    refused(&case.undo(id), "d.plain id=7");
    assert_ne!(rows(&case.replica), drifted);
    let path = case.scratch.join("journal").join(format!("{id}.journal"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"id=7\"", "\"id=8\"", 1)).unwrap();
    refused(&case.undo(id), "was changed after it was written");
    for unknown in ["20200101-000000-00000000", "../journal", "/etc/passwd"] {
        assert_eq!(case.undo(unknown).code, Some(2), "{unknown}");
    }
    case.assert_it_runs();
}

/// Tables that a repair would do something else with are left alone, and named. MariaDB has more kinds of them: a
/// sample has MySQL in every other run.
#[test]
fn some_tables_are_left_alone() {
    left_alone(&Case::start(mariadb_10_11(), By::Gtid));
    for server in share("more servers", &[mysql_5_7_22()], Part::new(0, 2)) {
        left_alone(&Case::start(server, By::Gtid));
    }
}

fn left_alone(case: &Case) {
    let is_mariadb = case.server.name.starts_with("MariaDB");
    let mut session = case.source.session().unwrap();
    go(
        &mut session,
        "CREATE TABLE x.other (id INT PRIMARY KEY) ENGINE=MyISAM",
    );
    if is_mariadb {
        let sql = "CREATE TABLE x.history (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING";
        go(&mut session, sql);
        go(&mut session, "INSERT INTO x.history VALUES (1, 1)");
    }
    drop(session);
    wait_until_it_applies(&case.replica);
    until("the tables are there", || {
        let mut session = case.replica.session().unwrap();
        session.rows("SELECT * FROM x.other").is_ok()
            && (!is_mariadb
                || session
                    .rows("SELECT * FROM x.history WHERE id = 1")
                    .is_ok_and(|all| all.len() == 1))
    });
    case.vandalise(&[
        "CREATE TRIGGER d.t BEFORE INSERT ON d.uniq FOR EACH ROW SET NEW.u = 5",
        "DELETE FROM d.uniq WHERE id = 4",
        "DELETE FROM x.nokey WHERE a = 3",
        "INSERT INTO x.parent VALUES (77, 1)",
        "UPDATE x.child SET p = 3 WHERE id = 4",
        "ALTER TABLE d.members ADD COLUMN more INT",
        "UPDATE d.plain SET n = 0 WHERE id = 5",
        "CREATE TABLE d.stray (id INT PRIMARY KEY)",
    ]);
    if is_mariadb {
        case.vandalise(&["UPDATE x.history SET v = 2"]);
    }
    let all = ["--database", "d", "--database", "x", "--output", "a.plan"];
    let ended = run(case.repair(&all));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let left: BTreeMap<&str, &str> = ended.answer["not_planned"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["table"].as_str().unwrap(), one["why"].as_str().unwrap()))
        .collect();
    for (table, why) in [
        ("uniq", "trigger on the replica ('t')"),
        ("nokey", "no unique key"),
        ("parent", "x.child refers to it"),
        ("members", "only on the replica"),
        ("stray", "only on the replica"),
        ("other", "MyISAM"),
    ] {
        assert!(left[table].contains(why), "{table}: {left:?}");
    }
    assert_eq!(left.contains_key("history"), is_mariadb);
    assert_eq!(ended.answer["rows"], 2, "{ended:?}");
    let notes = ended.answer["notes"].to_string();
    assert!(notes.contains("read_only is off"), "{notes}");
    // The rest is repaired, and what is left is said again.
    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.answer["checksum"]["verdict"], "equal");
    let left_again = ended.answer["not_planned"].as_array().unwrap();
    assert_eq!(left_again.len(), left.len(), "{ended:?}");
    what_stands_in_the_way(case, is_mariadb);
}

fn what_stands_in_the_way(case: &Case, is_mariadb: bool) {
    // More rows than one wants to look at are none for a plan.
    case.vandalise(&["DELETE FROM d.pair WHERE a < 3"]);
    let many = ["--table", "d.pair", "--max-rows", "5", "--output", "b.plan"];
    let ended = run(case.repair(&many));
    refused(&ended, "rows differ: that is more than 5");
    let many = ["--table", "d.pair", "--output", "b.plan"];
    assert_eq!(run(case.repair(&many)).code, Some(4));
    if !is_mariadb {
        let mut session = case.replica.session().unwrap();
        go(&mut session, "SET GLOBAL super_read_only = ON");
        refused(&run(case.execute("b.plan")), "super_read_only");
        go(&mut session, "SET GLOBAL super_read_only = OFF");
    }
    // A trigger that came since.
    case.vandalise(&["CREATE TRIGGER d.p BEFORE INSERT ON d.pair FOR EACH ROW SET NEW.c = ''"]);
    refused(&run(case.execute("b.plan")), "trigger");
    case.vandalise(&["DROP TRIGGER d.p"]);
    if is_mariadb {
        // A statement fails behind others: nothing is left of those.
        case.vandalise(&["ALTER TABLE d.pair ADD CONSTRAINT low CHECK (a <> 2)"]);
        let (before, known) = (rows(&case.replica), case.journal());
        let ended = run(case.execute("b.plan"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(rows(&case.replica), before);
        case.assert_it_runs();
        let id = case.new_in_journal(&known);
        refused(&case.undo(&id), "was not committed");
        case.vandalise(&["ALTER TABLE d.pair DROP CONSTRAINT low"]);
    }
    let ended = run(case.execute("b.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    case.assert_it_runs();
}

/// Values that would not come back as they are, keys that are no dates, and what is the server's own. MySQL has more
/// such values: a sample has MariaDB in every other run.
#[test]
fn what_cannot_be_kept_exactly_is_left_alone() {
    inexact(&Case::start(mysql_8_0_15(), By::Gtid));
    for server in share("more servers", &[mariadb_10_11()], Part::new(1, 2)) {
        inexact(&Case::start(server, By::Gtid));
    }
}

/// Makes such tables; packets are short from then on.
fn make_inexact(case: &Case, is_mariadb: bool) {
    let mut session = case.source.session().unwrap();
    for sql in [
        "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'",
        "CREATE TABLE d.dates (k DATE PRIMARY KEY, v INT) ENGINE=InnoDB",
        "INSERT INTO d.dates VALUES ('2024-02-31', 2), ('2024-01-01', 1)",
        // As hexadecimal digits, longer than a packet may be.
        "CREATE TABLE d.`long` (k INT PRIMARY KEY, v INT, b LONGBLOB) ENGINE=InnoDB",
        "INSERT INTO d.`long` VALUES (1, 1, REPEAT('a', 600 * 1024))",
        "CREATE TABLE d.docs (k INT PRIMARY KEY, v INT, j JSON) ENGINE=InnoDB",
        "INSERT INTO d.docs VALUES (1, 1, '[1]')",
    ] {
        go(&mut session, sql);
    }
    if !is_mariadb {
        let sql = "INSERT INTO d.docs VALUES (2, 2, JSON_OBJECT('d', CAST('2024-01-01' AS DATE)))";
        go(&mut session, sql);
    }
    let documents = if is_mariadb { 1 } else { 2 };
    until("the documents are there", || {
        let mut session = case.replica.session().unwrap();
        session
            .rows("SELECT k FROM d.docs")
            .is_ok_and(|all| all.len() == documents)
    });
    for running in [&case.source, &case.replica] {
        let mut session = running.session().unwrap();
        go(&mut session, "SET GLOBAL max_allowed_packet = 1048576");
    }
}

fn inexact(case: &Case) {
    let is_mariadb = case.server.name.starts_with("MariaDB");
    make_inexact(case, is_mariadb);
    case.vandalise(&[
        "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'",
        "UPDATE d.dates SET v = 22 WHERE k = '2024-02-31'",
        "INSERT INTO d.dates VALUES ('2024-02-30', 5)",
        "UPDATE d.`long` SET v = 9",
        "UPDATE d.docs SET v = 9",
    ]);
    // By digests: the values themselves are longer than a packet now.
    let held = |running: &Running| {
        let mut session = running.session().unwrap();
        let mut value = |sql: &str| session.value(sql).unwrap().unwrap();
        (
            value("SELECT GROUP_CONCAT(k, ':', v ORDER BY k) FROM d.dates"),
            value("SELECT CONCAT(v, ':', SHA2(b, 256)) FROM d.`long`"),
        )
    };
    let before = held(&case.replica);
    let ended = case.plan("a.plan");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let left = ended.answer["not_planned"].to_string();
    assert!(
        left.contains("\"long\"") && left.contains("cannot be read exactly"),
        "{left}"
    );
    assert_eq!(left.contains("\"docs\""), !is_mariadb, "{left}");
    let dates = &ended.answer["tables"].as_array().unwrap()[0];
    assert_eq!(
        (&dates["extra"], &dates["changed"]),
        (&1.into(), &1.into()),
        "{ended:?}"
    );
    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let after = held(&case.replica);
    assert_eq!(after.0, held(&case.source).0);
    assert_eq!(after.1, before.1);
    let id = ended.answer["id"].as_str().unwrap();
    assert_eq!(case.undo(id).code, Some(0));
    assert_eq!(held(&case.replica), before);
    what_is_the_servers_own(case, is_mariadb);
}

fn what_is_the_servers_own(case: &Case, is_mariadb: bool) {
    let own = match is_mariadb {
        true => "mysql.gtid_slave_pos",
        false => "mysql.slave_master_info",
    };
    let ended = run(case.repair(&["--table", own, "--output", "own.plan"]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.answer["not_planned"]
            .to_string()
            .contains("server's own"),
        "{ended:?}"
    );
    assert!(!case.scratch.join("own.plan").exists());
    // A directory that others use stays as it is.
    for (name, permissions, code) in [("open", 0o755, 2), ("shared", 0o1777, 14)] {
        let path = case.scratch.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("theirs"), "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        let ended = run(case.repair(&["--undo", "20200101-000000-00000000", "--journal", name]));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(mode(&path), permissions);
    }
}

/// Names and values are text, in the plan and on a terminal, and nothing that is obeyed.
#[test]
fn hostile_names_and_values_are_text() {
    let case = Case::start(mysql_8_0_15(), By::Gtid);
    case.vandalise(&DRIFT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    command
        .args(["replica", "repair"])
        .arg(case.replica.socket())
        .arg("--source")
        .arg(case.source.socket())
        .args([
            "--no-defaults",
            "-u",
            "root",
            "--database",
            "d",
            "--output",
            "a.plan",
        ])
        .current_dir(case.scratch.path());
    let said = command.output().unwrap();
    assert_eq!(said.status.code(), Some(4));
    let text = String::from_utf8([said.stdout, said.stderr].concat()).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    let plan = fs::read_to_string(case.scratch.join("a.plan")).unwrap();
    assert!(!plan.contains('\x1b'), "a plan is read on terminals");
    let plan: Value = serde_json::from_str(&plan).unwrap();
    for sql in plan["sql"].as_array().unwrap() {
        // Values are numbers and hexadecimal digits.
        assert!(!sql.as_str().unwrap().contains("DROP TABLE"), "{sql}");
    }
    // MariaDB has no such setting.
    let mut session = case.replica.session().unwrap();
    go(&mut session, "SET GLOBAL super_read_only = ON");
    refused(&run(case.execute("a.plan")), "super_read_only");
    go(&mut session, "SET GLOBAL super_read_only = OFF");
    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(session.rows("SELECT * FROM d.pair LIMIT 1").is_ok());
}
