//! Does `check` find a damaged page and say what it is of, on a running server, a stopped one and in a
//! generation, and does the statement that it gives repair a secondary index?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{
    PAGE, VICTIM, assert_table_is_whole, check_live, check_stopped, damage, heal, leaf,
    make_victim, stop, victim,
};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_11_8, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer, servers};
use serde_json::Value;

const GIB: u64 = 1 << 30;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: TestServer) -> Site {
    // A page that has a good copy in the doublewrite buffer is another matter; so is one that the
    // server reads when it starts.
    let calm = [
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-load-at-startup=OFF",
    ];
    let site = Site::start(server, LoopFs::xfs(4 * GIB), 100, &calm);
    make_victim(&site);
    site
}

/// Returns the one finding, which is about this page.
#[track_caller]
fn finding(ended: &Ended, page: u64, reported: &str) -> Value {
    assert_eq!(ended.code, Some(4), "{reported}: {ended:?}");
    let findings = ended.answer["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{reported}: {findings:#?}");
    let found = &findings[0];
    assert!(
        found["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("bank/victim.ibd"))
    );
    assert_eq!(found["page"], page, "{reported}");
    assert_eq!(found["what"], "checksum", "{reported}");
    assert_ne!(found["expected"], found["found"], "{reported}");
    assert_eq!(found["table"], "bank.victim", "{reported}");
    assert_eq!(ended.answer["pages_damaged"], 1, "{reported}");
    found.clone()
}

fn secondary(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    let page = leaf(&victim(&site), true);
    damage(&victim(&site), page);
    let live = finding(&run(check_live(&evenkeel(), &site)), page, reported);
    assert_eq!(
        (&live["kind"], &live["index"]),
        (&"secondary".into(), &"by_name".into()),
        "{reported}"
    );
    stop(&mut site);
    let found = finding(&check_stopped(&evenkeel(), &site, &[]), page, reported);
    assert_eq!(found["file"], VICTIM, "{reported}");
    assert_eq!(
        (&found["kind"], &found["index"]),
        (&"secondary".into(), &"by_name".into()),
        "{reported}"
    );
    let sql = found["rebuild_sql"].as_str().expect("what repairs it");
    site.running = Some(site.server.run(&site.launch));
    let mut session = site.running().session().expect("a session");
    session
        .run(sql)
        .unwrap_or_else(|e| panic!("{reported}: {}", e.chain()));
    drop(session);
    stop(&mut site);
    let repaired = check_stopped(&evenkeel(), &site, &[]);
    assert_eq!(repaired.code, Some(0), "{reported}: {repaired:?}");
    assert_table_is_whole(&mut site);
}

fn clustered(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    for generation in 1..=2 {
        assert_eq!(run(evenkeel().backup(&site, &[])).generation(), generation);
    }
    let page = leaf(&victim(&site), false);
    damage(&victim(&site), page);
    let kept = run(evenkeel().backup(&site, &["--keep-corrupt"]));
    assert_eq!(kept.code, Some(3), "{reported}: {kept:?}");
    let mut command = evenkeel().command(&["check", "--repository"]);
    command.arg(site.repository());
    let stored = finding(&run(command), page, reported);
    assert_eq!(
        (&stored["kind"], &stored["rebuild_sql"]),
        (&"clustered".into(), &Value::Null),
        "{reported}"
    );
    stop(&mut site);
    let found = finding(&check_stopped(&evenkeel(), &site, &[]), page, reported);
    assert_eq!(
        (&found["kind"], &found["index"]),
        (&"clustered".into(), &"PRIMARY".into()),
        "{reported}"
    );
    // The newest generation has it damaged, the ones before have it whole.
    let copy = finding(&heal(&evenkeel(), &site, &[]), page, reported)["copy"].clone();
    assert_eq!(copy["generation"], 2, "{reported}");
    assert_eq!(copy["lsn"], found["lsn"], "{reported}");
}

#[test]
fn of_secondary_indexes() {
    for server in draw("servers", &servers(), 2) {
        secondary(server);
    }
}

#[test]
fn of_secondary_indexes_of_newer_servers() {
    for server in draw("newer servers", &[mariadb_11_8(), mysql_9()], 1) {
        secondary(server);
    }
}

#[test]
fn of_the_rows_themselves() {
    for server in draw("servers", &servers(), 2) {
        clustered(server);
    }
}

#[test]
fn of_files_and_places() {
    let mut site = start(evenkeel_testkit::servers::mariadb_10_11());
    stop(&mut site);
    let path = victim(&site);
    let whole = std::fs::read(&path).expect("the file");
    let check = |args: &[&str]| {
        let mut command = evenkeel().command(&["check"]);
        command.args(args);
        run(command)
    };
    let shown = path.display().to_string();

    // Two pages changed places: both checksums are right.
    let page = leaf(&path, false) as usize * PAGE as usize;
    let mut swapped = whole.clone();
    let (one, other) = (
        page..page + PAGE as usize,
        page + PAGE as usize..page + 2 * PAGE as usize,
    );
    swapped[one.clone()].copy_from_slice(&whole[other.clone()]);
    swapped[other].copy_from_slice(&whole[one]);
    std::fs::write(&path, &swapped).expect("write");
    let ended = check(&[&shown]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let whats: Vec<_> = ended.answer["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| f["what"].clone())
        .collect();
    assert_eq!(whats, ["page-number", "page-number"]);

    // The file lost its end, in the middle of a page.
    std::fs::write(&path, &whole[..whole.len() / 2 + 100]).expect("write");
    let ended = check(&[&shown]);
    let whats: Vec<_> = ended.answer["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| f["what"].clone())
        .collect();
    assert_eq!(whats, ["cut-off", "short-file"], "{ended:?}");

    // The bit that says how the file's pages are checksummed: one page is damaged, not all.
    let mut first = whole.clone();
    first[57] ^= 0x10;
    std::fs::write(&path, &first).expect("write");
    let ended = check(&[&shown]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.answer["pages_damaged"], 1, "{ended:?}");
    assert_eq!(ended.answer["findings"][0]["page"], 0);
    std::fs::write(&path, &whole).expect("write");

    // What cannot be read is said, and no reason to call the rest sound without a word.
    let nobody = check(&["/proc/self/environ/none"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    let empty = site.fs.join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    let empty = check(&[&empty.display().to_string()]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    std::fs::remove_file(&path).expect("remove");
    std::fs::create_dir(&path).expect("a directory in its place");
    let ended = check_stopped(&evenkeel(), &site, &[]);
    assert_eq!(ended.code, Some(0), "a directory has no pages: {ended:?}");
}

#[test]
fn of_the_future() {
    let mut site = start(evenkeel_testkit::servers::mariadb_10_11());
    stop(&mut site);
    let log = site.fs.join("data/ib_logfile0");
    let older = std::fs::read(&log).expect("the log");
    site.running = Some(site.server.run(&site.launch));
    let mut session = site.running().session().expect("a session");
    session
        .run("UPDATE bank.victim SET name = REVERSE(name)")
        .expect("changes");
    drop(session);
    stop(&mut site);
    assert_eq!(check_stopped(&evenkeel(), &site, &[]).code, Some(0));
    // Somebody put an old log back.
    std::fs::write(&log, older).expect("write");
    let ended = check_stopped(&evenkeel(), &site, &[]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let findings = ended.answer["findings"].as_array().expect("findings");
    let rows = findings
        .iter()
        .find(|one| one["file"] == VICTIM && one["index"] == "PRIMARY");
    let rows = rows.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(rows["what"], "future-lsn");
    assert!(rows["found"].as_u64() > rows["expected"].as_u64());
    assert_eq!(rows["expected"], ended.answer["lsn_end"]);
}
