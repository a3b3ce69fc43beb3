//! Does a repair make a replica's rows those of its source, all of them or none, and can it be taken back?

use evenkeel_cases::SMALL;
use evenkeel_cases::failpoints::{REPAIR, REPAIRED};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::replicas::{status, wait_until_it_applies};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{By, Scratch, TestServer, until, wait_until_caught_up};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const MARK: &str = "EVENKEEL_TEST_CASE";

/// Tables of every kind of key, and of values that are easily written as others.
const TABLES: [&str; 11] = [
    "CREATE TABLE d.plain (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(50), n INT, KEY (v)) ENGINE=InnoDB",
    "CREATE TABLE d.pair (a INT, b VARCHAR(20) CHARACTER SET latin1, c BLOB, PRIMARY KEY (a, b)) ENGINE=InnoDB",
    "CREATE TABLE d.uniq (id BIGINT UNSIGNED PRIMARY KEY, u INT, UNIQUE (u)) ENGINE=InnoDB",
    "CREATE TABLE d.members (e ENUM('z','a','m') PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE d.kinds (id VARBINARY(20) PRIMARY KEY, bits BIT(64), e ENUM('a',''), s SET('x','y','z'), f FLOAT, \
     dbl DOUBLE, dc DECIMAL(30,10), dt DATE, dtm DATETIME(6), ts TIMESTAMP NULL, tm TIME(3), y YEAR, j JSON, g POINT, \
     b BINARY(4), t LONGTEXT CHARACTER SET utf8mb4, c CHAR(10) CHARACTER SET latin1, \
     st INT AS (y + 1) STORED, vt INT AS (y + 2) VIRTUAL) ENGINE=InnoDB",
    "CREATE TABLE d.words (w VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, n TEXT) ENGINE=InnoDB",
    "CREATE TABLE d.busy (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100), n INT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE d.`odd ``na'me\n\x1b[31m` (`ke``y` INT, `v'\nx` INT, UNIQUE (`ke``y`), KEY (`v'\nx`)) ENGINE=InnoDB",
    "CREATE TABLE x.nokey (a INT, b VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE x.parent (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE x.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES x.parent (id) ON DELETE CASCADE) ENGINE=InnoDB",
];

fn fill(session: &mut Session) {
    go(session, "SET SESSION sql_mode = ''");
    for sql in TABLES {
        go(session, sql);
    }
    // Its key has to be without NULL.
    go(
        session,
        "ALTER TABLE d.`odd ``na'me\n\x1b[31m` MODIFY `ke``y` INT NOT NULL",
    );
    let rows = |count: u32, row: &dyn Fn(u32) -> String| {
        (1..=count).map(row).collect::<Vec<_>>().join(",")
    };
    for (into, rows) in [
        (
            "d.plain",
            rows(600, &|n| {
                format!("({n},'value {n}',IF({n} % 3 = 0, NULL, {n}))")
            }),
        ),
        (
            "d.pair",
            rows(500, &|n| {
                format!("({},'it''s {n}',REPEAT(CHAR({n} % 250),{n} % 300))", n / 10)
            }),
        ),
        ("d.uniq", rows(300, &|n| format!("({n},{})", n + 10))),
        ("d.members", "('a',1),('z',2),('m',3)".to_owned()),
        (
            "d.words",
            "('straße','1'),('a','2'),('B','3'),('quo''te\\n\\\\','4')".to_owned(),
        ),
        (
            "d.`odd ``na'me\n\x1b[31m`",
            rows(50, &|n| format!("({n},{n})")),
        ),
        (
            "d.busy (v, n)",
            rows(500, &|n| format!("('some value {n}',{n})")),
        ),
        ("x.nokey", rows(20, &|n| format!("({n},'row')"))),
        ("x.parent", rows(20, &|n| format!("({n},{n})"))),
        ("x.child", rows(20, &|n| format!("({n},{n})"))),
    ] {
        go(session, &format!("INSERT INTO {into} VALUES {rows}"));
    }
    for n in 0..60 {
        let row = format!(
            "INSERT INTO d.kinds (id, bits, e, s, f, dbl, dc, dt, dtm, ts, tm, y, j, g, b, t, c) VALUES \
             (CONCAT('k', CHAR({n} % 250), '{n}'), b'1{n:010b}', IF({n} % 2, 'a', ''), {n} % 8, {n} / 7, {n} / 3e100, \
              {n}.0000000001, IF({n} % 5, '2024-02-29', '0000-00-00'), '2024-01-01 00:00:00.000{n:03}', \
              '2024-03-31 02:30:00' + INTERVAL {n} HOUR, '-838:59:58.5', 2000 + {n} % 100, '{{\"a\": [{n}, null]}}', \
              POINT({n}, -{n}), 'ab', REPEAT('ä', {n} * 20), 'é ')"
        );
        go(session, &row);
    }
    for sql in [
        "INSERT INTO d.kinds (id) VALUES ('nothing')",
        "INSERT INTO d.kinds (id, f, dbl, e, bits) VALUES ('least', -0.0e0, -1.7976931348623157e308, 'wrong', ~0)",
        "INSERT INTO d.plain VALUES (1000, NULL, 0)",
        "UPDATE d.plain SET id = 0 WHERE id = 1000",
    ] {
        go(session, sql);
    }
}

