//! After a crash in the middle of writing a page, does `check` say that the server will repair it, and
//! does the server; and is the same page damage where there is no copy of it?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{
    PAGE, VICTIM, check_stopped, doublewrite_files, make_copied, page_with_a_copy, stop, victim,
};
use evenkeel_cases::program::{Ended, Evenkeel};
use evenkeel_testkit::servers::{mariadb_11_8, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer, servers};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Bytes of the page that got to the disk.
const WRITTEN: u64 = 1024;

/// Gives a page the rows back that it had before, but for its first sectors: what a power cut leaves.
fn tear(site: &Site, page: u32) {
    let at = u64::from(page) * PAGE + WRITTEN;
    let file = File::options().read(true).write(true).open(victim(site));
    let file = file.expect("the table's file");
    let mut rest = vec![0; (PAGE - WRITTEN) as usize];
    file.read_exact_at(&mut rest, at).expect("the rest");
    let was: Vec<u8> = rest
        .iter()
        .map(|byte| if *byte == b'b' { b'a' } else { *byte })
        .collect();
    assert!(rest != was, "no rows are there");
    file.write_all_at(&was, at).expect("write");
    file.sync_all().expect("sync");
}

fn one(ended: &Ended, reported: &str) -> Value {
    let findings = ended.answer["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{reported}: {findings:#?}");
    findings[0].clone()
}

fn case(server: TestServer) {
    let mut site = Site::start(server, LoopFs::xfs(4 << 30), 100, &[]);
    let reported = site.server.name;
    let mut session = site.running().session().expect("a session");
    make_copied(&mut session);
    let page = page_with_a_copy(&site.fs.join("data"), &victim(&site));
    site.kill();
    drop(session);
    tear(&site, page);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));

    let torn = check_stopped(&evenkeel, &site, &[]);
    assert_eq!(torn.code, Some(0), "{reported}: {torn:?}");
    let answer = &torn.answer;
    assert_eq!(
        (&answer["pages_torn"], &answer["pages_damaged"]),
        (&1.into(), &0.into()),
        "{reported}: {answer:#}"
    );
    let finding = one(&torn, reported);
    assert_eq!(finding["severity"], "torn", "{reported}: {finding:#}");
    assert_eq!(finding["file"], VICTIM, "{reported}");
    assert_eq!(finding["page"], page, "{reported}");
    assert_eq!(finding["table"], "bank.victim", "{reported}");

    // Without the copies it is damage.
    let wholes: Vec<_> = [site.fs.join("data/ibdata1")]
        .into_iter()
        .chain(doublewrite_files(&site.fs.join("data")))
        .map(|path| (fs::read(&path).expect("a file"), path))
        .collect();
    for (whole, path) in &wholes {
        let mut bare = whole.clone();
        let copies = match path.ends_with("ibdata1") {
            true => 64 * PAGE as usize..192 * PAGE as usize,
            false => 0..bare.len(),
        };
        bare[copies].fill(0);
        fs::write(path, bare).expect("write");
    }
    let damaged = check_stopped(&evenkeel, &site, &[]);
    assert_eq!(damaged.code, Some(4), "{reported}: {damaged:?}");
    assert_eq!(one(&damaged, reported)["severity"], "damage", "{reported}");
    for (whole, path) in &wholes {
        fs::write(path, whole).expect("write");
    }

    // The server does what was said.
    site.running = Some(site.server.run(&site.launch));
    let mut session = site.running().session().expect("a session");
    let count = "SELECT COUNT(*) FROM bank.victim WHERE name = REPEAT('b', 150)";
    let rows = session.value(count).expect("rows");
    assert_eq!(rows.as_deref(), Some("256"), "{reported}");
    drop(session);
    stop(&mut site);
    let repaired = check_stopped(&evenkeel, &site, &[]);
    assert_eq!(repaired.code, Some(0), "{reported}: {repaired:?}");
    assert_eq!(
        repaired.answer["findings"],
        Value::Array(vec![]),
        "{reported}"
    );
}

#[test]
fn of_every_server() {
    for server in servers() {
        case(server);
    }
}

/// MySQL's copies have files of their own.
#[test]
fn of_newer_servers() {
    for server in [mariadb_11_8(), mysql_9()] {
        case(server);
    }
}
