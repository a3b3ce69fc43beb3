//! Does the server say what queues hold and do, and is a queue whole whenever ALTER TABLE is refused or cut
//! short?

use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_queue::{Store, io::Disk};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::rounds;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::traffic::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const ROUNDS: usize = 5;

#[test]
fn on_a_stock_server() {
    let site = QueueSite::start(&[]);
    numbers_of_one_table_and_of_all(&site);
    what_is_refused_leaves_it_whole(&site);
    what_is_copied_has_all_rows(&site);
    rows_that_come_meanwhile_are_there_in_their_order(&site);
    cut_short(site);
}

/// It would copy a table while others insert into it, and it keeps its flags where the headers of other versions do not.
#[test]
fn on_mariadb_11_8() {
    let site = QueueSite::start_on(Host::MariaDb11, &[]);
    what_is_refused_leaves_it_whole(&site);
    what_is_copied_has_all_rows(&site);
    rows_that_come_meanwhile_are_there_in_their_order(&site);
    cut_short(site);
}

/// Its dictionary has the last word on names, and its ALTER TABLE goes other ways.
#[test]
fn on_mysql_9() {
    let site = QueueSite::start_on(Host::MySql9, &[]);
    numbers_of_one_table_and_of_all(&site);
    what_is_refused_leaves_it_whole(&site);
    what_is_copied_has_all_rows(&site);
    rows_that_come_meanwhile_are_there_in_their_order(&site);
    a_name_is_not_changed_in_place(&site);
    cut_short(another_table_has_its_number(site));
}

/// All numbers whose names start so, by what follows.
fn status(session: &mut Session) -> BTreeMap<String, f64> {
    let rows = session.rows("SHOW GLOBAL STATUS LIKE 'queue\\_%'").unwrap();
    let pair = |name: &str, value: &str| {
        let name = name.to_lowercase().replacen("queue_", "", 1);
        (name, value.parse().unwrap())
    };
    rows.iter()
        .map(|row| pair(row.at(0).unwrap(), row.at(1).unwrap()))
        .collect()
}

fn numbers_of_one_table_and_of_all(site: &QueueSite) {
    let mut session = site.open("told");
    let mut other = site.open("told");
    let columns = "id INT NOT NULL, what VARCHAR(1000)";
    site.create(&mut session, "t", columns).unwrap();
    let before = status(&mut session);
    let rows: Vec<String> = (1..=10)
        .map(|id| format!("({id}, REPEAT('x', 900))"))
        .collect();
    session
        .run(&format!("INSERT INTO t VALUES {}", rows.join(", ")))
        .unwrap();
    for _ in 0..3 {
        assert_eq!(site.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
    }
    assert_eq!(site.abort(&mut session), Ok(1));
    assert_eq!(site.wait_n(&mut other, "t", 4, 0.0), Ok(Some(1)));
    drop(other);
    evenkeel_testkit::until("its rows are back", || {
        site.stat(&mut session, "t", "restored_by_close") == 4
    });
    assert_eq!(site.wait(&mut session, &["t:id > 90"], 0.0), Ok(Some(0)));
    thread::scope(|scope| {
        let mut waits = site.open("told");
        let waiting = scope.spawn(move || site.wait(&mut waits, &["t:id = 11"], 60.0));
        (site as &dyn Queues).until_waiting(&mut session, "t", 1);
        session.run("INSERT INTO t VALUES (11, '')").unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(Some(1)));
    });
    site.end(&mut session).unwrap();
    evenkeel_testkit::until("the other one's row is back", || {
        site.stat(&mut session, "t", "restored_by_close") == 5
    });
    let counted = [
        ("rows_written", 11),
        ("rows_removed", 2),
        ("wait_immediate", 4),
        ("wait_delayed", 1),
        ("wait_timeout", 1),
        ("restored_by_abort", 1),
        ("rows", 9),
    ];
    for (name, number) in counted {
        assert_eq!(site.stat(&mut session, "t", name), number, "{name}");
    }
    let bytes = site.stat(&mut session, "t", "bytes");
    let removed = site.stat(&mut session, "t", "bytes_removed");
    assert!((9000..30_000).contains(&bytes), "{bytes}");
    assert!((1000..bytes / 2).contains(&removed), "{removed}");
    let now = status(&mut session);
    for (name, number) in counted {
        let grown = now[name] - before[name];
        assert!((grown - number as f64).abs() < 0.1, "{name}: {grown}");
    }
    assert!(now["syncs"] > before["syncs"] && now["statements_per_write"] >= 1.0);
    reported_of_the_engine(site, &mut session, now["rows_written"]);
    shown_with_tables(site, &mut session, bytes, removed);
}

