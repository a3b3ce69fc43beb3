//! CREATE TABLE in two halves: what rows need, and what is cheaper made after them.

mod dialect;

pub(in crate::objects) use dialect::in_dialect;

use super::token::{Token, TokenKind, all_tokens};

/// A table's CREATE statement, and what to add once its rows are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitTable {
    /// The table with the keys that it cannot be without.
    pub create: Vec<u8>,
    /// `ALTER TABLE … ADD …` for the secondary indexes, in order: one of several ordinary indexes,
    /// or one of a single FULLTEXT or SPATIAL one, of which servers make one at a time in place.
    pub indexes: Vec<Vec<u8>>,
    /// `ALTER TABLE … ADD CONSTRAINT …` for all foreign keys, by a copy where a server adds one no other way.
    pub foreign_key: Option<Vec<u8>>,
}

/// What one line between the parentheses defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Column,
    Primary,
    Index { unique: bool, ordinary: bool },
    ForeignKey,
    Check,
}

/// One definition: what, and the range of its tokens.
struct Definition {
    line: Line,
    first: usize,
    last: usize,
}

/// Splits what SHOW CREATE TABLE printed with an empty `sql_mode`.
///
/// Returns `None` for whatever is not understood to the last token, and for tables that gain nothing
/// or could come out different: engines other than InnoDB, system-versioned tables, periods. Those
/// must be created whole.
#[must_use]
pub fn split_table(create: &[u8]) -> Option<SplitTable> {
    let tokens = all_tokens(create)?;
    let [verb, noun, name, open, ..] = tokens.as_slice() else {
        return None;
    };
    let head = verb.is_word(create, "CREATE") && noun.is_word(create, "TABLE");
    if !head || name.kind != TokenKind::Name || !open.is_sign(b'(') {
        return None;
    }
    let (definitions, close) = definitions(create, &tokens)?;
    if !is_plain_innodb(create, &tokens[close + 1..]) {
        return None;
    }
    let text = |one: &Definition| &create[tokens[one.first].start..tokens[one.last].end];
    let secondary: Vec<&Definition> = definitions
        .iter()
        .filter(|one| matches!(one.line, Line::Index { .. }))
        .collect();
    let kept = kept_indexes(create, &tokens, &definitions, &secondary)?;
    let later = &secondary[kept..];
    let stays = |one: &&Definition| {
        one.line != Line::ForeignKey && !later.iter().any(|index| index.first == one.first)
    };
    let lines: Vec<&[u8]> = definitions.iter().filter(stays).map(text).collect();
    let alter = [b"ALTER TABLE ", name.of(create), b"\n  ADD "].concat();
    let added = |some: &[&Definition]| {
        let some: Vec<&[u8]> = some.iter().map(|one| text(one)).collect();
        [alter.as_slice(), &some.join(&b",\n  ADD "[..])].concat()
    };
    let foreign: Vec<&Definition> = definitions
        .iter()
        .filter(|one| one.line == Line::ForeignKey)
        .collect();
    Some(SplitTable {
        create: [
            &create[..open.end],
            b"\n  ",
            &lines.join(&b",\n  "[..]),
            b"\n",
            &create[tokens[close].start..],
        ]
        .concat(),
        indexes: batches(later).into_iter().map(added).collect(),
        foreign_key: (!foreign.is_empty()).then(|| {
            let copied = is_copied(create, &tokens, &definitions);
            let how: &[u8] = if copied { b",\n  ALGORITHM=COPY" } else { b"" };
            [added(&foreign), how.to_vec()].concat()
        }),
    })
}

/// Returns whether foreign keys can only be added while the table is copied: MariaDB takes one that deletes rows with
/// those that they refer to, and has a column that a stored one is computed from, be it by another computed one, but
/// not in place.
fn is_copied(create: &[u8], tokens: &[Token], definitions: &[Definition]) -> bool {
    let parts = |one: &Definition| &tokens[one.first..=one.last];
    let says = |one: &Definition, word| parts(one).iter().any(|token| token.is_word(create, word));
    let computed: Vec<&Definition> = definitions
        .iter()
        .filter(|one| one.line == Line::Column && says(one, "GENERATED"))
        .collect();
    let is_base = |name: &Token| {
        let mut sources = computed.iter().flat_map(|one| &parts(one)[1..]);
        sources.any(|token| {
            token.kind == TokenKind::Name && token.of(create).eq_ignore_ascii_case(name.of(create))
        })
    };
    let deletes = |one: &&Definition| one.line == Line::ForeignKey && says(one, "CASCADE");
    computed.iter().any(|one| says(one, "STORED"))
        && definitions.iter().filter(deletes).any(|one| {
            // CONSTRAINT, its name, FOREIGN KEY and the columns in parentheses.
            let columns = parts(one).iter().skip(5);
            let columns = columns.take_while(|token| !token.is_sign(b')'));
            columns
                .filter(|token| token.kind == TokenKind::Name)
                .any(is_base)
        })
}

