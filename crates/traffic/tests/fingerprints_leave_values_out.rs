//! Do statements that differ in their values only have the same fingerprint, and no values in it?

use evenkeel_traffic::digest::fingerprint::{
    Mode, Rules, fingerprint, percona, prepared, redacted,
};
use proptest::prelude::*;

fn of(sql: &str) -> String {
    fingerprint(sql.as_bytes(), false, Rules::Evenkeel, Mode::default()).text
}

fn pt(sql: &str) -> String {
    String::from_utf8(percona(sql.as_bytes())).unwrap()
}

#[test]
fn values_are_left_out() {
    for (sql, expected) in [
        ("SELECT 1", "select ?"),
        (
            "select  *\nFROM t WHERE a='x''y' AND b=\"z\\\"\" ",
            "select * from t where a = ? and b = ?",
        ),
        (
            "SELECT * FROM `Shop`.`Order` o WHERE o.Id = -5",
            "select * from shop.`Order` o where o.id = ?",
        ),
        (
            "select * from s2compiled, sbtest1 where 1st = 0xAB",
            "select * from s2compiled, sbtest1 where 1st = ?",
        ),
        (
            "select a - 5, a -5, -5 - a, 1.5e-3, .5, 1e10, 0b11, b.c",
            "select a - ?, a - ?, ? - a, ?, ?, ?, ?, b.c",
        ),
        (
            "select x'ab', N'a', _utf8mb4'x', 'a' 'b', DATE '2020-01-01'",
            "select ?, ?, ?, ?, date ?",
        ),
        (
            "select count(*), now() from t where a is null and b = true",
            "select count(*), now() from t where a is null and b = true",
        ),
        (
            "select @a, @@session.sql_mode, u@localhost",
            "select @a, @@session.sql_mode, u @localhost",
        ),
        ("select a from t limit 5", "select a from t limit ?"),
        ("select a from t limit 5, 10", "select a from t limit ?"),
        (
            "select a from t limit 5 offset 10;",
            "select a from t limit ?",
        ),
        (
            "SELECT /* a 'comment */ /*+ HINT(1) */ 1 -- x\n# y\n, 2",
            "select ?, ?",
        ),
        (
            "SET /*!40101 a = 1 */, /*M!100108 b = 2 */ /* c */",
            "set a = ?, b = ?",
        ),
        ("select 1 --2", "select ? - ?"),
        (
            "update t set a = 5 where b = 'c' order by d ASC",
            "update t set a = ? where b = ? order by d asc",
        ),
        (
            "select `a b`, `x``y`, ``, `2`",
            "select `a b`, `x``y`, ``, `2`",
        ),
        ("select 'never ends", "select ?"),
        ("select `never ends", "select ?"),
        ("", ""),
        (";;", ""),
    ] {
        assert_eq!(of(sql), expected, "{sql}");
    }
}

#[test]
fn lists_are_one() {
    for (sql, expected) in [
        (
            "select * from t where a in (1)",
            "select * from t where a in (...)",
        ),
        (
            "select * from t where a in (1,-2, 'c',NULL)",
            "select * from t where a in (...)",
        ),
        (
            "select * from t where (a, b) in ((1,2),(3,4))",
            "select * from t where (a, b) in (...)",
        ),
        (
            "select * from t where (a, b) = (1, 2)",
            "select * from t where (a, b) = (?, ?)",
        ),
        ("select f(1, 2)", "select f(?, ?)"),
        (
            "select * from t where a in (select b from u where c in (1, 2))",
            "select * from t where a in (select b from u where c in (...))",
        ),
        (
            "INSERT INTO t (a, b) VALUES (1,2),(3,DEFAULT) , (5,6)",
            "insert into t(a, b) values (...)",
        ),
        (
            "INSERT INTO t VALUES (1, now()), (2, now()), (3, now())",
            "insert into t values (?, now())",
        ),
        (
            "INSERT INTO t VALUES ROW(1, 2), ROW(3, 4)",
            "insert into t values row (...)",
        ),
        (
            "insert t value (1) on duplicate key update b = values(b) + 1",
            "insert t value (...) on duplicate key update b = values (b) + ?",
        ),
        (
            "select 1 union select 2 union select 3",
            "select ? union select ?",
        ),
        (
            "select a from t union all select b from t union all select b from t",
            "select a from t union all select b from t",
        ),
        (
            "select * from (select 1 union select 2 union select 3) x",
            "select * from (select ? union select ?) x",
        ),
    ] {
        assert_eq!(of(sql), expected, "{sql}");
    }
}

