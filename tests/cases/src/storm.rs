//! DDL without end: tables are made, grown, shrunk, renamed, rebuilt and dropped, logs are rotated
//! and purged, while something else goes on.

use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::BankTraffic;
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::wait::until_within;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The schema that a storm rages in.
pub const SCHEMA: &str = "storm";

/// How long a server may take to get on. MySQL 5.7 hangs while it truncates an undo log, and
/// longer the slower the disk is.
const PATIENCE: Duration = Duration::from_secs(240);

/// Waits until a bank's clients made some more transfers, however much the storm is in their way.
#[track_caller]
pub fn wait_through(traffic: &BankTraffic, transfers: u64) {
    let goal = traffic.acknowledged() + transfers;
    until_within(PATIENCE, "the bank's clients got further", || {
        traffic.acknowledged() >= goal
    });
}

/// How long a storm rests after a statement on MySQL 5.7: there nothing stops it while files are listed and
/// cloned, and a backup gives up when tables come and go all the time.
const BREATH: Duration = Duration::from_millis(50);

/// How many tables there are at most.
const TABLES: u32 = 8;

/// A client that changes tables at random. Dropping it stops it.
pub struct Storm {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Storm {
    /// Starts a storm; its seed is printed.
    #[must_use]
    pub fn start(running: &Running, seed: u64) -> Self {
        println!("storm: seed {seed}");
        let mut session = running.session().expect("a session");
        session
            .run(&format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"))
            .expect("a schema");
        let version = session.value("SELECT VERSION()").expect("a version");
        let upwards = version.is_some_and(|text| text.starts_with("5.7"));
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let thread = std::thread::spawn(move || {
            let mut random = Random::new(seed);
            while !stopped.load(Ordering::SeqCst) {
                match strike(&mut session, &mut random, upwards) {
                    Err(error) if error.kind() == ErrorKind::Unreachable => return,
                    // Tables that are there already, or not yet.
                    _ => counted.fetch_add(1, Ordering::SeqCst),
                };
                if upwards {
                    std::thread::sleep(BREATH);
                }
            }
        });
        Self {
            stop,
            done,
            thread: Some(thread),
        }
    }

    /// Returns how many statements it has made.
    #[must_use]
    pub fn strikes(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Waits until it has made some more statements.
    #[track_caller]
    pub fn wait_for(&self, strikes: u64) {
        let goal = self.strikes() + strikes;
        until_within(PATIENCE, "the storm went on", || self.strikes() >= goal);
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes one random statement. `upwards`: no table ever gets a name back that it has had. After a crash
/// MySQL 5.7 follows each rename since its checkpoint, and does not start where one leads to a name that
/// another table has by now.
fn strike(session: &mut Session, random: &mut Random, upwards: bool) -> Result<()> {
    let (from, to) = (random.below(TABLES), random.below(TABLES));
    let table = format!("{SCHEMA}.t{from}");
    let other = format!("{SCHEMA}.t{to}");
    let number = random.below(1_000_000);
    let sql = match random.below(12) {
        0 | 1 => format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, \
             t VARCHAR(500), KEY (n)) ENGINE=InnoDB"
        ),
        2 | 3 => format!("INSERT INTO {table} (n, t) VALUES ({number}, REPEAT('x', 400))"),
        4 => format!("INSERT INTO {table} (n, t) SELECT n + {number}, t FROM {table} LIMIT 2000"),
        5 => format!("TRUNCATE TABLE {table}"),
        6 => format!("DROP TABLE {table}"),
        7 if upwards && from > to => format!("RENAME TABLE {other} TO {table}"),
        7 => format!("RENAME TABLE {table} TO {other}"),
        8 => format!("ALTER TABLE {table} ENGINE=InnoDB"),
        9 => format!("ALTER TABLE {table} ADD COLUMN c{number} INT"),
        10 => format!("OPTIMIZE TABLE {table}"),
        _ => return rotate(session),
    };
    session.run(&sql)
}

/// Starts a new binary log, and purges all but the newest two.
fn rotate(session: &mut Session) -> Result<()> {
    session.run("FLUSH BINARY LOGS")?;
    let logs = session.rows("SHOW BINARY LOGS")?;
    let kept = logs
        .len()
        .checked_sub(2)
        .and_then(|at| logs[at].at(0).map(str::to_owned));
    match kept {
        Some(name) => session.run(&format!("PURGE BINARY LOGS TO '{name}'")),
        None => Ok(()),
    }
}
