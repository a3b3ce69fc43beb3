//! What a statement does to whom, as far as its text says.
//!
//! It decides who waits for whom, and what may run when nothing is to be changed. What is not understood counts as the
//! worst: it changes anything.

use super::returns::Returns;
use crate::digest::fingerprint::prepared;
use evenkeel_sql::{Lexeme, Lexemes, Mode};

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It reads.
    Read,
    /// It changes rows.
    Write,
    /// It changes what is committed by itself: definitions.
    Define,
    /// A transaction begins; one that is open is committed.
    Begin,
    /// The open transaction is committed.
    Commit,
    /// The open transaction is rolled back.
    Rollback,
    /// It changes its session only.
    Session,
    /// Autocommit is switched.
    Autocommit(bool),
    /// Nobody knows: a procedure, a block.
    Anything,
    /// It is not replayed.
    Left(Left),
}

/// Why a statement is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// It administers the server or its accounts.
    Administration,
    /// It is about other sessions by their numbers.
    Sessions,
    /// It loads a file of the client or the server, or writes one.
    Files,
    /// A part of its text was not captured.
    Cut,
    /// Its text or its values were not captured.
    Unseen,
    /// It has a password, which is not captured.
    Secret,
    /// It writes, and that is not wanted.
    Writes,
    /// It is a command that clients send for themselves.
    Command,
}

impl Left {
    /// Returns its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Administration => "administration",
            Self::Sessions => "other-sessions",
            Self::Files => "files",
            Self::Cut => "cut",
            Self::Unseen => "unseen",
            Self::Secret => "secret",
            Self::Writes => "writes",
            Self::Command => "command",
        }
    }

    /// Says it in words, after a number of statements.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Administration => "administer the server or its accounts",
            Self::Sessions => "name other sessions by their number",
            Self::Files => "read or write files",
            Self::Cut => "were captured in part",
            Self::Unseen => "were captured without their text or values",
            Self::Secret => "have a password, which is not captured",
            Self::Writes => "write, and --read-only is set",
            Self::Command => "are commands of the protocol that are not replayed",
        }
    }
}

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedTable {
    pub(super) schema: Option<Vec<u8>>,
    pub(super) name: Vec<u8>,
    pub(super) is_written: bool,
}

/// What a statement does to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) act: Act,
    pub(super) tables: Vec<NamedTable>,
    /// The default schema that it sets.
    pub(super) uses: Option<Vec<u8>>,
    /// Whether a transaction is open after it, where it says so besides what it does.
    pub(super) opens: Option<bool>,
    /// Whether its session may have locks after it that end with no transaction.
    pub(super) locks: Option<bool>,
    /// It would let a read-only session write.
    pub(super) frees_writes: bool,
    /// What can be expected of the rows that it returns.
    pub(super) returns: Returns,
}

impl Access {
    fn of(act: Act) -> Self {
        Self {
            act,
            tables: Vec::new(),
            uses: None,
            opens: None,
            locks: None,
            frees_writes: false,
            returns: Returns::default(),
        }
    }

    /// Whether it changes no data, as far as its text says.
    pub(super) fn only_reads(&self) -> bool {
        let reads = match self.act {
            Act::Read | Act::Begin | Act::Commit | Act::Rollback => true,
            Act::Session | Act::Autocommit(_) => true,
            Act::Write | Act::Define | Act::Anything | Act::Left(_) => false,
        };
        reads && !self.frees_writes
    }
}

/// Words between a verb and the table it changes.
const BETWEEN: [&str; 8] = [
    "low_priority",
    "delayed",
    "high_priority",
    "ignore",
    "quick",
    "only",
    "if",
    "exists",
];
/// Words that no table without quotes is called, and that follow one.
const AFTER_TABLE: [&str; 30] = [
    "where",
    "set",
    "on",
    "using",
    "join",
    "inner",
    "left",
    "right",
    "cross",
    "straight_join",
    "natural",
    "order",
    "group",
    "having",
    "limit",
    "union",
    "for",
    "lock",
    "values",
    "value",
    "select",
    "partition",
    "use",
    "force",
    "ignore",
    "add",
    "drop",
    "rename",
    "read",
    "write",
];

