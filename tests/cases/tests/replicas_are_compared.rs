//! Does a comparison of a replica with its source find every difference and nothing else, while both are written to?

use evenkeel_cases::SMALL;
use evenkeel_cases::failpoints::CHECKSUM;
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::effort::{self, Part};
use evenkeel_testkit::replicas::{status, wait_until_it_applies};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Bank, BankTraffic, By, Scratch, TestServer, until, wait_until_caught_up};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const MARK: &str = "EVENKEEL_TEST_CASE";

/// Tables of every kind of key, and of values that are easily taken for others.
const TABLES: [&str; 9] = [
    "CREATE TABLE d.plain (id INT PRIMARY KEY, v VARCHAR(50), n INT, KEY (v)) ENGINE=InnoDB",
    "CREATE TABLE d.pair (a INT, b VARCHAR(20) CHARACTER SET latin1, c BLOB, PRIMARY KEY (a, b)) ENGINE=InnoDB",
    "CREATE TABLE d.uniq (id BIGINT UNSIGNED PRIMARY KEY, u INT, UNIQUE (u)) ENGINE=InnoDB",
    "CREATE TABLE d.nokey (a INT, b VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE d.members (e ENUM('z','a','m') PRIMARY KEY, v INT) ENGINE=InnoDB",
    "CREATE TABLE d.kinds (id VARBINARY(20) PRIMARY KEY, bits BIT(64), e ENUM('a',''), s SET('x','y','z'), f FLOAT, \
     dbl DOUBLE, dc DECIMAL(30,10), dt DATE, dtm DATETIME(6), ts TIMESTAMP NULL, tm TIME(3), y YEAR, j JSON, g POINT, \
     b BINARY(4), t LONGTEXT CHARACTER SET utf8mb4, c CHAR(10) CHARACTER SET latin1, \
     st INT AS (y + 1) STORED, vt INT AS (y + 2) VIRTUAL) ENGINE=InnoDB",
    "CREATE TABLE d.busy (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100), n INT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE d.unsafe (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TABLE d.`odd ``na'me` (`ke``y` INT PRIMARY KEY, `v'` INT) ENGINE=InnoDB",
];

fn fill(session: &mut Session) {
    for sql in TABLES {
        go(session, sql);
    }
    let numbers = |count: u32, row: &dyn Fn(u32) -> String| {
        (1..=count).map(row).collect::<Vec<_>>().join(",")
    };
    for (into, rows) in [
        (
            "plain",
            numbers(3000, &|n| {
                format!("({n},'value {n}',IF({n} % 3 = 0, NULL, {n}))")
            }),
        ),
        (
            "pair",
            numbers(2000, &|n| {
                format!("({},'it''s {n}',REPEAT(CHAR({n} % 250),{n} % 300))", n / 10)
            }),
        ),
        ("uniq", numbers(2000, &|n| format!("({n},{})", n + 10))),
        (
            "nokey",
            numbers(900, &|n| format!("({},'row {}')", n / 3, n / 3)),
        ),
        ("members", "('a',1),('z',2),('m',3)".to_owned()),
        ("`odd ``na'me`", numbers(50, &|n| format!("({n},{n})"))),
        (
            "busy (v, n)",
            numbers(5000, &|n| format!("('some value {n}',{n})")),
        ),
    ] {
        go(session, &format!("INSERT INTO d.{into} VALUES {rows}"));
    }
    go(session, "BEGIN");
    for n in 0..400 {
        let row = format!(
            "INSERT INTO d.kinds (id, bits, e, s, f, dbl, dc, dt, dtm, ts, tm, y, j, g, b, t, c) VALUES \
             (CONCAT('k', CHAR({n} % 250), '{n}'), b'1{n:010b}', IF({n} % 2, 'a', ''), {n} % 8, {n} / 7, {n} / 3e100, \
              {n}.0000000001, IF({n} % 5, '2024-02-29', '0000-00-00'), '2024-01-01 00:00:00.000{n:03}', \
              '2024-03-31 02:30:00' + INTERVAL {n} HOUR, '-838:59:58.5', 2000 + {n} % 100, '{{\"a\": [{n}, null]}}', \
              POINT({n}, -{n}), 'ab', REPEAT('ä', {n} * 20), 'é ')"
        );
        go(session, &row);
    }
    go(session, "INSERT INTO d.kinds (id) VALUES ('nothing')");
    go(session, "COMMIT");
}

#[track_caller]
fn go(session: &mut Session, sql: &str) {
    let short: String = sql.chars().take(200).collect();
    session
        .run(sql)
        .unwrap_or_else(|why| panic!("{short}: {}", why.chain()));
}

