//! A source and its replica, whose rows somebody changes.

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::replicas::{status, wait_until_it_applies};
use evenkeel_testkit::{By, Scratch, TestServer, until, wait_until_caught_up};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) const MARK: &str = "EVENKEEL_TEST_CASE";

/// Tables of every kind of key, and of values that are easily written as others.
pub(crate) const TABLES: [&str; 11] = [
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

pub(crate) fn fill(session: &mut Session) {
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
pub(crate) const DRIFT: [&str; 23] = [
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
pub(crate) fn go(session: &mut Session, sql: &str) {
    let short: String = sql.chars().take(200).collect();
    session
        .run(sql)
        .unwrap_or_else(|why| panic!("{short}: {}", why.chain()));
}

/// A source with a client that writes, and a replica.
pub(crate) struct Case {
    _writer: Writer,
    pub(crate) source: Running,
    pub(crate) replica: Running,
    pub(crate) server: TestServer,
    pub(crate) by: By,
    pub(crate) evenkeel: Evenkeel,
    pub(crate) scratch: Scratch,
}

impl Case {
    pub(crate) fn start(server: TestServer, by: By) -> Self {
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
    pub(crate) fn repair(&self, flags: &[&str]) -> Command {
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

    pub(crate) fn plan(&self, name: &str) -> Ended {
        run(self.repair(&["--database", "d", "--output", name]))
    }

    pub(crate) fn execute(&self, plan: &str) -> Command {
        self.repair(&["--execute", plan, "--journal", "journal"])
    }

    pub(crate) fn undo(&self, id: &str) -> Ended {
        run(self.repair(&["--undo", id, "--journal", "journal"]))
    }

    /// Runs statements on the replica alone.
    pub(crate) fn vandalise(&self, statements: &[&str]) {
        let mut session = self.replica.session().unwrap();
        go(&mut session, "SET sql_log_bin = 0");
        for sql in statements {
            go(&mut session, sql);
        }
    }

    /// Names of the repairs in the journal.
    pub(crate) fn journal(&self) -> Vec<String> {
        let all = fs::read_dir(self.scratch.join("journal"))
            .unwrap()
            .flatten();
        let names = all.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.map(|name| name.replace(".journal", "")).collect();
        names.sort();
        names
    }

    /// The only repair that is in the journal and is not known. Names do not tell which of two is newer where both
    /// began in one second.
    #[track_caller]
    pub(crate) fn new_in_journal(&self, known: &[String]) -> String {
        let all = self.journal().into_iter();
        let new: Vec<String> = all.filter(|one| !known.contains(one)).collect();
        let [one] = new.as_slice() else {
            panic!("not one: {new:?}");
        };
        one.clone()
    }

    pub(crate) fn mark(&self) -> String {
        self.replica.pid().to_string()
    }

    /// The processes of runs of this case, watchdogs among them.
    pub(crate) fn processes(&self) -> usize {
        let mark = format!("{MARK}={}", self.mark());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let has_mark = |environment: Vec<u8>| {
            let mut all = environment.split(|byte| *byte == 0);
            all.any(|one| one == mark.as_bytes())
        };
        all.filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(has_mark))
            .count()
    }

    /// Waits until there are none. To look at all processes of the host is much: it is not done again at once.
    pub(crate) fn wait_for_processes(&self) {
        until("no process is left", || {
            let is_none = self.processes() == 0;
            if !is_none {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_none
        });
    }

    /// After a kill of everybody, any command that heals the server starts what stands.
    pub(crate) fn heal(&self) {
        until("the SQL thread runs again", || {
            let mut doctor = self
                .evenkeel
                .command(&["doctor", "--no-defaults", "-u", "root"]);
            doctor.arg("-S").arg(self.replica.socket());
            let _ = run(doctor);
            status(&self.replica).channels[0].applier == ThreadState::Running
        });
    }

    pub(crate) fn assert_it_runs(&self) {
        // A watchdog that is still at work starts what the next run has stopped.
        self.wait_for_processes();
        wait_until_it_applies(&self.replica);
        let channel = status(&self.replica).channels.remove(0);
        assert_eq!(channel.applier, ThreadState::Running);
        assert!(!channel.until);
    }
}

pub(crate) fn launch(
    server: &TestServer,
    by: By,
    scratch: &Scratch,
    name: &str,
    id: &'static str,
) -> Running {
    let small = SMALL
        .iter()
        .filter(|arg| !arg.starts_with("--server-id") && !arg.starts_with("--innodb-log-file"));
    let mut args: Vec<&str> = small.copied().collect();
    args.extend(by.options(server));
    args.push(id);
    server.run(&server.prepare(&scratch.join(name), &args).with_networking())
}

/// All rows of the tables that nobody writes to, as their bytes.
pub(crate) fn rows(running: &Running) -> BTreeMap<String, Vec<String>> {
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
pub(crate) fn logged(running: &Running) -> usize {
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
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(source: &Running) -> Self {
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
                std::thread::sleep(Duration::from_millis(40));
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

pub(crate) fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
pub(crate) fn refused(ended: &Ended, words: &str) {
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains(words), "{ended:?}");
}
