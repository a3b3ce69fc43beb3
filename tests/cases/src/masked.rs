//! A schema whose values are recognised wherever they are, and the search for them.

use evenkeel_server::connect::Session;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// How each column is masked: all ways, on most types.
pub const MASKS: [&str; 19] = [
    r"shop\.people\.mail=email",
    r"shop\.people\.name=shape",
    r"shop\.people\.phone=shape",
    r"shop\.people\.nick=fixed:it's \me",
    r"shop\.people\.(born|seen|stamp)=year",
    r"shop\.people\.token=hash",
    r"shop\.people\.note=empty",
    r"shop\.people\.big=hash",
    r"shop\.people\.bin=null",
    r"shop\.people\.raw=fixed:gone",
    r"shop\.people\.wide=hash",
    r"shop\.people\.salary=shape",
    r"shop\.people\.kind=fixed:plain",
    r"shop\.people\.doc=null",
    r"shop\..*\.code=hash",
    r"shop\.(numbers|orders)\.no=shape",
    r"shop\.people\.loud=shape",
    r"shop\.people\.spot=null",
    r"shop\.pairs\.b=shape",
];
/// People.
pub const PEOPLE: u32 = 120;
/// Customers, of whom each has three orders.
pub const CUSTOMERS: u32 = 900;
/// The longest text, in bytes: its row comes in pieces.
pub const LONG: usize = 2_500_000;

const TABLES: [&str; 6] = [
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    "CREATE TABLE shop.people (id INT AUTO_INCREMENT PRIMARY KEY, mail VARCHAR(100) NOT NULL UNIQUE, \
     name VARCHAR(60), phone VARCHAR(40) CHARACTER SET latin1, nick CHAR(30), born DATE, seen DATETIME(3), \
     stamp TIMESTAMP NULL, token BINARY(16) UNIQUE, note TEXT NOT NULL, big LONGTEXT, bin BLOB, \
     raw VARBINARY(60), wide VARCHAR(40) CHARACTER SET utf16, salary DECIMAL(16,2), \
     kind ENUM('plain','vip') NOT NULL, doc JSON, loud VARCHAR(90) AS (UPPER(name)) STORED, spot GEOMETRY, \
     age INT, seal VARCHAR(80))",
    "CREATE TABLE shop.customers (code VARCHAR(60) CHARACTER SET ascii PRIMARY KEY, filler VARCHAR(300))",
    "CREATE TABLE shop.numbers (no BIGINT AUTO_INCREMENT PRIMARY KEY, filler VARCHAR(300))",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, code VARCHAR(60) CHARACTER SET ascii, no BIGINT, total INT, \
     FOREIGN KEY (code) REFERENCES customers (code), FOREIGN KEY (no) REFERENCES numbers (no))",
    // Masked is the second column of what it is cut by.
    "CREATE TABLE shop.pairs (a INT, b BIGINT, filler VARCHAR(300), PRIMARY KEY (a, b))",
];

/// A word of 16 letters and digits that is nowhere else.
fn word(of: &str, n: u32) -> String {
    blake3::hash(format!("{of} {n}").as_bytes()).to_hex()[..16].to_owned()
}