/// Returns what a statement does, or several in one.
pub(super) fn access(sql: &[u8], mode: Mode) -> Access {
    let all = pieces(sql, mode);
    let parts = all.split(|piece| *piece == Piece::Sign(b';'));
    let parts: Vec<&[Piece]> = parts.filter(|part| !part.is_empty()).collect();
    match &parts[..] {
        [] => Access::of(Act::Anything),
        [one] => match prepared(sql, mode).map(|inner| access(&inner, mode).act) {
            Some(Act::Left(left)) => Access::of(Act::Left(left)),
            _ => single(one),
        },
        // The body of a procedure, or a block.
        [first, ..] if matches!(word(first, 0), "create" | "alter") => Access::of(Act::Anything),
        [first, ..] if word(first, 0) == "begin" && !matches!(word(first, 1), "" | "work") => {
            Access::of(Act::Anything)
        }
        many => several(many.iter().map(|part| single(part)).collect()),
    }
}

/// Whether it is one statement that returns rows of a query: no other that reads, such as SHOW.
pub(super) fn is_one_query(sql: &[u8], mode: Mode) -> bool {
    let pieces = pieces(sql, mode);
    let is_open = |piece: &&Piece| **piece == Piece::Sign(b'(');
    let opened = pieces.iter().take_while(is_open).count();
    let first = word(&pieces, opened);
    let is_several = pieces.contains(&Piece::Sign(b';'));
    !is_several && matches!(first, "select" | "with" | "table" | "values")
}

fn several(all: Vec<Access>) -> Access {
    let left = all.iter().find(|one| matches!(one.act, Act::Left(_)));
    let only_reads = |one: &Access| matches!(one.act, Act::Read | Act::Session);
    let act = match left {
        Some(one) => one.act,
        None if all.iter().all(only_reads) => Act::Read,
        None => Act::Anything,
    };
    let opens = all.iter().rev().find_map(|one| match one.act {
        Act::Begin => Some(true),
        Act::Commit | Act::Rollback | Act::Define => Some(false),
        _ => one.opens,
    });
    Access {
        act,
        opens,
        locks: all.iter().rev().find_map(|one| one.locks),
        frees_writes: all.iter().any(|one| one.frees_writes),
        uses: None,
        returns: all
            .iter()
            .map(|one| one.returns)
            .reduce(Returns::and)
            .unwrap_or_default(),
        tables: all.into_iter().flat_map(|one| one.tables).collect(),
    }
}

/// Returns the word at a place, or nothing.
fn word(pieces: &[Piece], at: usize) -> &str {
    match pieces.get(at) {
        Some(Piece::Word(word)) => word,
        _ => "",
    }
}

fn single(pieces: &[Piece]) -> Access {
    let opened = pieces
        .iter()
        .take_while(|piece| **piece == Piece::Sign(b'('));
    let pieces = &pieces[opened.count()..];
    let (first, second) = (word(pieces, 0), word(pieces, 1));
    if (first, second) == ("set", "statement") {
        let at = pieces
            .iter()
            .position(|piece| *piece == Piece::Word("for".to_owned()));
        let of = at.map_or(Access::of(Act::Anything), |at| single(&pieces[at + 1..]));
        return Access {
            frees_writes: true,
            ..of
        };
    }
    let act = act(pieces);
    let writes = matches!(act, Act::Write | Act::Define);
    Access {
        tables: match act {
            Act::Read | Act::Write | Act::Define => tables(pieces, first, writes),
            _ => Vec::new(),
        },
        uses: (first == "use")
            .then(|| match pieces.get(1) {
                Some(Piece::Word(name)) => Some(name.clone().into_bytes()),
                Some(Piece::Name(name)) => Some(name.clone()),
                _ => None,
            })
            .flatten(),
        locks: match (first, second) {
            ("lock", _) | ("xa", "start" | "begin") => Some(true),
            ("unlock", _) | ("xa", "commit" | "rollback") => Some(false),
            _ => None,
        },
        frees_writes: frees_writes(pieces),
        returns: Returns::of(pieces),
        ..Access::of(act)
    }
}

/// Whether it would let a read-only session write.
fn frees_writes(pieces: &[Piece]) -> bool {
    let names = ["tx_read_only", "transaction_read_only"];
    let is_name = |name: &str| names.iter().any(|one| name.ends_with(one));
    let switches = pieces.iter().any(|piece| match piece {
        Piece::Word(name) | Piece::Variable(name) => is_name(name),
        Piece::Name(name) => is_name(&String::from_utf8_lossy(name).to_lowercase()),
        _ => false,
    });
    match word(pieces, 0) {
        "set" => switches || has(pieces, &["read", "write"]),
        "start" | "begin" => has(pieces, &["read", "write"]),
        _ => false,
    }
}

/// What matters of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// In lower case.
    Word(String),
    /// What is in quotes, without them.
    Name(Vec<u8>),
    Variable(String),
    Sign(u8),
    Zero,
    Other,
}