/// What somebody does to the replica alone.
const DRIFT: [&str; 23] = [
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "UPDATE d.plain SET v = 'Value 5' WHERE id = 5",
    "UPDATE d.plain SET n = 0, v = NULL WHERE id = 9",
    "DELETE FROM d.plain WHERE id IN (0, 7)",
    "INSERT INTO d.plain VALUES (-1, 'before all', 1), (1000000, '\\'); DROP TABLE d.pair; -- \\n\\0\\Z', 1)",
    "UPDATE d.pair SET c = CONCAT(c, ' ') WHERE a = 3 AND b = 'it''s 31'",
    "DELETE FROM d.pair WHERE a = 4 AND b = 'it''s 42'",
    "INSERT INTO d.pair VALUES (3, 'quo\\'te\"`\\\\', X'00FF270A')",
    // Three rows swap their values, around the unique key.
    "UPDATE d.uniq SET u = -1 WHERE id = 50",
    "UPDATE d.uniq SET u = 60 WHERE id = 51",
    "UPDATE d.uniq SET u = 61 WHERE id = 52",
    "UPDATE d.uniq SET u = 62 WHERE id = 50",
    "UPDATE d.members SET v = 4 WHERE e = 'm'",
    "DELETE FROM d.members WHERE e = 'z'",
    // The same word for the key, and another one for bytes.
    "DELETE FROM d.words WHERE w IN ('straße', 'a')",
    "INSERT INTO d.words VALUES ('STRASSE', 'x'), ('Ä', 'y')",
    "UPDATE d.words SET n = 'changed' WHERE n = '4'",
    "DELETE FROM d.kinds WHERE id LIKE 'k%5' OR id LIKE 'k%0'",
    "DELETE FROM d.kinds WHERE id IN ('nothing', 'least')",
    "UPDATE d.kinds SET dbl = dbl * (1 + 1e-15), f = NULL, g = POINT(1, 2), j = '[]' WHERE id LIKE 'k%7'",
    "UPDATE d.kinds SET c = 'e', t = NULL, dt = '0000-00-00', bits = 0 WHERE id LIKE 'k%8'",
    "UPDATE d.`odd ``na'me\n\x1b[31m` SET `v'\nx` = 0 WHERE `ke``y` = 13",
    "DELETE FROM d.`odd ``na'me\n\x1b[31m` WHERE `ke``y` = 14",
];

#[track_caller]
fn go(session: &mut Session, sql: &str) {
    let short: String = sql.chars().take(200).collect();
    session
        .run(sql)
        .unwrap_or_else(|why| panic!("{short}: {}", why.chain()));
}

/// A source with a client that writes, and a replica.
struct Case {
    _writer: Writer,
    source: Running,
    replica: Running,
    server: TestServer,
    by: By,
    evenkeel: Evenkeel,
    scratch: Scratch,
}

impl Case {
    fn start(server: TestServer, by: By) -> Self {
        let scratch = Scratch::new();
        let source = launch(&server, by, &scratch, "source", "--server-id=1");
        By::allow(&source);
        let mut session = source.session().unwrap();
        go(&mut session, "CREATE DATABASE d CHARACTER SET utf8mb4");
        go(&mut session, "CREATE DATABASE x CHARACTER SET utf8mb4");
        fill(&mut session);
        let replica = launch(&server, by, &scratch, "replica", "--server-id=2");
        by.follow(&source, &replica);
        wait_until_caught_up(&source, &replica);
        Self {
            _writer: Writer::start(&source),
            source,
            replica,
            server,
            by,
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
            scratch,
        }
    }

