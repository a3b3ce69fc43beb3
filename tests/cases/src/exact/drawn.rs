//! A schema that chance has drawn for two servers: what the one can make, and the other can hold.

use super::columns::{self, Column, Key};
use super::limits::{LIMITS, Only};
use crate::generated::{self, pick};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_testkit::TestServer;
use fastrand::Rng;

/// Tables of columns that were drawn, beside those with each type.
const MIXED: usize = 6;
/// Rows of a table.
const ROWS: usize = 30;
/// Columns of texts in a table: what a row may hold ends them.
const TEXTS: usize = 18;

/// A schema, as statements that make it.
#[derive(Debug)]
pub struct Drawn {
    /// Its name.
    pub schema: String,
    statements: Vec<String>,
}

/// Character sets with a collation each.
type Charsets = Vec<(String, String)>;

/// Returns the collations of a server with their character sets, of those that are not of all character sets.
fn collations(session: &mut Session) -> Charsets {
    let sql = "SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS \
               WHERE CHARACTER_SET_NAME IS NOT NULL AND CHARACTER_SET_NAME <> 'binary' ORDER BY 2";
    let rows = session.rows(sql).expect("collations");
    let pair =
        |row: &evenkeel_server::connect::Row| Some((row.at(0)?.to_owned(), row.at(1)?.to_owned()));
    rows.iter().filter_map(pair).collect()
}

/// Returns a name that versions know a collation by.
fn plain(collation: &str) -> String {
    match collation.strip_prefix("utf8_") {
        Some(rest) => format!("utf8mb3_{rest}"),
        None => collation.to_owned(),
    }
}

/// Returns one collation, as `from` calls it, for each character set that both have.
fn shared(from: &mut Session, to: &mut Session, random: &mut Rng) -> Charsets {
    let there: Vec<String> = collations(to).iter().map(|one| plain(&one.1)).collect();
    let mut both = collations(from);
    both.retain(|(_, collation)| there.contains(&plain(collation)));
    let mut one_each: Charsets = Vec::new();
    for group in both.chunk_by(|one, next| one.0 == next.0) {
        let drawn = random.usize(0..group.len());
        one_each.push(group[drawn].clone());
    }
    random.shuffle(&mut one_each);
    one_each
}

/// A table on its way.
struct Draft {
    name: String,
    /// Each with whether it may be NULL.
    columns: Vec<(Column, bool)>,
    /// Keys and what else stands among the columns.
    more: Vec<String>,
    options: String,
}

impl Draft {
    fn new(name: impl Into<String>, columns: Vec<Column>, random: &mut Rng) -> Self {
        let number = |(at, mut one): (usize, Column)| {
            one.name = format!("c{at}");
            (one, random.bool())
        };
        Self {
            name: name.into(),
            columns: columns.into_iter().enumerate().map(number).collect(),
            more: vec![
                "id INT NOT NULL AUTO_INCREMENT".to_owned(),
                "PRIMARY KEY (id)".to_owned(),
            ],
            options: String::new(),
        }
    }

    fn statements(&self, random: &mut Rng) -> Vec<String> {
        let columns = self.columns.iter();
        let defined =
            columns.map(|(one, nullable)| format!("{} {}", one.name, one.defined(*nullable)));
        let parts: Vec<String> = defined.chain(self.more.iter().cloned()).collect();
        let table = quote_name(&self.name);
        let mut all = vec![format!(
            "CREATE TABLE {table} ({}) {}",
            parts.join(", "),
            self.options
        )];
        let names: Vec<&str> = self.columns.iter().map(|one| one.0.name.as_str()).collect();
        let rows: Vec<String> = (0..ROWS)
            .map(|_| {
                let columns = self.columns.iter();
                let cells = columns.map(|(one, nullable)| one.value(*nullable, random));
                format!("({})", cells.collect::<Vec<_>>().join(","))
            })
            .collect();
        for rows in rows.chunks(10) {
            all.push(format!(
                "INSERT IGNORE INTO {table} ({}) VALUES {}",
                names.join(","),
                rows.join(",")
            ));
        }
        all
    }
}

/// Returns up to `count` key parts, of columns that can be in one.
fn parts(columns: &[(Column, bool)], count: usize, random: &mut Rng) -> Vec<String> {
    let mut able: Vec<String> = columns
        .iter()
        .filter_map(|(one, _)| match one.key {
            Key::Whole => Some(one.name.clone()),
            Key::Prefix(length) => Some(format!("{}({length})", one.name)),
            Key::Spatial | Key::No => None,
        })
        .collect();
    random.shuffle(&mut able);
    able.truncate(count);
    able
}