fn pieces(sql: &[u8], mode: Mode) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Lexemes::new(sql, mode)
        .map(|lexeme| match lexeme {
            Lexeme::Word(word) => Piece::Word(String::from_utf8_lossy(word).to_lowercase()),
            Lexeme::Name(name) => Piece::Name(bare(name)),
            Lexeme::Variable(name) => Piece::Variable(String::from_utf8_lossy(name).to_lowercase()),
            Lexeme::Sign(sign) => Piece::Sign(sign[0]),
            Lexeme::Number(b"0") => Piece::Zero,
            Lexeme::Text(_) | Lexeme::Number(_) | Lexeme::Placeholder => Piece::Other,
        })
        .collect();
    // One at the end says nothing; one in the middle begins another statement.
    while pieces.last() == Some(&Piece::Sign(b';')) {
        pieces.pop();
    }
    pieces
}

/// Returns a name without its quotes.
fn bare(name: &[u8]) -> Vec<u8> {
    let (quote, inner) = (name[0], &name[1..name.len() - 1]);
    let mut plain = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memmem::find(rest, &[quote, quote]) {
        plain.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    plain.extend_from_slice(rest);
    plain
}

fn has(pieces: &[Piece], wanted: &[&str]) -> bool {
    let is = |piece: &Piece, word: &&str| matches!(piece, Piece::Word(it) if it == word);
    pieces.windows(wanted.len()).any(|window| {
        window
            .iter()
            .zip(wanted)
            .all(|(piece, word)| is(piece, word))
    })
}

fn act(pieces: &[Piece]) -> Act {
    // A function that reads a file of the server's host, whatever the statement is.
    if has(pieces, &["load_file"]) {
        return Act::Left(Left::Files);
    }
    let second = word(pieces, 1);
    match word(pieces, 0) {
        "select" | "values" | "table" | "with" => reads(pieces),
        "show" | "desc" | "describe" | "explain" | "help" | "checksum" => {
            match has(pieces, &["analyze"]) {
                true => Act::Anything,
                false => Act::Read,
            }
        }
        "insert" | "replace" | "update" | "delete" => Act::Write,
        "begin" if matches!(second, "" | "work") => Act::Begin,
        "start" if second == "transaction" => Act::Begin,
        "commit" => Act::Commit,
        "rollback" if has(pieces, &["to"]) => Act::Session,
        "rollback" => Act::Rollback,
        "savepoint" | "release" | "use" | "prepare" | "deallocate" | "unlock" => Act::Session,
        "set" => set(pieces),
        "create" | "alter" | "drop" | "rename" | "truncate" | "analyze" | "optimize" | "repair" => {
            define(pieces)
        }
        "lock" if matches!(second, "table" | "tables") => Act::Define,
        "load" => Act::Left(Left::Files),
        "kill" => Act::Left(Left::Sessions),
        "grant" | "revoke" | "shutdown" | "restart" | "reset" | "change" | "start" | "stop"
        | "purge" | "install" | "uninstall" | "flush" | "binlog" | "clone" | "import"
        | "backup" | "cache" => Act::Left(Left::Administration),
        _ => Act::Anything,
    }
}

fn reads(pieces: &[Piece]) -> Act {
    if has(pieces, &["into", "outfile"]) || has(pieces, &["into", "dumpfile"]) {
        return Act::Left(Left::Files);
    }
    let changes = ["insert", "update", "delete", "replace"];
    let is_with = matches!(&pieces[0], Piece::Word(word) if word == "with");
    let locks = has(pieces, &["for", "update"])
        || has(pieces, &["for", "share"])
        || has(pieces, &["share", "mode"]);
    let is_change =
        |piece: &Piece| matches!(piece, Piece::Word(word) if changes.contains(&word.as_str()));
    match locks || is_with && pieces.iter().any(is_change) {
        true => Act::Write,
        false => Act::Read,
    }
}

fn set(pieces: &[Piece]) -> Act {
    let mut act = Act::Session;
    for (at, piece) in pieces.iter().enumerate().skip(1) {
        let name = match piece {
            Piece::Word(word) => word.as_str(),
            Piece::Variable(name) => name.trim_start_matches('@'),
            _ => continue,
        };
        let (scope, bare) = name.split_once('.').unwrap_or(("", name));
        let of_all = ["global", "persist", "persist_only"];
        if of_all.contains(&scope)
            || of_all.contains(&name)
            || matches!(name, "password" | "role" | "resource")
        {
            return Act::Left(Left::Administration);
        }
        if bare == "autocommit" {
            let is_off = match pieces.get(at + 2) {
                Some(Piece::Word(word)) => matches!(word.as_str(), "off" | "false"),
                value => value == Some(&Piece::Zero),
            };
            act = Act::Autocommit(!is_off);
        }
    }
    act
}

fn define(pieces: &[Piece]) -> Act {
    let about = [
        "user",
        "role",
        "server",
        "instance",
        "tablespace",
        "logfile",
        "resource",
        "undo",
    ];
    let second =
        |piece: &Piece| matches!(piece, Piece::Word(word) if about.contains(&word.as_str()));
    if pieces.iter().skip(1).take(3).any(second) {
        return Act::Left(Left::Administration);
    }
    let on_tables = ["table", "tables", "index", "truncate"];
    let is_table =
        |piece: &Piece| matches!(piece, Piece::Word(word) if on_tables.contains(&word.as_str()));
    match pieces.iter().take(5).any(is_table) {
        true => Act::Define,
        false => Act::Anything,
    }
}

/// Finds the tables that a statement names. A word too many does no harm: it makes others wait.
fn tables(pieces: &[Piece], verb: &str, writes: bool) -> Vec<NamedTable> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut last = String::new();
    while at < pieces.len() {
        let Piece::Word(word) = &pieces[at] else {
            last.clear();
            at += 1;
            continue;
        };
        let opens = match word.as_str() {
            "from" | "join" | "into" | "table" | "tables" | "straight_join" => true,
            // ON DUPLICATE KEY UPDATE names columns.
            "update" => last != "key" && last != "on" && last != "for",
            "insert" | "replace" | "truncate" => last.is_empty(),
            "on" => matches!(verb, "create" | "drop"),
            _ => false,
        };
        last.clone_from(word);
        at += 1;
        if opens {
            at = list(pieces, at, &mut found);
        }
    }
    let only_first = matches!(verb, "insert" | "replace");
    for (number, table) in found.iter_mut().enumerate() {
        table.is_written = writes && !(only_first && number > 0);
    }
    found
}

