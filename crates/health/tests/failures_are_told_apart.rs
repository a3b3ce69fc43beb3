//! Is each way in which a server fails seen within the timeout, called by its name, with at most two sessions?

use evenkeel_health::probe::{Checks, Expected, Observed};
use evenkeel_health::reason::{Cause, Reason};
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{
    TestServer, give_to_server, mariadb_10_11, mysql_5_7_22, mysql_8_0_15,
};
use evenkeel_testkit::{LoopFs, Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// On a busy host even a sound server takes a while.
const TIMING: Timing = Timing {
    interval: Duration::from_secs(2),
    timeout: Duration::from_secs(2),
};

/// The account of the checker: its sessions can be counted.
const CHECKER: &str = "checker";

/// A server that is being watched.
struct Watched {
    room: Scratch,
    running: Option<Running>,
    watch: Option<Watch>,
}

impl Watched {
    fn new(server: &TestServer, options: &[&str], checks: Checks) -> Self {
        let room = Scratch::new();
        let running = server.start(&room.path().join("data"), options);
        let mut session = running.session().unwrap();
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY)",
            "CREATE USER checker@localhost IDENTIFIED BY 's3same'",
            "GRANT /*M!100502 SLAVE MONITOR, */ SELECT, PROCESS, REPLICATION CLIENT ON *.* TO checker@localhost",
        ] {
            session.run(sql).unwrap();
        }
        let mut watched = Self {
            room,
            running: Some(running),
            watch: None,
        };
        watched.watch(checks);
        watched
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// Watches it with other checks.
    fn watch(&mut self, checks: Checks) {
        self.watch_as(CHECKER, Some("s3same"), checks);
    }

    fn watch_as(&mut self, user: &str, password: Option<&str>, checks: Checks) {
        let mut options = ConnectOptions::over_socket(self.running().socket(), user);
        options.password = password.map(evenkeel_server::options::Secret::new);
        let target = Target {
            name: "shop".to_owned(),
            options,
            checks: Arc::new(checks),
        };
        self.watch = Some(Watch::new(vec![target], TIMING));
    }

    /// Returns what the next probe finds.
    fn next(&mut self) -> Observed {
        let watch = self.watch.as_mut().unwrap();
        let mut found = None;
        until("a probe ends", || {
            found = watch.next(TIMING.interval).pop();
            found.is_some()
        });
        found.unwrap().1
    }

    fn causes(&mut self) -> Vec<Cause> {
        let found = self.next();
        found.reasons.iter().map(|reason| reason.cause).collect()
    }

    fn until_causes(&mut self, what: &str, wanted: &[Cause]) {
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen = self.causes();
            if seen == wanted {
                return;
            }
        }
        panic!("{what}: {seen:?}, not {wanted:?}");
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(self.running().pid()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Returns how many sessions the checker has.
    fn sessions(&self, root: &mut Session) -> u64 {
        let sql =
            format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{CHECKER}'");
        root.value(&sql).unwrap().unwrap().parse().unwrap()
    }
}

fn checks() -> Checks {
    Checks {
        connections_min: 1,
        ..Checks::default()
    }
}

fn told_apart(server: &TestServer) {
    let strict = Checks {
        expected: Expected::Writable,
        query: Some("SELECT id FROM shop.orders".to_owned()),
        tables: vec!["shop.orders".parse().unwrap()],
        lag_max: Some(Duration::from_secs(5)),
        disk_min: Some(1),
        ..checks()
    };
    let mut watched = Watched::new(server, &["--max-connections=10"], strict);
    let mut root = watched.running().session().unwrap();
    let good = watched.next();
    assert_eq!(good.reasons, [], "{}", server.name);
    assert_eq!(good.is_writable, Some(true));
    assert_eq!(good.replicates, Some(false));
    assert_eq!(good.connections_max, Some(10));
    assert!(good.disk_free.is_some() && good.running.is_some());

    // A session that was ended is no failure of the server.
    let id = root
        .value("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'checker'")
        .unwrap()
        .unwrap();
    root.run(&format!("KILL {id}")).unwrap();
    assert_eq!(watched.causes(), []);

    root.run("SET GLOBAL read_only = ON").unwrap();
    // Read-only and without a source it is nobody's replica either.
    assert_eq!(watched.causes(), [Cause::Role, Cause::Replication]);
    root.run("SET GLOBAL read_only = OFF").unwrap();

    // Every connection is taken, but the one of the checker still works.
    let mut taken = Vec::new();
    while let Ok(session) = watched.running().session() {
        taken.push(session);
    }
    assert_eq!(watched.causes(), [Cause::Connections]);
    drop(taken);
    watched.until_causes("connections are free again", &[]);

    root.run("RENAME TABLE shop.orders TO shop.gone").unwrap();
    assert_eq!(watched.causes(), [Cause::Unreadable, Cause::Query]);
    root.run("RENAME TABLE shop.gone TO shop.orders").unwrap();
    assert_eq!(watched.causes(), []);

    // A statement that waits is not a server that is dead; and what waits is not asked again and again.
    root.run("LOCK TABLES shop.orders WRITE").unwrap();
    for _ in 0..4 {
        assert_eq!(watched.causes(), [Cause::Stuck], "{}", server.name);
        assert!(watched.sessions(&mut root) <= 2, "{}", server.name);
    }
    root.run("UNLOCK TABLES").unwrap();
    watched.until_causes("the table is free again", &[]);
    let mut sessions = 2;
    until("one session is left", || {
        sessions = watched.sessions(&mut root);
        sessions == 1
    });

    freezes_and_goes(&mut watched, root);
}

/// Returns how many threads of this process have a name.
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.flatten().filter(|it| it.trim() == name).count()
}

