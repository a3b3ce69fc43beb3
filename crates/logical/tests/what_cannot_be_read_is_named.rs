//! Is what an account may not read an error that names it and the privilege, never left out?

use evenkeel_logical::objects::{Objects, Selection, read};
use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::{Scratch, servers};

const SCHEMA: [&str; 8] = [
    "CREATE DATABASE d",
    "CREATE TABLE d.t (a INT)",
    "CREATE VIEW d.v AS SELECT 1 AS a",
    "CREATE TRIGGER d.g BEFORE INSERT ON d.t FOR EACH ROW SET NEW.a = 1",
    "CREATE PROCEDURE d.p() SELECT 1",
    "CREATE EVENT d.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
    "CREATE USER b@localhost",
    "GRANT SELECT ON d.* TO b@localhost",
];

/// Reads as an account that has only what it was granted.
fn read_as_b(running: &Running, selection: &Selection) -> Result<Objects> {
    let options = ConnectOptions::over_socket(running.socket(), "b");
    read(&mut Session::open(&options).unwrap(), selection)
}

#[test]
fn each_privilege_brings_one_kind_more() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut root = running.session().unwrap();
        for sql in SCHEMA {
            root.run(sql).unwrap();
        }
        let modern = server.id == "mysql-8.0.15";
        let routines = if modern {
            "SELECT ON *.*"
        } else {
            "SELECT ON mysql.proc"
        };
        let steps = [
            ("SHOW VIEW", "d.v", "SHOW VIEW ON d.*"),
            ("routines of d ", "SELECT on ", "EXECUTE ON d.*"),
            ("procedure d.p ", "SELECT on ", routines),
            ("triggers of table d.t ", "TRIGGER", "TRIGGER ON d.*"),
            ("events of d ", "EVENT", "EVENT ON d.*"),
        ];
        let all = Selection::default();
        for (what, privilege, grant) in steps {
            let error = read_as_b(&running, &all).unwrap_err();
            let said = error.chain();
            assert_eq!(error.kind(), ErrorKind::Refused, "{}: {said}", server.name);
            assert!(
                said.contains(what) && said.contains(privilege),
                "{}: {said}",
                server.name
            );
            assert!(!error.hints().is_empty());
            root.run(&format!("GRANT {grant} TO b@localhost")).unwrap();
        }
        let objects = read_as_b(&running, &all).unwrap();
        let names: Vec<&str> = objects
            .databases
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["d"], "{}", server.name);
        let d = &objects.databases[0];
        let counts = [
            d.tables.len(),
            d.views.len(),
            d.routines.len(),
            d.triggers.len(),
            d.events.len(),
        ];
        assert_eq!(counts, [1; 5], "{}", server.name);
    }
}

#[test]
fn what_is_left_out_needs_no_privilege() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut root = running.session().unwrap();
        for sql in SCHEMA {
            root.run(sql).unwrap();
        }
        let selection = Selection {
            databases: vec!["d".to_owned()],
            exclude: vec![Selection::pattern(r"d\.v").unwrap()],
            triggers: false,
            routines: false,
            events: false,
            ..Selection::default()
        };
        let objects = read_as_b(&running, &selection).unwrap();
        let d = &objects.databases[0];
        assert_eq!((d.tables.len(), d.views.len()), (1, 0), "{}", server.name);
        let missing = Selection {
            databases: vec!["d".to_owned(), "nowhere".to_owned()],
            ..selection
        };
        let error = read_as_b(&running, &missing).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
