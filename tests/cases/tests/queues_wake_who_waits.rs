//! Does a consumer get the row that it waits for: by table, by condition, by priority, in order, once?

use evenkeel_cases::queues::verbs::{Ability, Queues, each, numbers};
use evenkeel_server::connect::Session;
use evenkeel_testkit::until;
use std::thread;

#[test]
fn in_each_form() {
    each(|queues| {
        rows_come_in_order_and_are_consumed_by_the_next_wait(queues);
        only_rows_that_are_asked_for(queues);
        a_wait_in_vain_leaves_an_owner_of_nothing(queues);
        a_row_has_one_owner_and_comes_back_when_that_one_goes(queues);
        the_first_table_that_has_a_row_gives_it(queues);
        conditions_on_one_table_are_priorities(queues);
        those_who_wait_for_other_rows_sleep_on(queues);
        a_column_behind_a_text_is_asked_and_ids_continue(queues);
        rows_that_a_source_sent_before_are_passed_over(queues);
        waiting_and_reading_are_one_statement(queues);
    });
}

fn queue(queues: &dyn Queues, session: &mut Session, name: &str) {
    let columns = "id INT NOT NULL, priority INT, what TEXT";
    queues.create(session, name, columns).unwrap();
}

fn put(session: &mut Session, name: &str, id: i64, priority: &str) {
    let sql = format!("INSERT INTO {name} VALUES ({id}, {priority}, 'row {id}')");
    session.run(&sql).unwrap();
}

fn ids(session: &mut Session, name: &str) -> Vec<i64> {
    numbers(session, &format!("SELECT id FROM {name}"))
}

/// Waits for a row that is there, and says what it gave: which table, and which row of it.
fn take(queues: &dyn Queues, session: &mut Session, what: &[&str]) -> (i64, i64) {
    let place = queues.wait(session, what, 0.0).unwrap().unwrap();
    let name = match usize::try_from(place).unwrap().checked_sub(1) {
        Some(at) => what[at].split(':').next().unwrap(),
        None => return (0, 0),
    };
    let ids = ids(session, name);
    assert_eq!(ids.len(), 1, "an owner sees one row");
    (place, ids[0])
}

/// Q4M's has 1024 rounds: each of them is the same.
fn rows_come_in_order_and_are_consumed_by_the_next_wait(queues: &dyn Queues) {
    let mut session = queues.open("plain");
    let mut other = queues.open("plain");
    assert_eq!(queues.wait(&mut session, &["t"], 0.0), Ok(None));
    queue(queues, &mut session, "t");
    for id in 1..=64 {
        put(&mut other, "t", id, "NULL");
    }
    for id in 1..=64 {
        assert_eq!(take(queues, &mut session, &["t"]), (1, id));
        let sum = numbers(&mut session, "SELECT SUM(id) FROM t");
        assert_eq!(sum, [id]);
        let left = numbers(&mut other, "SELECT COUNT(*) FROM t");
        assert_eq!(left, [64 - id]);
    }
    queues.end(&mut session).unwrap();
    let rows = queues.stat(&mut session, "t", "rows");
    assert_eq!(rows, 0);
    assert_eq!(queues.wait(&mut session, &["none.t"], 0.0), Ok(None));
}

fn only_rows_that_are_asked_for(queues: &dyn Queues) {
    let mut session = queues.open("asked");
    queue(queues, &mut session, "t");
    for (id, priority) in [(1, "10"), (2, "NULL"), (3, "30"), (4, "30")] {
        put(&mut session, "t", id, priority);
    }
    for (condition, row) in [
        ("priority = 30", (1, 3)),
        ("priority IS NULL", (1, 2)),
        ("priority > 10 AND id > 3", (1, 4)),
        ("id * 2 = priority DIV 5", (1, 1)),
        ("priority > 30", (0, 0)),
        ("NOT (priority > 10 OR id = 2)", (1, 1)),
    ] {
        let what = format!("t:{condition}");
        assert_eq!(take(queues, &mut session, &[&what]), row, "{condition}");
        queues.abort(&mut session).unwrap();
    }
    for wrong in ["t:nothing = 1", "t:id >", "t:id = 'x"] {
        let reported = queues.wait(&mut session, &[wrong], 0.0);
        assert!(
            matches!(reported, Err(_) | Ok(None)),
            "{wrong}: {reported:?}"
        );
    }
}

