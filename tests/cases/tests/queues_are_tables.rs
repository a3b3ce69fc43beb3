//! Does a queue do what tables do, and keep what is owned out of it: INSERT, SELECT, DELETE, TRUNCATE,
//! DROP, ALTER?

use evenkeel_cases::queues::verbs::{Ability, Queues, each, numbers};
use evenkeel_server::connect::Session;
use evenkeel_testkit::traffic::Random;
use std::collections::BTreeMap;
use std::thread;

#[test]
fn in_each_form() {
    each(|queues| {
        rows_are_found_and_deleted_by_place(queues);
        rows_that_were_deleted_at_random_are_gone_and_others_are_not(queues);
        an_owner_deletes_what_it_owns(queues);
        others_delete_what_nobody_owns(queues);
        long_texts_come_back(queues);
        truncate_takes_what_is_owned_too(queues);
        a_table_that_is_dropped_is_gone_for_its_owner_and_for_who_waits(queues);
        owners_keep_their_rows_when_columns_change(queues);
    });
}

fn fill(queues: &dyn Queues, session: &mut Session, name: &str, rows: i64) {
    queues.create(session, name, "id INT NOT NULL").unwrap();
    let values: Vec<String> = (1..=rows).map(|id| format!("({id})")).collect();
    session
        .run(&format!("INSERT INTO {name} VALUES {}", values.join(",")))
        .unwrap();
}

fn ids(session: &mut Session, name: &str) -> Vec<i64> {
    numbers(session, &format!("SELECT id FROM {name}"))
}

/// `DELETE … ORDER BY … LIMIT` reads rows a second time, by their places.
fn rows_are_found_and_deleted_by_place(queues: &dyn Queues) {
    let mut session = queues.open("places");
    fill(queues, &mut session, "t", 9);
    session
        .run("DELETE FROM t ORDER BY id DESC LIMIT 3")
        .unwrap();
    assert_eq!(ids(&mut session, "t"), [1, 2, 3, 4, 5, 6]);
    session.run("DELETE FROM t WHERE id = 2").unwrap();
    session.run("DELETE FROM t ORDER BY id LIMIT 1").unwrap();
    assert_eq!(ids(&mut session, "t"), [3, 4, 5, 6]);
    let sorted = numbers(&mut session, "SELECT id FROM t ORDER BY -id LIMIT 2");
    assert_eq!(sorted, [6, 5]);
}

/// Q4M's has 1024 rows and compares after each of as many deletions; 256 are several files' worth here too
/// where files are small, and the order of events is what counts.
fn rows_that_were_deleted_at_random_are_gone_and_others_are_not(queues: &dyn Queues) {
    const ROWS: u32 = 256;
    let mut session = queues.open("randomly");
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let columns = "id INT NOT NULL, what VARCHAR(250)";
    queues.create(&mut session, "t", columns).unwrap();
    let mut model = BTreeMap::new();
    for id in 0..ROWS {
        let what = format!("{}{}", "x".repeat(random.below(200) as usize), id);
        session
            .run(&format!("INSERT INTO t VALUES ({id}, '{what}')"))
            .unwrap();
        model.insert(id, what);
    }
    while !model.is_empty() {
        let at = random.below(model.len() as u32) as usize;
        let first = *model.keys().nth(at).unwrap();
        let some = random.below(12);
        session
            .run(&format!(
                "DELETE FROM t WHERE id BETWEEN {first} AND {}",
                first + some
            ))
            .unwrap();
        model.retain(|id, _| !(first..=first + some).contains(id));
        let rows = session.rows("SELECT id, what FROM t").unwrap();
        let found: Vec<(u32, String)> = rows
            .iter()
            .map(|row| {
                (
                    row.at(0).unwrap().parse().unwrap(),
                    row.at(1).unwrap().to_owned(),
                )
            })
            .collect();
        assert_eq!(found, model.clone().into_iter().collect::<Vec<_>>());
        let count = numbers(&mut session, "SELECT COUNT(*) FROM t");
        assert_eq!(count, [model.len() as i64]);
    }
}