/// A source with clients that write all the time, and a replica.
struct Case {
    traffic: BankTraffic,
    _writer: Writer,
    source: Running,
    replica: Running,
    server: TestServer,
    evenkeel: Evenkeel,
    scratch: Scratch,
}

impl Case {
    fn start(server: TestServer, by: By, of_replica: &[&str]) -> Self {
        let scratch = Scratch::new();
        let small = SMALL
            .iter()
            .filter(|arg| !arg.starts_with("--server-id") && !arg.starts_with("--innodb-log-file"));
        let mut args: Vec<&str> = small.copied().collect();
        args.extend(by.options(&server));
        let start = |name: &str, id: &'static str, more: &[&str]| {
            let args = [&args[..], &[id], more].concat();
            server.run(&server.prepare(&scratch.join(name), &args).with_networking())
        };
        let source = start("source", "--server-id=1", &[]);
        By::allow(&source);
        let mut session = source.session().unwrap();
        let bank = Bank::load(&mut session, 2000).unwrap();
        go(&mut session, "CREATE DATABASE d CHARACTER SET utf8mb4");
        fill(&mut session);
        let replica = start("replica", "--server-id=2", of_replica);
        by.follow(&source, &replica);
        wait_until_caught_up(&source, &replica);
        // As fast as the source takes it only where the replica has time to follow.
        let options = source.connect_options();
        let traffic = match effort::is_full() {
            true => bank.rush(&options, 2),
            false => bank.start(&options, 1),
        };
        let traffic = traffic.unwrap();
        Self {
            traffic,
            _writer: Writer::start(&source),
            source,
            replica,
            server,
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
            scratch,
        }
    }

    fn checksum(&self, flags: &[&str]) -> Command {
        let mut command = self.evenkeel.command(&["replica", "checksum"]);
        command
            .arg(self.replica.socket())
            .arg("--source")
            .arg(self.source.socket())
            // Its writers are faster than the replica may be.
            .args(["--no-defaults", "-u", "root", "--max-lag", "1h"])
            .args(flags)
            .env(MARK, self.mark());
        command
    }

    fn mark(&self) -> String {
        self.replica.pid().to_string()
    }

    /// Runs statements on the replica alone.
    fn vandalise(&self, statements: &[&str]) {
        let mut session = self.replica.session().unwrap();
        go(&mut session, "SET sql_log_bin = 0");
        for sql in statements {
            go(&mut session, sql);
        }
    }

    /// The processes of runs of this case, watchdogs among them.
    fn processes(&self) -> usize {
        let mark = format!("{MARK}={}", self.mark());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let has_mark = |environment: Vec<u8>| {
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == mark.as_bytes())
        };
        all.filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(has_mark))
            .count()
    }

    /// Waits until there are none. To look at all processes of the host is much: it is not done again at once.
    fn wait_for_processes(&self) {
        until("no process is left", || {
            let is_none = self.processes() == 0;
            if !is_none {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_none
        });
    }

    /// Everything runs, and nothing is left: no session, no lock, no process, no note.
    fn assert_nothing_is_left(&self) {
        wait_until_it_applies(&self.replica);
        self.wait_for_processes();
        for running in [&self.source, &self.replica] {
            let mut session = running.session().unwrap();
            let own = session.id();
            until("no session is left", || {
                let rows = session.rows("SHOW PROCESSLIST").unwrap();
                let is_left = |row: &evenkeel_server::connect::Row| {
                    let id = row.get("Id").and_then(|id| id.parse().ok());
                    id != Some(own)
                        && row.get("User") == Some("root")
                        && row.get("Command") == Some("Sleep")
                        && row.get("db").is_none()
                };
                // The writers' sessions are as alike; they are never idle for a second.
                let is_idle = |row: &evenkeel_server::connect::Row| {
                    row.get("Time").and_then(|time| time.parse::<u64>().ok()) > Some(1)
                };
                !rows.iter().any(|row| is_left(row) && is_idle(row))
            });
        }
        let channel = status(&self.replica).channels.remove(0);
        assert_eq!(channel.applier, ThreadState::Running);
        assert!(!channel.until);
        self.traffic.wait_for(5);
    }
}

