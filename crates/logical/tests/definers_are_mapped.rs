//! Do views, routines, triggers and events run with the rights of whom we say, and of nobody else?

mod nasty;

use evenkeel_logical::objects::{Definer, Objects, Phase, Rendering, Runner, Selection, read};
use evenkeel_server::launch::Running;
use evenkeel_testkit::{Scratch, servers};
use std::collections::BTreeSet;

/// Returns the definers that the server itself names.
fn definers(running: &Running) -> BTreeSet<String> {
    let mut session = running.session().unwrap();
    let lists = [
        ("VIEWS", "TABLE_SCHEMA"),
        ("ROUTINES", "ROUTINE_SCHEMA"),
        ("TRIGGERS", "TRIGGER_SCHEMA"),
        ("EVENTS", "EVENT_SCHEMA"),
    ];
    let mut found = BTreeSet::new();
    for (list, schema) in lists {
        let sql = format!(
            "SELECT DEFINER FROM information_schema.{list} WHERE {schema} IN ('sh`op', 'other')"
        );
        let rows = session.rows(&sql).unwrap();
        assert!(!rows.is_empty(), "{list}");
        found.extend(rows.iter().filter_map(|row| row.at(0).map(str::to_owned)));
    }
    found
}

fn make_anew(running: &Running, objects: &Objects, definer: &Definer) {
    let mut session = running.session().unwrap();
    nasty::drop_all(&mut session);
    let how = Rendering {
        definer: definer.clone(),
        ..Rendering::default()
    };
    let mut runner = Runner::new(&mut session, objects).unwrap();
    for phase in Phase::ALL {
        for statement in objects.statements(phase, &how) {
            let done = runner.run(&statement);
            assert_eq!(done.is_err(), statement.broken.is_some(), "{done:?}");
        }
    }
}

#[test]
fn every_definer_is_kept_dropped_or_mapped() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut session = running.session().unwrap();
        nasty::make(&mut session, &server);
        session.run("CREATE USER 'n m'@'127.0.0.1'").unwrap();
        session
            .run("GRANT ALL ON *.* TO 'n m'@'127.0.0.1'")
            .unwrap();
        let objects = read(&mut session, &Selection::default()).unwrap();
        let before = definers(&running);
        assert!(before.len() > 2, "{before:?}");
        for (wanted, there) in [
            ("keep", before),
            ("drop", BTreeSet::from(["root@localhost".to_owned()])),
            (
                "'n m'@127.0.0.1",
                BTreeSet::from(["n m@127.0.0.1".to_owned()]),
            ),
        ] {
            make_anew(&running, &objects, &wanted.parse().unwrap());
            assert_eq!(definers(&running), there, "{}: {wanted}", server.name);
        }
    }
}
