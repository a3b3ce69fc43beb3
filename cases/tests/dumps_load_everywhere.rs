//! Does a loaded dump have every row and every object, on each server that can hold it, and does one
//! that cannot say so before it has made anything?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{HARD, done, load_into};
use evenkeel_cases::loads::{Source, local_infile, objects};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, Objects};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
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
fn to_others(server: TestServer, targets: [(TestServer, &[&str]); 2]) {
    let scratch = Scratch::new();
    let source = Source::make(&program(), server, &scratch, false, &["--chunk-size=256K"]);
    for (server, flags) in targets {
        let name = format!("{} to {}", source.server.name, server.name);
        let target = start(&server, &scratch, server.id);
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
        assert_same_rows(&mut one, &mut other, &name);
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

/// Everything of every row as bytes: CHECKSUM TABLE is another on each flavour. MariaDB has no negative
/// zero.
fn assert_same_rows(one: &mut Session, other: &mut Session, name: &str) {
    for session in [&mut *one, &mut *other] {
        session
            .run(
                "SET SESSION group_concat_max_len = 100000000, sql_mode = '', time_zone = '+00:00'",
            )
            .unwrap();
    }
    let schema = quote_name(HARD);
    let columns = one
        .rows(&format!(
            "SELECT TABLE_NAME, GROUP_CONCAT(CASE WHEN DATA_TYPE = 'geometry' \
             THEN CONCAT('COALESCE(HEX(ST_AsWKB(`', COLUMN_NAME, '`)), ''N'')') \
             WHEN DATA_TYPE IN ('float', 'double') THEN CONCAT('COALESCE(IF(`', COLUMN_NAME, '` = 0, 0, `', COLUMN_NAME, '` * 1e0), ''N'')') \
             WHEN DATA_TYPE = 'decimal' THEN CONCAT('COALESCE(`', COLUMN_NAME, '`, ''N'')') \
             WHEN DATA_TYPE = 'json' THEN CONCAT('COALESCE(HEX(CAST(`', COLUMN_NAME, '` AS CHAR)), ''N'')') \
             ELSE CONCAT('COALESCE(HEX(`', REPLACE(COLUMN_NAME, '`', '``'), '`), ''N'')') END) \
             FROM information_schema.COLUMNS JOIN information_schema.TABLES USING (TABLE_SCHEMA, TABLE_NAME) \
             WHERE TABLE_SCHEMA = '{}' AND TABLE_TYPE = 'BASE TABLE' GROUP BY TABLE_NAME",
            HARD.replace('\'', "''")
        ))
        .unwrap();
    assert!(columns.len() > 10);
    for row in &columns {
        let (table, columns) = (row.at(0).unwrap(), row.at(1).unwrap());
        let sql = format!(
            "SELECT COUNT(*), SUM(CAST(CONV(LEFT(SHA1(CONCAT_WS('|', {columns})), 12), 16, 10) AS UNSIGNED)) FROM {schema}.{}",
            quote_name(table)
        );
        let mut ask = |sql: &str| -> Vec<String> {
            let answers = [&mut *one, &mut *other].map(|session| {
                let row = session.one(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
                let row = row.unwrap();
                format!("{:?} {:?}", row.at(0), row.at(1))
            });
            answers.to_vec()
        };
        let sums = ask(&sql);
        if sums[0] != sums[1] {
            for column in columns.split(",COALESCE(") {
                let column = column.trim_start_matches("COALESCE(");
                let values = format!(
                    "SELECT 0, GROUP_CONCAT(LEFT(COALESCE({column}, 60) ORDER BY 1) FROM {schema}.{}",
                    quote_name(table)
                );
                let both = ask(&values);
                assert_eq!(both[0], both[1], "{name}: {table}, {column}");
            }
        }
        assert_eq!(sums[0], sums[1], "{name}: {table}");
    }
}

#[test]
fn mariadb_to_itself() {
    to_itself(mariadb_10_11());
}

#[test]
fn mysql_8_to_itself() {
    to_itself(mysql_8_0_15());
}

#[test]
fn mysql_5_7_to_itself() {
    to_itself(mysql_5_7_22());
}

#[test]
fn mariadb_to_others() {
    let server = mariadb_10_11();
    to_others(server, [(mysql_8_0_15(), &[]), (mysql_5_7_22(), &[])]);
}

const COLLATION: [&str; 1] = ["--collation=utf8mb4_0900_ai_ci=utf8mb4_unicode_520_ci"];

#[test]
fn mysql_8_to_others() {
    to_others(
        mysql_8_0_15(),
        [(mariadb_10_11(), &COLLATION), (mysql_5_7_22(), &COLLATION)],
    );
}

#[test]
fn mysql_5_7_to_others() {
    to_others(
        mysql_5_7_22(),
        [(mariadb_10_11(), &[]), (mysql_8_0_15(), &[])],
    );
}
