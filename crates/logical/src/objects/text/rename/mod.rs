//! A text in which a schema is called otherwise. Names are exchanged where lexing decides that they are
//! a schema's; what it cannot decide is left unchanged and reported.
//!
//! A name with a dot behind it is a schema's or a table's: `shop.orders`, `orders.id`. With two dots, in
//! front of parentheses and where tables are listed it is a schema's. Elsewhere it is a table's, an
//! alias's or a variable's, if there is such a one with this name.

use super::token::{Token, TokenKind, all_tokens_under, name_of};
use crate::objects::SchemaObjectKind;
use evenkeel_server::connect::quote_name;
use evenkeel_sql::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// How schemas are called, and how they should be.
#[derive(Debug, Clone, Default)]
pub(in crate::objects) struct Names {
    /// The new name by the old one.
    pub(in crate::objects) new: BTreeMap<String, String>,
    /// All schemas that there are, by their old names.
    pub(in crate::objects) all: BTreeSet<String>,
}

/// What a text is of.
#[derive(Debug, Clone, Copy)]
pub(in crate::objects) struct About<'a> {
    pub(in crate::objects) kind: SchemaObjectKind,
    pub(in crate::objects) name: &'a str,
    pub(in crate::objects) mode: Mode,
    /// What else a name in front of a dot may be: sequences and packages of the text's schema.
    pub(in crate::objects) qualifiers: &'a BTreeSet<String>,
}

/// Why a name stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::objects) enum Doubt {
    /// It may be a table's, an alias's or a variable's.
    Qualifier(String),
    /// It is written otherwise: on some servers that is another schema.
    Case(String),
    /// It stands in a literal.
    Literal(String),
    /// A statement is about the schema itself.
    Itself(String),
    /// The text is not understood.
    Unread,
}

/// Where in a statement a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    /// Where objects are named: behind FROM, JOIN, INTO, CALL, …
    Objects,
    /// Where values are.
    Values,
}

/// Words behind which objects are named, one behind the other; all are reserved.
const OBJECTS: [&str; 10] = [
    "CALL",
    "DELETE",
    "FROM",
    "INSERT",
    "INTO",
    "JOIN",
    "REPLACE",
    "STRAIGHT_JOIN",
    "TABLE",
    "UPDATE",
];
/// Words behind which values are.
const VALUES: [&str; 20] = [
    "BEGIN",
    "DO",
    "ELSE",
    "GROUP",
    "HAVING",
    "LIMIT",
    "LOOP",
    "ON",
    "ORDER",
    "REPEAT",
    "RETURN",
    "RETURNING",
    "SELECT",
    "SET",
    "THEN",
    "UNTIL",
    "VALUE",
    "VALUES",
    "WHEN",
    "WHERE",
];
/// Words of which a name directly behind them is an object's.
const CERTAIN: [&str; 16] = [
    "BODY",
    "DESCRIBE",
    "EVENT",
    "EXISTS",
    "FOLLOWS",
    "FUNCTION",
    "HANDLER",
    "PACKAGE",
    "PRECEDES",
    "PROCEDURE",
    "REFERENCES",
    "SEQUENCE",
    "TABLES",
    "TRIGGER",
    "TRUNCATE",
    "VIEW",
];
/// Functions whose first argument is a sequence.
const OF_SEQUENCES: [&str; 3] = ["NEXTVAL", "LASTVAL", "SETVAL"];
/// Functions with a FROM of their own.
const WITH_FROM: [&str; 5] = ["EXTRACT", "MID", "SUBSTR", "SUBSTRING", "TRIM"];
/// Words in front of INTO where rows go in; elsewhere variables are behind it.
const INSERTS: [&str; 6] = [
    "DELAYED",
    "HIGH_PRIORITY",
    "IGNORE",
    "INSERT",
    "LOW_PRIORITY",
    "REPLACE",
];
/// Words in front of UPDATE, INSERT and DELETE that are no statements.
const NO_STATEMENT: [&str; 5] = ["AFTER", "BEFORE", "FOR", "KEY", "ON"];

/// Returns a text with the new names, and what in it could not be decided.
pub(in crate::objects) fn renamed(
    text: &[u8],
    about: About<'_>,
    names: &Names,
) -> (Vec<u8>, BTreeSet<Doubt>) {
    let tokens = all_tokens_under(text, about.mode);
    let (Some(tokens), Ok(_)) = (tokens, std::str::from_utf8(text)) else {
        return (text.to_vec(), BTreeSet::from([Doubt::Unread]));
    };
    let reader = Reader {
        text,
        tokens: &tokens,
        about,
        places: places(text, &tokens, about.kind),
    };
    let taken: BTreeSet<&String> = names
        .new
        .keys()
        .filter(|old| reader.is_taken(old))
        .collect();
    let (mut out, mut copied, mut doubts) = (Vec::new(), 0, BTreeSet::new());
    for (at, token) in tokens.iter().enumerate() {
        match reader.verdict(at, names, &taken) {
            Verdict::Stays => {}
            Verdict::Doubted(doubt) => drop(doubts.insert(doubt)),
            Verdict::Renamed(new) => {
                out.extend_from_slice(&text[copied..token.start]);
                out.extend_from_slice(quote_name(new).as_bytes());
                copied = token.end;
            }
        }
    }
    out.extend_from_slice(&text[copied..]);
    (out, doubts)
}