/// Rows of `d.busy` that come, change and go.
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
                let id = (n * 7919) % 5000;
                go(&mut session, "BEGIN");
                go(
                    &mut session,
                    &format!(
                        "UPDATE d.busy SET v = CONCAT('new ', {n}), n = n + 1 WHERE id = {id}"
                    ),
                );
                go(
                    &mut session,
                    &format!("INSERT INTO d.busy (v, n) VALUES ('inserted {n}', {n})"),
                );
                go(
                    &mut session,
                    &format!("DELETE FROM d.busy WHERE id = {}", id + 1),
                );
                go(&mut session, "COMMIT");
                if !effort::is_full() {
                    std::thread::sleep(Duration::from_millis(20));
                }
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

/// What is said of a table: verdict, missing, extra, changed, and the keys of the rows.
fn table(answer: &Value, name: &str) -> (String, [u64; 3], Vec<String>) {
    let tables = answer["tables"].as_array().expect("tables");
    let found = tables
        .iter()
        .find(|one| one["database"] == "d" && one["table"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {answer}"));
    let count = |what: &str| found[what].as_u64().unwrap();
    let rows = found["differences"].as_array().unwrap().iter();
    let rows = rows.map(|row| {
        let key = row["key"].as_array().unwrap().iter();
        let key: Vec<&str> = key.map(|part| part["value"].as_str().unwrap()).collect();
        format!("{} {}", row["kind"].as_str().unwrap(), key.join(","))
    });
    (
        found["verdict"].as_str().unwrap().to_owned(),
        [count("missing"), count("extra"), count("changed")],
        rows.collect(),
    )
}

/// The tables that are said to differ.
fn differing(answer: &Value) -> Vec<String> {
    let tables = answer["tables"].as_array().expect("tables").iter();
    let differing = tables.filter(|one| one["verdict"] == "differs");
    differing
        .map(|one| {
            format!(
                "{}.{}",
                one["database"].as_str().unwrap(),
                one["table"].as_str().unwrap()
            )
        })
        .collect()
}

/// Nothing is found where nothing is, however often both sides are looked at.
fn finds_nothing(case: &Case) {
    let pieces = [
        "--chunk-time",
        "5ms",
        "--max-snapshot",
        "20ms",
        "--database",
        "d",
        "--database",
        "bank",
    ];
    let ended = run(case.checksum(&pieces));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.answer["schema"], "evenkeel/replica-checksum/1");
    assert_eq!(differing(&ended.answer), [] as [String; 0], "{ended:?}");
    assert_eq!(table(&ended.answer, "unsafe").0, "not_compared");
    assert_eq!(table(&ended.answer, "kinds").0, "equal", "{ended:?}");
    assert!(ended.answer["looks"].as_u64() > Some(1), "{ended:?}");
    let some = ["--table", "d.plain", "--table", "bank.ledger"];
    let ended = run(case.checksum(&some));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["tables"].as_array().unwrap().len(), 2);
    case.assert_nothing_is_left();
}

const DRIFT: [&str; 18] = [
    "SET SESSION sql_mode = ''",
    "UPDATE d.plain SET v = 'Value 5' WHERE id = 5",
    "UPDATE d.plain SET n = 0 WHERE id = 9",
    "DELETE FROM d.plain WHERE id = 7",
    "INSERT INTO d.plain VALUES (0, 'before all', 1), (1000000, 'behind all', 1)",
    "UPDATE d.pair SET c = CONCAT(c, ' ') WHERE a = 3 AND b = 'it''s 31'",
    "DELETE FROM d.pair WHERE a = 4 AND b = 'it''s 42'",
    // Two rows swap their values, around the unique key.
    "UPDATE d.uniq SET u = -1 WHERE id = 50",
    "UPDATE d.uniq SET u = 60 WHERE id = 51",
    "UPDATE d.uniq SET u = 61 WHERE id = 50",
    "DELETE FROM d.nokey WHERE a = 100 LIMIT 1",
    "UPDATE d.nokey SET b = 'ROW 7' WHERE a = 7",
    "INSERT INTO d.nokey VALUES (NULL, NULL)",
    "UPDATE d.members SET v = 4 WHERE e = 'm'",
    "UPDATE d.kinds SET dbl = dbl * (1 + 1e-15) WHERE id = CONCAT('k', CHAR(9), '9')",
    "UPDATE d.kinds SET e = 0 WHERE id = 'nothing'",
    "UPDATE d.`odd ``na'me` SET `v'` = 0 WHERE `ke``y` = 13",
    "CREATE TABLE d.stray (id INT PRIMARY KEY) ENGINE=InnoDB",
];

