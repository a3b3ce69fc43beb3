//! When the disk is full, is an INSERT refused with nothing of it left, while consumers go on and make room?

use evenkeel_cases::queues::QueueSite;
use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_server::connect::Session;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::servers::make_server_dir;
use std::fs;
use std::os::unix::fs::symlink;

/// Bytes of the filesystem that rows are on: three files' worth.
const SMALL: u64 = 48 << 20;

#[test]
fn consuming_makes_room() {
    let small = LoopFs::ext4(SMALL);
    let site = QueueSite::start(&[]);
    let rows = site.rows();
    let site = site.again(|running| {
        running.stop(SERVER_DEADLINE).unwrap();
        fs::remove_dir(&rows).unwrap();
        symlink(small.join("queue"), &rows).unwrap();
        make_server_dir(&small.join("queue"));
    });
    let mut session = site.open("full");
    let columns = "id INT NOT NULL, what LONGTEXT NOT NULL";
    site.create(&mut session, "t", columns).unwrap();
    let mut there = 0;
    let why = loop {
        match insert(&mut session, there + 1) {
            Ok(()) => there += 1,
            Err(why) => break why,
        }
        assert!(there < 1000, "it is never full");
    };
    assert!(why.contains("the disk is full"), "{why}");
    assert!(there > 100, "{there}");
    let count = "SELECT COUNT(*) FROM t";
    assert_eq!(numbers(&mut session, count), [there]);
    // And so it is after kill -9.
    drop(session);
    let site = site.again(|running| running.kill());
    let mut session = site.open("full");
    assert_eq!(numbers(&mut session, count), [there]);
    assert!(insert(&mut session, 0).is_err());
    for id in 1..=there {
        assert_eq!(
            site.wait(&mut session, &["t"], 0.0),
            Ok(Some(1)),
            "row {id}"
        );
        assert_eq!(numbers(&mut session, "SELECT id FROM t"), [id]);
    }
    site.end(&mut session).unwrap();
    evenkeel_testkit::until("there is room", || insert(&mut session, 0).is_ok());
}

fn insert(session: &mut Session, id: i64) -> Result<(), String> {
    let sql = format!("INSERT INTO t VALUES ({id}, REPEAT('x', 200000))");
    session.run(&sql).map_err(|why| why.chain())
}
