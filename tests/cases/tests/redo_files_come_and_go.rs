//! Is an image whole although the files of the redo log come and go while it is frozen?

use evenkeel_backup::backup::{BackupRequest, SnapshotChoice, hold};
use evenkeel_cases::rounds::{RESTLESS, boot, clone_image};
use evenkeel_cases::{Site, quiet};
use evenkeel_op::Cancel;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{is_full, rounds};
use evenkeel_testkit::servers::mysql_9;
use evenkeel_testkit::wait::until;
use evenkeel_testkit::{LoopFs, TestServer};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// How long the flood's client rests in a sample after each statement.
const REST: Duration = Duration::from_millis(1);

/// The redo log is thirty-two files of 256 KiB: at full speed each lasts for milliseconds.
const SMALL_REDO: &str = "--innodb-redo-log-capacity=8M";

#[derive(Clone, Copy)]
enum Way {
    Pause,
    Btrfs,
    Hook,
}

fn case(server: TestServer, fs: LoopFs, way: Way) {
    let mut options = RESTLESS.to_vec();
    options.push(SMALL_REDO);
    let site = Site::start(server, fs, 2_000, &options);
    let flood = Flood::start(site.running());
    let before = redo_files(&site);
    until("a redo log file goes", || {
        !before.is_subset(&redo_files(&site))
    });
    let top = site.fs.path().display();
    let snapshot = match way {
        Way::Pause => SnapshotChoice::Reflink,
        Way::Btrfs => SnapshotChoice::Btrfs,
        // Some need a while until they come to the snapshot.
        Way::Hook => SnapshotChoice::Hook {
            command: format!(
                "sleep 0.3; btrfs -q subvolume snapshot -r {top} {top}/taken && echo {top}/taken/data"
            ),
            release: Some(format!("btrfs -q subvolume delete {top}/taken")),
        },
    };
    let request = site.request(snapshot);
    let ahead = ahead_of_ledger(site.running());
    for round in 1..=rounds("images beside redo files", 1, 12) {
        let reported = format!("round {round}");
        go_round(&site, &request, ahead, &reported);
    }
    drop(flood);
}

/// One image: it starts, it has what was committed when it was frozen, and no more or less of it
/// than its binary log says. Data without its redo would lack the last transfers, or have pages
/// from a future that its log knows nothing of.
fn go_round(site: &Site, request: &BackupRequest, ahead: i64, reported: &str) {
    let copy = site.fs.join("copy");
    let traffic = match is_full() {
        true => site.rush(2),
        false => site.traffic(2),
    };
    traffic.wait_for(20);
    let before = traffic.marks();
    let image = hold(request, quiet(&Cancel::new()))
        .unwrap_or_else(|e| panic!("{reported}: {}", e.chain()));
    let after = traffic.marks();
    // What reads the live files instead of the frozen ones finds these.
    traffic.wait_for(5);
    drop(traffic);
    clone_image(&image, &copy);
    image.release().expect("a release");
    let running = boot(site, &copy);
    let mut session = running.session().expect("a session");
    let state = site.bank.check(&mut session);
    state
        .and_then(|state| state.check_between(&before, &after))
        .unwrap_or_else(|e| panic!("{reported}: {}", e.chain()));
    assert_eq!(
        ahead_of_ledger(&running),
        ahead,
        "{reported}: as many transfers as in the binary log"
    );
    let log = running.log_tail(usize::MAX);
    assert!(!log.contains("in the future"), "{reported}: {log}");
    drop(session);
    running.kill();
    fs::remove_dir_all(&copy).expect("the copy goes");
}

/// How many transactions the binary log has seen beyond the transfers in the bank's ledger.
fn ahead_of_ledger(running: &Running) -> i64 {
    let mut session = running.session().expect("a session");
    let mut number = |sql: &str| -> i64 {
        let value = session.value(sql).expect("a value").expect("a value");
        value.parse().unwrap_or_else(|_| panic!("{value}"))
    };
    number("SELECT SUBSTRING_INDEX(@@global.gtid_executed, '-', -1)")
        - number("SELECT COUNT(*) FROM bank.ledger")
}

/// The names of the redo log's files that are in use.
fn redo_files(site: &Site) -> BTreeSet<String> {
    let entries = fs::read_dir(site.fs.join("data/#innodb_redo")).expect("redo log files");
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.ends_with("_tmp"))
        .collect()
}

/// A client that writes the same rows again and again. Dropping it stops it.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(running: &Running) -> Self {
        let mut session = running.session().expect("a session");
        for sql in [
            "SET SESSION sql_log_bin = 0",
            "CREATE DATABASE flood",
            "CREATE TABLE flood.rows_ (id INT PRIMARY KEY, t LONGTEXT) ENGINE=InnoDB",
        ] {
            session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for n in 0_u32.. {
                let sql = format!(
                    "REPLACE INTO flood.rows_ VALUES ({}, REPEAT('{n}', 20000))",
                    n % 50
                );
                if stopped.load(Ordering::SeqCst) || session.run(&sql).is_err() {
                    return;
                }
                if !is_full() {
                    std::thread::sleep(REST);
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn mysql_9_pause() {
    case(mysql_9(), LoopFs::xfs(4 * GIB), Way::Pause);
}

#[test]
fn mysql_9_btrfs() {
    case(mysql_9(), LoopFs::btrfs(4 * GIB), Way::Btrfs);
}

#[test]
fn mysql_9_hook() {
    case(mysql_9(), LoopFs::btrfs(4 * GIB), Way::Hook);
}