/// A number of 15 digits that is nowhere else.
fn number(of: &str, n: u32) -> u64 {
    let hash = blake3::hash(format!("{of} {n}").as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    100_000_000_000_000 + u64::from_le_bytes(bytes) % 800_000_000_000_000
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn person(n: u32) -> String {
    let text = |of: &str| word(of, n);
    let day = format!("19{:02}-{:02}-{:02}", 71 + n % 25, 2 + n % 11, 2 + n % 27);
    let long = match n {
        7 => format!("CONCAT('{}', REPEAT('long ', {}))", text("big"), LONG / 5),
        _ => format!("'{}'", text("big")),
    };
    format!(
        "('{}@example.org', '{}', _latin1 X'{}', '{}', '{day}', '{day} 10:11:12.345', '{day} 13:14:15', X'{}', \
         '{}', {long}, X'{}00FF5C27', X'27{}', '{}', -{}.25, 'vip', '{{\"k\": \"{}\"}}', \
         ST_GeomFromText('POINT({} 1)'), {n}, 'kept {n}')",
        text("mail"),
        // Quotes, backslashes, letters beyond ASCII, and values that come twice.
        format_args!("Zoë \\'O\\\\ {}", word("name", n / 2)),
        hex(format!("+\u{7f}{}", text("phone")).as_bytes()) + "E4",
        text("nick"),
        hex(text("token").as_bytes()),
        text("note"),
        hex(text("bin").as_bytes()),
        hex(text("raw").as_bytes()),
        text("wide"),
        number("salary", n) / 10,
        text("doc"),
        number("spot", n),
    )
}

/// Makes the schema, with rows in which most of what is masked is NULL.
pub fn make(session: &mut Session) {
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    TABLES.iter().for_each(|sql| run(sql));
    run("SET time_zone = '+00:00'");
    let columns = "mail, name, phone, nick, born, seen, stamp, token, note, big, bin, raw, wide, salary, kind, doc, spot, age, seal";
    for n in 0..PEOPLE {
        run(&format!(
            "INSERT INTO shop.people ({columns}) VALUES {}",
            person(n)
        ));
    }
    let without = "INSERT INTO shop.people (mail, note, kind, age) VALUES";
    run(&format!(
        "{without} ('', '', 'plain', 1), ('{}', '  ', 'vip', NULL)",
        word("mail", 9999)
    ));
    for from in (0..CUSTOMERS).step_by(300) {
        let rows = |row: &dyn Fn(u32) -> String| {
            let rows: Vec<String> = (from..from + 300).map(row).collect();
            rows.join(",")
        };
        let fill = "REPEAT('x', 250)";
        let customers = rows(&|n| format!("('{}', {fill})", word("code", n)));
        let numbers = rows(&|n| format!("({}, {fill})", number("no", n)));
        let pairs = rows(&|n| format!("({}, -{}, {fill})", n / 30, number("pair", n)));
        run(&format!("INSERT INTO shop.customers VALUES {customers}"));
        run(&format!("INSERT INTO shop.numbers VALUES {numbers}"));
        run(&format!("INSERT INTO shop.pairs VALUES {pairs}"));
    }
    for of in 0..3 {
        let rows = (0..CUSTOMERS).map(|n| {
            let id = of * CUSTOMERS + n;
            // In another case: the foreign key takes it for the same.
            let code = word("code", n).to_uppercase();
            format!("({id}, '{code}', {}, {id})", number("no", n))
        });
        let rows: Vec<String> = rows.collect();
        run(&format!(
            "INSERT INTO shop.orders VALUES {}",
            rows.join(",")
        ));
    }
    run("ANALYZE TABLE shop.people, shop.customers, shop.numbers, shop.orders, shop.pairs");
}

/// Values that must be nowhere, in all the ways that formats write them.
#[derive(Debug, Default)]
pub struct Originals(BTreeMap<usize, HashSet<Vec<u8>>>);

impl Originals {
    /// Collects all that the schema above has masked.
    #[must_use]
    pub fn all() -> Self {
        let mut found = Self::default();
        for n in 0..PEOPLE {
            for of in [
                "mail", "name", "phone", "nick", "token", "note", "big", "bin", "raw", "wide",
                "doc",
            ] {
                found.text(&word(of, n));
            }
            found.text(&(number("salary", n) / 10).to_string());
            found.add((number("spot", n) as f64).to_le_bytes().to_vec());
            found.text(&format!(
                "19{:02}-{:02}-{:02}",
                71 + n % 25,
                2 + n % 11,
                2 + n % 27
            ));
        }
        found.text(&word("mail", 9999));
        for n in 0..CUSTOMERS {
            found.text(&word("code", n));
            found.text(&number("no", n).to_string());
            found.text(&number("pair", n).to_string());
        }
        // Of the longest, what comes again and again.
        found.text("long long long l");
        found
    }

    fn text(&mut self, text: &str) {
        for text in [text.to_owned(), text.to_uppercase()] {
            self.add(text.bytes().flat_map(|byte| [0, byte]).collect());
            self.add(text.into_bytes());
        }
    }

    fn add(&mut self, bytes: Vec<u8>) {
        for written in [
            hex(&bytes).into_bytes(),
            hex(&bytes).to_lowercase().into_bytes(),
            bytes,
        ] {
            self.0.entry(written.len()).or_default().insert(written);
        }
    }

    /// Returns one that stands in `bytes`.
    #[must_use]
    pub fn in_bytes(&self, bytes: &[u8]) -> Option<String> {
        let found = self.0.iter().find_map(|(length, all)| {
            let mut windows = bytes.windows(*length);
            windows.find(|window| all.contains(*window))
        });
        found.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns one that stands in a file below `dir`, packed or not, or in its name.
    #[must_use]
    pub fn below(&self, dir: &Path) -> Option<String> {
        for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
            let path = entry.path();
            let name = path.display().to_string();
            let found = match path.is_dir() {
                true => self.below(&path),
                false => self
                    .in_bytes(&content(&path))
                    .map(|text| format!("{text} in {name}")),
            };
            if let Some(found) = found.or_else(|| self.in_bytes(name.as_bytes())) {
                return Some(found);
            }
        }
        None
    }
}

fn content(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a file");
    let packed = path.extension().is_some_and(|end| end == "zst");
    match packed {
        // A file that is not whole has what it has.
        true => {
            let mut all = Vec::new();
            let mut from = zstd::Decoder::new(&bytes[..]).expect("zstd");
            let _ = std::io::copy(&mut from, &mut all);
            all
        }
        false => bytes,
    }
}

/// Writes the file of a key.
pub fn write_key(path: &Path, with: u8) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, [with; 32]).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}
