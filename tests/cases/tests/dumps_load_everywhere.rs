//! Does a loaded dump have every row and every object, on each server that can hold it, and does one
//! that cannot say so before it has made anything?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{HARD, done, load_into};
use evenkeel_cases::loads::{Source, assert_same_rows, local_infile, objects};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, Objects};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    server.start(&scratch.join(name), &SMALL)
}

/// To a server of the same version: everything, by each way.
fn to_itself(server: TestServer) {
    let scratch = Scratch::new();
    let source = Source::make(
        &program(),
        server,
        &scratch,
        true,
        &["--chunk-size=64K", "--threads=3"],
    );
    for (name, flags) in [
        ("after", &["--threads=3"][..]),
        (
            "with",
            &["--indexes=with", "--method=insert", "--no-binlog"],
        ),
    ] {
        let target = start(&source.server, &scratch, name);
        let before = local_infile(&target);
        let ended = done(run(load_into(&program(), &target, &source.dump, flags)));
        assert_eq!(ended.answer["schema"], "evenkeel/load/1");
        assert_eq!(ended.answer["resumed"], false);
        assert_eq!(ended.answer["chunks"], ended.answer["chunks_loaded"]);
        let name = format!("{}, {name}", source.server.name);
        source.assert_same(&target, &name, Closeness::Same);
        assert_eq!(local_infile(&target), before, "{name}");
        // What is there is not touched unless that is asked for.
        let again = run(load_into(&program(), &target, &source.dump, &[]));
        assert_eq!(again.code, Some(14), "{}", again.message());
        assert!(again.message().contains("already"), "{}", again.message());
        let plan = done(run(load_into(
            &program(),
            &target,
            &source.dump,
            &["--replace"],
        )));
        assert_eq!(plan.answer["executed"], false);
        assert!(
            plan.answer["drops"].as_array().unwrap().len() > 15,
            "{}",
            plan.answer
        );
        source.assert_same(&target, &name, Closeness::Same);
        let flags = ["--replace", "--execute", "--definer=drop"];
        done(run(load_into(&program(), &target, &source.dump, &flags)));
        source.assert_same(&target, &name, Closeness::Same);
    }
}

/// To the servers of other versions: what they cannot hold is said first, and the rest arrives.
fn to_others(server: TestServer, targets: &[TestServer], flags: &[&str]) {
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, false, &["--chunk-size=256K"]);
    for server in targets {
        let name = format!("{} to {}", source.server.name, server.name);
        let target = start(server, &scratch, server.id);
        let plain = run(load_into(&program(), &target, &source.dump, &[]));
        if !flags.is_empty() {
            assert_eq!(plain.code, Some(14), "{name}: {}", plain.message());
            assert!(
                plain.message().contains(HARD),
                "{name}: {}",
                plain.message()
            );
            let made = target.session().unwrap().value(
                "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN \
                 ('mysql', 'information_schema', 'performance_schema', 'sys')",
            );
            assert_eq!(
                made.unwrap().as_deref(),
                Some("0"),
                "{name}: something was made"
            );
            done(run(load_into(&program(), &target, &source.dump, flags)));
        } else {
            done(plain);
        }
        let (mut one, mut other) = (source.running.session().unwrap(), target.session().unwrap());
        assert_same_rows((&mut one, &mut other), HARD, &name);
        let names = |objects: &Objects| -> Vec<String> {
            let all = objects.databases.iter().flat_map(|one| {
                let views = one.views.iter().map(|view| &view.program);
                let programs = views
                    .chain(&one.routines)
                    .chain(&one.triggers)
                    .chain(&one.events);
                programs.map(|program| program.name.clone())
            });
            all.collect()
        };
        assert_eq!(
            names(&objects(&source.running)),
            names(&objects(&target)),
            "{name}"
        );
    }
}

/// One of the three servers in each run.
fn to_itself_in_turn(server: TestServer, nth: usize) {
    share("loaded into themselves", &[server], Part::new(nth, 3))
        .into_iter()
        .for_each(to_itself);
}

#[test]
fn mariadb_to_itself() {
    to_itself_in_turn(mariadb_10_11(), 0);
}

#[test]
fn mysql_8_to_itself() {
    to_itself_in_turn(mysql_8_0_15(), 1);
}

#[test]
fn mysql_5_7_to_itself() {
    to_itself_in_turn(mysql_5_7_22(), 2);
}

const COLLATION: [&str; 1] = ["--collation=utf8mb4_0900_ai_ci=utf8mb4_unicode_520_ci"];

/// What the others cannot hold is of MySQL 8 alone: it is the source in each run.
#[test]
fn mysql_8_to_others() {
    let targets = [mysql_5_7_22(), mariadb_10_11()];
    let targets = draw("loaded from MySQL 8", &targets, 1);
    to_others(mysql_8_0_15(), &targets, &COLLATION);
}

// Of these, one pair in each run.

#[test]
fn mariadb_to_others() {
    let targets = [mysql_8_0_15(), mysql_5_7_22()];
    let targets = share("loaded from others", &targets, Part::new(1, 4));
    if !targets.is_empty() {
        to_others(mariadb_10_11(), &targets, &[]);
    }
}

#[test]
fn mysql_5_7_to_others() {
    let targets = [mariadb_10_11(), mysql_8_0_15()];
    let targets = share("loaded from others", &targets, Part::new(3, 4));
    if !targets.is_empty() {
        to_others(mysql_5_7_22(), &targets, &[]);
    }
}