/// Draws a table of any columns, with keys, a row format, an engine, parts.
fn mixed(number: usize, negative_zero: bool, charsets: &Charsets, random: &mut Rng) -> Draft {
    let mut pool = columns::numbers(negative_zero, random);
    pool.extend(columns::times());
    for (charset, collation) in charsets.iter().take(3) {
        pool.extend(columns::texts(charset, collation, random));
    }
    pool.extend(columns::bytes(random));
    pool.extend(columns::members(random));
    random.shuffle(&mut pool);
    pool.truncate(random.usize(2..9));
    let mut draft = Draft::new(format!("mixed `{number}"), pool, random);
    let key = parts(&draft.columns, 2, random).join(", ");
    let first = parts(&draft.columns, 1, random).join(", ");
    if !key.is_empty() {
        draft
            .more
            .push(format!("KEY several ({key}) COMMENT 'it''s'"));
        draft.more.push(format!("KEY one ({first}) USING BTREE"));
        draft.more.push(format!("UNIQUE KEY sure ({first}, id)"));
    }
    match random.u32(0..6) {
        // A table whose rows nothing tells apart.
        0 => draft.more.clear(),
        1 => draft.more.push("KEY of_kept (kept)".to_owned()),
        _ => {}
    }
    let has_id = !draft.more.is_empty();
    // MariaDB stores nothing that is computed from a CHAR: its blanks depend on the sql_mode.
    let mut columns = draft.columns.iter().map(|(one, _)| one);
    let source = columns.find(|one| !one.sql.starts_with("CHAR("));
    let source = source.map_or("1", |one| &one.name).to_owned();
    for computed in ["made INT", "kept BIGINT"] {
        let kind = if computed.starts_with("made") {
            "VIRTUAL"
        } else {
            "STORED"
        };
        let text = format!("{computed} GENERATED ALWAYS AS ({source} IS NULL) {kind}");
        draft.more.push(text);
    }
    draft.options = match random.u32(0..9) {
        0 => "ROW_FORMAT=REDUNDANT COMMENT='it''s'",
        1 if has_id => "ROW_FORMAT=COMPACT AUTO_INCREMENT=1000",
        // Without such a column MySQL 8 keeps the number where SHOW CREATE TABLE does not name it, and nothing uses it.
        1 => "ROW_FORMAT=COMPACT",
        2 => "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
        3 => "ENGINE=MyISAM",
        4 if has_id => "PARTITION BY HASH (id) PARTITIONS 3",
        _ => "",
    }
    .to_owned();
    if has_id && draft.options.starts_with("PARTITION") {
        draft.more.retain(|one| !one.starts_with("UNIQUE"));
    }
    draft
}