fn an_owner_deletes_what_it_owns(queues: &dyn Queues) {
    let mut one = queues.open("owned_delete");
    let mut other = queues.open("owned_delete");
    fill(queues, &mut one, "t", 3);
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
    one.run("DELETE FROM t").unwrap();
    assert!(ids(&mut one, "t").is_empty(), "it sees only what it owned");
    assert_eq!(ids(&mut other, "t"), [2, 3]);
    queues.abort(&mut one).unwrap();
    assert_eq!(ids(&mut one, "t"), [2, 3], "what is deleted stays so");
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
    one.run("DELETE FROM t").unwrap();
    queues.end(&mut one).unwrap();
    assert_eq!(ids(&mut one, "t"), [3]);
    let count = numbers(&mut other, "SELECT COUNT(*) FROM t");
    assert_eq!(count, [1], "it was counted once");
    assert_eq!(queues.stat(&mut one, "t", "rows"), 1);
}

fn others_delete_what_nobody_owns(queues: &dyn Queues) {
    let mut one = queues.open("delete_around");
    let mut other = queues.open("delete_around");
    fill(queues, &mut one, "t", 4);
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
    other.run("DELETE FROM t WHERE id < 4").unwrap();
    assert_eq!(ids(&mut other, "t"), [4]);
    assert_eq!(ids(&mut one, "t"), [1]);
    queues.abort(&mut one).unwrap();
    assert_eq!(ids(&mut other, "t"), [1, 4]);
}

fn long_texts_come_back(queues: &dyn Queues) {
    let mut session = queues.open("texts");
    let columns = "id INT NOT NULL, head TEXT, body LONGBLOB, tail VARCHAR(9)";
    queues.create(&mut session, "t", columns).unwrap();
    let mut written = Vec::new();
    for id in 0..24 {
        let (head, body) = (id * id, (1 << id) % 700_001);
        session
            .run(&format!(
                "INSERT INTO t VALUES ({id}, REPEAT('ä', {head}), REPEAT(x'00ff5c27', {body}), 'tail')"
            ))
            .unwrap();
        written.push(format!("{id} {head} {body} tail"));
    }
    let check = "SELECT CONCAT_WS(' ', id, CHAR_LENGTH(head), \
                 IF(MD5(body) = MD5(REPEAT(x'00ff5c27', LENGTH(body) / 4)), LENGTH(body) DIV 4, 'wrong'), tail) FROM t";
    let all = session.rows(check).unwrap();
    let all: Vec<&str> = all.iter().map(|row| row.at(0).unwrap()).collect();
    assert_eq!(all, written);
    for row in &written {
        assert_eq!(queues.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
        assert_eq!(session.value(check).unwrap().as_ref(), Some(row));
    }
    queues.end(&mut session).unwrap();
}

fn truncate_takes_what_is_owned_too(queues: &dyn Queues) {
    let mut one = queues.open("truncated");
    let mut other = queues.open("truncated");
    fill(queues, &mut one, "t", 3);
    for ends in [true, false] {
        assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
        let owned = ids(&mut one, "t");
        queues.truncate(&mut other, "t").unwrap();
        assert!(ids(&mut other, "t").is_empty());
        // Over InnoDB an owned row is locked, and stays.
        let stays = queues.can(Ability::TruncatesAround);
        assert_eq!(ids(&mut one, "t"), if stays { owned } else { vec![] });
        other.run("INSERT INTO t VALUES (8)").unwrap();
        match ends {
            true => queues.end(&mut one).unwrap(),
            false => queues.abort(&mut one).unwrap(),
        };
        let comes_back = stays && !ends;
        let left = if comes_back { vec![8, 8] } else { vec![8] };
        assert_eq!(ids(&mut other, "t"), left);
        assert_eq!(ids(&mut one, "t"), left);
    }
    queues.truncate(&mut one, "t").unwrap();
    assert_eq!(queues.wait(&mut other, &["t"], 0.0), Ok(Some(0)));
    queues.abort(&mut other).unwrap();
}

fn a_table_that_is_dropped_is_gone_for_its_owner_and_for_who_waits(queues: &dyn Queues) {
    let mut one = queues.open("dropped");
    let mut other = queues.open("dropped");
    fill(queues, &mut one, "t", 2);
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
    queues.discard(&mut other, "t").unwrap();
    // Its row is gone with it. Whether that is said or not, the owner goes on.
    let _ = queues.end(&mut one);
    let _ = queues.abort(&mut one);
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(None));
    fill(queues, &mut other, "t", 1);
    assert_eq!(ids(&mut one, "t"), [1], "another of that name");
    assert_eq!(queues.wait(&mut one, &["t"], 0.0), Ok(Some(1)));
    queues.end(&mut one).unwrap();
    thread::scope(|scope| {
        let mut waits = queues.open("dropped");
        let waiting = scope.spawn(move || queues.wait(&mut waits, &["t"], 60.0));
        queues.until_waiting(&mut one, "t", 1);
        queues.discard(&mut other, "t").unwrap();
        let reported = waiting.join().unwrap();
        assert!(matches!(reported, Ok(None) | Err(_)), "{reported:?}");
    });
}