fn reported_of_the_engine(site: &QueueSite, session: &mut Session, written: f64) {
    let engine = session.one("SHOW ENGINE QUEUE STATUS").unwrap().unwrap();
    let text = engine.at(2).unwrap();
    assert!(text.contains("TABLE told.t\n"), "{text}");
    assert!(
        text.contains("rows 9, of them owned 0; waiters 0\n"),
        "{text}"
    );
    assert!(text.contains("ALL TABLES\n"), "{text}");
    let table = match site.host {
        Host::MySql9 => "performance_schema.global_status",
        _ => "information_schema.GLOBAL_STATUS",
    };
    let sql =
        format!("SELECT VARIABLE_VALUE FROM {table} WHERE VARIABLE_NAME = 'queue_rows_written'");
    let number: f64 = session.value(&sql).unwrap().unwrap().parse().unwrap();
    assert!((number - written).abs() < 0.1, "{number}, {written}");
}

fn shown_with_tables(site: &QueueSite, session: &mut Session, bytes: u64, removed: u64) {
    if site.host == Host::MySql9 {
        // It would say what it saw a day ago.
        session
            .run("SET information_schema_stats_expiry = 0")
            .unwrap();
    }
    let about = "SELECT table_rows, data_length, data_free FROM information_schema.tables WHERE table_name = 't' AND table_schema = 'told'";
    let shown = session.one(about).unwrap().unwrap();
    assert_eq!(shown.at(0), Some("9"));
    assert_eq!(shown.at(1), Some(&*bytes.to_string()));
    assert_eq!(shown.at(2), Some(&*removed.to_string()));
    // OPTIMIZE is compaction.
    session.rows("OPTIMIZE TABLE t").unwrap();
    assert!(site.stat(session, "t", "bytes") < bytes);
    session.run("DELETE FROM t").unwrap();
    let shown = session.one(about).unwrap().unwrap();
    assert_eq!(shown.at(0), Some("0"), "and not what the optimizer is told");
    session.run("DROP DATABASE told").unwrap();
}

fn what_is_refused_leaves_it_whole(site: &QueueSite) {
    let mut session = site.open("refused");
    session.run("SET sql_mode = 'STRICT_ALL_TABLES'").unwrap();
    site.create(&mut session, "t", "id INT").unwrap();
    session
        .run("INSERT INTO t VALUES (3), (1), (NULL), (2)")
        .unwrap();
    for (change, because) in [
        ("ENGINE=InnoDB", "to another engine"),
        ("ORDER BY id", "keep their order"),
        ("ADD PRIMARY KEY (id)", "keys"),
        ("MODIFY id INT NOT NULL", "truncated"),
        ("ADD CHECK (id < 3)", "constraint"),
    ] {
        let reported = site.alter(&mut session, "t", change);
        let why = reported.expect_err(change);
        assert!(why.to_lowercase().contains(because), "{change}: {why}");
        let all = session.rows("SELECT IFNULL(id, 0) FROM t").unwrap();
        let all: Vec<&str> = all.iter().map(|row| row.at(0).unwrap()).collect();
        assert_eq!(all, ["3", "1", "0", "2"], "{change}");
    }
    // What touches no row is done in place: it is the same table.
    for change in ["COMMENT 'for mails'", "ALTER id SET DEFAULT 7"] {
        let change = format!("{change}, ALGORITHM=INPLACE");
        site.alter(&mut session, "t", &change).unwrap();
    }
    session.run("INSERT INTO t () VALUES ()").unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM t WHERE id > 6"), [7]);
    // Other tables become queues.
    session
        .run("CREATE TABLE i (id INT) ENGINE=InnoDB")
        .unwrap();
    session.run("INSERT INTO i VALUES (5), (6)").unwrap();
    site.alter(&mut session, "i", "ENGINE=QUEUE").unwrap();
    assert_eq!(site.wait(&mut session, &["i"], 0.0), Ok(Some(1)));
    assert_eq!(numbers(&mut session, "SELECT id FROM i"), [5]);
    site.end(&mut session).unwrap();
}

