//! Do capture, digest, baseline and replay in rounds speak of the same statements, does each round begin with the
//! same data, and is it named where two variants differ?

use evenkeel_cases::played::{ITEMS, Played};
use evenkeel_cases::program::{Ended, run};
use evenkeel_testkit::TestServer;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_8_0_15};
use serde_json::Value;
use std::collections::BTreeMap;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {of}"))
}

/// Count, rows sent and rows changed of each class.
fn digested(played: &Played) -> BTreeMap<String, [u64; 3]> {
    let ended = run(played.command("digest", &[]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let classes = list(&ended.answer, "classes").iter();
    classes
        .map(|class| {
            let all = ["count", "rows_sent", "rows_affected"].map(|name| number(&class[name]));
            (class["id"].as_str().unwrap().to_owned(), all)
        })
        .collect()
}

/// Each run of each variant did with each class what the digest has of it.
#[track_caller]
fn is_the_digest(ended: &Ended, digest: &BTreeMap<String, [u64; 3]>, rounds: usize) {
    let mut seen = 0;
    for class in list(&ended.answer, "classes") {
        let expected = &digest[class["id"].as_str().unwrap()];
        for variant in list(class, "variants") {
            let runs = list(variant, "runs");
            assert_eq!(runs.len(), rounds, "{class}");
            for one in runs {
                let found = ["count", "rows", "affected"].map(|name| one[name].as_u64().unwrap());
                assert_eq!(found, *expected, "{class}");
            }
        }
        seen += 1;
    }
    // USE is a class of the digest, and where the others run.
    assert!(seen >= 5, "{ended:?}");
}

fn rounds_are_alike(server: TestServer) {
    let played = Played::new(server, PROGRAM);
    let after = played.state();
    let digest = digested(&played);
    let setting = "--set=innodb_flush_log_at_trx_commit=0";

    let plan = played.rounds(&["--rounds=3", setting]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    assert_eq!(plan.answer["executed"], false);
    assert_eq!(plan.answer["variants"][1]["variant"], "B", "{plan:?}");
    assert_eq!(played.state(), after, "a plan changes nothing");

    let ended = played.rounds(&["--rounds=3", setting, "--execute", "--html=rounds.html"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["schema"], "evenkeel/replay-rounds/1");
    assert_eq!(ended.answer["statements"], Played::statements());
    is_the_digest(&ended, &digest, 3);
    assert_eq!(played.state(), after, "rolled back and played once");
    assert_eq!(played.global("innodb_flush_log_at_trx_commit"), "2");
    assert!(
        ended.answer["total"]["verdict"]["p"].is_number(),
        "{ended:?}"
    );
    let html = std::fs::read_to_string(played.rolled.site.fs.join("rounds.html")).unwrap();
    assert!(
        html.contains("innodb_flush_log_at_trx_commit = 0"),
        "{html}"
    );

    // B answers with fewer rows.
    let ended = played.rounds(&["--rounds=2", "--set=sql_select_limit=1", "--execute"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let classes = list(&ended.answer, "classes").iter();
    let other: Vec<&Value> = classes
        .filter(|class| !list(class, "other_results").is_empty())
        .collect();
    assert_eq!(other.len(), 1, "{ended:?}");
    let fingerprint = other[0]["fingerprint"].as_str().unwrap();
    assert!(fingerprint.starts_with("select id"), "{fingerprint}");
}

// One of the two in each run.

#[test]
fn on_mariadb_10_11() {
    share("played in rounds", &[mariadb_10_11()], Part::new(0, 2))
        .into_iter()
        .for_each(rounds_are_alike);
}

#[test]
fn on_mysql_8_0() {
    share("played in rounds", &[mysql_8_0_15()], Part::new(1, 2))
        .into_iter()
        .for_each(rounds_are_alike);
}

#[test]
fn against_another_server() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let digest = digested(&played);
    let newer = Played::server(mariadb_11_8(), PROGRAM);
    // The capture's directory is where the command runs.
    let near = played.rolled.site.fs.join("new.sock");
    std::os::unix::fs::symlink(newer.site.running().socket(), &near).unwrap();
    let words = ["--rounds=2", "--against=./new.sock", "--execute"];
    let ended = played.rounds(&words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_the_digest(&ended, &digest, 2);
    let names = list(&ended.answer, "variants").iter();
    let names: Vec<&str> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names[0].starts_with("10.11"), "{names:?}");
    assert!(names[1].starts_with("11.8"), "{names:?}");
    let sql = "SELECT COUNT(*) FROM shop.sold";
    let sold = newer.session().value(sql).unwrap().unwrap();
    assert_eq!(sold.parse::<i64>().unwrap(), Played::statements() / 5);

    // The other server lacks a row that A has.
    let sql = format!("DELETE FROM shop.items WHERE id = {}", ITEMS - 1);
    newer.done(&["rollback", "before", "--execute"]);
    newer.session().run(&sql).unwrap();
    newer.done(&["save", "before", "--replace"]);
    let ended = played.rounds(&words);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let others = list(&ended.answer, "classes").iter();
    let others: Vec<&Value> = others
        .flat_map(|class| list(class, "other_results"))
        .collect();
    assert!(others.iter().any(|one| one["what"] == "rows"), "{others:?}");
    assert!(
        others.iter().any(|one| one["what"] == "affected"),
        "{others:?}"
    );
}