fn a_wait_in_vain_leaves_an_owner_of_nothing(queues: &dyn Queues) {
    let mut one = queues.open("in_vain");
    let mut other = queues.open("in_vain");
    queue(queues, &mut one, "t");
    for refused in [queues.end(&mut one), queues.abort(&mut one)] {
        assert!(refused.is_err(), "{refused:?}");
    }
    assert!(queues.row_id(&mut one).is_err());
    assert_eq!(queues.wait(&mut one, &["t"], 0.3), Ok(Some(0)));
    put(&mut other, "t", 1, "1");
    assert!(ids(&mut one, "t").is_empty(), "it owns nothing");
    assert_eq!(queues.row_id(&mut one), Ok(None));
    assert_eq!(ids(&mut other, "t"), [1]);
    queues.end(&mut one).unwrap();
    assert_eq!(ids(&mut one, "t"), [1]);
}

fn a_row_has_one_owner_and_comes_back_when_that_one_goes(queues: &dyn Queues) {
    let mut one = queues.open("owners");
    let mut other = queues.open("owners");
    queue(queues, &mut one, "t");
    for id in 1..=2 {
        put(&mut one, "t", id, "1");
    }
    assert_eq!(take(queues, &mut one, &["t"]), (1, 1));
    assert_eq!(take(queues, &mut other, &["t"]), (1, 2));
    queues.abort(&mut one).unwrap();
    assert_eq!(ids(&mut one, "t"), [1]);
    assert!(queues.abort(&mut one).is_err(), "once is enough");
    queues.abort(&mut other).unwrap();
    // One that waits gets what another gives back, by word or by going.
    assert_eq!(queues.wait_n(&mut other, "t", 2, 0.0), Ok(Some(1)));
    thread::scope(|scope| {
        let waits = |mut session: Session| {
            scope.spawn(move || {
                let reported = queues.wait(&mut session, &["t"], 60.0);
                (reported, ids(&mut session, "t"), session)
            })
        };
        let waiting = waits(queues.open("owners"));
        queues.until_waiting(&mut one, "t", 1);
        queues.abort(&mut other).unwrap();
        let (reported, found, mut first) = waiting.join().unwrap();
        assert_eq!((reported, found), (Ok(Some(1)), vec![1]));
        assert_eq!(take(queues, &mut other, &["t"]), (1, 2));
        let waiting = waits(queues.open("owners"));
        queues.until_waiting(&mut one, "t", 1);
        drop(other);
        let (reported, found, _) = waiting.join().unwrap();
        assert_eq!((reported, found), (Ok(Some(1)), vec![2]));
        queues.end(&mut first).unwrap();
    });
    until("what that one had is back", || ids(&mut one, "t") == [2]);
}

fn the_first_table_that_has_a_row_gives_it(queues: &dyn Queues) {
    let mut session = queues.open("several");
    for name in ["a", "b", "c"] {
        queue(queues, &mut session, name);
    }
    put(&mut session, "c", 1, "1");
    put(&mut session, "b", 2, "1");
    put(&mut session, "b", 3, "1");
    put(&mut session, "a", 4, "1");
    let all = ["a", "b", "several.c"];
    let mut taken = Vec::new();
    for _ in 0..4 {
        let place = queues.wait(&mut session, &all, 0.0).unwrap().unwrap();
        let name = ["a", "b", "c"][usize::try_from(place).unwrap() - 1];
        taken.push((place, ids(&mut session, name)[0]));
        let elsewhere = if name == "c" { "a" } else { "c" };
        let others = ids(&mut session, elsewhere);
        assert!(!others.contains(&taken[taken.len() - 1].1));
    }
    assert_eq!(taken, [(1, 4), (2, 2), (2, 3), (3, 1)]);
    assert_eq!(queues.wait(&mut session, &all, 0.0), Ok(Some(0)));
    queues.end(&mut session).unwrap();
    assert_eq!(
        queues.wait(&mut session, &["a", "nowhere"], 0.0),
        Ok(None),
        "one of them is none"
    );
    thread::scope(|scope| {
        for (place, name) in [(3, "c"), (1, "a"), (2, "b")] {
            let mut waits = queues.open("several");
            let waiting = scope.spawn(move || {
                let reported = queues.wait(&mut waits, &all, 60.0);
                queues.end(&mut waits).unwrap();
                reported
            });
            for each in ["a", "b", "c"] {
                queues.until_waiting(&mut session, each, 1);
            }
            put(&mut session, name, 9, "1");
            assert_eq!(waiting.join().unwrap(), Ok(Some(place)));
        }
    });
}