    /// Paths are relative: to the scratch directory, from where it is called.
    fn repair(&self, flags: &[&str]) -> Command {
        let mut command = self.evenkeel.command(&["replica", "repair"]);
        command.arg(self.replica.socket());
        if !flags.contains(&"--undo") {
            command.arg("--source").arg(self.source.socket());
        }
        command
            .args(["--no-defaults", "-u", "root", "--max-lag", "1h"])
            .args(flags)
            .current_dir(self.scratch.path())
            .env(MARK, self.mark())
            .env_remove("STATE_DIRECTORY");
        command
    }

    fn plan(&self, name: &str) -> Ended {
        run(self.repair(&["--database", "d", "--output", name]))
    }

    fn execute(&self, plan: &str) -> Command {
        self.repair(&["--execute", plan, "--journal", "journal"])
    }

    fn undo(&self, id: &str) -> Ended {
        run(self.repair(&["--undo", id, "--journal", "journal"]))
    }

    /// Runs statements on the replica alone.
    fn vandalise(&self, statements: &[&str]) {
        let mut session = self.replica.session().unwrap();
        go(&mut session, "SET sql_log_bin = 0");
        for sql in statements {
            go(&mut session, sql);
        }
    }

    /// Names of the repairs in the journal.
    fn journal(&self) -> Vec<String> {
        let all = fs::read_dir(self.scratch.join("journal"))
            .unwrap()
            .flatten();
        let names = all.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.map(|name| name.replace(".journal", "")).collect();
        names.sort();
        names
    }

    fn mark(&self) -> String {
        self.replica.pid().to_string()
    }

    /// The processes of runs of this case, watchdogs among them.
    fn processes(&self) -> usize {
        let mark = format!("{MARK}={}", self.mark());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let has_mark = |environment: Vec<u8>| {
            let mut all = environment.split(|byte| *byte == 0);
            all.any(|one| one == mark.as_bytes())
        };
        all.filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(has_mark))
            .count()
    }

    /// After a kill of everybody, any command that looks after the server starts what stands.
    fn heal(&self) {
        until("the SQL thread runs again", || {
            let mut doctor = self
                .evenkeel
                .command(&["doctor", "--no-defaults", "-u", "root"]);
            doctor.arg("-S").arg(self.replica.socket());
            let _ = run(doctor);
            status(&self.replica).channels[0].applier == ThreadState::Running
        });
    }

    fn assert_it_runs(&self) {
        // A watchdog that is still at work starts what the next run has stopped.
        until("no process is left", || self.processes() == 0);
        wait_until_it_applies(&self.replica);
        let channel = status(&self.replica).channels.remove(0);
        assert_eq!(channel.applier, ThreadState::Running);
        assert!(!channel.until);
    }
}

fn launch(server: &TestServer, by: By, scratch: &Scratch, name: &str, id: &'static str) -> Running {
    let small = SMALL
        .iter()
        .filter(|arg| !arg.starts_with("--server-id") && !arg.starts_with("--innodb-log-file"));
    let mut args: Vec<&str> = small.copied().collect();
    args.extend(by.options(server));
    args.push(id);
    server.run(&server.prepare(&scratch.join(name), &args).with_networking())
}

/// All rows of the tables that nobody writes to, as their bytes.
fn rows(running: &Running) -> BTreeMap<String, Vec<String>> {
    let mut session = running.session().unwrap();
    go(
        &mut session,
        "SET SESSION sql_mode = '', time_zone = '+00:00'",
    );
    let columns = session
        .rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA IN ('d', 'x') AND TABLE_NAME <> 'busy' ORDER BY 1, 2, ORDINAL_POSITION",
        )
        .unwrap();
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for column in &columns {
        let text = |at: usize| column.at(at).unwrap();
        let table = format!("{}.{}", quote_name(text(0)), quote_name(text(1)));
        let name = quote_name(text(2));
        let value = match text(3) {
            "float" | "double" => format!("{name} * 1e0"),
            "enum" | "set" | "bit" => format!("CAST({name} AS UNSIGNED)"),
            _ => format!("HEX(CAST({name} AS BINARY))"),
        };
        values
            .entry(table)
            .or_default()
            .push(format!("IFNULL({value}, {})", quote("NULL")));
    }
    let mut all = BTreeMap::new();
    for (table, values) in values {
        let sql = format!("SELECT CONCAT_WS('|', {}) FROM {table}", values.join(", "));
        let found = session.rows(&sql).unwrap();
        let mut found: Vec<String> = found
            .iter()
            .map(|row| row.at(0).unwrap().to_owned())
            .collect();
        found.sort();
        all.insert(table, found);
    }
    all
}

