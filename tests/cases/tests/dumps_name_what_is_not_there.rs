//! Does a dump or a load that is asked for something that is not there say so, and leave nothing behind?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};

#[test]
fn what_matches_nothing_is_named() {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let launch = server.prepare(&scratch.join("data"), &SMALL);
        let running = server.run(&launch);
        let mut session = running.session().unwrap();
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY)",
            "INSERT INTO shop.orders VALUES (1), (2)",
            "CREATE VIEW shop.v AS SELECT 1 AS a",
        ] {
            session.run(sql).unwrap();
        }
        for (flags, named) in [
            (&["--table=orders"][..], "'orders'"),
            (
                &["--database=shop", "--table=shop.ordersx"],
                "'shop.ordersx'",
            ),
            (&["--table=shop\\.orders", "--table=shop.x"], "'shop.x'"),
            (
                &["--table=shop.orders", "--exclude=shop.*"],
                "'shop.orders'",
            ),
            (&["--database=nope"], "'nope'"),
            (&["--where=shop.gone=1"], "'shop.gone'"),
        ] {
            let parent = scratch.join("new");
            let ended = run(dump(&program, &running, &parent.join("dir"), flags));
            assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
            let message = ended.message();
            assert!(message.contains(named), "{flags:?}: {message}");
            assert!(!parent.exists(), "{flags:?}");
        }
        let dir = scratch.join("dump");
        let flags = ["--table=shop.*", "--exclude=shop.v", "--exclude=shopp.*"];
        let ended = run(dump(&program, &running, &dir, &flags));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warns = |said: &str| said.contains("--exclude 'shopp.*'") && !said.contains("'shop.v'");
        assert!(warns(&ended.said), "{}", ended.said);
        session.run("DROP DATABASE shop").unwrap();
        let ended = run(load_into(&program, &running, &dir, &["--exclude=shopp.*"]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(warns(&ended.said), "{}", ended.said);
    }
}
