//! What a statement is to the order of things, as its first words tell.

use crate::objects::text::{Token, TokenKind, name_under, tokens, tokens_under};
use evenkeel_sql::{Mode, Wide};

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// `None` means the default database.
    pub(super) database: Option<String>,
    /// Its name.
    pub(super) table: String,
}

/// How rows come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// An error where the row is there already.
    Insert,
    /// IGNORE or REPLACE: which row wins depends on the order.
    Depends,
}

/// What rows begin with, up to and with VALUES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) bytes: Vec<u8>,
    pub(super) table: Name,
    pub(super) verb: Verb,
    /// The names in parentheses; `None` means all columns.
    pub(super) columns: Option<Vec<String>>,
}

/// What a statement does to the definition of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// CREATE TABLE with columns.
    Create,
    /// `DISABLE KEYS` and `ENABLE KEYS`.
    Keys,
    /// Anything else that concerns this table alone.
    Other,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// Rows of one table, if what comes after the head is values.
    Rows(Head),
    /// A change of one table's definition.
    Table(Name, Change),
    /// Settings of the session, to be repeated on every connection.
    Session,
    /// USE.
    Use(String),
    /// LOCK TABLES: left out.
    Left,
    /// Begins a transaction.
    Begin,
    /// Ends one, and keeps what it did.
    Commit,
    /// Takes back what a transaction did, or marks up to where.
    Rollback,
    /// SET autocommit and nothing else: whether each statement is a transaction of its own.
    Autocommit(bool),
    /// UNLOCK TABLES: left out, and the end of a table's rows in dumps.
    Unlock,
    /// Runs when all before it is done, and before all that follows.
    Alone,
    /// As `Alone`; and what follows depends on this one connection.
    Binds,
}

/// Settings of the session that say what the next statement of this very session is.
const BINDING: [&str; 8] = [
    "gtid_next",
    "gtid_seq_no",
    "insert_id",
    "last_insert_id",
    "identity",
    "rand_seed1",
    "rand_seed2",
    "pseudo_slave_mode",
];

/// A statement's tokens outside of the marks of executed comments.
struct Words<'a> {
    text: &'a [u8],
    tokens: Vec<Token>,
    mode: Mode,
}

impl Words<'_> {
    fn is(&self, at: usize, word: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| token.is_word(self.text, word))
    }

    fn sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_sign(sign))
    }

    fn has(&self, word: &str) -> bool {
        (0..self.tokens.len()).any(|at| self.is(at, word))
    }

    /// Reads a name; the number of the token behind it.
    fn part(&self, at: usize) -> Option<(String, usize)> {
        let token = self.tokens.get(at)?;
        let is_name = matches!(token.kind, TokenKind::Name | TokenKind::Word);
        is_name.then(|| (name_under(token.of(self.text), self.mode), at + 1))
    }

    /// Reads `table` or `database.table`.
    fn name(&self, at: usize) -> Option<(Name, usize)> {
        let (first, next) = self.part(at)?;
        if !self.sign(next, b'.') {
            let name = Name {
                database: None,
                table: first,
            };
            return Some((name, next));
        }
        let (table, next) = self.part(next + 1)?;
        let database = Some(first);
        Some((Name { database, table }, next))
    }

    /// Skips words that stand there.
    fn past(&self, mut at: usize, words: &[&str]) -> usize {
        for word in words {
            at += usize::from(self.is(at, word));
        }
        at
    }
}

/// Says what a statement is that may be several for the server, with semicolons between them.
pub(super) fn classify_several(text: &[u8]) -> StatementKind {
    let tokens: Vec<Token> = tokens(text).take(24).collect();
    let says = |word| tokens.iter().any(|token| token.is_word(text, word));
    let makes = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
    let first = tokens.iter().find(|token| token.kind == TokenKind::Word);
    let defines = first.is_some_and(|token| {
        ["CREATE", "ALTER", "DROP"]
            .iter()
            .any(|word| token.is_word(text, word))
    });
    // What stands behind a body is a statement of its own.
    let rest = |byte: &u8| matches!(byte, b';' | b'*' | b'/') || byte.is_ascii_whitespace();
    let end = text.iter().rposition(|byte| !rest(byte));
    let body = &text[..end.map_or(0, |end| end + 1)];
    let last = &body[body.len().saturating_sub(3)..];
    let whole = last.eq_ignore_ascii_case(b"END") || !body.contains(&b';');
    match defines && whole && makes.iter().any(|word| says(word)) {
        true => StatementKind::Alone,
        false => StatementKind::Binds,
    }
}

