//! Does a backup of a server whose queues are at work hold each row that was there, and none that was
//! consumed before?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::queues::{Host, plugin};
use evenkeel_cases::{Site, back_up};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11};
use evenkeel_testkit::{LoopFs, Scratch, until};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

/// The last that were acknowledged, and whether to go on.
#[derive(Default)]
struct Work {
    inserted: AtomicI64,
    consumed: AtomicI64,
    is_over: AtomicBool,
}

impl Work {
    fn continues(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    /// Rows of a size that fills files while the backup runs.
    fn produce(&self, mut session: Session) {
        for id in 1.. {
            if !self.continues() {
                return;
            }
            let sql = format!("INSERT INTO shop.jobs VALUES ({id}, REPEAT('x', 50000))");
            session.run(&sql).unwrap();
            self.inserted.store(id, Ordering::SeqCst);
        }
    }

    fn consume(&self, mut session: Session) {
        while self.continues() {
            let seen = |of: &AtomicI64| of.load(Ordering::SeqCst);
            // Some are left at every moment.
            if seen(&self.inserted) - seen(&self.consumed) < 100 {
                thread::yield_now();
                continue;
            }
            session.run("SELECT queue_wait('shop.jobs', 1)").unwrap();
            let id = session.value("SELECT id FROM shop.jobs").unwrap();
            session.run("SELECT queue_end()").unwrap();
            if let Some(id) = id {
                self.consumed.store(id.parse().unwrap(), Ordering::SeqCst);
            }
        }
    }
}

/// A server with an empty queue, and where its plugin is.
fn site(fs: LoopFs) -> (Site, Scratch) {
    let plugins = Scratch::new();
    fs::copy(
        plugin(Host::MariaDb10, &mariadb_10_11()),
        plugins.join("ha_queue.so"),
    )
    .unwrap();
    let plugin_dir = format!("--plugin-dir={}", plugins.path().display());
    let more = [&*plugin_dir, "--plugin-maturity=experimental"];
    let site = Site::start(mariadb_10_11(), fs, 100, &more);
    let mut session = site.running().session().unwrap();
    for sql in [
        "INSTALL SONAME 'ha_queue'",
        "CREATE FUNCTION queue_wait RETURNS INTEGER SONAME 'ha_queue.so'",
        "CREATE FUNCTION queue_end RETURNS INTEGER SONAME 'ha_queue.so'",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.jobs (id INT NOT NULL, what MEDIUMTEXT) ENGINE=QUEUE",
    ] {
        session.run(sql).unwrap();
    }
    (site, plugins)
}

fn case(fs: LoopFs, snapshot: SnapshotChoice) {
    let (site, _plugins) = site(fs);
    let work = Work::default();
    let (before, after) = thread::scope(|scope| {
        let (one, other) = (site.running().session(), site.running().session());
        scope.spawn(|| work.produce(one.unwrap()));
        scope.spawn(|| work.consume(other.unwrap()));
        let seen = || {
            (
                work.inserted.load(Ordering::SeqCst),
                work.consumed.load(Ordering::SeqCst),
            )
        };
        until("both are at work", || seen().0 > 400 && seen().1 > 50);
        let before = seen();
        let made = back_up(&site.request(snapshot.clone()));
        let after = seen();
        work.is_over.store(true, Ordering::SeqCst);
        let made = made.unwrap_or_else(|why| panic!("{}", why.chain()));
        // Files that are taken one after the other would seldom be seen not to belong together.
        assert_ne!(made.report.snapshot, "reflink/splice");
        (before, after)
    });
    site.restore(None, "restored").unwrap();
    let target = site.fs.join("restored");
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let checked = run(program.command(&["queue", "check", target.to_str().unwrap()]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    is_proved(&site, &program);
    let mut launch = site.launch.clone();
    launch.datadir = target;
    let running = site.server.run(&launch);
    let mut session = running.session().unwrap();
    let rows = session.rows("SELECT id FROM shop.jobs").unwrap();
    let ids: Vec<i64> = rows
        .iter()
        .map(|row| row.at(0).unwrap().parse().unwrap())
        .collect();
    let (first, last) = (ids[0], *ids.last().unwrap());
    assert_eq!(
        ids,
        (first..=last).collect::<Vec<i64>>(),
        "each once, in order"
    );
    // One more each: acknowledged just after the look.
    assert!(
        before.1 < first && first <= after.1 + 2,
        "{before:?}, {first}, {after:?}"
    );
    assert!(
        before.0 <= last && last <= after.0 + 1,
        "{before:?}, {last}, {after:?}"
    );
    running.stop(SERVER_DEADLINE).unwrap();
    let refused = back_up(&site.request(SnapshotChoice::Engine))
        .unwrap_err()
        .chain();
    assert!(refused.contains("queues"), "{refused}");
}

/// The server that proves a generation loads no library: the files of queues are checked without it.
fn is_proved(site: &Site, program: &Evenkeel) {
    let mut verify = program.command(&["verify", "--boot", "--server-binary"]);
    verify.arg(&site.server.binary.path).arg(site.repository());
    let proved = run(verify);
    assert_eq!(proved.code, Some(0), "{proved:?}");
    assert_eq!(proved.answer["boot"]["proven"], true, "{proved:?}");
}

#[test]
fn cloned_file_by_file() {
    case(LoopFs::xfs(2 << 30), SnapshotChoice::Reflink);
}

#[test]
fn in_one_snapshot() {
    case(LoopFs::btrfs(2 << 30), SnapshotChoice::Btrfs);
}
