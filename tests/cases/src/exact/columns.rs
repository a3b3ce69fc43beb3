//! A column of every type, and values for it: extreme ones, and those that some way of writing them down loses.

use crate::generated::{self, PIECES, decimal, double, hex, moment, pick, rest};
use evenkeel_server::connect::quote;
use fastrand::Rng;

/// Draws a value, as it stands in an INSERT.
type Value = Box<dyn Fn(&mut Rng) -> String>;

/// How a column can be part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Whole,
    /// Its beginning, in characters or bytes.
    Prefix(u32),
    Spatial,
    No,
}

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    /// The type, with what belongs to it.
    pub(super) sql: String,
    pub(super) key: Key,
    value: Value,
    /// Times that say nothing of NULL have a default of the server's own.
    is_timestamp: bool,
}

impl Column {
    fn new(sql: impl Into<String>, key: Key, value: impl Fn(&mut Rng) -> String + 'static) -> Self {
        Self {
            name: String::new(),
            sql: sql.into(),
            key,
            value: Box::new(value),
            is_timestamp: false,
        }
    }

    /// Returns the definition, and values that may be NULL or not.
    pub(super) fn defined(&self, nullable: bool) -> String {
        let end = match (nullable, self.is_timestamp) {
            (true, true) => " NULL DEFAULT NULL",
            (true, false) => "",
            (false, true) => " NOT NULL DEFAULT '2026-01-01 00:00:00'",
            (false, false) => " NOT NULL",
        };
        format!("{}{end}", self.sql)
    }

    pub(super) fn value(&self, nullable: bool, random: &mut Rng) -> String {
        match nullable && random.u32(0..6) == 0 {
            true => "NULL".to_owned(),
            false => (self.value)(random),
        }
    }
}

/// A column of each type of numbers.
pub(super) fn numbers(negative_zero: bool, random: &mut Rng) -> Vec<Column> {
    let mut all = whole_numbers(random);
    all.extend(decimals(random));
    all.extend(floats(negative_zero));
    for bits in [1, 64, random.u32(2..64)] {
        let value = move |random: &mut Rng| {
            let drawn = random.u64(..);
            let some = pick(random, &[0, 1, u64::MAX, drawn, 0x090A_0D5C_0027]);
            (some & (u64::MAX >> (64 - bits))).to_string()
        };
        all.push(Column::new(format!("BIT({bits})"), Key::Whole, value));
    }
    all.push(Column::new("BOOL", Key::Whole, |random| {
        pick(random, &["TRUE", "FALSE", "-128"]).to_owned()
    }));
    all.push(Column::new("YEAR", Key::Whole, |random| {
        pick(random, &["0", "1901", "2155", "1999"]).to_owned()
    }));
    all
}

fn whole_numbers(random: &mut Rng) -> Vec<Column> {
    let mut all = Vec::new();
    for (bits, word) in [
        (8, "TINYINT"),
        (16, "SMALLINT"),
        (24, "MEDIUMINT"),
        (32, "INT"),
        (64, "BIGINT"),
    ] {
        all.push(Column::new(word, Key::Whole, move |random| {
            let most = (1i128 << (bits - 1)) - 1;
            pick(random, &[0, 1, -1, most, -most - 1, most / 3]).to_string()
        }));
        let end = pick(random, &[" UNSIGNED", " UNSIGNED ZEROFILL"]);
        let value = move |random: &mut Rng| {
            let most = (1i128 << bits) - 1;
            pick(random, &[0, 1, most, most / 2 + 1, most / 5]).to_string()
        };
        all.push(Column::new(format!("{word}{end}"), Key::Whole, value));
    }
    all
}

fn decimals(random: &mut Rng) -> Vec<Column> {
    let mut all = Vec::new();
    for (digits, after, end) in [
        (65, 30, ""),
        (1, 0, ""),
        (30, 30, ""),
        (random.u32(31..=65), random.u32(0..=30), ""),
        (10, 2, " UNSIGNED"),
    ] {
        let value = move |random: &mut Rng| {
            let text = decimal(digits, after, random);
            match end {
                "" => text,
                _ => text.trim_start_matches('-').to_owned(),
            }
        };
        let sql = format!("DECIMAL({digits},{after}){end}");
        all.push(Column::new(sql, Key::Whole, value));
    }
    all
}