/// What differs is found, and nothing else.
fn finds_drift(case: &Case) {
    case.vandalise(&DRIFT);
    let ended = run(case.checksum(&["--max-snapshot", "2s"]));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let answer = &ended.answer;
    let expected = [
        "d.kinds",
        "d.members",
        "d.nokey",
        "d.odd `na'me",
        "d.pair",
        "d.plain",
        "d.stray",
        "d.uniq",
    ];
    assert_eq!(differing(answer), expected, "{ended:?}");
    let said = |name: &str| {
        let (_, counts, rows) = table(answer, name);
        (counts, rows)
    };
    let rows = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        said("plain"),
        (
            [1, 2, 2],
            rows(&[
                "missing 7",
                "extra 0",
                "extra 1000000",
                "changed 5",
                "changed 9"
            ])
        )
    );
    assert_eq!(
        said("pair"),
        ([1, 0, 1], rows(&["missing 4,it's 42", "changed 3,it's 31"]))
    );
    assert_eq!(
        said("uniq"),
        ([0, 0, 2], rows(&["changed 50", "changed 51"]))
    );
    // Three rows alike changed, one is missing, one is new.
    assert_eq!(said("nokey").0, [4, 4, 0]);
    assert_eq!(said("members"), ([0, 0, 1], rows(&["changed 3"])));
    assert_eq!(said("odd `na'me"), ([0, 0, 1], rows(&["changed 13"])));
    let kinds = said("kinds");
    assert_eq!(kinds.0, [0, 0, 2], "{kinds:?}");
    assert_eq!(said("stray").0, [0, 0, 0]);
    case.assert_nothing_is_left();
}

fn all_of_it(server: TestServer, by: By, of_replica: &[&str]) {
    let case = Case::start(server, by, of_replica);
    finds_nothing(&case);
    finds_drift(&case);
}

/// What is compared: a server, how its replica follows, and the replica's options.
type Variant = (TestServer, By, &'static [&'static str]);

#[test]
fn of_mariadb() {
    let variants: [Variant; 3] = [
        (mariadb_10_11(), By::Gtid, &["--slave-parallel-threads=4"]),
        (mariadb_10_11(), By::Position, &[]),
        (mariadb_11_8(), By::Gtid, &[]),
    ];
    for (server, by, of_replica) in effort::draw("replicas of MariaDB", &variants, 1) {
        all_of_it(server, by, of_replica);
    }
}

#[test]
fn of_mysql() {
    let variants: [Variant; 3] = [
        (mysql_5_7_22(), By::Position, &[]),
        (mysql_8_0_15(), By::Gtid, &["--slave-parallel-workers=4"]),
        (mysql_9(), By::Gtid, &[]),
    ];
    for (server, by, of_replica) in effort::draw("replicas of MySQL", &variants, 1) {
        all_of_it(server, by, of_replica);
    }
}

