//! Whatever is captured: does each session's chain of steps hold all of them, in order?
//!
//! Through `Plan` alone: how it is played is asked elsewhere.

use evenkeel_traffic::digest::fingerprint::Mode;
use evenkeel_traffic::replay::{Choice, Left, Plan, Planner};
use evenkeel_traffic::{Command, Filter, Statement};
use std::collections::HashMap;

fn choice() -> Choice {
    Choice {
        filter: Filter::default(),
        mode: Mode::default(),
        is_exact: true,
        knows_errors: true,
        read_only: false,
        schemas: HashMap::new(),
        default_schema: None,
        warm_up: std::time::Duration::ZERO,
        classes: 100,
        compare_results: true,
    }
}

fn one(connection: u64, at_ns: i64, sql: &[u8]) -> Statement<'_> {
    Statement {
        at_ns,
        connection,
        session: None,
        user: Some("app"),
        host: None,
        schema: Some("shop"),
        command: Command::Query,
        sql,
        sql_bytes: sql.len() as u64,
        is_unseen: false,
        first_ns: None,
        total_ns: Some(10),
        lock_ns: None,
        rows_sent: Some(1),
        rows_examined: None,
        rows_affected: Some(0),
        bytes_in: None,
        bytes_out: None,
        warnings: None,
        error: None,
        checksum: None,
        statement: None,
        values: None,
    }
}

fn plan(choice: Choice, all: &[Statement<'_>]) -> Plan {
    let room = tempfile::tempdir().unwrap();
    let mut planner = Planner::new(choice, room.path()).unwrap();
    for one in all {
        planner.add(one).unwrap();
    }
    planner.end().unwrap()
}

#[test]
fn steps_come_back_as_they_were() {
    // Longer than what is read at once, and more than is written at once.
    let long = format!("SELECT '{}' FROM t", "x".repeat(5000)).into_bytes();
    let short = b"SELECT 1 FROM t";
    let mut all = Vec::new();
    for at in 0..1000_i64 {
        let sql: &[u8] = if at % 3 == 0 { &long } else { short };
        all.push(one(at as u64 % 7, at * 100, sql));
    }
    let plan = plan(choice(), &all);
    assert_eq!((plan.statements, plan.sessions()), (1000, 7));
    let mut seen = 0;
    for session in 0..7 {
        let texts = plan.texts_of(session).unwrap();
        let expected = all.iter().filter(|one| one.connection == session as u64);
        let expected: Vec<Vec<u8>> = expected.map(|one| one.sql.to_vec()).collect();
        assert_eq!(texts, expected);
        seen += texts.len();
    }
    assert_eq!(seen, 1000);
}

#[test]
fn what_cannot_run_again_is_counted_by_reason() {
    let cut = Statement {
        sql_bytes: 1000,
        ..one(1, 0, b"SELECT 'abc")
    };
    let unseen = Statement {
        is_unseen: true,
        ..one(1, 1, b"stmt#5")
    };
    let all = [
        cut,
        unseen,
        one(1, 2, b"ALTER USER a IDENTIFIED BY '***'"),
        one(1, 3, b"SELECT PASSWORD('***')"),
        one(1, 4, b"KILL 5"),
        one(1, 5, b"UPDATE t SET a = 1"),
        one(1, 6, b"SELECT 1"),
    ];
    let read_only = Choice {
        read_only: true,
        ..choice()
    };
    let plan = plan(read_only, &all);
    let left: Vec<(Left, u64)> = plan
        .left
        .iter()
        .map(|(left, count)| (*left, *count))
        .collect();
    let expected = [
        (Left::Administration, 1),
        (Left::Sessions, 1),
        (Left::Cut, 1),
        (Left::Unseen, 1),
        (Left::Secret, 1),
        (Left::Writes, 1),
    ];
    assert_eq!(left, expected);
    assert_eq!(plan.statements, 1);
}

#[test]
fn a_change_counts_from_its_commit() {
    let all = [
        one(1, 0, b"BEGIN"),
        one(1, 100, b"UPDATE t SET a = 1"),
        // Before the commit: nobody has seen it.
        one(2, 200, b"SELECT a FROM t"),
        one(1, 300, b"COMMIT"),
        one(2, 400, b"SELECT a FROM shop.T"),
        one(2, 500, b"SELECT a FROM u"),
        one(3, 600, b"SELECT a FROM t"),
    ];
    let plan = plan(choice(), &all);
    // The commit waits for who read before it; the second session's second statement and the third session's wait for
    // the commit.
    assert_eq!(plan.waits, 3);
}

#[test]
fn schemas_may_have_another_name() {
    let mapped = Choice {
        schemas: HashMap::from([("shop".to_owned(), "test".to_owned())]),
        ..choice()
    };
    let all = [one(1, 0, b"USE shop"), one(1, 1, b"SELECT 1 FROM t")];
    let plan = plan(mapped, &all);
    assert_eq!(plan.schemas_of(0).unwrap(), ["test"]);
}

#[test]
fn sessions_without_a_known_schema_may_be_given_one() {
    let given = Choice {
        default_schema: Some("shop".to_owned()),
        ..choice()
    };
    let unknown = |connection, at_ns, schema| Statement {
        schema,
        ..one(connection, at_ns, b"SELECT 1 FROM t")
    };
    let all = [
        unknown(1, 0, None),
        unknown(1, 1, None),
        unknown(2, 2, Some("other")),
        unknown(2, 3, None),
    ];
    let with = plan(given, &all);
    assert_eq!(with.schemas_of(0).unwrap(), ["shop"]);
    assert_eq!(with.schemas_of(1).unwrap(), ["other"]);
    let without = plan(choice(), &all);
    assert!(without.schemas_of(0).unwrap().is_empty());
}
