//! Can a point be restored from a generation whose backup was still running at that time?

use evenkeel_cases::Site;
use evenkeel_cases::points::{archive, make_table, restore_to, rows_of};
use evenkeel_cases::program::{Ended, Evenkeel};
use evenkeel_server::connect::Session;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// How long the backup goes on after it has read everything.
const GOES_ON_MS: u32 = 5000;

/// Returns the server's second.
fn now(session: &mut Session) -> i64 {
    let text = session.value("SELECT UNIX_TIMESTAMP()").unwrap().unwrap();
    text.parse().unwrap()
}

/// Returns a second as `--to` takes it.
fn typed(session: &mut Session, second: i64) -> String {
    let begin = "TIMESTAMP'1970-01-01 00:00:00'";
    let asks =
        format!("SELECT DATE_FORMAT({begin} + INTERVAL {second} SECOND, '%Y-%m-%dT%H:%i:%sZ')");
    session.value(&asks).unwrap().unwrap()
}

#[test]
fn while_it_ran() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 << 30), 100, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let begun = now(&mut session);
    let mut backup = evenkeel.backup(&site, &[]);
    let goes_on = format!("backup::stored=sleep({GOES_ON_MS})");
    backup.env("FAILPOINTS", goes_on);
    backup.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = backup.spawn().unwrap();
    // A row's number says when it was written: in tenths of seconds since the beginning.
    let insert = format!(
        "INSERT IGNORE INTO points.n SELECT FLOOR((UNIX_TIMESTAMP(NOW(6)) - {begun}) * 10)"
    );
    while child.try_wait().unwrap().is_none() {
        session.run(&insert).unwrap();
        sleep(Duration::from_millis(50));
    }
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.generation(), 1, "{ended:?}");
    let point = now(&mut session) - 2;
    let until = (point - begun) * 10;
    let count = format!("SELECT GROUP_CONCAT(id ORDER BY id) FROM points.n WHERE id < {until}");
    let rows = session.value(&count).unwrap().unwrap();
    let (point, older) = (typed(&mut session, point), typed(&mut session, begun - 1));
    session.run(&insert).unwrap();
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();

    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &point);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows_of(&site, &target), rows, "{ended:?}");
    // What is older than the image cannot be reached from it.
    let target = site.fs.join("refused");
    let ended = restore_to(&evenkeel, &site, &target, &older);
    assert_eq!(ended.code, Some(14), "{ended:?}");
}
