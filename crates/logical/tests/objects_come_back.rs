//! Are all objects of a server the same after they were read, dropped and re-created?

mod nasty;

use evenkeel_logical::objects::{
    Closeness, Objects, Phase, Rendering, Runner, Selection, differences, read,
};
use evenkeel_server::launch::Running;
use evenkeel_testkit::{Scratch, servers};

fn read_all(running: &Running) -> Objects {
    let selection = Selection {
        accounts: true,
        ..Selection::default()
    };
    let mut session = running.session().unwrap();
    let objects = read(&mut session, &selection).unwrap_or_else(|e| panic!("{}", e.chain()));
    assert_eq!(objects.gone, []);
    objects
}

/// Runs all statements; only the view that was broken before may fail.
fn make_anew(running: &Running, objects: &Objects, how: &Rendering) {
    let mut session = running.session().unwrap();
    let mut runner = Runner::new(&mut session, objects).unwrap();
    for phase in Phase::ALL {
        for statement in objects.statements(phase, how) {
            let done = runner.run(&statement);
            let sql = String::from_utf8_lossy(&statement.sql);
            match (&statement.broken, done) {
                (None, done) => done.unwrap_or_else(|e| panic!("{}\n{sql}", e.chain())),
                (Some(_), done) => assert!(done.is_err(), "{sql}"),
            }
        }
    }
}

/// Returns what the server tells by itself, without our reading of it.
fn reported(running: &Running) -> Vec<String> {
    let lists = [
        (
            "TRIGGERS",
            "TRIGGER_SCHEMA",
            "TRIGGER_NAME, ACTION_ORDER, SQL_MODE, DEFINER",
        ),
        (
            "STATISTICS",
            "TABLE_SCHEMA",
            "TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE",
        ),
        (
            "REFERENTIAL_CONSTRAINTS",
            "CONSTRAINT_SCHEMA",
            "CONSTRAINT_NAME, TABLE_NAME, REFERENCED_TABLE_NAME, DELETE_RULE",
        ),
        (
            "COLUMNS",
            "TABLE_SCHEMA",
            "TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, COLLATION_NAME, COLUMN_DEFAULT, EXTRA",
        ),
        (
            "ROUTINES",
            "ROUTINE_SCHEMA",
            "ROUTINE_NAME, ROUTINE_TYPE, SQL_MODE, DTD_IDENTIFIER, DATABASE_COLLATION",
        ),
        (
            "EVENTS",
            "EVENT_SCHEMA",
            "EVENT_NAME, STATUS, STARTS, EXECUTE_AT, TIME_ZONE, ON_COMPLETION, DEFINER",
        ),
    ];
    let mut session = running.session().unwrap();
    let mut all = Vec::new();
    for (list, schema, columns) in lists {
        let columns: Vec<String> = columns
            .split(", ")
            .map(|one| format!("COALESCE({one}, '-')"))
            .collect();
        let sql = format!(
            "SELECT CONCAT_WS(', ', {}) FROM information_schema.{list} WHERE {schema} IN ('sh`op', 'other')",
            columns.join(", ")
        );
        let rows = session.rows(&sql).unwrap();
        assert!(!rows.is_empty(), "{list}");
        all.extend(
            rows.iter()
                .map(|row| format!("{list}: {}", row.at(0).unwrap())),
        );
    }
    all.retain(|one| !one.starts_with("COLUMNS: broken,"));
    all.sort();
    all
}

/// Takes out the broken view, which cannot be made.
fn without_broken(mut objects: Objects) -> Objects {
    for database in &mut objects.databases {
        database.views.retain(|view| view.broken.is_none());
    }
    objects
}

#[test]
fn what_was_dropped_is_made_anew() {
    for server in servers() {
        for split_tables in [true, false] {
            let scratch = Scratch::new();
            let running = server.start(&scratch.join("data"), &[]);
            let mut session = running.session().unwrap();
            nasty::make(&mut session, &server);
            let before = read_all(&running);
            let broken: Vec<&str> = before
                .databases
                .iter()
                .flat_map(|one| &one.views)
                .filter(|view| view.broken.is_some())
                .map(|view| view.program.name.as_str())
                .collect();
            assert_eq!(broken, ["broken"], "{}", server.name);
            let reported_before = reported(&running);
            let fires = reported_before
                .iter()
                .find(|one| one.starts_with("TRIGGERS: mm, 2"));
            assert!(fires.is_some(), "{reported_before:?}");
            nasty::drop_all(&mut session);
            let how = Rendering {
                split_tables,
                ..Rendering::default()
            };
            make_anew(&running, &before, &how);
            let after = read_all(&running);
            assert_eq!(reported(&running), reported_before, "{}", server.name);
            let found = differences(&without_broken(before), &after, Closeness::Same);
            assert!(found.is_empty(), "{}: {}", server.name, found.join("\n\n"));
        }
    }
}