/// Killed anywhere, alone or with its watchdog, the SQL thread runs again: by the watchdog, or by the next command.
fn survives_kills(server: TestServer, by: By, part: Part) {
    let case = Case::start(server, by, &[]);
    for point in effort::share("kills of a comparison", &CHECKSUM, part) {
        for everybody in [false, true] {
            println!("killed at {point}, everybody: {everybody}");
            let mut command = killed_at(case.checksum(&["--table", "d.plain"]), point);
            if everybody {
                command.env("EVENKEEL_KILL_ALL", "1");
            }
            let ended = run(command);
            assert_eq!(
                ended.signal,
                Some(9),
                "{point} was never reached: {ended:?}"
            );
            if everybody {
                until("its sessions are gone", || {
                    // Once they are, the next one starts the SQL thread.
                    let _ = run(case.checksum(&["--table", "d.plain"]));
                    status(&case.replica).channels[0].applier == ThreadState::Running
                });
            }
            case.assert_nothing_is_left();
        }
    }
    let ended = run(case.checksum(&["--table", "d.plain"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn kills_on_mariadb() {
    survives_kills(mariadb_10_11(), By::Gtid, Part::new(0, 2));
}

#[test]
fn kills_on_mysql() {
    survives_kills(mysql_8_0_15(), By::Gtid, Part::new(1, 2));
}

/// Over TCP, with the privileges that the help names, to the source that the replica names; killed there, too.
#[test]
fn servers_elsewhere_and_few_privileges() {
    let servers = [mariadb_10_11(), mysql_5_7_22()];
    for server in effort::draw("servers elsewhere", &servers, 1) {
        let case = Case::start(server, By::Position, &[]);
        let mut session = case.source.session().unwrap();
        let abilities = Abilities::probe(&mut session).unwrap();
        let grants = match abilities.flavour {
            Flavour::MariaDb => "SELECT, BINLOG MONITOR, SLAVE MONITOR, REPLICATION SLAVE ADMIN",
            Flavour::MySql => "SELECT, REPLICATION CLIENT, SUPER, RELOAD",
        };
        go(&mut session, "CREATE USER checker@'%' IDENTIFIED BY 'pw'");
        let port = case.replica.port().unwrap().to_string();
        let over_tcp = |flags: &[&str]| {
            let mut command = case.evenkeel.command(&["replica", "checksum"]);
            command.arg(format!("127.0.0.1:{port}"));
            command.args([
                "--no-defaults",
                "-u",
                "checker",
                "-ppw",
                "--table",
                "d.pair",
            ]);
            command
                .args(["--max-lag", "1h"])
                .args(flags)
                .env(MARK, case.mark());
            command
        };
        let name = case.server.name;
        until("the account is there", || {
            run(over_tcp(&[])).message().contains("lacks SELECT")
        });
        go(
            &mut session,
            &format!("GRANT {grants} ON *.* TO checker@'%'"),
        );
        until("the privileges are there", || {
            run(over_tcp(&[])).code == Some(0)
        });
        drop(session);
        let ended = run(killed_at(over_tcp(&[]), "checksum::source_seen"));
        assert_eq!(ended.signal, Some(9), "{name}: {ended:?}");
        case.assert_nothing_is_left();
        let mut killed = killed_at(over_tcp(&[]), "checksum::source_seen");
        killed.env("EVENKEEL_KILL_ALL", "1");
        assert_eq!(run(killed).signal, Some(9), "{name}");
        assert_eq!(
            status(&case.replica).channels[0].applier,
            ThreadState::Stopped
        );
        until("another command starts it", || {
            let mut doctor = case
                .evenkeel
                .command(&["doctor", "--no-defaults", "-h", "127.0.0.1"]);
            doctor.args(["-P", &port, "-u", "checker", "-ppw"]);
            let _ = run(doctor);
            status(&case.replica).channels[0].applier == ThreadState::Running
        });
        case.assert_nothing_is_left();
    }
}

/// What cannot be aligned is refused, and says why.
#[test]
fn what_is_no_pair_is_refused() {
    let case = Case::start(mariadb_10_11(), By::Gtid, &[]);
    let refused = |ended: Ended, words: &str| {
        assert_eq!(ended.code, Some(14), "{ended:?}");
        assert!(ended.message().contains(words), "{ended:?}");
    };
    let mut turned = case.evenkeel.command(&["replica", "checksum"]);
    turned
        .arg(case.source.socket())
        .args(["--no-defaults", "-u", "root"]);
    refused(run(turned), "is not a replica");
    // By its port it is the same server.
    let mut itself = case.evenkeel.command(&["replica", "checksum", "--source"]);
    itself
        .arg(case.replica.socket())
        .args(["--no-defaults", "-u", "root", "-S"]);
    itself.arg(case.replica.socket());
    refused(run(itself), "is not what");
    let ended = run(case.checksum(&["--table", "d.nothing"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let mut session = case.replica.session().unwrap();
    go(&mut session, "STOP SLAVE SQL_THREAD");
    refused(run(case.checksum(&[])), "the SQL thread does not run");
    go(&mut session, "START SLAVE SQL_THREAD");
    drop(session);
    case.assert_nothing_is_left();
}

/// An interrupted comparison continues, with what it had found.
#[test]
fn an_interrupted_comparison_continues() {
    let case = Case::start(mariadb_10_11(), By::Gtid, &[]);
    case.vandalise(&["UPDATE d.plain SET v = 'x' WHERE id = 1"]);
    let state = case.scratch.join("state");
    // Where it is called.
    let checksum = |flags: &[&str]| {
        let mut command = case.checksum(&["--state", "state"]);
        command.current_dir(state.parent().unwrap()).args(flags);
        command
    };
    let flags = [
        "--database",
        "d",
        "--max-snapshot",
        "1ms",
        "--threads",
        "1",
        "--chunk-time",
        "1ms",
    ];
    let ended = run(killed_at(checksum(&flags), "checksum::replica_seen#6"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    case.assert_nothing_is_left();
    let text = fs::read_to_string(&state).unwrap();
    assert!(text.contains("evenkeel/replica-checksum-state/1"), "{text}");
    // Of another comparison it is not taken.
    let other = run(checksum(&["--table", "d.pair"]));
    assert_eq!(other.code, Some(2), "{other:?}");
    let ended = run(checksum(&["--database", "d"]));
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(differing(&ended.answer), ["d.plain"]);
    assert_eq!(table(&ended.answer, "plain").1, [0, 0, 1]);
    assert!(!state.exists());
}