fn floats(negative_zero: bool) -> Vec<Column> {
    let zero = move |text: String| match text.parse() {
        Ok(0.0) if !negative_zero => "0".to_owned(),
        _ => text,
    };
    let float = move |random: &mut Rng| {
        let drawn = f32::from_bits(random.u32(..));
        let drawn = if drawn.is_normal() { drawn } else { 0.3 };
        let all = [
            0.0,
            -0.0,
            0.1,
            16_777_217.0,
            f32::MAX,
            f32::MIN_POSITIVE,
            drawn,
        ];
        zero(format!("{:e}", pick(random, &all)))
    };
    let cut = |random: &mut Rng| pick(random, &["0", "9999.999", "-9999.999", "0.001"]).to_owned();
    vec![
        Column::new("FLOAT", Key::No, float),
        Column::new("FLOAT(7,3)", Key::No, cut),
        Column::new("DOUBLE", Key::No, move |random| zero(double(random))),
        Column::new("DOUBLE(12,4)", Key::No, cut),
        Column::new("DOUBLE UNSIGNED", Key::No, |random| {
            pick(random, &["0", "1.7976931348623157e308", "5e-324", "0.1"]).to_owned()
        }),
    ]
}

/// A column of each type of times.
pub(super) fn times() -> Vec<Column> {
    let mut all = vec![Column::new("DATE", Key::Whole, |random| {
        let drawn = generated::date(random);
        quote(pick(
            random,
            &["2024-00-00", "0001-00-31", "0000-01-01", &drawn],
        ))
    })];
    for after in 0..=6 {
        all.push(Column::new(
            format!("DATETIME({after})"),
            Key::Whole,
            move |random| {
                let drawn = format!("{}{}", moment(random), rest(after, random));
                quote(pick(
                    random,
                    &["0000-00-00 00:00:00", "2024-00-00 00:00:00", &drawn, &drawn],
                ))
            },
        ));
        let stamp = move |random: &mut Rng| {
            let at = pick(
                random,
                &[
                    "1970-01-01 00:00:01",
                    "2038-01-19 03:14:07",
                    "2026-03-29 01:30:00",
                    "0000-00-00 00:00:00",
                ],
            );
            match at.starts_with("00") {
                true => quote(at),
                false => quote(&format!("{at}{}", rest(after, random))),
            }
        };
        let mut column = Column::new(format!("TIMESTAMP({after})"), Key::Whole, stamp);
        column.is_timestamp = true;
        all.push(column);
        all.push(Column::new(
            format!("TIME({after})"),
            Key::Whole,
            move |random| generated::time(after, random),
        ));
    }
    all
}

/// Columns of a character set: one short, and two of other types.
pub(super) fn texts(charset: &str, collation: &str, random: &mut Rng) -> Vec<Column> {
    let own = format!(" CHARACTER SET {charset} COLLATE {collation}");
    let mut all = Vec::new();
    let long = ["CHAR(20)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"];
    for sql in ["VARCHAR(40)", pick(random, &long), pick(random, &long)] {
        let is_short = sql.ends_with(')');
        let most = if is_short { 20 } else { 60 };
        let charset = charset.to_owned();
        let key = if is_short {
            Key::Whole
        } else {
            Key::Prefix(11)
        };
        all.push(Column::new(format!("{sql}{own}"), key, move |random| {
            text(&charset, most, random)
        }));
    }
    all
}

/// Draws a text of a character set: of characters, or where each byte is one, of bytes.
fn text(charset: &str, most: usize, random: &mut Rng) -> String {
    const MANY: [&str; 18] = [
        "big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ucs2", "ujis",
        "utf16", "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4", "ascii", "swe7",
    ];
    let length = random.usize(0..=most);
    if !MANY.contains(&charset) && random.bool() {
        let drawn: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        return format!("X'{}'", hex(&drawn));
    }
    let mut drawn = String::new();
    while drawn.chars().count() < length {
        drawn.push_str(pick(random, &PIECES));
        drawn.push_str(pick(
            random,
            &["", "ß", "ツ", "ソ", "功", "я", "\u{7f}", "\u{a0}"],
        ));
    }
    let drawn: String = drawn.chars().take(most).collect();
    format!(
        "CONVERT(_utf8mb4 X'{}' USING {charset})",
        hex(drawn.as_bytes())
    )
}