/// What becomes of a token.
enum Verdict<'n> {
    Stays,
    Renamed(&'n str),
    Doubted(Doubt),
}

struct Reader<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
    about: About<'a>,
    places: Vec<Clause>,
}

impl<'a> Reader<'a> {
    fn before(&self, at: usize) -> Option<&'a Token> {
        at.checked_sub(1).map(|one| &self.tokens[one])
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|one| one.is_sign(sign))
    }

    fn is_behind_sign(&self, at: usize, sign: u8) -> bool {
        self.before(at).is_some_and(|one| one.is_sign(sign))
    }

    fn is_behind(&self, at: usize, words: &[&str]) -> bool {
        let says = |token: &Token| words.iter().any(|word| token.is_word(self.text, word));
        self.before(at).is_some_and(says)
    }

    /// Returns the name that a token is; what is only digits is a number.
    fn name(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        let bytes = token.of(self.text);
        match token.kind {
            TokenKind::Name if bytes.starts_with(b"\"") => {
                let text = String::from_utf8_lossy(&bytes[1..bytes.len() - 1]);
                Some(text.replace("\"\"", "\""))
            }
            TokenKind::Name => Some(name_of(bytes)),
            TokenKind::Word if !bytes.iter().all(u8::is_ascii_digit) => Some(name_of(bytes)),
            _ => None,
        }
    }

    fn is_program(&self) -> bool {
        !matches!(
            self.about.kind,
            SchemaObjectKind::Table | SchemaObjectKind::Sequence | SchemaObjectKind::Database
        )
    }

    /// Returns whether the name may be that of something else in front of a dot: of a table, an alias, a
    /// variable.
    fn is_taken(&self, old: &str) -> bool {
        let is_row = ["old", "new"]
            .iter()
            .any(|row| row.eq_ignore_ascii_case(old));
        if self.about.qualifiers.contains(old)
            || (self.about.kind == SchemaObjectKind::Trigger && is_row)
        {
            return true;
        }
        if !self.is_program() {
            return self.about.name == old;
        }
        let stands = |at: usize| {
            if self.name(at).as_deref() != Some(old)
                || self.is_sign(at + 1, b'.')
                || self.is_sign(at + 1, b'(')
                || self.is_behind_sign(at, b'@')
            {
                return false;
            }
            match self.places[at] {
                Clause::Objects => true,
                // A column, or what a column is called.
                Clause::Values => {
                    self.about.kind != SchemaObjectKind::View
                        && !self.is_behind_sign(at, b'.')
                        && !self.is_behind(at, &["AS"])
                }
            }
        };
        (0..self.tokens.len()).any(stands)
    }

    fn verdict<'n>(&self, at: usize, names: &'n Names, taken: &BTreeSet<&String>) -> Verdict<'n> {
        if self.tokens[at].kind == TokenKind::Text {
            return self.literal(at, names);
        }
        let Some(name) = self.name(at) else {
            return Verdict::Stays;
        };
        if self.is_behind_sign(at, b'.') || self.is_behind_sign(at, b'@') {
            return Verdict::Stays;
        }
        let qualifies = self.is_sign(at + 1, b'.')
            && (self.name(at + 2).is_some() || self.is_sign(at + 2, b'*'));
        if !qualifies {
            let itself =
                names.new.contains_key(&name) && self.is_program() && self.is_the_database(at);
            return match itself {
                true => Verdict::Doubted(Doubt::Itself(name)),
                false => Verdict::Stays,
            };
        }
        let Some(new) = names.new.get(&name) else {
            let mut old = names.new.keys();
            let is_alike = old.any(|old| old.eq_ignore_ascii_case(&name));
            return match is_alike && !names.all.contains(&name) && !self.is_taken(&name) {
                true => Verdict::Doubted(Doubt::Case(name)),
                false => Verdict::Stays,
            };
        };
        match !taken.contains(&name) || self.is_of_schema(at, &name) {
            true => Verdict::Renamed(new),
            false => Verdict::Doubted(Doubt::Qualifier(self.chain(at))),
        }
    }

    /// Returns whether what is around a name in front of a dot says that it is a schema's.
    fn is_of_schema(&self, at: usize, name: &str) -> bool {
        let of_sequence =
            at >= 2 && self.is_sign(at - 1, b'(') && self.is_behind(at - 1, &OF_SEQUENCES);
        let value_for =
            at >= 1 && self.is_behind(at, &["FOR"]) && self.is_behind(at - 1, &["VALUE"]);
        let calls = self.is_sign(at + 3, b'(');
        let has_two_dots = self.is_sign(at + 3, b'.');
        of_sequence
            || value_for
            || self.is_behind(at, &CERTAIN)
            || self.places[at] == Clause::Objects
            || ((calls || has_two_dots) && !self.about.qualifiers.contains(name))
    }

    /// Returns whether a statement names the schema as such.
    fn is_the_database(&self, at: usize) -> bool {
        const NOUNS: [&str; 3] = ["DATABASE", "SCHEMA", "USE"];
        let clause = ["IF", "NOT", "EXISTS"];
        let mut from = at;
        while self.is_behind(from, &clause) {
            from -= 1;
        }
        self.is_behind(from, &NOUNS)
    }

    fn chain(&self, at: usize) -> String {
        let end = self.tokens.get(at + 2).unwrap_or(&self.tokens[at]).end;
        String::from_utf8_lossy(&self.text[self.tokens[at].start..end]).into_owned()
    }

    /// Looks for the names in a literal, other than a comment's.
    fn literal<'n>(&self, at: usize, names: &'n Names) -> Verdict<'n> {
        if !self.is_program() || self.is_behind(at, &["COMMENT"]) {
            return Verdict::Stays;
        }
        let inside = String::from_utf8_lossy(self.tokens[at].of(self.text));
        let says =
            |old: &&String| has_word(&inside, old) || has_word(&inside, &old.replace('`', "``"));
        match names.new.keys().find(says) {
            Some(old) => Verdict::Doubted(Doubt::Literal(old.clone())),
            None => Verdict::Stays,
        }
    }
}