/// Returns the definitions between the outer parentheses, and which token closes them.
fn definitions(create: &[u8], tokens: &[Token]) -> Option<(Vec<Definition>, usize)> {
    let mut found = Vec::new();
    let (mut depth, mut in_gate, mut first) = (1_usize, false, 4);
    for (at, token) in tokens.iter().enumerate().skip(4) {
        match token.kind {
            TokenKind::Sign(b'(') => depth += 1,
            TokenKind::Sign(b')') => depth -= 1,
            TokenKind::Gate => in_gate = true,
            TokenKind::GateEnd => in_gate = false,
            _ => {}
        }
        let ends = depth == 0 || (depth == 1 && token.is_sign(b','));
        if !ends {
            continue;
        }
        // A comma inside an executed comment belongs to a syntax that is not known here.
        if in_gate || first >= at {
            return None;
        }
        found.push(Definition {
            line: line(create, &tokens[first..at])?,
            first,
            last: at - 1,
        });
        if depth == 0 {
            return Some((found, at));
        }
        first = at + 1;
    }
    None
}

/// Returns what a definition defines; `None` for what is not known here.
fn line(create: &[u8], tokens: &[Token]) -> Option<Line> {
    let word = |at: usize, word: &str| {
        let token: Option<&Token> = tokens.get(at);
        token.is_some_and(|token| token.is_word(create, word))
    };
    let index = |unique, ordinary| Some(Line::Index { unique, ordinary });
    let named = |at: usize| {
        let name = tokens
            .get(at)
            .is_some_and(|one| one.kind == TokenKind::Name);
        name && tokens[at + 1..].iter().any(|token| token.is_sign(b'('))
    };
    if tokens.first()?.kind == TokenKind::Name {
        return (tokens.len() > 1).then_some(Line::Column);
    }
    match () {
        () if word(0, "PRIMARY") && word(1, "KEY") => Some(Line::Primary),
        () if word(0, "UNIQUE") && word(1, "KEY") && named(2) => index(true, true),
        () if word(0, "KEY") && named(1) => index(false, true),
        () if word(0, "FULLTEXT") && word(1, "KEY") && named(2) => index(false, false),
        () if word(0, "SPATIAL") && word(1, "KEY") && named(2) => index(false, false),
        () if word(0, "CONSTRAINT") && word(2, "FOREIGN") => Some(Line::ForeignKey),
        () if word(0, "CONSTRAINT") && word(2, "CHECK") => Some(Line::Check),
        () if word(0, "CHECK") => Some(Line::Check),
        () => None,
    }
}

/// Returns whether what follows the parentheses is of an InnoDB table without system versioning.
fn is_plain_innodb(create: &[u8], options: &[Token]) -> bool {
    let engine = options.windows(3).any(|part| {
        part[0].is_word(create, "ENGINE")
            && part[1].is_sign(b'=')
            && part[2].is_word(create, "INNODB")
    });
    let versioned = options.windows(2).any(|part| {
        part[0].is_word(create, "SYSTEM")
            && (part[1].is_word(create, "VERSIONING") || part[1].is_word(create, "_TIME"))
    });
    let by_time = options
        .iter()
        .any(|token| token.is_word(create, "SYSTEM_TIME"));
    engine && !versioned && !by_time
}

/// Returns how many of the secondary indexes stay, from the first: up to the last that the table
/// cannot be without. Those before it stay too, so that their order stays, which decides ties
/// between them.
///
/// Without a primary key, InnoDB orders the rows by a unique one. An AUTO_INCREMENT column needs an
/// index that begins with it.
fn kept_indexes(
    create: &[u8],
    tokens: &[Token],
    definitions: &[Definition],
    secondary: &[&Definition],
) -> Option<usize> {
    let primary = definitions.iter().find(|one| one.line == Line::Primary);
    let unique = |one: &&Definition| matches!(one.line, Line::Index { unique: true, .. });
    let clustered = match primary {
        Some(_) => 0,
        None => secondary.iter().rposition(unique).map_or(0, |at| at + 1),
    };
    let counter = definitions.iter().find(|one| {
        let parts = &tokens[one.first..=one.last];
        let counts = |token: &Token| token.is_word(create, "AUTO_INCREMENT");
        one.line == Line::Column && parts.iter().any(counts)
    });
    let Some(counter) = counter else {
        return Some(clustered);
    };
    let counter = tokens[counter.first].of(create);
    let begins_with_it = |one: &Definition| {
        let parts = &tokens[one.first..=one.last];
        let open = parts.iter().position(|token| token.is_sign(b'('));
        open.and_then(|at| parts.get(at + 1))
            .is_some_and(|token| token.of(create) == counter)
    };
    if primary.is_some_and(begins_with_it) {
        return Some(clustered);
    }
    let index = secondary.iter().position(|one| begins_with_it(one))?;
    Some(clustered.max(index + 1))
}

/// Returns the indexes in the order in which they come, ordinary neighbours together.
fn batches<'a>(indexes: &'a [&'a Definition]) -> Vec<&'a [&'a Definition]> {
    let ordinary = |one: &Definition| matches!(one.line, Line::Index { ordinary: true, .. });
    indexes
        .chunk_by(|one, next| ordinary(one) && ordinary(next))
        .collect()
}

#[cfg(test)]
mod tests;
