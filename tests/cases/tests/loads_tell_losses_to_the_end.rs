//! Does a load that goes on say too what the server does not keep?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

#[test]
fn by_each_run_that_follows() {
    let scratch = Scratch::new();
    let source = mariadb_10_11().start(&scratch.join("source"), &SMALL);
    let target = mysql_8_0_15().start(&scratch.join("target"), &SMALL);
    let mut session = source.session().unwrap();
    for sql in [
        "CREATE DATABASE losing CHARACTER SET latin1",
        "CREATE TABLE losing.`t'é` (id INT PRIMARY KEY, a INT, CHECK (a > 0)) DEFAULT CHARSET=latin1",
        "INSERT INTO losing.`t'é` VALUES (1, 1)",
    ] {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
    let dir = scratch.join("dump");
    done(run(dump(
        &program(),
        &source,
        &dir,
        &["--database", "losing"],
    )));
    let load = || load_into(&program(), &target, &dir, &[]);
    for point in [
        "load::begun",
        "load::phase#3",
        "load::rows",
        "load::finished",
    ] {
        let ended = run(killed_at(load(), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        assert!(ended.said.contains("a CHECK"), "{point}: {}", ended.said);
    }
    let ended = done(run(load()));
    assert_eq!(ended.answer["resumed"], true, "{}", ended.answer);
    let reported = serde_json::json!(["table losing.t'é: this server does not preserve a CHECK"]);
    assert_eq!(ended.answer["lost"], reported);
    assert!(ended.said.contains("a CHECK"), "{}", ended.said);
}