fn owners_keep_their_rows_when_columns_change(queues: &dyn Queues) {
    if !queues.can(Ability::AltersOwned) {
        return;
    }
    let mut owner = queues.open("altered");
    let mut other = queues.open("altered");
    fill(queues, &mut owner, "t", 5);
    assert_eq!(queues.wait_n(&mut owner, "t", 2, 0.0), Ok(Some(1)));
    let row = queues.row_id(&mut owner).unwrap();
    let add = "ADD COLUMN what VARCHAR(20) NOT NULL DEFAULT 'new', ADD COLUMN size INT";
    queues.alter(&mut other, "t", add).unwrap();
    let all = "SELECT id FROM t WHERE what = 'new' AND size IS NULL";
    assert_eq!(numbers(&mut owner, all), [1, 2], "it is the owner still");
    assert_eq!(numbers(&mut other, all), [3, 4, 5]);
    assert_eq!(queues.row_id(&mut owner).unwrap(), row);
    queues.end(&mut owner).unwrap();
    assert_eq!(numbers(&mut owner, all), [3, 4, 5]);
    // The owner itself may do it too, and give back then; others take what was changed meanwhile.
    assert_eq!(queues.wait(&mut owner, &["t"], 0.0), Ok(Some(1)));
    queues.alter(&mut owner, "t", "DROP COLUMN size").unwrap();
    assert_eq!(
        queues.wait(&mut other, &["t:what = 'new'"], 0.0),
        Ok(Some(1))
    );
    assert_eq!(ids(&mut other, "t"), [4]);
    queues.alter(&mut other, "t", "MODIFY id BIGINT").unwrap();
    queues.abort(&mut owner).unwrap();
    assert_eq!(ids(&mut owner, "t"), [3, 5]);
    queues.end(&mut other).unwrap();
    other
        .run("INSERT INTO t VALUES (6000000000, 'long')")
        .unwrap();
    assert_eq!(ids(&mut owner, "t"), [3, 5, 6_000_000_000]);
    // A connection that goes gives back, wherever its rows are by now.
    let mut goes = queues.open("altered");
    assert_eq!(queues.wait(&mut goes, &["t"], 0.0), Ok(Some(1)));
    queues.alter(&mut other, "t", "FORCE").unwrap();
    queues.alter(&mut other, "t", "COMMENT 'in place'").unwrap();
    drop(goes);
    evenkeel_testkit::until("its row is back", || ids(&mut owner, "t").len() == 3);
    queues.rename(&mut other, "t", "u").unwrap();
    assert_eq!(queues.wait(&mut other, &["u"], 0.0), Ok(Some(1)));
    queues.end(&mut other).unwrap();
    waiters_stay(queues, &mut owner, &mut other);
}

/// Whoever waits while a queue is altered goes on waiting for the new one, as far as its condition can be
/// asked there.
fn waiters_stay(queues: &dyn Queues, one: &mut Session, other: &mut Session) {
    queues.truncate(one, "u").unwrap();
    thread::scope(|scope| {
        let mut waits = queues.open("altered");
        let mut asks = queues.open("altered");
        let waiting = scope.spawn(move || {
            let reported = queues.wait(&mut waits, &["u:id > 7"], 60.0);
            (reported, ids(&mut waits, "u"))
        });
        let asking = scope.spawn(move || queues.wait(&mut asks, &["u:what = 'x'"], 60.0));
        queues.until_waiting(one, "u", 2);
        queues.alter(one, "u", "DROP COLUMN what").unwrap();
        let reported = asking.join().unwrap();
        assert!(matches!(reported, Ok(None) | Err(_)), "{reported:?}");
        queues.until_waiting(one, "u", 1);
        other.run("INSERT INTO u VALUES (7), (8)").unwrap();
        assert_eq!(waiting.join().unwrap(), (Ok(Some(1)), vec![8]));
    });
}