/// Returns whether a text has a name in it that is no part of a longer word.
fn has_word(text: &str, name: &str) -> bool {
    let is_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '$');
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !behind.is_some_and(is_word)
    })
}

/// Returns where in its statement each token is.
fn places(text: &[u8], tokens: &[Token], kind: SchemaObjectKind) -> Vec<Clause> {
    // Whether it is within a function with a FROM of its own stands beside each place.
    let mut frames = vec![(Clause::Values, false)];
    let mut is_head = kind == SchemaObjectKind::Trigger;
    if is_head {
        frames[0].0 = Clause::Objects;
    }
    let mut all = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        let depth = frames.len() - 1;
        let (place, own_from) = frames[depth];
        all.push(place);
        let before = at.checked_sub(1).map(|one| &tokens[one]);
        let behind = |words: &[&str]| {
            let says = |one: &Token| words.iter().any(|word| one.is_word(text, word));
            before.is_some_and(says)
        };
        let dotted = |one: Option<&Token>| one.is_some_and(|one| one.is_sign(b'.'));
        match token.kind {
            TokenKind::Sign(b'(') => {
                let lists = behind(&["FROM", "JOIN", "STRAIGHT_JOIN"])
                    || before.is_some_and(|one| one.is_sign(b',') || one.is_sign(b'('));
                let inner = match place == Clause::Objects && lists {
                    true => Clause::Objects,
                    false => Clause::Values,
                };
                frames.push((inner, behind(&WITH_FROM)));
            }
            TokenKind::Sign(b')') if depth > 0 => drop(frames.pop()),
            TokenKind::Sign(b';') => frames = vec![(Clause::Values, false)],
            TokenKind::Word if is_head && !token.is_word(text, "EACH") => {}
            TokenKind::Word if is_head => (is_head, frames[0].0) = (false, Clause::Values),
            TokenKind::Word if !dotted(before) && !dotted(tokens.get(at + 1)) => {
                let calls = tokens.get(at + 1).is_some_and(|one| one.is_sign(b'('));
                if let Some(next) = turns(text, token, (calls, own_from), &behind) {
                    frames[depth].0 = next;
                }
            }
            _ => {}
        }
    }
    all
}

/// Returns where what follows a word is, if the word decides that.
fn turns(
    text: &[u8],
    token: &Token,
    (calls, own_from): (bool, bool),
    behind: &dyn Fn(&[&str]) -> bool,
) -> Option<Clause> {
    let is = |words: &[&str]| words.iter().any(|word| token.is_word(text, word));
    if is(&["USING"]) {
        return Some(if calls {
            Clause::Values
        } else {
            Clause::Objects
        });
    }
    if is(&VALUES) || (is(&["INTO"]) && !behind(&INSERTS)) {
        return Some(Clause::Values);
    }
    if is(&["TABLES"]) && behind(&["LOCK"]) {
        return Some(Clause::Objects);
    }
    let names_tables = is(&["FROM", "JOIN", "STRAIGHT_JOIN"]);
    let no_list = match () {
        () if is(&["FROM"]) => own_from || behind(&["DISTINCT"]),
        () if is(&["DELETE", "INSERT", "UPDATE"]) => behind(&NO_STATEMENT),
        () => false,
    };
    (is(&OBJECTS) && !no_list && (names_tables || !calls)).then_some(Clause::Objects)
}

#[cfg(test)]
mod tests;
