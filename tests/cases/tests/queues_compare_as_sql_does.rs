//! Does a condition choose the rows that the same text chooses in the server's WHERE?

use evenkeel_cases::queues::QueueSite;
use evenkeel_server::connect::Session;
use evenkeel_testkit::traffic::Random;

const COLUMNS: [(&str, &str); 9] = [
    ("i", "INT"),
    ("u", "BIGINT UNSIGNED"),
    ("p", "DECIMAL(10,3)"),
    ("w", "DECIMAL(38,10)"),
    ("z", "DECIMAL(4,0) UNSIGNED"),
    ("f", "FLOAT"),
    ("d", "DOUBLE"),
    ("b", "BIT(11)"),
    ("l", "BIT(64)"),
];

/// Columns that are calculated with: others would be too large for the server.
const SMALL: [&str; 5] = ["i", "p", "z", "f", "d"];

/// No floating point of 2^53 and more that is an integer: the server makes integers of such constants, beside a
/// column of integers, and only there.
const LITERALS: [&str; 15] = [
    "0",
    "1",
    "-1",
    "2.5",
    "-2.500",
    "0.1",
    "1e-1",
    ".001",
    "1024",
    "2047.0",
    "9007199254740993",
    "18446744073709551615",
    "1234567.891",
    "-3e2",
    "1e30",
];

fn pick<'t>(random: &mut Random, from: &[&'t str]) -> &'t str {
    from[random.below(from.len() as u32) as usize]
}

/// What a column of a row holds, as it stands in an INSERT.
fn cell(random: &mut Random, name: &str) -> String {
    let from: &[&str] = match name {
        "i" => &["NULL", "0", "-1", "7", "1024", "-300", "2147483647"],
        "u" => &["0", "1", "9007199254740993", "18446744073709551615"],
        "p" => &["NULL", "0", "0.1", "-2.5", "0.001", "1234567.891", "-7"],
        "w" => &[
            "NULL",
            "0.1",
            "-2.5",
            "9007199254740993",
            "9999999999999999999999999999.9999999999",
            "-9999999999999999999999999999.9999999999",
        ],
        "z" => &["NULL", "0", "1", "9999", "1024"],
        "f" => &["NULL", "0.1", "-2.5", "1024", "1e30", "16777217", "-0.0"],
        "d" => &[
            "NULL",
            "0.1",
            "-2.5",
            "-300",
            "1e30",
            "9007199254740993",
            "-0.0",
        ],
        "b" => &["NULL", "b'0'", "b'1'", "b'10000000000'", "b'11111111111'"],
        // From 2^63 on the server takes bits for a number below zero where it makes floating point of them.
        _ => &["NULL", "0", "1", "9007199254740993", "9223372036854775807"],
    };
    pick(random, from).to_owned()
}

fn value(random: &mut Random) -> String {
    match random.below(8) {
        0..4 => pick(random, &COLUMNS.map(|(name, _)| name)).to_owned(),
        4..6 => pick(random, &LITERALS).to_owned(),
        _ => {
            let sign = pick(random, &["+", "-", "*", "DIV", "%"]);
            // MariaDB has a decimal of -0.0 that is not 0: what is divided here is not below zero, or no decimal.
            let left = match sign {
                "%" => pick(random, &["z", "f", "d"]),
                _ => pick(random, &SMALL),
            };
            let right = match random.below(2) {
                0 => pick(random, &SMALL),
                _ => pick(random, &LITERALS[..10]),
            };
            format!("({left} {sign} {right})")
        }
    }
}

fn condition(random: &mut Random, depth: u32) -> String {
    let mut one = || value(random);
    let (a, b, c) = (one(), one(), one());
    match random.below(if depth > 0 { 10 } else { 7 }) {
        0..4 => {
            let sign = pick(random, &["=", "<>", "<", "<=", ">", ">="]);
            format!("{a} {sign} {b}")
        }
        4 => format!("{a} IN ({b}, {c})"),
        5 => format!("{a} BETWEEN {b} AND {c}"),
        6 => format!("{a} IS {}", pick(random, &["NULL", "TRUE", "NOT FALSE"])),
        7 => format!("NOT ({})", condition(random, depth - 1)),
        8 => format!("({}) AND {a} OR {b}", condition(random, depth - 1)),
        _ => format!(
            "({}) XOR ({})",
            condition(random, depth - 1),
            condition(random, depth - 1)
        ),
    }
}

#[test]
fn as_where_does() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let site = QueueSite::start(&[]);
    let mut session = site.session();
    let columns = COLUMNS
        .map(|(name, kind)| format!("{name} {kind}"))
        .join(", ");
    session
        .run(&format!(
            "CREATE TABLE q (n INT NOT NULL, {columns}) ENGINE=QUEUE"
        ))
        .unwrap();
    for n in 0..40 {
        let row = COLUMNS.map(|(name, _)| cell(&mut random, name)).join(", ");
        session
            .run(&format!("INSERT INTO q VALUES ({n}, {row})"))
            .unwrap();
    }
    let chosen = |session: &mut Session, sql: &str| {
        let rows = session.rows(sql).map_err(|why| why.chain())?;
        let numbers = rows.iter().map(|row| row.at(0).unwrap_or("").to_owned());
        Ok::<Vec<String>, String>(numbers.collect())
    };
    let mut compared = 0;
    for _ in 0..400 {
        let text = condition(&mut random, 2);
        // What the server has no number for is an error there.
        let Ok(expected) = chosen(&mut session, &format!("SELECT n FROM q WHERE {text}")) else {
            continue;
        };
        let waited = chosen(
            &mut session,
            &format!("SELECT queue_wait_n('q:{text}', 100, 0)"),
        );
        let found = chosen(&mut session, "SELECT n FROM q").unwrap();
        chosen(&mut session, "SELECT queue_abort()").unwrap();
        let other = |n: &&String| !found.contains(n) || !expected.contains(n);
        if let Some(n) = expected.iter().chain(&found).find(other) {
            let row = session
                .rows(&format!("SELECT * FROM q WHERE n = {n}"))
                .unwrap();
            panic!("{text} ({waited:?}): {row:?} is chosen by one");
        }
        compared += 1;
    }
    println!("{compared} conditions compared");
    assert!(compared > 200, "{compared}");
}