/// What a server has logged itself: transactions and everything that is one.
fn logged(running: &Running) -> usize {
    let mut session = running.session().unwrap();
    let id = session.value("SELECT @@server_id").unwrap().unwrap();
    let logs = session.rows("SHOW BINARY LOGS").unwrap();
    let mut count = 0;
    for log in &logs {
        let events = session
            .rows(&format!(
                "SHOW BINLOG EVENTS IN {}",
                quote(log.at(0).unwrap())
            ))
            .unwrap();
        let own = events.iter().filter(|event| {
            let kind = event.get("Event_type").unwrap_or_default();
            event.get("Server_id") == Some(&*id)
                && !matches!(
                    kind,
                    "Format_desc"
                        | "Gtid_list"
                        | "Previous_gtids"
                        | "Binlog_checkpoint"
                        | "Rotate"
                        | "Stop"
                )
        });
        count += own.count();
    }
    count
}

/// Rows of `d.busy` that come, change and go, gently.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(source: &Running) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut session = source.session().unwrap();
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for n in 0.. {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let id = (n * 7919) % 500;
                for sql in [
                    format!("UPDATE d.busy SET v = 'new {n}', n = n + 1 WHERE id = {id}"),
                    format!("INSERT INTO d.busy (v, n) VALUES ('inserted {n}', {n})"),
                    format!("DELETE FROM d.busy WHERE id = {}", id + 1),
                ] {
                    go(&mut session, &sql);
                }
                std::thread::sleep(Duration::from_millis(15));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn refused(ended: &Ended, words: &str) {
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains(words), "{ended:?}");
}

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
    assert_eq!(case.journal(), [id.clone()]);
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
fn of_mariadb_by_gtid() {
    the_whole_way(mariadb_10_11(), By::Gtid);
}

#[test]
fn of_mysql8_by_gtid() {
    the_whole_way(mysql_8_0_15(), By::Gtid);
}

#[test]
fn of_mysql57_by_position() {
    the_whole_way(mysql_5_7_22(), By::Position);
}

#[test]
fn of_newer_mariadb() {
    the_whole_way(mariadb_11_8(), By::Gtid);
}

#[test]
fn of_newer_mysql() {
    the_whole_way(mysql_9(), By::Gtid);
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
        let new: Vec<String> = case
            .journal()
            .into_iter()
            .filter(|one| !known.contains(one))
            .collect();
        assert_eq!(new.len(), 1, "{new:?}");
        id.clone_from(&new[0]);
        let ended = run(case.execute("a.plan"));
        assert_eq!(ended.answer["outcome"], "was_done", "{ended:?}");
        let says = ended.answer["notes"].to_string().contains("was committed");
        assert_eq!(says, point == "repair::committed", "{ended:?}");
    }
    // One of which nobody was told how it ended can be taken back, too.
    assert_eq!(case.undo(&id).code, Some(0));
    let ended = run(killed_at(case.execute("a.plan"), "repair::committed"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    case.assert_it_runs();
    let newest = case.journal().pop().unwrap();
    assert_eq!(case.undo(&newest).code, Some(0));
    assert_eq!(rows(&case.replica), drifted);
}

#[test]
fn kills_on_mariadb() {
    survives_kills(mariadb_10_11());
}

#[test]
fn kills_on_mysql() {
    survives_kills(mysql_8_0_15());
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

    // Of another replica of the same source.
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
    drop(other);

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

/// Tables that a repair would do something else with are left alone, and named.
#[test]
fn some_tables_are_left_alone() {
    for server in [mariadb_10_11(), mysql_5_7_22()] {
        let case = Case::start(server, By::Gtid);
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
        // The rest is repaired.
        let ended = run(case.execute("a.plan"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
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
            let before = rows(&case.replica);
            let ended = run(case.execute("b.plan"));
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert_eq!(rows(&case.replica), before);
            case.assert_it_runs();
            let id = case.journal().pop().unwrap();
            refused(&case.undo(&id), "was not committed");
            case.vandalise(&["ALTER TABLE d.pair DROP CONSTRAINT low"]);
        }
        let ended = run(case.execute("b.plan"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        case.assert_it_runs();
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
    let ended = run(case.execute("a.plan"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut session = case.replica.session().unwrap();
    assert!(session.rows("SELECT * FROM d.pair LIMIT 1").is_ok());
}