/// Says what a statement is.
pub(super) fn classify(text: &[u8], mode: Mode) -> StatementKind {
    if mode.wide != Wide::No && !text.is_ascii() {
        // What looks like a quote in it may be half a character.
        let says = |word: &[u8]| {
            text.get(..word.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        return match says(b"INSERT") || says(b"REPLACE") {
            true => StatementKind::Alone,
            false => StatementKind::Binds,
        };
    }
    let first = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let first = text[..first.count()].to_ascii_uppercase();
    if first == b"INSERT" || first == b"REPLACE" {
        return head(text, mode).map_or(StatementKind::Alone, StatementKind::Rows);
    }
    // Programs are long, and their first words are enough.
    let bounded = !matches!(&first[..], b"SET" | b"ALTER" | b"CREATE" | b"");
    let most = if bounded { 12 } else { usize::MAX };
    let tokens = tokens_under(text, mode).take(most);
    let words = Words {
        text,
        tokens: tokens.filter(|token| !token.is_gate()).collect(),
        mode,
    };
    let table = |at: usize, change| match words.name(at) {
        Some((name, _)) => StatementKind::Table(name, change),
        None => StatementKind::Alone,
    };
    match () {
        () if words.is(0, "SET") => set(&words),
        () if words.is(0, "USE") => match words.part(1) {
            Some((name, 2)) => StatementKind::Use(name),
            _ => StatementKind::Alone,
        },
        () if words.is(0, "LOCK") && (words.is(1, "TABLES") || words.is(1, "TABLE")) => {
            StatementKind::Left
        }
        () if words.is(0, "FLUSH") && words.has("LOCK") => StatementKind::Left,
        () if words.is(0, "UNLOCK") => StatementKind::Unlock,
        () if words.is(0, "BEGIN") && words.tokens.len() == 1 => StatementKind::Begin,
        () if words.is(0, "BEGIN") && words.is(1, "WORK") => StatementKind::Begin,
        () if words.is(0, "START") && words.is(1, "TRANSACTION") => StatementKind::Begin,
        () if words.is(0, "COMMIT") => StatementKind::Commit,
        () if words.is(0, "ROLLBACK") || words.is(0, "SAVEPOINT") || words.is(0, "RELEASE") => {
            StatementKind::Rollback
        }
        () if words.is(0, "XA") => StatementKind::Binds,
        () if words.is(0, "TRUNCATE") => table(words.past(1, &["TABLE"]), Change::Other),
        () if words.is(0, "CREATE") => create(&words),
        () if words.is(0, "DROP") && words.is(1, "TABLE") => {
            let at = words.past(2, &["IF", "EXISTS"]);
            match words.name(at) {
                Some((name, end)) if end == words.tokens.len() => {
                    StatementKind::Table(name, Change::Other)
                }
                _ => StatementKind::Alone,
            }
        }
        () if words.is(0, "ALTER") && words.is(1, "TABLE") => alter(&words),
        () => StatementKind::Alone,
    }
}

fn create(words: &Words<'_>) -> StatementKind {
    if words.is(1, "TEMPORARY") || (words.has("TEMPORARY") && words.is(3, "TEMPORARY")) {
        return StatementKind::Binds;
    }
    if !words.is(1, "TABLE") || words.has("SELECT") {
        return StatementKind::Alone;
    }
    match words.name(words.past(2, &["IF", "NOT", "EXISTS"])) {
        Some((name, end)) if words.sign(end, b'(') => StatementKind::Table(name, Change::Create),
        _ => StatementKind::Alone,
    }
}

fn alter(words: &Words<'_>) -> StatementKind {
    let Some((name, end)) = words.name(2) else {
        return StatementKind::Alone;
    };
    if (words.is(end, "DISABLE") || words.is(end, "ENABLE")) && words.is(end + 1, "KEYS") {
        return StatementKind::Table(name, Change::Keys);
    }
    // Each of these concerns another table as well.
    let wider = ["RENAME", "EXCHANGE", "REFERENCES", "UNION", "SELECT"];
    match wider.iter().any(|word| words.has(word)) {
        true => StatementKind::Alone,
        false => StatementKind::Table(name, Change::Other),
    }
}

fn set(words: &Words<'_>) -> StatementKind {
    let alone = [
        "GLOBAL",
        "PERSIST",
        "PERSIST_ONLY",
        "PASSWORD",
        "ROLE",
        "STATEMENT",
        "RESOURCE",
    ];
    // What it is set to may depend on rows, or be another each time.
    let computed = (0..words.tokens.len()).any(|at| words.sign(at, b'('));
    if computed || BINDING.iter().any(|word| words.has(word)) {
        return match words.has("GLOBAL") {
            true => StatementKind::Alone,
            false => StatementKind::Binds,
        };
    }
    if alone.iter().any(|word| words.has(word)) {
        return StatementKind::Alone;
    }
    let only_autocommit = words.is(1, "AUTOCOMMIT") && words.tokens.len() <= 5;
    match only_autocommit && !words.tokens.iter().any(|token| token.is_sign(b',')) {
        true => {
            StatementKind::Autocommit(!words.has("0") && !words.has("OFF") && !words.has("FALSE"))
        }
        false => StatementKind::Session,
    }
}

/// Reads the head of INSERT or REPLACE; `None` for a form that is not rows of values.
fn head(text: &[u8], mode: Mode) -> Option<Head> {
    let mut words = Words {
        text,
        tokens: Vec::new(),
        mode,
    };
    // Far enough for any list of columns.
    for token in tokens_under(text, mode).take(3 * 4096 + 16) {
        if token.is_gate() {
            return None;
        }
        words.tokens.push(token);
        if token.is_word(text, "VALUES") || token.is_word(text, "VALUE") {
            break;
        }
    }
    let replaces = words.is(0, "REPLACE");
    let ignores = words.is(1, "IGNORE");
    let (table, mut at) = words.name(words.past(1, &["IGNORE", "INTO"]))?;
    let mut columns = None;
    if words.sign(at, b'(') {
        let mut names = Vec::new();
        at += 1;
        while !words.sign(at, b')') {
            let (name, next) = words.part(at)?;
            names.push(name);
            at = next + usize::from(words.sign(next, b','));
        }
        at += 1;
        columns = Some(names);
    }
    let last = words.tokens.get(at)?;
    let values = last.is_word(text, "VALUES") || last.is_word(text, "VALUE");
    (values && at + 1 == words.tokens.len()).then(|| Head {
        bytes: text[..last.end].to_vec(),
        table,
        verb: match replaces || ignores {
            true => Verb::Depends,
            false => Verb::Insert,
        },
        columns,
    })
}

impl Head {
    /// Returns whether a statement begins with this very head.
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        let after = text.get(self.bytes.len());
        let word = after.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        !word && text.starts_with(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> StatementKind {
        classify(sql.as_bytes(), Mode::default())
    }

    fn name(text: &str) -> Name {
        match text.split_once('.') {
            Some((database, table)) => Name {
                database: Some(database.to_owned()),
                table: table.to_owned(),
            },
            None => Name {
                database: None,
                table: text.to_owned(),
            },
        }
    }

    #[test]
    fn heads_of_rows_are_read() {
        let StatementKind::Rows(head) = of("INSERT  IGNORE INTO `a``b`.c (`x`, y) VALUES (1)")
        else {
            panic!();
        };
        assert_eq!(head.table, name("a`b.c"));
        assert_eq!(head.columns, Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(head.verb, Verb::Depends);
        assert!(head.bytes.ends_with(b"VALUES"));
        assert!(head.begins(b"INSERT  IGNORE INTO `a``b`.c (`x`, y) VALUES(2)"));
        assert!(!head.begins(b"INSERT  IGNORE INTO `a``b`.c (`x`, y) VALUESX(2)"));
        for sql in [
            "INSERT INTO t SELECT 1",
            "INSERT INTO t SET a = 1",
            "INSERT DELAYED INTO t VALUES (1)",
            "INSERT INTO t PARTITION (p) VALUES (1)",
            "INSERT /*!50100 IGNORE */ INTO t VALUES (1)",
        ] {
            assert_eq!(of(sql), StatementKind::Alone, "{sql}");
        }
    }

    #[test]
    fn definitions_of_one_table_wait_for_it_alone() {
        for (sql, table, change) in [
            ("CREATE TABLE `t` (a INT)", "t", Change::Create),
            (
                "CREATE TABLE IF NOT EXISTS d.t (a INT)",
                "d.t",
                Change::Create,
            ),
            ("DROP TABLE IF EXISTS `t`", "t", Change::Other),
            (
                "/*!40000 ALTER TABLE `t` DISABLE KEYS */",
                "t",
                Change::Keys,
            ),
            ("ALTER TABLE t ADD KEY (a)", "t", Change::Other),
            ("TRUNCATE t", "t", Change::Other),
        ] {
            assert_eq!(of(sql), StatementKind::Table(name(table), change), "{sql}");
        }
        for sql in [
            "CREATE TABLE t (a INT) SELECT 1 a",
            "CREATE TABLE t LIKE u",
            "DROP TABLE a, b",
            "ALTER TABLE a RENAME b",
            "ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (y)",
            "CREATE VIEW v AS SELECT 1",
            "/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET @a = 1 */",
            "UPDATE t SET a = 1",
            "BEGIN NOT ATOMIC SELECT 1; END",
        ] {
            assert_eq!(of(sql), StatementKind::Alone, "{sql}");
        }
    }

    #[test]
    fn settings_are_told_apart() {
        for (sql, kind) in [
            (
                "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
                StatementKind::Session,
            ),
            ("SET NAMES utf8mb4", StatementKind::Session),
            ("SET @@SESSION.SQL_LOG_BIN= 0", StatementKind::Session),
            ("SET AUTOCOMMIT=0", StatementKind::Autocommit(false)),
            ("SET autocommit = ON", StatementKind::Autocommit(true)),
            ("SET autocommit=0, unique_checks=0", StatementKind::Session),
            (
                "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ ''",
                StatementKind::Alone,
            ),
            ("SET GLOBAL event_scheduler = 1", StatementKind::Alone),
            ("SET @a = (SELECT 1)", StatementKind::Binds),
            ("SET INSERT_ID = 5", StatementKind::Binds),
            ("CREATE TEMPORARY TABLE t (a INT)", StatementKind::Binds),
            ("LOCK TABLES `t` WRITE", StatementKind::Left),
            ("UNLOCK TABLES", StatementKind::Unlock),
            ("START TRANSACTION", StatementKind::Begin),
            ("begin work", StatementKind::Begin),
            ("commit", StatementKind::Commit),
            ("USE `a b`", StatementKind::Use("a b".to_owned())),
            ("ROLLBACK TO s", StatementKind::Rollback),
            ("SAVEPOINT s", StatementKind::Rollback),
            ("XA START 'x'", StatementKind::Binds),
        ] {
            assert_eq!(of(sql), kind, "{sql}");
        }
        let gbk = Mode {
            wide: Wide::Gbk,
            ..Mode::default()
        };
        assert_eq!(
            classify(b"INSERT INTO t VALUES ('\x81\\')", gbk),
            StatementKind::Alone
        );
        assert_eq!(classify(b"SET @a = '\x81\\'", gbk), StatementKind::Binds);
        for sql in [
            "SET a = 1; SET b = 2",
            "USE a; INSERT INTO t VALUES (1)",
            "CREATE PROCEDURE p() SELECT 1; USE a",
        ] {
            assert_eq!(
                classify_several(sql.as_bytes()),
                StatementKind::Binds,
                "{sql}"
            );
        }
        for sql in [
            "CREATE DEFINER=`a`@`b` PROCEDURE p() BEGIN SELECT 1; END",
            "/*!50003 CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW BEGIN SET @a = 1; END */",
            "CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW SET @a = 1;",
        ] {
            assert_eq!(
                classify_several(sql.as_bytes()),
                StatementKind::Alone,
                "{sql}"
            );
        }
    }
}
