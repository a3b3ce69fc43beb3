//! Does a dump hold schemas that are called almost, or on other servers, like one of the server's own?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};

#[test]
fn names_of_other_servers_are_a_users() {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let launch = server.prepare(&scratch.join("data"), &SMALL);
        let running = server.run(&launch);
        let mut session = running.session().unwrap();
        let schemas = ["ndbinfo", "SYS", "MySQL", "Sys2"];
        for schema in schemas {
            session.run(&format!("CREATE DATABASE {schema}")).unwrap();
            let table = format!("CREATE TABLE {schema}.t (id INT PRIMARY KEY) ENGINE=InnoDB");
            session.run(&table).unwrap();
            let row = format!("INSERT INTO {schema}.t VALUES (7)");
            session.run(&row).unwrap();
        }
        let dir = scratch.join("dump");
        let ended = run(dump(&program, &running, &dir, &[]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for schema in schemas {
            session.run(&format!("DROP DATABASE {schema}")).unwrap();
        }
        let ended = run(load_into(&program, &running, &dir, &[]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for schema in schemas {
            let rows = session
                .value(&format!("SELECT id FROM {schema}.t"))
                .unwrap();
            assert_eq!(rows.as_deref(), Some("7"), "{schema}");
        }
    }
}