/// Q4M's has 41168 rows in one of them: 200 are as many orders of two priorities as matter.
fn conditions_on_one_table_are_priorities(queues: &dyn Queues) {
    let mut session = queues.open("priorities");
    queue(queues, &mut session, "t");
    let values: Vec<String> = (1..=200)
        .map(|id| format!("({id}, {}, '')", i32::from(id % 3 == 0)))
        .collect();
    session
        .run(&format!("INSERT INTO t VALUES {}", values.join(",")))
        .unwrap();
    let both = ["t:priority=1", "t:priority=0"];
    let urgent = (1..=200).filter(|id| id % 3 == 0).map(|id| (1, id));
    let others = (1..=200).filter(|id| id % 3 != 0).map(|id| (2, id));
    for row in urgent.chain(others) {
        assert_eq!(take(queues, &mut session, &both), row);
        if row == (2, 100) {
            // What comes late and is urgent comes first.
            put(&mut session_of(queues), "t", 500, "1");
            assert_eq!(take(queues, &mut session, &both), (1, 500));
        }
    }
    assert_eq!(take(queues, &mut session, &both), (0, 0));
    queues.end(&mut session).unwrap();
}

fn session_of(queues: &dyn Queues) -> Session {
    queues.open("priorities")
}

fn those_who_wait_for_other_rows_sleep_on(queues: &dyn Queues) {
    let mut session = queues.open("sleepers");
    queue(queues, &mut session, "t");
    thread::scope(|scope| {
        let waits = |what: &'static str| {
            let mut waits = queues.open("sleepers");
            scope.spawn(move || {
                let reported = queues.wait(&mut waits, &[what], 60.0);
                let found = ids(&mut waits, "t");
                queues.end(&mut waits).unwrap();
                (reported, found)
            })
        };
        let (low, high) = (waits("t:priority < 10"), waits("t:priority >= 10"));
        queues.until_waiting(&mut session, "t", 2);
        put(&mut session, "t", 1, "NULL");
        put(&mut session, "t", 2, "10");
        assert_eq!(high.join().unwrap(), (Ok(Some(1)), vec![2]));
        queues.until_waiting(&mut session, "t", 1);
        put(&mut session, "t", 3, "9");
        assert_eq!(low.join().unwrap(), (Ok(Some(1)), vec![3]));
        assert_eq!(ids(&mut session, "t"), [1]);
        // Of rows that come together it gets the one that it wants most, and not the first.
        session.run("DELETE FROM t").unwrap();
        let mut waits = queues.open("sleepers");
        let both = scope.spawn(move || {
            let reported = queues.wait(&mut waits, &["t:priority=9", "t:priority=0"], 60.0);
            let found = ids(&mut waits, "t");
            queues.end(&mut waits).unwrap();
            (reported, found)
        });
        until("it waits", || queues.stat(&mut session, "t", "waiters") > 0);
        let sql = "INSERT INTO t VALUES (1, 0, ''), (2, 9, ''), (3, 0, '')";
        session.run(sql).unwrap();
        assert_eq!(both.join().unwrap(), (Ok(Some(1)), vec![2]));
        assert_eq!(ids(&mut session, "t"), [1, 3]);
    });
}

