//! Schemas and rows drawn by chance, within what MariaDB 10.11, MySQL 8.0.15 and 5.7.22 can all hold.

use evenkeel_server::connect::{Session, quote, quote_name};
use fastrand::Rng;

/// Tables of a schema.
const TABLES: usize = 10;
/// Columns of a table, at most, beside those of its key.
const COLUMNS: usize = 9;
/// Kinds of columns, as [`ColumnKind::nth`] counts them.
const KINDS: usize = 22;
/// What names are made of.
const LETTERS: [&str; 14] = [
    "a", "B", "_", "0", "$", " x", "`", "'", "\"", "\\", "%", ".", "é", "表",
];
/// What texts are made of: each is lost or changed by some way of writing them down.
pub(crate) const PIECES: [&str; 22] = [
    "a",
    "Z",
    "7",
    " ",
    "\\",
    "'",
    "\"",
    "`",
    "\n",
    "\r",
    "\t",
    "\0",
    "\u{1a}",
    "%",
    "_",
    ",",
    ";",
    "\\N",
    "NULL",
    "é",
    "表",
    "\u{1f600}",
];
/// Character sets with collations that all three servers know.
const TEXTS: [(&str, &str); 8] = [
    ("utf8mb4", "utf8mb4_general_ci"),
    ("utf8mb4", "utf8mb4_bin"),
    ("utf8mb4", "utf8mb4_unicode_520_ci"),
    ("latin1", "latin1_swedish_ci"),
    ("latin1", "latin1_bin"),
    ("utf8", "utf8_unicode_ci"),
    ("utf16", "utf16_general_ci"),
    ("sjis", "sjis_japanese_ci"),
];
/// Members of enumerations and sets.
const MEMBERS: &str = "('a','b''c','D\\\\e','','表')";
const SET_MEMBERS: &str = "('a','b''c','D\\\\e','f g','表')";

/// A schema, as statements that make it.
#[derive(Debug)]
pub struct Generated {
    /// Its name.
    pub schema: String,
    statements: Vec<String>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    /// Bits, and whether it has a sign.
    Integer(u32, bool),
    Decimal(u32, u32),
    Float,
    Double,
    Bit(u32),
    Year,
    Date,
    DateTime(u32),
    Timestamp(u32),
    Time(u32),
    /// Characters, none for TEXT, and which of `TEXTS`.
    Text(Option<u32>, usize),
    /// Bytes, none for BLOB, and whether all have that length.
    Bytes(Option<u32>, bool),
    Enum,
    Set,
    Json,
    Geometry,
}

/// A column.
#[derive(Debug)]
struct Column {
    name: String,
    kind: ColumnKind,
    nullable: bool,
}

pub(crate) fn pick<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(0..all.len())]
}

impl ColumnKind {
    fn draw(random: &mut Rng) -> Self {
        let which = random.usize(0..KINDS);
        Self::nth(which, random)
    }

    /// One of each kind, by number.
    fn nth(which: usize, random: &mut Rng) -> Self {
        let fraction = pick(random, &[0, 1, 3, 6]);
        match which {
            0..4 => Self::key(random),
            4 => {
                let digits = random.u32(1..=40);
                Self::Decimal(digits, random.u32(0..=digits.min(30)))
            }
            5 => Self::Float,
            6 => Self::Double,
            7 => Self::Bit(random.u32(1..=64)),
            8 => Self::Year,
            9 => Self::Date,
            10 => Self::DateTime(fraction),
            11 => Self::Timestamp(fraction),
            12 => Self::Time(fraction),
            13 => Self::Text(None, random.usize(0..TEXTS.len())),
            14..16 => Self::Text(Some(random.u32(1..60)), random.usize(0..TEXTS.len())),
            16 => Self::Bytes(None, false),
            17 => Self::Bytes(Some(random.u32(1..60)), random.bool()),
            18 => Self::Enum,
            19 => Self::Set,
            20 => Self::Json,
            _ => Self::Geometry,
        }
    }

    /// Of a column that rows can be found by.
    fn key(random: &mut Rng) -> Self {
        match random.u32(0..12) {
            0..5 => Self::Integer(pick(random, &[8, 16, 24, 32, 64]), random.bool()),
            5 => Self::Text(Some(random.u32(4..30)), random.usize(0..TEXTS.len())),
            6 => Self::Bytes(Some(random.u32(4..30)), random.bool()),
            7 => Self::Date,
            8 => Self::DateTime(pick(random, &[0, 3, 6])),
            9 => Self::Decimal(20, 6),
            10 => Self::Enum,
            _ => Self::Time(2),
        }
    }