#[test]
fn what_is_cut_is_of_the_same_class() {
    let full = b"insert into t (a, b) values (1, 'x'), (2, 'y'), (3, 'z')";
    let rule = |sql: &[u8], is_cut| fingerprint(sql, is_cut, Rules::Evenkeel, Mode::default()).id;
    for length in 32..full.len() {
        assert_eq!(rule(&full[..length], true), rule(full, false), "{length}");
    }
    let list = b"select a from t where b in (1, 2, 3)";
    assert_eq!(rule(&list[..33], true), rule(list, false));
}

#[test]
fn quotes_mean_what_the_mode_says() {
    let ansi = Mode {
        ansi_quotes: true,
        ..Mode::default()
    };
    let plain = Mode {
        no_backslash_escapes: true,
        ..Mode::default()
    };
    let of = |sql: &str, mode| fingerprint(sql.as_bytes(), false, Rules::Evenkeel, mode).text;
    assert_eq!(of("select \"a\", \"b c\"", ansi), "select a, `b c`");
    assert_eq!(of(r"select 'a\', b, 'c'", plain), "select ?, b, ?");
}

#[test]
fn identifiers_never_change() {
    let id = |sql: &str, rules| fingerprint(sql.as_bytes(), false, rules, Mode::default()).id;
    assert_eq!(
        id("SELECT * FROM t WHERE a = 1", Rules::Evenkeel),
        id("select * from t where a=?", Rules::Evenkeel)
    );
    assert_eq!(id("SELECT 1", Rules::Evenkeel), "de051a8eecb4c4a0");
    assert_eq!(
        id("SELECT 1", Rules::Percona),
        "1FE1379FE2A31B8D16219655761820A2"
    );
}

#[test]
fn what_is_prepared_is_found() {
    let mode = Mode::default();
    let found = prepared(
        br"PREPARE p FROM 'select \'a\', ''b'' from t where c = ?'",
        mode,
    );
    assert_eq!(
        found.as_deref(),
        Some(&b"select 'a', 'b' from t where c = ?"[..])
    );
    assert_eq!(prepared(b"PREPARE p FROM ...", mode), None);
    assert_eq!(prepared(b"prepare p from @sql", mode), None);
    assert_eq!(prepared(b"select 1", mode), None);
}

#[test]
fn secrets_are_not_shown() {
    let safe = |sql: &str| String::from_utf8(redacted(sql.as_bytes(), Mode::default())).unwrap();
    for sql in [
        "CREATE USER u IDENTIFIED BY 'hunter2'",
        "ALTER USER u IDENTIFIED WITH x AS \"hunter2\" REQUIRE SSL",
        "SET PASSWORD FOR u = PASSWORD('hunter2')",
        "set password = 'hunter2",
        "CHANGE MASTER TO MASTER_PASSWORD='hunter2', MASTER_HOST='h'",
        "PREPARE p FROM 'SET PASSWORD = ''hunter2'''",
        "CREATE USER u IDENTIFIED BY 'a\\'hunter2'",
    ] {
        let shown = safe(sql);
        assert!(
            !shown.contains("hunter2") && shown.contains("'***'"),
            "{shown}"
        );
    }
    assert_eq!(safe("SELECT 'x'"), "SELECT 'x'");
    // Clients may begin a statement as a log names a command.
    let sql = b"administrator command: x\nALTER USER u IDENTIFIED BY 'hunter2'";
    let print = fingerprint(sql, false, Rules::Evenkeel, Mode::default());
    assert!(!print.text.contains("hunter2"), "{}", print.text);
}