/// A server that nobody hears, and one that is gone.
fn freezes_and_goes(watched: &mut Watched, mut root: Session) {
    watched.send(Signal::STOP);
    for _ in 0..4 {
        assert_eq!(watched.causes(), [Cause::Hung]);
    }
    // Each has a session, or waits for one: a frozen server ends none of them.
    assert!(threads("probe") <= 2, "{} threads", threads("probe"));
    watched.send(Signal::CONT);
    watched.until_causes("the server runs again", &[]);
    assert!(watched.sessions(&mut root) <= 2);

    drop(root);
    watched.running.take().unwrap().kill();
    watched.until_causes("the server is gone", &[Cause::Refused]);
    assert!(watched.room.path().exists());
}

/// Writes that do not work, although `read_only` is off.
fn writes_are_tried(server: &TestServer) {
    let wanted = Checks {
        expected: Expected::Writable,
        write_table: Some("shop.beat".parse().unwrap()),
        ..checks()
    };
    let mut watched = Watched::new(server, &["--server-id=7"], wanted.clone());
    let mut root = watched.running().session().unwrap();
    assert_eq!(watched.causes(), [Cause::Login], "it may not write");
    assert_eq!(watched.next().unknown.len(), 1);
    root.run("GRANT INSERT, DELETE ON shop.* TO checker@localhost")
        .unwrap();
    assert_eq!(watched.causes(), [Cause::Unwritable], "there is no table");
    root.run("CREATE TABLE shop.beat (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6))")
        .unwrap();
    assert_eq!(watched.causes(), []);
    let row = "SELECT CONCAT(id, ' ', at <= UTC_TIMESTAMP(6)) FROM shop.beat";
    assert_eq!(root.value(row).unwrap().as_deref(), Some("7 1"));
    // SELECT works, and so does all that is asked for besides.
    root.run("FLUSH TABLES WITH READ LOCK").unwrap();
    for _ in 0..3 {
        assert_eq!(watched.causes(), [Cause::Stuck], "{}", server.name);
        assert!(watched.sessions(&mut root) <= 2);
    }
    root.run("UNLOCK TABLES").unwrap();
    watched.until_causes("writes work again", &[]);
    for name in ["tx_read_only", "transaction_read_only", "offline_mode"] {
        if root.run(&format!("SET GLOBAL {name} = ON")).is_err() {
            // A server of this version has no such variable.
            continue;
        }
        let wanted = match name {
            "offline_mode" => Cause::Refused,
            _ => Cause::Role,
        };
        assert_eq!(watched.causes(), [wanted], "{name}");
        root.run(&format!("SET GLOBAL {name} = OFF")).unwrap();
        watched.until_causes("it is writable again", &[]);
    }
    // Whoever may log in in offline mode still says that nobody else may.
    watched.watch_as("root", None, wanted.clone());
    assert_eq!(watched.causes(), []);
    if root.run("SET GLOBAL offline_mode = ON").is_ok() {
        assert_eq!(watched.causes(), [Cause::Refused], "{}", server.name);
        root.run("SET GLOBAL offline_mode = OFF").unwrap();
    }
    // Of a replica, the newest row says how far it is behind.
    root.run("SET GLOBAL read_only = ON").unwrap();
    root.run("UPDATE shop.beat SET at = UTC_TIMESTAMP(6) - INTERVAL 1000 SECOND")
        .unwrap();
    watched.watch(Checks {
        expected: Expected::ReadOnly,
        lag_max: Some(Duration::from_secs(5)),
        ..wanted
    });
    let found = watched.next();
    assert!(found.lag_s.is_some_and(|lag| lag >= 1000), "{found:?}");
    // One of the future would hide that.
    root.run("INSERT INTO shop.beat VALUES (9, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)")
        .unwrap();
    let found = watched.next();
    assert_eq!(found.lag_s, None, "{found:?}");
    let is_said =
        |reason: &Reason| reason.cause == Cause::Lag && reason.text.contains("clocks differ");
    assert!(found.reasons.iter().any(is_said), "{found:?}");
}

#[test]
fn writes_of_mariadb_are_tried() {
    writes_are_tried(&mariadb_10_11());
}

#[test]
fn writes_of_mysql_8_are_tried() {
    writes_are_tried(&mysql_8_0_15());
}

#[test]
fn writes_of_mysql_5_7_are_tried() {
    writes_are_tried(&mysql_5_7_22());
}