/// Q4M's has 22011 checks; 300 rows with a compaction after each hundred are its shape.
fn a_column_behind_a_text_is_asked_and_ids_continue(queues: &dyn Queues) {
    let mut session = queues.open("behind");
    let mut other = queues.open("behind");
    let columns = "what BLOB NOT NULL, id INT NOT NULL";
    queues.create(&mut session, "t", columns).unwrap();
    let mut last = 0;
    for round in 0..3 {
        let first = round * 100;
        let values: Vec<String> = (first..first + 100)
            .map(|id| format!("(REPEAT('x', {}), {id})", id * 7))
            .collect();
        other
            .run(&format!("INSERT INTO t VALUES {}", values.join(",")))
            .unwrap();
        for id in (first..first + 100).rev().step_by(2) {
            let what = format!("t:id={id}");
            assert_eq!(queues.wait(&mut session, &[&what], 0.0), Ok(Some(1)));
            assert_eq!(ids(&mut session, "t"), [id]);
        }
        queues.end(&mut session).unwrap();
        assert!(queues.compact(&mut session, "t").unwrap().is_some());
        for id in (first..first + 100).step_by(2) {
            assert_eq!(queues.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
            assert_eq!(ids(&mut session, "t"), [id]);
            let row = queues.row_id(&mut session).unwrap().unwrap();
            assert!(row > last, "{row} after {last}");
            last = row;
        }
    }
    queues.end(&mut session).unwrap();
    assert_eq!(queues.stat(&mut session, "t", "rows"), 0);
}

fn rows_that_a_source_sent_before_are_passed_over(queues: &dyn Queues) {
    if !queues.can(Ability::Sources) {
        return;
    }
    let mut session = queues.open("sources");
    queue(queues, &mut session, "t");
    let mut sent = 0;
    let mut send = |slot: i64, mode: &str, id: i64| {
        queues.set_source(&mut session, slot, mode, id).unwrap();
        sent += 1;
        let sql = format!("INSERT INTO t VALUES ({sent}, 1, ''), ({sent}, 2, '')");
        session.run(&sql).unwrap();
    };
    send(0, "a", 5);
    send(0, "a", 5);
    send(0, "a", 4);
    send(63, "a", 4);
    send(0, "a", 6);
    send(0, "w", 2);
    send(0, "a", 3);
    send(0, "a", 3);
    let expected = [1, 1, 4, 4, 5, 5, 6, 6, 7, 7];
    assert_eq!(ids(&mut session, "t"), expected);
    // It is meant for one statement.
    put(&mut session, "t", 100, "1");
    put(&mut session, "t", 101, "1");
    assert_eq!(ids(&mut session, "t")[10..], [100, 101]);
    // NULL, as Q4M has it.
    assert_eq!(queues.set_source(&mut session, 64, "a", 1), Ok(0));
    assert_eq!(queues.set_source(&mut session, -1, "a", 1), Ok(0));
    assert!(queues.set_source(&mut session, 0, "x", 1).is_err());
    // It holds for all rows of a statement, and is known after compaction.
    queues.truncate(&mut session, "t").unwrap();
    queues.compact(&mut session, "t").unwrap();
    queues.set_source(&mut session, 63, "a", 4).unwrap();
    put(&mut session, "t", 102, "1");
    assert!(ids(&mut session, "t").is_empty());
}

fn waiting_and_reading_are_one_statement(queues: &dyn Queues) {
    if !queues.can(Ability::OneStatement) {
        return;
    }
    let mut session = queues.open("at_once");
    queue(queues, &mut session, "t");
    let sql = "SELECT id FROM t WHERE queue_wait('t', 60)";
    thread::scope(|scope| {
        let mut waits = queues.open("at_once");
        let waiting = scope.spawn(move || numbers(&mut waits, sql));
        queues.until_waiting(&mut session, "t", 1);
        put(&mut session, "t", 1, "1");
        assert_eq!(waiting.join().unwrap(), [1]);
    });
    for id in 2..=5 {
        put(&mut queues.open("at_once"), "t", id, "1");
    }
    until("what that one had is back", || {
        queues.stat(&mut session, "t", "rows_owned") == 0
    });
    session.rows(&format!("EXPLAIN {sql}")).unwrap();
    let owned = queues.stat(&mut session, "t", "rows_owned");
    assert_eq!(owned, 0, "it is explained, not done");
    for id in 1..=5 {
        assert_eq!(numbers(&mut session, sql), [id]);
    }
    queues.end(&mut session).unwrap();
}
