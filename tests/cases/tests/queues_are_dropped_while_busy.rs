//! Is a queue that others insert into, wait for and compact dropped as a whole, each time, with all of its files?

use evenkeel_cases::queues::verbs::Queues;
use evenkeel_cases::queues::{Host, QueueSite};
use std::fs;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CONSUMERS: usize = 6;
const COMPACTORS: usize = 3;
const CYCLES: usize = 12;

fn case(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let is_over = AtomicBool::new(false);
    let continues = || !is_over.load(Ordering::SeqCst);
    thread::scope(|scope| {
        for _ in 0..CONSUMERS {
            scope.spawn(|| {
                let mut session = site.session();
                while continues() {
                    // A row, none, or no such queue; and never an error.
                    site.wait(&mut session, &["t"], 0.1).unwrap();
                }
            });
        }
        for _ in 0..COMPACTORS {
            scope.spawn(|| {
                let mut session = site.session();
                while continues() {
                    // Of a queue that goes meanwhile it says so.
                    let _ = site.compact(&mut session, "t");
                }
            });
        }
        let dropped = thread::scope(|inner| inner.spawn(|| cycles(&site)).join());
        is_over.store(true, Ordering::SeqCst);
        if let Err(why) = dropped {
            resume_unwind(why);
        }
    });
    let left: Vec<_> = fs::read_dir(site.rows())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn cycles(site: &QueueSite) {
    let mut session = site.session();
    for cycle in 0..CYCLES {
        let columns = "id INT NOT NULL, what MEDIUMTEXT";
        site.create(&mut session, "t", columns)
            .unwrap_or_else(|why| panic!("cycle {cycle}: {why}"));
        let rows = vec!["(1, REPEAT('x', 20000))"; 100].join(",");
        for _ in 0..9 {
            let done = session.run(&format!("INSERT INTO t VALUES {rows}"));
            done.unwrap_or_else(|why| panic!("cycle {cycle}: {}", why.chain()));
        }
        site.discard(&mut session, "t")
            .unwrap_or_else(|why| panic!("cycle {cycle}: {why}"));
    }
}

#[test]
fn in_mariadb() {
    case(Host::MariaDb10);
}

#[test]
fn in_mysql() {
    case(Host::MySql9);
}
