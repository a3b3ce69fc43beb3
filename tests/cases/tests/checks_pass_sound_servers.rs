//! Is a sound server sound to `check`: while it runs under traffic, stopped, killed, as a generation, and
//! as plain files?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{check_live, check_stopped, stop};
use evenkeel_cases::leftovers::assert_unharmed;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};

const GIB: u64 = 1 << 30;

#[track_caller]
fn assert_sound(ended: &Ended, reported: &str) {
    let answer = &ended.answer;
    assert_eq!(ended.code, Some(0), "{reported}: {ended:?}");
    assert_eq!(answer["sound"], true, "{reported}: {answer:#}");
    assert_eq!(answer["pages_damaged"], 0, "{reported}: {answer:#}");
    assert_eq!(
        answer["findings"].as_array().map(Vec::len),
        Some(0),
        "{reported}: {answer:#}"
    );
    let unchecked = answer["files_unchecked"].as_array().expect("a list");
    // A table that was made this moment is in the server's memory only.
    let is_new = |note: &serde_json::Value| {
        let file = note["file"].as_str().expect("a name");
        file.contains("/brief_") && answer["target"] == "live"
    };
    assert!(unchecked.iter().all(is_new), "{reported}: {answer:#}");
    assert!(
        answer["page_kinds"]["index"].as_u64() > Some(30),
        "{reported}: {answer:#}"
    );
    assert!(
        answer["pages_checked"].as_u64() > Some(200),
        "{reported}: {answer:#}"
    );
    assert_eq!(answer["files_unreadable"].as_array().map(Vec::len), Some(0));
}

/// The log's end is known and no page is beyond it.
#[track_caller]
fn assert_log_is_known(ended: &Ended, reported: &str) {
    let number = |name: &str| ended.answer[name].as_u64();
    assert!(
        number("lsn_end").is_some(),
        "{reported}: {:#}",
        ended.answer
    );
    assert!(number("lsn_max") <= number("lsn_end"), "{reported}");
    assert!(number("lsn_max") > Some(0), "{reported}");
}

fn case(server: TestServer) {
    let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 2_000, &[]);
    let reported = site.server.name;
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().expect("a session");
    let tables = "bank.ledger, bank.accounts_0, bank.accounts_1, bank.accounts_2, bank.accounts_3";
    for sql in [
        &format!("FLUSH TABLES {tables} FOR EXPORT"),
        "UNLOCK TABLES",
    ] {
        session.run(sql).expect("a flush");
    }
    let traffic = site.rush(4);
    for round in 0..rounds("looks at a busy server", 2, 4) {
        traffic.wait_for(100);
        // Tables come and go while it looks.
        let sql = format!("CREATE TABLE bank.brief_{round} (id INT PRIMARY KEY)");
        session.run(&sql).expect("a table");
        let live = run(check_live(&evenkeel, &site));
        session
            .run(&format!("DROP TABLE bank.brief_{round}"))
            .expect("it goes");
        assert_sound(&live, reported);
        assert_log_is_known(&live, reported);
        assert_eq!(live.answer["target"], "live", "{reported}");
    }
    traffic.assert_undisturbed();
    drop(session);
    assert_eq!(run(evenkeel.backup(&site, &[])).code, Some(0), "{reported}");
    site.kill();
    drop(traffic.stop());
    // What a crash left is no damage.
    let crashed = check_stopped(&evenkeel, &site, &[]);
    assert_sound(&crashed, reported);
    assert_log_is_known(&crashed, reported);

    let mut command = evenkeel.command(&["check", "--repository"]);
    command.arg(site.repository());
    let stored = run(command);
    assert_sound(&stored, reported);
    assert_eq!(stored.answer["generation"], 1, "{reported}");

    site.running = Some(site.server.run(&site.launch));
    assert_unharmed(site.running(), reported);
    let mut refused = evenkeel.command(&["check", "--no-defaults", "--datadir"]);
    refused.arg(site.fs.join("data"));
    let refused = run(refused);
    assert_eq!(refused.code, Some(14), "a server runs there: {refused:?}");
    stop(&mut site);
    let stopped = check_stopped(&evenkeel, &site, &[]);
    assert_sound(&stopped, reported);
    assert_log_is_known(&stopped, reported);
    let mut files = evenkeel.command(&["check"]);
    files.arg(site.fs.join("data"));
    let files = run(files);
    assert_sound(&files, reported);
    assert_eq!(
        files.answer["lsn_end"], stopped.answer["lsn_end"],
        "{reported}"
    );
    let count = |ended: &Ended| ended.answer["pages"].as_u64();
    assert_eq!(count(&files), count(&stopped), "{reported}");
}

/// Of any two that follow each other, one is MySQL.
#[test]
fn servers_are_sound() {
    let servers: [fn() -> TestServer; 5] = [
        mariadb_10_11,
        mysql_8_0_15,
        mariadb_11_8,
        mysql_9,
        mysql_5_7_22,
    ];
    for server in draw("servers that are sound", &servers, 2) {
        case(server());
    }
}
