//! Are all objects of a server the same after they were read, dropped and made anew?

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
            nasty::drop_all(&mut session);
            let how = Rendering {
                split_tables,
                ..Rendering::default()
            };
            make_anew(&running, &before, &how);
            let after = read_all(&running);
            let found = differences(&without_broken(before), &after, Closeness::Same);
            assert!(found.is_empty(), "{}: {}", server.name, found.join("\n\n"));
        }
    }
}