/// Waits until there is no room on a filesystem.
fn fill(disk: &LoopFs) -> PathBuf {
    let filler = disk.join("filler");
    let mut file = File::create(&filler).unwrap();
    for size in [1 << 16, 1 << 10, 1] {
        while file
            .write_all(&vec![b'x'; size])
            .and_then(|()| file.sync_data())
            .is_ok()
        {}
    }
    filler
}

/// What is written waits for room. SELECT does not, nor does anything that is asked for besides.
fn full_disks_are_seen(server: &TestServer) {
    let disk = LoopFs::ext4(16 << 20);
    give_to_server(disk.path());
    let log = format!("--log-bin={}", disk.join("binlog").display());
    let mut watched = Watched::new(server, &[&log, "--server-id=7"], checks());
    let mut root = watched.running().session().unwrap();
    for sql in [
        "CREATE TABLE shop.texts (text LONGTEXT)",
        "CREATE TABLE shop.beat (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6))",
        "GRANT INSERT, DELETE ON shop.* TO checker@localhost",
    ] {
        root.run(sql).unwrap();
    }
    let filler = fill(&disk);
    let mut writer = watched.running().session().unwrap();
    let writes = std::thread::spawn(move || {
        let _ = writer.run("INSERT INTO shop.texts VALUES (REPEAT('x', 500000))");
    });
    watched.watch(Checks {
        write_table: Some("shop.beat".parse().unwrap()),
        ..checks()
    });
    // What fits into the last block is still written.
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen = watched.causes();
        if seen == [Cause::Stuck] || seen == [Cause::Disk] {
            break;
        }
    }
    assert_ne!(seen, [], "{}", server.name);
    assert!(watched.sessions(&mut root) <= 2);
    std::fs::remove_file(filler).unwrap();
    watched.running.take().unwrap().kill();
    writes.join().unwrap();
}

#[test]
fn full_disks_of_mariadb_are_seen() {
    full_disks_are_seen(&mariadb_10_11());
}

#[test]
fn full_disks_of_mysql_8_are_seen() {
    full_disks_are_seen(&mysql_8_0_15());
}

#[test]
fn failures_of_mariadb_are_told_apart() {
    told_apart(&mariadb_10_11());
}

#[test]
fn failures_of_mysql_8_are_told_apart() {
    told_apart(&mysql_8_0_15());
}

#[test]
fn failures_of_mysql_5_7_are_told_apart() {
    told_apart(&mysql_5_7_22());
}

#[test]
fn what_is_not_there_is_never_taken_for_well() {
    let mut watched = Watched::new(&mariadb_10_11(), &["--max-connections=10"], checks());
    // Nobody lets a new session in, and none was there before.
    let mut taken = Vec::new();
    while let Ok(session) = watched.running().session() {
        taken.push(session);
    }
    assert_eq!(watched.causes(), [Cause::Connections]);
    drop(taken);
    watched.until_causes("connections are free again", &[]);
    for (checks, wanted) in [
        (
            Checks {
                galera: true,
                ..checks()
            },
            Cause::Galera,
        ),
        (
            Checks {
                replicates: true,
                ..checks()
            },
            Cause::Replication,
        ),
        (
            Checks {
                connections_min: 100,
                ..checks()
            },
            Cause::Connections,
        ),
        (
            Checks {
                disk_min: Some(u64::MAX),
                ..checks()
            },
            Cause::Disk,
        ),
        (
            Checks {
                expected: Expected::ReadOnly,
                ..checks()
            },
            Cause::Role,
        ),
    ] {
        watched.watch(checks);
        assert_eq!(watched.causes(), [wanted]);
    }
}

#[test]
fn what_may_not_be_looked_at_is_unknown() {
    let mut watched = Watched::new(&mariadb_10_11(), &[], checks());
    // A check that may not be made is not one that was passed.
    let mut root = watched.running().session().unwrap();
    root.run("REVOKE ALL PRIVILEGES, GRANT OPTION FROM checker@localhost")
        .unwrap();
    watched.watch(Checks {
        lag_max: Some(Duration::from_secs(5)),
        ..checks()
    });
    let found = watched.next();
    assert_eq!(found.reasons[0].cause, Cause::Login, "{found:?}");
    assert_eq!(found.unknown.len(), found.reasons.len());
    // Whatever it is that may not be looked at.
    let table = "shop.orders".parse().unwrap();
    let (of_table, of_query, of_disk, of_write) = (checks(), checks(), checks(), checks());
    for may_not in [
        Checks {
            tables: vec![table],
            ..of_table
        },
        Checks {
            query: Some("SELECT id FROM shop.orders".to_owned()),
            ..of_query
        },
        Checks {
            disk_min: Some(1),
            datadir: Some("/nonexistent".into()),
            ..of_disk
        },
        Checks {
            write_table: Some("shop.orders".parse().unwrap()),
            ..of_write
        },
    ] {
        watched.watch(may_not);
        let found = watched.next();
        assert_eq!(found.reasons.len(), 1, "{found:?}");
        assert_eq!(found.unknown, found.reasons);
    }
}