/// A column of each type of bytes.
pub(super) fn bytes(random: &mut Rng) -> Vec<Column> {
    let short = random.u32(2..60);
    let all = [
        ("BINARY(1)".to_owned(), Key::Whole, 1),
        (format!("BINARY({short})"), Key::Whole, short),
        (format!("VARBINARY({short})"), Key::Whole, short),
        ("TINYBLOB".to_owned(), Key::Prefix(9), 255),
        ("BLOB".to_owned(), Key::Prefix(9), 3000),
        ("MEDIUMBLOB".to_owned(), Key::No, 70_000),
        ("LONGBLOB".to_owned(), Key::No, 100),
    ];
    let column = |(sql, key, most): (String, Key, u32)| {
        Column::new(sql, key, move |random| generated::bytes(most, random))
    };
    all.into_iter().map(column).collect()
}

/// Columns of members, where numbers say more than texts.
pub(super) fn members(random: &mut Rng) -> Vec<Column> {
    let charset = pick(random, &["latin1", "utf8mb4", "utf16", "sjis", "ucs2"]);
    let own = format!(" CHARACTER SET {charset} COLLATE {charset}_bin");
    let enumeration = |most: u32| move |random: &mut Rng| random.u32(0..=most).to_string();
    let many: Vec<String> = (1..=64).map(|nth| format!("'m{nth}'")).collect();
    let set = |bits: u32| {
        move |random: &mut Rng| {
            let drawn = random.u64(..);
            (pick(random, &[0, 1, u64::MAX, drawn]) & (u64::MAX >> (64 - bits))).to_string()
        }
    };
    vec![
        Column::new(
            "ENUM('a','b''c','D\\\\e','表','x y') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            Key::Whole,
            enumeration(5),
        ),
        Column::new(format!("ENUM('a','','b'){own}"), Key::Whole, enumeration(3)),
        Column::new(
            format!("ENUM('2','1','0'){own}"),
            Key::Whole,
            enumeration(3),
        ),
        Column::new(format!("SET('a','b''c','D\\\\e'){own}"), Key::Whole, set(3)),
        Column::new(format!("SET('','1','2'){own}"), Key::Whole, set(3)),
        Column::new(format!("SET({})", many.join(",")), Key::Whole, set(64)),
    ]
}

/// Documents.
pub(super) fn documents() -> Vec<Column> {
    vec![Column::new("JSON", Key::No, generated::json)]
}

/// A column of each spatial type.
pub(super) fn shapes() -> Vec<Column> {
    const SHAPES: [(&str, &str); 7] = [
        ("POINT", "POINT(1 2)"),
        ("LINESTRING", "LINESTRING(0 0,1 1,0.1 0.2)"),
        ("POLYGON", "POLYGON((0 0,4 0,4 4,0 0))"),
        ("MULTIPOINT", "MULTIPOINT(0 0,1 1)"),
        ("MULTILINESTRING", "MULTILINESTRING((0 0,1 1),(2 2,3 3))"),
        ("MULTIPOLYGON", "MULTIPOLYGON(((0 0,4 0,4 4,0 0)))"),
        (
            "GEOMETRYCOLLECTION",
            "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
        ),
    ];
    let made = |shape: &str, random: &mut Rng| {
        let srid = pick(random, &[0, 4326, 3857]);
        format!("ST_GeomFromText('{shape}', {srid})")
    };
    let mut all = vec![Column::new("GEOMETRY", Key::Spatial, move |random| {
        let (_, shape) = pick(random, &SHAPES);
        match random.u32(0..5) {
            0 => "ST_GeomFromText('POINT(-1e-300 1e300)')".to_owned(),
            _ => made(shape, random),
        }
    })];
    for (sql, shape) in SHAPES {
        all.push(Column::new(sql, Key::Spatial, move |random| {
            made(shape, random)
        }));
    }
    all
}