fn what_is_copied_has_all_rows(site: &QueueSite) {
    let (mut session, mut owner) = (site.open("copied"), site.open("copied"));
    let columns = "id INT NOT NULL, what VARCHAR(100), kind ENUM('x', 'y')";
    site.create(&mut session, "t", columns).unwrap();
    session
        .run("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'x')")
        .unwrap();
    session
        .run("CREATE VIEW seen AS SELECT id FROM t WHERE id > 1")
        .unwrap();
    for change in [
        "ADD COLUMN more INT NOT NULL DEFAULT 4",
        "DROP COLUMN what",
        "MODIFY kind ENUM('y', 'x')",
        "MODIFY id BIGINT NOT NULL",
        "ADD COLUMN first CHAR(3) FIRST",
        "RENAME COLUMN more TO most",
    ] {
        site.alter(&mut session, "t", change).unwrap();
        let there = numbers(&mut session, "SELECT id FROM t");
        assert_eq!(there, [1, 2, 3], "{change}");
        let there = numbers(&mut session, "SELECT id FROM seen");
        assert_eq!(there, [2, 3], "{change}");
    }
    assert_eq!(numbers(&mut session, "SELECT most FROM t"), [4, 4, 4]);
    let kinds = numbers(&mut session, "SELECT kind = 'x' FROM t");
    assert_eq!(kinds, [1, 0, 1]);
    assert_eq!(site.wait(&mut owner, &["t:most = 4"], 0.0), Ok(Some(1)));
    site.abort(&mut owner).unwrap();
    // Who owns a row owns it in the new table too, and ends it there.
    assert_eq!(site.wait(&mut owner, &["t"], 0.0), Ok(Some(1)));
    site.alter(&mut session, "t", "ADD COLUMN late INT")
        .unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [2, 3]);
    assert_eq!(numbers(&mut owner, "SELECT id FROM t"), [1]);
    site.end(&mut owner).unwrap();
    // Its name alone.
    site.alter(&mut session, "t", "RENAME TO u, ADD COLUMN last INT")
        .unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM u"), [2, 3]);
    site.alter(&mut session, "u", "RENAME TO t").unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [2, 3]);
    assert!(session.rows("SELECT id FROM u").is_err());
    session
        .run("CREATE TABLE m (id INT) ENGINE=MyISAM")
        .unwrap();
    session.run("INSERT INTO m VALUES (5), (6)").unwrap();
    site.alter(&mut session, "m", "ENGINE=QUEUE").unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM m"), [5, 6]);
    session.run("DROP DATABASE copied").unwrap();
}

fn rows_that_come_meanwhile_are_there_in_their_order(site: &QueueSite) {
    let mut session = site.open("meanwhile");
    site.create(&mut session, "t", "id INT NOT NULL").unwrap();
    let is_over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let mut other = site.open("meanwhile");
        let is_over = &is_over;
        let inserts = scope.spawn(move || {
            let mut last = 0;
            while !is_over.load(Ordering::Relaxed) {
                last += 1;
                let row = format!("INSERT INTO t VALUES ({last})");
                other.run(&row).unwrap();
            }
            last
        });
        let changes = ["MODIFY id BIGINT NOT NULL", "MODIFY id INT NOT NULL"];
        let done = changes
            .iter()
            .cycle()
            .take(rounds("tables altered meanwhile", 12, 40) as usize)
            .try_for_each(|change| site.alter(&mut session, "t", change));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap();
        inserts.join().unwrap()
    });
    let all: Vec<i64> = (1..=last).collect();
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), all);
    session.run("DROP DATABASE meanwhile").unwrap();
}

/// Kills the server when it is dropped, so that whoever talks to it ends, also when a test fails.
struct KilledAtEnd(Pid);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// The server is killed again and again while a queue is altered and consumed.
fn cut_short(mut site: QueueSite) {
    /// More than are consumed in a round.
    const ROWS: i64 = 1500;
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut session = site.open("cut");
    site.create(&mut session, "t", "id INT NOT NULL, what VARCHAR(500)")
        .unwrap();
    let ended = Mutex::new(BTreeSet::new());
    let doubtful = Mutex::new(BTreeSet::new());
    let (mut altered, mut last) = (0, 0);
    for round in 0..ROUNDS {
        let rows: Vec<String> = (last + 1..=last + ROWS)
            .map(|id| format!("({id}, REPEAT('x', 400))"))
            .collect();
        last += ROWS;
        let mut session = site.open("cut");
        session
            .run(&format!("INSERT INTO t VALUES {}", rows.join(", ")))
            .unwrap();
        let before = ended.lock().unwrap().len();
        let pause = Duration::from_millis(u64::from(random.below(250)));
        thread::scope(|scope| {
            let server = KilledAtEnd(Pid::from_raw(site.running.pid()).unwrap());
            let (one, other) = (site.open("cut"), site.open("cut"));
            let alters = scope.spawn(|| alter(&site, one));
            scope.spawn(|| consume(&site, other, (&ended, &doubtful)));
            evenkeel_testkit::until("it is consumed", || ended.lock().unwrap().len() > before);
            thread::sleep(pause);
            drop(server);
            altered += alters.join().unwrap();
        });
        site = site.again(|running| running.kill());
        let mut session = site.open("cut");
        let there = numbers(&mut session, "SELECT id FROM t");
        let unique: BTreeSet<i64> = there.iter().copied().collect();
        assert_eq!(
            unique.len(),
            there.len(),
            "round {round}: a row is there twice"
        );
        let ended = ended.lock().unwrap();
        let back: Vec<_> = unique.intersection(&ended).collect();
        assert!(
            back.is_empty(),
            "round {round}: ended, and there again: {back:?}"
        );
        let doubtful = doubtful.lock().unwrap();
        let lost: Vec<i64> = (1..=last)
            .filter(|id| !unique.contains(id) && !ended.contains(id) && !doubtful.contains(id))
            .collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        assert_eq!(left_over(&site), Vec::<String>::new(), "round {round}");
        println!(
            "round {round}: {} ended, altered {altered} times",
            ended.len()
        );
    }
    assert!(altered > 0);
}

