//! Do servers find the same placeholders in a statement as the tokens say, whatever surrounds them?

use evenkeel_op::Cancel;
use evenkeel_sql::{Mode, Wide, code};
use evenkeel_testkit::{Scratch, TestServer, effort, servers};
use evenkeel_wire::Connection;
use std::fmt::Write as _;

/// What may stand between two commas of a SELECT, for every mode.
const ITEMS: [&[u8]; 24] = [
    b"?",
    b"'?'",
    b"'it''s ?'",
    b"'a\\\\'",
    b"N'?'",
    b"X'3F'",
    b"_utf8'?'",
    b"1 AS `?`",
    b"1 AS `a``\\`",
    b"1 AS \"?\"",
    b"1 AS \"a\"\"?\"",
    b"1--?",
    b"1 -- it's ?\n",
    b"1 --\t'\n",
    b"1 --\x01it's ?\n",
    b"1 # \"?\n",
    b"/* '? */ ?",
    b"/*! ? */",
    b"/*!40101 ? + */ 1",
    b"/*!50000 '?', /* ' */ */ ?",
    b"/*! /*! 1 */ + 2*/*it's ?*/3",
    b"1 + 2*/*it's ?*/3",
    b"1.5e-3+.5-?",
    b"@a:=?",
];
const ESCAPED: [&[u8]; 3] = [b"'a\\'?'", b"'\\\\', ?", b"'a\\'', ?, '?'"];
const UNESCAPED: [&[u8]; 2] = [b"'\\', ?", b"'a\\\\', ?, 'b\\'"];
/// Characters whose second byte is a backslash, a bar, a backtick.
const OF_GBK: [&[u8]; 4] = [
    b"'\x81\x5c', ?",
    b"'\x81\x7c'",
    b"1 AS `\x81\x60`, ?",
    b"1 AS \x81\x5c",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02X}").unwrap();
    }
    text
}

/// Has the server execute a statement with so many values.
fn runs(connection: &mut Connection, sql: &[u8], wide: Wide, values: usize) -> Result<(), String> {
    let set = if wide == Wide::Gbk { "gbk" } else { "utf8" };
    let values = vec!["@v"; values].join(",");
    let using = if values.is_empty() { "" } else { " USING " };
    for step in [
        format!(
            "SET @v = 1, @sql = CONVERT(X'{}' USING {set})",
            hexadecimal(sql)
        ),
        "PREPARE s FROM @sql".to_owned(),
    ] {
        connection.run(&step).map_err(|error| error.chain())?;
    }
    let execute = format!("EXECUTE s{using}{values}");
    let mut rows = connection.query(&execute).map_err(|error| error.chain())?;
    while rows.next().map_err(|error| error.chain())?.is_some() {}
    Ok(())
}

fn agree(server: &TestServer) {
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("data"), &[]);
    let mut connection = Connection::open(&running.connect_options(), &Cancel::new()).unwrap();
    let seed = effort::seed();
    let mut dice = Dice(seed);
    for (names, wide) in [
        ("", Wide::No),
        ("ANSI_QUOTES", Wide::No),
        ("NO_BACKSLASH_ESCAPES", Wide::No),
        ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", Wide::No),
        ("", Wide::Gbk),
        ("NO_BACKSLASH_ESCAPES", Wide::Gbk),
    ] {
        let mode = Mode {
            wide,
            ..Mode::of(names)
        };
        let set = if wide == Wide::Gbk { "gbk" } else { "utf8" };
        connection
            .run(&format!("SET NAMES {set}, sql_mode = '{names}'"))
            .unwrap();
        let mut items = ITEMS.to_vec();
        items.extend(if mode.no_backslash_escapes {
            &UNESCAPED[..]
        } else {
            &ESCAPED[..]
        });
        if wide == Wide::Gbk {
            items.extend(OF_GBK);
        }
        // Each by itself first, with one behind it that what does not end would hide.
        let alone = items
            .iter()
            .map(|item| vec![*item, b"?"])
            .collect::<Vec<_>>();
        let rounds = effort::rounds("statements", 60, 2000);
        let mixed = (0..rounds).map(|_| {
            let count = 2 + dice.below(6);
            (0..count).map(|_| items[dice.below(items.len())]).collect()
        });
        for chosen in alone.into_iter().chain(mixed) {
            let sql = [b"SELECT ", &chosen.join(&b", "[..])[..], b"\nFROM DUAL"].concat();
            let count = code(&sql, mode).filter(|token| token.is_sign(b'?')).count();
            let result = runs(&mut connection, &sql, wide, count);
            let shown = sql.escape_ascii();
            assert!(
                result.is_ok(),
                "seed {seed}, mode {names:?} {wide:?}: {shown}: {result:?}"
            );
        }
    }
}

#[test]
fn of_every_server() {
    for server in servers() {
        agree(&server);
    }
}
