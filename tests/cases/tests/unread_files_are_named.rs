//! Do `check` and `prewarm` say which file or page they could not read, and read the others: where a
//! sector is bad, where a file is closed to them, where it is gone, where the directory is another?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{VICTIM, check_live, make_victim, stop, victim};
use evenkeel_cases::faults::{closed, closed_by_mode, failing, gone};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::servers::{mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer, servers};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const GIB: u64 = 1 << 30;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: TestServer) -> Site {
    let site = Site::start(server, LoopFs::xfs(4 * GIB), 100, &[]);
    make_victim(&site);
    site
}

fn stopped(verb: &str, datadir: &Path, flags: &[&str]) -> Command {
    let mut command = evenkeel().command(&[verb, "--no-defaults", "--datadir"]);
    command.arg(datadir).args(flags);
    command
}

fn list(ended: &Ended, name: &str) -> Vec<Value> {
    let list = ended.answer[name].as_array();
    list.unwrap_or_else(|| panic!("{name}: {ended:?}")).clone()
}

#[track_caller]
fn assert_only_this_is_unread(ended: &Ended, reported: &str) {
    assert_eq!(ended.code, Some(3), "{reported}: {ended:?}");
    let unread = list(ended, "files_unreadable");
    assert_eq!(unread.len(), 1, "{reported}: {unread:?}");
    assert_eq!(unread[0]["file"], VICTIM, "{reported}");
    assert_eq!(list(ended, "findings"), Vec::<Value>::new(), "{reported}");
    let pages = ended.answer["pages_checked"].as_u64();
    assert!(pages > Some(100), "{reported}: {ended:?}");
}

fn checked(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    // A running server's file that was dropped between being listed and opened.
    let dropped = gone(&check_live(&evenkeel(), &site), &victim(&site));
    assert_eq!(dropped.code, Some(0), "{reported}: {dropped:?}");
    assert_eq!(
        dropped.answer["files_vanished"], 1,
        "{reported}: {dropped:?}"
    );
    stop(&mut site);
    let data = site.fs.join("data");
    let check = stopped("check", &data, &["--threads", "1"]);

    // The first page is read, then many at once; of those each by itself.
    let bad = failing(&check, &victim(&site), "pread64", "error=EIO:when=2..6");
    assert_eq!(bad.code, Some(4), "{reported}: {bad:?}");
    let findings = list(&bad, "findings");
    let pages: Vec<_> = findings.iter().map(|f| f["page"].as_u64()).collect();
    assert_eq!(
        pages,
        [0, 1, 2, 3].map(Some),
        "{reported}: and no page beside them: {findings:#?}"
    );
    for finding in &findings {
        assert_eq!(finding["file"], VICTIM, "{reported}");
        assert_eq!(finding["what"], "unreadable", "{reported}");
        let why = finding["why"].as_str().unwrap_or_default();
        assert!(why.contains("Input/output error"), "{reported}: {why}");
    }
    assert_eq!(bad.answer["pages_damaged"], 4, "{reported}");

    assert_only_this_is_unread(&closed(&check, &victim(&site)), reported);
    assert_only_this_is_unread(&gone(&check, &victim(&site)), reported);
    assert_eq!(
        run(check).code,
        Some(0),
        "{reported}: nothing was wrong with it"
    );
}

fn warmed(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    site.kill();
    let data = site.fs.join("data");
    let prewarm = stopped("prewarm", &data, &["--reader", "threads"]);
    let table = victim(&site);
    for ended in [
        failing(&prewarm, &table, "pread64", "error=EIO"),
        closed(&prewarm, &table),
    ] {
        assert_eq!(ended.code, Some(3), "{reported}: {ended:?}");
        assert_eq!(ended.answer["unread_files"], 1, "{reported}: {ended:?}");
        let unread = list(&ended, "unread");
        assert_eq!(unread[0]["path"], table.display().to_string(), "{reported}");
        assert!(
            ended.answer["bytes_read"].as_u64() > Some(1 << 20),
            "{reported}"
        );
    }
    // By the ring, which opens files in its own way.
    let ring = stopped("prewarm", &data, &["--reader", "io-uring"]);
    let ended = closed_by_mode(&ring, &data, &table);
    assert_eq!(ended.code, Some(3), "{reported}: {ended:?}");
    assert_eq!(ended.answer["unread_files"], 1, "{reported}: {ended:?}");

    let ended = gone(&prewarm, &table);
    assert_eq!(ended.code, Some(0), "{reported}: {ended:?}");
    assert_eq!(ended.answer["gone_files"], 1, "{reported}: {ended:?}");
    assert_eq!(run(prewarm).answer["unread_files"], 0, "{reported}");
}

#[test]
fn by_check() {
    for server in servers() {
        checked(server);
    }
}

#[test]
fn by_prewarm() {
    for server in [mysql_5_7_22(), mysql_8_0_15()] {
        warmed(server);
    }
}

#[test]
fn of_another_directory() {
    let scratch = evenkeel_testkit::Scratch::new();
    let empty = scratch.join("empty");
    fs::create_dir(&empty).expect("a directory");
    let file = scratch.join("file");
    fs::write(&file, "no directory").expect("a file");
    for (verb, flags) in [
        ("check", vec![]),
        ("prewarm", vec![]),
        ("baseline", vec!["save"]),
    ] {
        let place = |path: &Path| {
            let mut command = evenkeel().command(&[verb]);
            command.args(&flags).args(["--no-defaults", "--datadir"]);
            command.arg(path);
            command
        };
        for path in [&empty, &file, &scratch.join("none")] {
            let ended = run(place(path));
            let reported = format!("{verb} {}", path.display());
            assert_eq!(ended.code, Some(2), "{reported}: {ended:?}");
            let named = ended.message().contains(&path.display().to_string());
            assert!(named, "{reported}: {ended:?}");
        }
        let ended = closed(&place(&empty), &empty);
        assert_eq!(ended.code, Some(14), "{verb}: {ended:?}");
    }
}