/// A table that is altered in place gets another number, by which nobody finds it after a crash that takes that back.
fn a_name_is_not_changed_in_place(site: &QueueSite) {
    let mut session = site.open("places");
    site.create(&mut session, "t", "id INT NOT NULL").unwrap();
    session.run("INSERT INTO t VALUES (1)").unwrap();
    let change = "RENAME TO u, ALTER id SET DEFAULT 7";
    let in_place = format!("{change}, ALGORITHM=INPLACE");
    let why = site.alter(&mut session, "t", &in_place).unwrap_err();
    assert!(why.contains("ALGORITHM=COPY"), "{why}");
    site.alter(&mut session, "t", change).unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM u"), [1]);
    session.run("DROP DATABASE places").unwrap();
}

/// A crash leaves a note with a number that the dictionary never had, and gives again.
fn another_table_has_its_number(site: QueueSite) -> QueueSite {
    /// Of a table that the server makes when it starts.
    const TAKEN: u64 = 100;
    let mut session = site.open("numbers");
    site.create(&mut session, "t", "id INT NOT NULL").unwrap();
    session.run("INSERT INTO t VALUES (1)").unwrap();
    let datadir = site.launch.datadir.clone();
    let site = site.again(|running| {
        running.stop(SERVER_DEADLINE).unwrap();
        let store = Store::new(Arc::new(Disk), &datadir.join("#sqlqueue")).unwrap();
        let layout = format!("1 make:{TAKEN}\0i 4 0 0 id\0");
        let anchor = datadir.join("numbers/u.QUE");
        store.create(&anchor, layout.as_bytes()).unwrap();
        // It is the server's, as all of its own.
        let owner = fs::metadata(&datadir).unwrap();
        let rows = store.anchor(&anchor).unwrap().id;
        let rows = datadir.join(format!("#sqlqueue/{rows:032x}"));
        for path in fs::read_dir(&rows)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .chain([anchor, rows.clone()])
        {
            std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    });
    let mut session = site.open("numbers");
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [1]);
    let mut anchors = Vec::new();
    for dir in fs::read_dir(&datadir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let names = fs::read_dir(&dir).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().path());
        anchors.extend(names.filter(|name| name.extension().is_some_and(|end| end == "QUE")));
    }
    anchors.retain(|anchor| !anchor.parent().unwrap().ends_with("refused"));
    assert_eq!(anchors, [datadir.join("numbers/t.QUE")]);
    session.run("DROP DATABASE numbers").unwrap();
    site
}

/// What a cut ALTER TABLE has left: files with names for the moment, and rows that no table has.
fn left_over(site: &QueueSite) -> Vec<String> {
    let names = |dir: &str| -> Vec<String> {
        let entries = fs::read_dir(site.launch.datadir.join(dir)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let mut left = names("cut");
    left.retain(|name| name.starts_with("#sql"));
    let anchors: usize = ["told", "refused", "cut"]
        .into_iter()
        .filter(|dir| site.launch.datadir.join(dir).exists())
        .map(|dir| {
            let names = names(dir);
            names.iter().filter(|name| name.ends_with(".QUE")).count()
        })
        .sum();
    let rows = names("#sqlqueue");
    if rows.len() != anchors {
        left.push(format!("{} rows' directories of {anchors}", rows.len()));
    }
    left
}

/// Alters until the server is gone, and says how often it was done.
fn alter(site: &QueueSite, mut session: Session) -> u32 {
    let mut done = 0;
    loop {
        for change in [
            "MODIFY id BIGINT NOT NULL",
            "MODIFY id INT NOT NULL, MODIFY what VARCHAR(500)",
        ] {
            match site.alter(&mut session, "t", change) {
                Ok(()) => done += 1,
                Err(_) => return done,
            }
        }
    }
}

fn consume(
    site: &QueueSite,
    mut session: Session,
    (ended, doubtful): (&Mutex<BTreeSet<i64>>, &Mutex<BTreeSet<i64>>),
) {
    while site.wait(&mut session, &["t"], 60.0) == Ok(Some(1)) {
        let Ok(Some(id)) = session.value("SELECT id FROM t") else {
            return;
        };
        let id: i64 = id.parse().unwrap();
        assert!(!ended.lock().unwrap().contains(&id), "{id} comes twice");
        if site.end(&mut session).is_err() {
            doubtful.lock().unwrap().insert(id);
            return;
        }
        ended.lock().unwrap().insert(id);
    }
}