/// Reads `a AS x, b.c y`, and returns where it ends.
fn list(pieces: &[Piece], mut at: usize, found: &mut Vec<NamedTable>) -> usize {
    let is_word = |at: usize, words: &[&str]| matches!(pieces.get(at), Some(Piece::Word(word)) if words.contains(&word.as_str()));
    let name = |at: usize| match pieces.get(at) {
        Some(Piece::Word(word)) if !AFTER_TABLE.contains(&word.as_str()) => {
            Some(word.clone().into_bytes())
        }
        Some(Piece::Name(name)) => Some(name.clone()),
        _ => None,
    };
    let is_sign = |at: usize, sign: u8| pieces.get(at) == Some(&Piece::Sign(sign));
    while is_word(at, &BETWEEN) || is_word(at, &["not", "into", "from", "table"]) {
        at += 1;
    }
    while let Some(first) = name(at) {
        at += 1;
        let second = is_sign(at, b'.').then(|| name(at + 1)).flatten();
        let (schema, table) = match second {
            Some(second) => {
                at += 2;
                (Some(first), second)
            }
            None => (None, first),
        };
        found.push(NamedTable {
            schema,
            name: table,
            is_written: false,
        });
        // An alias.
        if is_word(at, &["as"]) {
            at += 1;
        }
        if name(at).is_some() && !is_sign(at + 1, b'.') {
            at += 1;
        }
        if !is_sign(at, b',') {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Access {
        access(sql.as_bytes(), Mode::default())
    }

    fn shown(sql: &str) -> String {
        let access = of(sql);
        let tables = access.tables.iter().map(|table| {
            let schema = table.schema.as_deref().map(String::from_utf8_lossy);
            let mark = if table.is_written { "!" } else { "" };
            let name = String::from_utf8_lossy(&table.name).into_owned();
            format!(
                "{}{name}{mark}",
                schema.map_or(String::new(), |schema| format!("{schema}."))
            )
        });
        format!("{:?} {}", access.act, tables.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn tables_are_found() {
        for (sql, expected) in [
            ("SELECT a FROM t", "Read t"),
            (
                "select * from `a``b`.c AS x, d y where x.i = y.i",
                "Read a`b.c d",
            ),
            ("(SELECT 1 FROM a) UNION (SELECT 2 FROM b)", "Read a b"),
            (
                "SELECT a FROM t JOIN u ON t.i = u.i LEFT JOIN v USING (i)",
                "Read t u v",
            ),
            (
                "SELECT * FROM (SELECT 1 FROM inner_one) x",
                "Read inner_one",
            ),
            ("SELECT a FROM t WHERE a = 'FROM b' FOR UPDATE", "Write t!"),
            ("SELECT a FROM t LOCK IN SHARE MODE", "Write t!"),
            (
                "INSERT INTO t (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = 1",
                "Write t! u",
            ),
            ("INSERT IGNORE t VALUES (1)", "Write t!"),
            ("REPLACE INTO x.t SET a = 1", "Write x.t!"),
            ("UPDATE LOW_PRIORITY t, u SET t.a = u.a", "Write t! u!"),
            ("DELETE FROM t WHERE a IN (SELECT a FROM u)", "Write t! u!"),
            ("TRUNCATE t", "Define t!"),
            ("DROP TABLE IF EXISTS a, b", "Define a! b!"),
            ("CREATE INDEX i ON t (a)", "Define t!"),
            ("ALTER TABLE t ADD COLUMN b INT", "Define t!"),
            ("WITH x AS (SELECT a FROM t) SELECT * FROM x", "Read t x"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn acts_are_told_apart() {
        let left = |reason| Act::Left(reason);
        for (sql, expected) in [
            ("BEGIN", Act::Begin),
            ("start transaction read only", Act::Begin),
            ("COMMIT;", Act::Commit),
            ("ROLLBACK", Act::Rollback),
            ("ROLLBACK TO SAVEPOINT a", Act::Session),
            ("SET NAMES utf8mb4", Act::Session),
            ("SET autocommit = OFF", Act::Autocommit(false)),
            ("SET autocommit=0", Act::Autocommit(false)),
            ("SET autocommit=1", Act::Autocommit(true)),
            ("SET @@session.autocommit = ON", Act::Autocommit(true)),
            ("SET GLOBAL max_connections = 1", left(Left::Administration)),
            ("SET @@global.a = 1", left(Left::Administration)),
            ("SET PASSWORD = 'x'", left(Left::Administration)),
            ("CREATE USER a", left(Left::Administration)),
            ("DROP DATABASE d", Act::Anything),
            ("CALL p()", Act::Anything),
            ("SELECT 1; DELETE FROM t", Act::Anything),
            ("SELECT 1; SELECT 2 FROM t", Act::Read),
            ("SELECT 1; SHUTDOWN", left(Left::Administration)),
            ("PREPARE a FROM 'CREATE USER b'", left(Left::Administration)),
            ("PREPARE a FROM 'SELECT 1'", Act::Session),
            ("SET autocommit=1, GLOBAL x=1", left(Left::Administration)),
            ("SET @@PERSIST_ONLY.x=66", left(Left::Administration)),
            ("SET STATEMENT a=1 FOR DELETE FROM t", Act::Write),
            (
                "SET STATEMENT a=1 FOR CREATE USER b",
                left(Left::Administration),
            ),
            ("CREATE PROCEDURE p() BEGIN DROP USER a; END", Act::Anything),
            ("SELECT a INTO OUTFILE 'x' FROM t", left(Left::Files)),
            ("SELECT LOAD_FILE('x')", left(Left::Files)),
            ("INSERT INTO t SELECT load_file ('x')", left(Left::Files)),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", left(Left::Files)),
            ("KILL 5", left(Left::Sessions)),
            ("/* app */ SELECT 1", Act::Read),
            ("EXPLAIN ANALYZE DELETE FROM t", Act::Anything),
            ("WITH x AS (SELECT 1) DELETE FROM t", Act::Write),
            ("nonsense", Act::Anything),
            ("", Act::Anything),
        ] {
            assert_eq!(of(sql).act, expected, "{sql}");
        }
        assert_eq!(of("USE `shop`").uses.as_deref(), Some(&b"shop"[..]));
        assert_eq!(of("use shop;").uses.as_deref(), Some(&b"shop"[..]));
    }

    #[test]
    fn several_in_one_leave_a_transaction_open() {
        let opens = |sql: &str| of(sql).opens;
        assert_eq!(opens("BEGIN; UPDATE t SET a = 1"), Some(true));
        assert_eq!(opens("BEGIN; UPDATE t SET a = 1; COMMIT"), Some(false));
        assert_eq!(opens("UPDATE t SET a = 1; UPDATE t SET a = 2"), None);
        assert_eq!(of("LOCK TABLES t WRITE").locks, Some(true));
        assert_eq!(of("UNLOCK TABLES").locks, Some(false));
    }
}