/// Tables of which there is one of each, whatever chance says.
fn fixed() -> Vec<String> {
    let parts = "CREATE TABLE by_range (id INT NOT NULL, d DATE NOT NULL, PRIMARY KEY (id, d)) PARTITION BY RANGE COLUMNS (d) \
                 (PARTITION p0 VALUES LESS THAN ('2000-01-01'), PARTITION `p 1` VALUES LESS THAN (MAXVALUE))";
    let sub = "CREATE TABLE by_both (id INT NOT NULL, PRIMARY KEY (id)) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) \
               SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)";
    let all = [
        parts,
        "INSERT INTO by_range VALUES (1, '1999-12-31'), (2, '2000-01-01'), (3, '0000-00-00')",
        sub,
        "INSERT INTO by_both VALUES (-5), (9), (10), (11)",
        "CREATE TABLE by_list (id INT, KEY (id)) PARTITION BY LIST (id) \
         (PARTITION a VALUES IN (1, NULL), PARTITION b VALUES IN (2, 3))",
        "INSERT INTO by_list VALUES (NULL), (1), (2), (3)",
        "CREATE TABLE by_key (id VARCHAR(20) CHARACTER SET latin1 NOT NULL, PRIMARY KEY (id)) PARTITION BY LINEAR KEY (id) PARTITIONS 5",
        "INSERT INTO by_key VALUES (''), ('a'), ('it''s'), (X'FFE9')",
        "CREATE TABLE parents (id INT PRIMARY KEY, code CHAR(3) NOT NULL, UNIQUE KEY (code))",
        "CREATE TABLE children (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, parent INT, note VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, \
         code CHAR(3), FULLTEXT KEY words (note), \
         CONSTRAINT up FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE SET NULL, \
         CONSTRAINT also FOREIGN KEY (code) REFERENCES parents (code))",
        "INSERT INTO parents VALUES (0, ''), (5, 'abc')",
        "INSERT INTO children VALUES (0, 5, 'some words', ''), (18446744073709551614, 0, NULL, 'abc'), (7, NULL, '', NULL)",
        "CREATE TABLE located (id INT PRIMARY KEY, p POINT NOT NULL, SPATIAL KEY p (p)) ENGINE=MyISAM",
        "INSERT INTO located VALUES (1, ST_GeomFromText('POINT(1 2)')), (2, ST_GeomFromText('POINT(-1 0)'))",
        "CREATE TABLE in_memory (id INT, a VARCHAR(9), KEY (id) USING HASH, KEY (a) USING BTREE) ENGINE=MEMORY",
        "INSERT INTO in_memory VALUES (1, 'x'), (1, 'x'), (NULL, '')",
        "CREATE TABLE in_csv (id INT NOT NULL, a VARCHAR(20) NOT NULL) ENGINE=CSV",
        "INSERT INTO in_csv VALUES (1, 'a,\"b\"'), (2, ''), (3, 'c\\\\d')",
        "CREATE TABLE touched (id INT PRIMARY KEY, a TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), \
         b DATETIME DEFAULT CURRENT_TIMESTAMP, c VARCHAR(20) NOT NULL DEFAULT 'it''s \\\\', d BIT(3) DEFAULT b'101', \
         e INT DEFAULT '-7' COMMENT 'Zahl: é', f DECIMAL(5,2) DEFAULT 1.50, g ENUM('x','y''z') DEFAULT 'y''z')",
        "INSERT INTO touched (id) VALUES (1), (2)",
        "CREATE TABLE by_virtual (id INT PRIMARY KEY, a INT, v BIGINT AS (a + 1) VIRTUAL COMMENT 'v', KEY (v), UNIQUE KEY (v, id))",
        "INSERT INTO by_virtual (id, a) VALUES (1, 5), (2, NULL), (3, -1)",
        "CREATE TABLE computed (a INT AS (1) VIRTUAL, b VARCHAR(9) AS ('x') STORED)",
        "INSERT INTO computed () VALUES (), ()",
    ];
    all.map(str::to_owned).to_vec()
}

impl Drawn {
    /// Draws a schema that goes from one server to the other; the same seed draws the same for the same two.
    #[must_use]
    pub fn draw(
        seed: u64,
        (from, here): (&TestServer, &mut Session),
        (to, there): (&TestServer, &mut Session),
    ) -> Self {
        let random = &mut Rng::with_seed(seed);
        let charsets = shared(here, there, random);
        let travels = |what: Only| {
            let limit = LIMITS.iter().find(|one| one.what == what);
            limit.is_none_or(|one| one.travels(from, to))
        };
        let zero = travels(Only::NegativeZero);
        let mut drafts = vec![
            Draft::new("numbers", columns::numbers(zero, random), random),
            Draft::new("times", columns::times(), random),
            Draft::new("bytes", columns::bytes(random), random),
            Draft::new("members", columns::members(random), random),
            Draft::new("documents", columns::documents(), random),
            Draft::new("shapes", columns::shapes(), random),
        ];
        let mut texts = Vec::new();
        for (charset, collation) in &charsets {
            texts.extend(columns::texts(charset, collation, random));
        }
        let mut texts = texts.into_iter().peekable();
        while texts.peek().is_some() {
            let some: Vec<Column> = texts.by_ref().take(TEXTS).collect();
            drafts.push(Draft::new(format!("texts {}", drafts.len()), some, random));
        }
        for number in 0..MIXED {
            let at = number * 3 % charsets.len().max(1);
            let some = charsets.iter().cycle().skip(at).take(3).cloned().collect();
            drafts.push(mixed(number, zero, &some, random));
        }
        let mut statements: Vec<String> = drafts
            .iter()
            .flat_map(|one| one.statements(random))
            .collect();
        statements.extend(fixed());
        for limit in LIMITS.iter().filter(|one| one.travels(from, to)) {
            statements.extend(limit.what.statements(from));
        }
        Self {
            schema: format!("exact {}{seed}", pick(random, &["", "`", "é", "%"])),
            statements,
        }
    }

    /// Makes a schema of one table that not every server holds.
    #[must_use]
    pub fn only(what: Only, on: &TestServer) -> Self {
        Self {
            schema: format!("only {what:?}"),
            statements: what.statements(on),
        }
    }

    /// Makes it.
    pub fn make(&self, session: &mut Session) {
        generated::make(session, &self.schema, &self.statements);
    }
}
