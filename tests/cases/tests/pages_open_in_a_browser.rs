//! Does every HTML page that the program writes open in a browser without errors and requests, and is all of it in
//! its place, on a screen and on a telephone, in light and dark?

use evenkeel_cases::browser::{WIDTHS, open};
use evenkeel_cases::played::Played;
use evenkeel_cases::program::run;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::mariadb_10_11;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// The tests share light and dark: places are the same in both.
#[track_caller]
fn are_in_order(directory: &Path, pages: &[&str], part: Part) {
    for is_dark in share("shades", &[false, true], part) {
        let all = open(directory, pages, is_dark);
        assert_eq!(all.len(), pages.len() * WIDTHS.len());
        for one in &all {
            assert_eq!(one["is_dark"], is_dark, "{one}");
            assert_eq!(one["fetched"].as_array().map(Vec::len), Some(0), "{one}");
            assert_ne!(one["title"], "", "{one}");
            assert!(one["figures"].as_u64() > Some(0), "{one}");
            let problems = one["problems"].as_array().expect("a list");
            let place = (&one["page"], &one["width"]);
            assert!(problems.is_empty(), "{place:?}: {problems:#?}");
        }
    }
}

/// Pages about statements: of a digest, of a replay, and of rounds with two variants that differ.
#[test]
fn pages_of_traffic() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let room = played.rolled.site.fs.path();
    let digest = run(played.command("digest", &["--html=digest.html"]));
    assert_eq!(digest.code, Some(0), "{digest:?}");
    let set = "--set=sql_select_limit=1";
    let rounds = played.rounds(&["--rounds=4", set, "--execute", "--html=rounds.html"]);
    assert_eq!(rounds.code, Some(4), "{rounds:?}");
    // The rows are there already: inserts fail.
    let words = ["--allow-writes", "--speed=max", "--html=replay.html"];
    let replay = run(played.replay(&words));
    assert_eq!(replay.code, Some(4), "{replay:?}");
    let pages = ["digest.html", "replay.html", "rounds.html"];
    are_in_order(room, &pages, Part::new(0, 2));
}

/// Pages of measurements.
#[test]
fn pages_of_benches() {
    let rolled = Played::server(mariadb_10_11(), PROGRAM);
    let room = rolled.site.fs.path();
    let bench = |words: &[&str]| {
        let mut command = rolled.evenkeel.command(&["bench"]);
        command
            .args(words)
            .args(["--no-defaults", "-u", "root", "-S"]);
        command.arg(rolled.site.running().socket());
        command.current_dir(room);
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    bench(&[
        "inserts",
        "--rows=200",
        "--repeat=2",
        "--report=inserts.html",
    ]);
    bench(&[
        "compression",
        "--rows=1000",
        "--repeat=1",
        "--report=compression.html",
    ]);
    bench(&[
        "cache",
        "--rows=50",
        "--time=300ms",
        "--repeat=2",
        "--report=cache.html",
    ]);
    bench(&["oltp", "load", "--tables=1", "--table-size=500"]);
    let short = [
        "--time=500ms",
        "--ramp-up=0",
        "--threads=2",
        "--report=oltp.html",
    ];
    bench(&[&["oltp", "run"], &short[..]].concat());
    bench(&["tpcc", "load", "-w1", "--tiny"]);
    let short = ["-c2", "-r1", "-l2", "-i1", "--report=tpcc.html"];
    bench(&[&["tpcc", "run"], &short[..]].concat());
    // A comparison of backups takes minutes; this one is in the book.
    let kept = evenkeel_testkit::checkout().join("docs/src/reports/showdown.html");
    std::fs::copy(kept, room.join("showdown.html")).unwrap();
    let pages = [
        "inserts",
        "compression",
        "cache",
        "oltp",
        "tpcc",
        "showdown",
    ];
    let pages = pages.map(|page| format!("{page}.html"));
    let pages = pages.each_ref().map(String::as_str);
    are_in_order(room, &pages, Part::new(1, 2));
}