    fn sql(self) -> String {
        let text = |at: usize| format!("CHARACTER SET {} COLLATE {}", TEXTS[at].0, TEXTS[at].1);
        match self {
            Self::Integer(bits, signed) => {
                let name = match bits {
                    8 => "TINYINT",
                    16 => "SMALLINT",
                    24 => "MEDIUMINT",
                    32 => "INT",
                    _ => "BIGINT",
                };
                format!("{name}{}", if signed { "" } else { " UNSIGNED" })
            }
            Self::Decimal(digits, after) => format!("DECIMAL({digits},{after})"),
            Self::Float => "FLOAT".to_owned(),
            Self::Double => "DOUBLE".to_owned(),
            Self::Bit(bits) => format!("BIT({bits})"),
            Self::Year => "YEAR".to_owned(),
            Self::Date => "DATE".to_owned(),
            Self::DateTime(after) => format!("DATETIME({after})"),
            Self::Timestamp(after) => format!("TIMESTAMP({after})"),
            Self::Time(after) => format!("TIME({after})"),
            Self::Text(Some(length), at) => format!("VARCHAR({length}) {}", text(at)),
            Self::Text(None, at) => format!("TEXT {}", text(at)),
            Self::Bytes(Some(length), true) => format!("BINARY({length})"),
            Self::Bytes(Some(length), false) => format!("VARBINARY({length})"),
            Self::Bytes(None, _) => "MEDIUMBLOB".to_owned(),
            Self::Enum => format!("ENUM{MEMBERS} {}", text(0)),
            Self::Set => format!("SET{SET_MEMBERS} {}", text(0)),
            Self::Json => "JSON".to_owned(),
            Self::Geometry => "GEOMETRY".to_owned(),
        }
    }

    /// Returns a value as it stands in an INSERT, an extreme one often.
    fn value(self, random: &mut Rng) -> String {
        match self {
            Self::Integer(bits, true) => {
                let most = (1i128 << (bits - 1)) - 1;
                let drawn = i128::from(random.i8(-100..100));
                pick(random, &[0, 1, -1, most, -most - 1, drawn]).to_string()
            }
            Self::Integer(bits, false) => {
                let most = (1i128 << bits) - 1;
                let drawn = i128::from(random.u8(..200));
                pick(random, &[0, 1, most, most / 2 + 1, drawn]).to_string()
            }
            Self::Decimal(digits, after) => decimal(digits, after, random),
            Self::Float => pick(
                random,
                &[
                    "0",
                    "-0e0",
                    "0.1",
                    "16777217",
                    "3.4e38",
                    "-1.17549e-38",
                    "33554430",
                ],
            )
            .to_owned(),
            Self::Double => double(random),
            Self::Bit(bits) => {
                let ones = u64::MAX >> (64 - bits);
                let drawn = random.u64(..);
                (pick(random, &[0, 1, u64::MAX, drawn]) & ones).to_string()
            }
            Self::Year => pick(random, &["0", "1901", "2155", "1999"]).to_owned(),
            Self::Date => quote(&date(random)),
            Self::DateTime(after) => quote(&format!("{}{}", moment(random), rest(after, random))),
            Self::Timestamp(after) => {
                let at = pick(
                    random,
                    &[
                        "1970-01-01 00:00:01",
                        "2038-01-19 03:14:07",
                        "2026-03-29 01:30:00",
                    ],
                );
                quote(&format!("{at}{}", rest(after, random)))
            }
            Self::Time(after) => time(after, random),
            Self::Text(length, _) => text(length, random),
            Self::Bytes(length, _) => bytes(length.unwrap_or(3000), random),
            Self::Enum => random.u32(1..=5).to_string(),
            Self::Set => random.u32(0..32).to_string(),
            Self::Json => json(random),
            Self::Geometry => geometry(random),
        }
    }
}

pub(crate) fn decimal(digits: u32, after: u32, random: &mut Rng) -> String {
    let mut text = String::new();
    if random.bool() {
        text.push('-');
    }
    for place in 0..digits {
        if place == digits - after {
            text.push('.');
        }
        let digit = if random.bool() { 9 } else { random.u32(0..10) };
        text.push_str(&digit.to_string());
    }
    // Without digits before the point it begins with the point, which is read all the same.
    text.trim_end_matches('.').to_owned()
}

pub(crate) fn double(random: &mut Rng) -> String {
    let drawn = f64::from_bits(random.u64(..));
    let drawn = if drawn.is_finite() { drawn } else { 0.1 };
    let all = [0.0, -0.0, 0.1, f64::MAX, f64::MIN_POSITIVE, -5e-324, drawn];
    format!("{:e}", pick(random, &all))
}