#[test]
fn perconas_rules_are_perconas() {
    for (sql, expected) in [
        (
            "SELECT c FROM t WHERE id=5 AND b='it''s'",
            "select c from t where id=? and b=??",
        ),
        (
            "select * from s2compiled, sbtest1",
            "select * from s?ompiled, sbtest?",
        ),
        (
            "INSERT INTO t (a) VALUES (1), (2) ON DUPLICATE KEY UPDATE a=1",
            "insert into t (a) values(?+)",
        ),
        (
            "select a from t where b IN ((1,2),(3,4))",
            "select a from t where b in ((?,?),(?,?))",
        ),
        (
            "select a from t where b IN (1, 2,3)",
            "select a from t where b in(?+)",
        ),
        (
            "select 1 union all select 2 union all select 3",
            "select ? /*repeat union all*/",
        ),
        (
            "select a from t order by b ASC, c asc limit 5, 10",
            "select a from t order by b, c limit ?",
        ),
        ("USE `shop`", "use ?"),
        ("CALL shop.pay(1, 2)", "call shop.pay"),
        ("select /* x */ null, true -- y", "select ?, ? "),
        ("administrator command: Ping", "administrator command: Ping"),
    ] {
        assert_eq!(pt(sql), expected, "{sql}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn any_bytes_have_one(bytes in proptest::collection::vec(any::<u8>(), 0..200), is_cut: bool) {
        let _ = fingerprint(&bytes, is_cut, Rules::Evenkeel, Mode::default());
        let _ = fingerprint(&bytes, is_cut, Rules::Percona, Mode::default());
        let _ = redacted(&bytes, Mode::default());
        let _ = prepared(&bytes, Mode::default());
    }

    /// Fingerprints are their own.
    #[test]
    fn a_fingerprint_is_its_own(pieces in proptest::collection::vec(piece(), 0..30), ansi_quotes: bool) {
        let mode = Mode { ansi_quotes, ..Mode::default() };
        let sql = pieces.concat();
        let once = fingerprint(sql.as_bytes(), false, Rules::Evenkeel, mode).text;
        let twice = fingerprint(once.as_bytes(), false, Rules::Evenkeel, mode).text;
        prop_assert_eq!(once, twice, "{}", sql);
    }

    #[test]
    fn values_never_survive(pieces in proptest::collection::vec(piece(), 0..30), at in 0..30usize) {
        // Between spaces, outside of quotes and comments.
        let safe = |piece: &&String| !piece.contains(['\'', '"', '`', '#', '/', '*', '-', '\\', '@', '.']);
        let mut pieces: Vec<String> = pieces.iter().filter(safe).map(|piece| format!(" {piece} ")).collect();
        let at = at.min(pieces.len());
        pieces.insert(at, " 'qqqq' , 77777 , \"qqqq\", x'7777', 7777.7777e7 ".to_owned());
        let text = of(&pieces.concat());
        prop_assert!(!text.contains("qqqq") && !text.contains("777"), "{}", text);
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words = [
        "select",
        "from",
        "in",
        "values",
        "(",
        ")",
        ",",
        ".",
        " ",
        "\n",
        "a",
        "t1",
        "1",
        "'x'",
        "\"y\"",
        "`z`",
        "`in`",
        "limit",
        "offset",
        "union",
        "all",
        "row",
        "-",
        "+",
        "--",
        "-- ",
        "#",
        "/*",
        "*/",
        "/*!",
        "/*!50100 ",
        "@",
        "@@a.b",
        "?",
        "(...)",
        "...",
        "'",
        "`",
        "\"",
        "\\",
        "null",
        "5.5",
        "1e5",
        "1st",
        ";",
        "é",
        "_utf8",
        "x'",
        "=",
        "<=",
        ">",
        ":=",
        "default",
        "0x1f",
        "f(1, 2)",
        "(1,2)",
        "(now())",
        ", (now())",
        "value",
        "prepare",
    ];
    prop_oneof![
        8 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => ".{0,3}",
    ]
}