pub(crate) fn date(random: &mut Rng) -> String {
    let drawn = format!(
        "{:04}-{:02}-{:02}",
        random.u32(1000..9999),
        random.u32(1..=12),
        random.u32(1..=28)
    );
    pick(
        random,
        &[
            "0000-00-00",
            "1000-01-01",
            "9999-12-31",
            "2024-02-30",
            &drawn,
        ],
    )
    .to_owned()
}

pub(crate) fn moment(random: &mut Rng) -> String {
    let day = date(random);
    match day.as_str() {
        // A day that is none has no time of its own.
        "0000-00-00" => format!("{day} 00:00:00"),
        _ => format!("{day} {:02}:{:02}:59", random.u32(0..24), random.u32(0..60)),
    }
}

/// A TIME with so many digits behind its seconds, as a literal.
pub(crate) fn time(after: u32, random: &mut Rng) -> String {
    const TIMES: [&str; 5] = [
        "-838:59:58",
        "838:59:58",
        "00:00:00",
        "-00:00:01",
        "23:59:59",
    ];
    quote(&format!("{}{}", pick(random, &TIMES), rest(after, random)))
}

/// The digits behind a second.
pub(crate) fn rest(after: u32, random: &mut Rng) -> String {
    match after {
        0 => String::new(),
        digits => {
            let most = 10u32.pow(digits);
            let number = random.u32(0..most);
            format!(".{number:0width$}", width = digits as usize)
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn text(length: Option<u32>, random: &mut Rng) -> String {
    let most = length.unwrap_or(200) as usize;
    let mut drawn = String::new();
    for _ in 0..random.usize(0..=most.min(40)) {
        let piece = pick(random, &PIECES);
        if drawn.chars().count() + piece.chars().count() <= most {
            drawn.push_str(piece);
        }
    }
    format!("_utf8mb4 X'{}'", hex(drawn.as_bytes()))
}

pub(crate) fn bytes(most: u32, random: &mut Rng) -> String {
    let length = match random.u32(0..4) {
        0 => 0,
        1 => most,
        _ => random.u32(0..=most.min(30)),
    };
    let drawn: Vec<u8> = (0..length)
        .map(|_| match random.bool() {
            true => pick(random, &[0, 9, 10, 13, 26, 34, 39, 92, 255]),
            false => random.u8(..),
        })
        .collect();
    format!("X'{}'", hex(&drawn))
}

pub(crate) fn json(random: &mut Rng) -> String {
    let drawn = pick(
        random,
        &[
            "null",
            "{}",
            "[]",
            "\"\"",
            "{\"k\": [1, null, true, \"a\\\\b\\\"c\\n\"]}",
            "[-9223372036854775808, 18446744073709551615]",
            "{\"é\": \"表\", \"\": {\"a\": {\"b\": []}}}",
        ],
    );
    format!("CONVERT(X'{}' USING utf8mb4)", hex(drawn.as_bytes()))
}

fn geometry(random: &mut Rng) -> String {
    let drawn = pick(
        random,
        &[
            "POINT(1 2)",
            "POINT(-1e-300 1e300)",
            "LINESTRING(0 0,1 1,0.1 0.2)",
            "POLYGON((0 0,4 0,4 4,0 0))",
            "MULTIPOINT(0 0,1 1)",
        ],
    );
    format!("ST_GeomFromText('{drawn}')")
}

impl Column {
    /// A column with a name that no other of its table has.
    fn draw(number: usize, kind: ColumnKind, nullable: bool, random: &mut Rng) -> Self {
        Self {
            name: name(&format!("c{number}"), random),
            kind,
            nullable,
        }
    }

    fn sql(&self, random: &mut Rng) -> String {
        let mut sql = format!("{} {}", quote_name(&self.name), self.kind.sql());
        match (self.nullable, self.kind) {
            // Else the first of its kind would be filled in by the server.
            (true, ColumnKind::Timestamp(_)) => sql.push_str(" NULL DEFAULT NULL"),
            (false, ColumnKind::Timestamp(_)) => {
                sql.push_str(" NOT NULL DEFAULT '2026-01-01 00:00:00'")
            }
            (true, _) => {}
            (false, _) => sql.push_str(" NOT NULL"),
        }
        match self.kind {
            ColumnKind::Integer(..) if random.u32(0..3) == 0 => sql.push_str(" DEFAULT 7"),
            ColumnKind::Date if random.u32(0..3) == 0 => sql.push_str(" DEFAULT '0000-00-00'"),
            ColumnKind::Enum if random.u32(0..3) == 0 => sql.push_str(" DEFAULT 'b''c'"),
            _ => {}
        }
        if random.u32(0..4) == 0 {
            sql.push_str(&format!(" COMMENT {}", quote(&name("about", random))));
        }
        sql
    }
}

/// A name that begins so.
fn name(start: &str, random: &mut Rng) -> String {
    let mut name = start.to_owned();
    for _ in 0..random.usize(0..4) {
        let letter = pick(random, &LETTERS);
        // It would become a part of the number, which another name has.
        if name == start && letter.starts_with(|first: char| first.is_ascii_digit()) {
            name.push('_');
        }
        name.push_str(letter);
    }
    name
}

/// Draws a table: the statements that make and fill it.
fn table(number: usize, random: &mut Rng) -> Vec<String> {
    let full = quote_name(&name(&format!("t{number}"), random));
    // The first has a column of each kind, none of which may be NULL.
    let is_first = number == 0;
    let keys = if is_first { 0 } else { random.usize(0..3) };
    let mut columns: Vec<Column> = (0..keys)
        .map(|at| Column::draw(at, ColumnKind::key(random), false, random))
        .collect();
    let more = if is_first {
        KINDS
    } else {
        random.usize(1..=COLUMNS)
    };
    for at in 0..more {
        let nullable = !is_first && random.u32(0..3) > 0;
        let kind = if is_first {
            ColumnKind::nth(at, random)
        } else {
            ColumnKind::draw(random)
        };
        columns.push(Column::draw(keys + at, kind, nullable, random));
    }
    let mut parts: Vec<String> = columns.iter().map(|one| one.sql(random)).collect();
    let quoted: Vec<String> = columns.iter().map(|one| quote_name(&one.name)).collect();
    if keys > 0 {
        let kind = pick(random, &["PRIMARY KEY", "PRIMARY KEY", "UNIQUE KEY"]);
        parts.push(format!("{kind} ({})", quoted[..keys].join(",")));
    }
    let whole = |one: &&Column| matches!(one.kind, ColumnKind::Integer(..));
    if let Some(of) = columns.iter().find(whole).filter(|_| random.bool()) {
        let kept = pick(random, &["VIRTUAL", "STORED"]);
        let of = quote_name(&of.name);
        parts.push(format!(
            "made INT GENERATED ALWAYS AS ({of} IS NULL) {kept}"
        ));
    }
    let whole_key = keys == 1 && matches!(columns[0].kind, ColumnKind::Integer(..));
    // Neither can be in parts, on one server or the other.
    let whole_key = whole_key && columns.iter().all(|one| one.kind != ColumnKind::Geometry);
    let partitions = match whole_key && random.u32(0..3) == 0 {
        true => format!(" PARTITION BY HASH ({}) PARTITIONS 3", quoted[0]),
        false => String::new(),
    };
    let engine = match partitions.is_empty() && random.u32(0..6) == 0 {
        true => "MyISAM",
        false => "InnoDB",
    };
    let mut statements = vec![format!(
        "CREATE TABLE {full} ({}) ENGINE={engine} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci{partitions}",
        parts.join(", ")
    )];
    let rows = if is_first {
        25
    } else {
        pick(random, &[0, 1, 25, 600])
    };
    let into = format!("INSERT IGNORE INTO {full} ({}) VALUES ", quoted.join(","));
    let rows: Vec<String> = (0..rows).map(|_| row(&columns, random)).collect();
    let inserts = rows
        .chunks(50)
        .map(|some| format!("{into}{}", some.join(",")));
    statements.extend(inserts);
    statements.push(format!("ANALYZE TABLE {full}"));
    statements
}

fn row(columns: &[Column], random: &mut Rng) -> String {
    let cells = columns
        .iter()
        .map(|one| match one.nullable && random.u32(0..5) == 0 {
            true => "NULL".to_owned(),
            false => one.kind.value(random),
        });
    format!("({})", cells.collect::<Vec<_>>().join(","))
}

impl Generated {
    /// Draws a schema; the same seed draws the same.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let tables = (0..TABLES).flat_map(|number| table(number, &mut random));
        Self {
            schema: format!("drawn {seed}"),
            statements: tables.collect(),
        }
    }

    /// Makes it.
    pub fn make(&self, session: &mut Session) {
        make(session, &self.schema, &self.statements);
    }
}

/// Makes a schema and all that is in it, under settings that take each value that can be stored. What fails is told
/// together, at the end.
pub(crate) fn make(session: &mut Session, schema: &str, statements: &[String]) {
    let schema = quote_name(schema);
    for sql in [
        "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00'",
        "SET NAMES utf8mb4",
        &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
        &format!("USE {schema}"),
    ] {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{} in {sql}", e.chain()));
    }
    let failed = statements.iter().filter_map(|sql| {
        let error = session.run(sql).err()?;
        Some(format!("{} in {sql:.900}", error.chain()))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
