//! What a table's text says of its columns that masking has to heed: which are unique, computed,
//! checked, joined, and which decide a row's partition.

use crate::objects::text::{Token, TokenKind, all_tokens, name_of};

/// A column of a key: as a name in small letters, and how much of it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Column {
        name: String,
        prefix: usize,
    },
    /// These are in an expression.
    Computed(Vec<String>),
}

/// A foreign key; names of columns are in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) columns: Vec<String>,
    /// None: the table's own.
    pub(super) schema: Option<String>,
    pub(super) table: String,
    pub(super) referenced: Vec<String>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) names: Vec<String>,
    /// It says only that a column is JSON, as MariaDB's type of that name does.
    pub(super) is_json: bool,
}

/// A table's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// Unique keys, the primary one among them.
    pub(super) unique: Vec<Vec<Part>>,
    pub(super) foreign: Vec<Foreign>,
    pub(super) checks: Vec<Check>,
    /// Computed columns, and the names in their expressions.
    pub(super) computed: Vec<(String, Vec<String>)>,
    /// Names that decide the partition, where partitions are of certain values.
    pub(super) partitioned: Vec<String>,
}

/// A run of tokens.
#[derive(Clone, Copy)]
struct Run<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
}

impl<'a> Run<'a> {
    fn is_word(&self, at: usize, word: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| token.is_word(self.text, word))
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_sign(sign))
    }

    fn name(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        matches!(token.kind, TokenKind::Name | TokenKind::Word)
            .then(|| name_of(token.of(self.text)))
    }

    fn of(&self, from: usize, to: usize) -> Self {
        Self {
            text: self.text,
            tokens: &self.tokens[from..to],
        }
    }

    /// Returns what is in the first parentheses from `from` on, and where they end.
    fn inside(&self, from: usize) -> Option<(Self, usize)> {
        let open = (from..self.tokens.len()).find(|at| self.is_sign(*at, b'('))?;
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            if self.is_sign(at, b'(') {
                depth += 1;
            } else if self.is_sign(at, b')') {
                depth -= 1;
                if depth == 0 {
                    return Some((self.of(open + 1, at), at));
                }
            }
        }
        None
    }

    /// Cuts at commas that are in no parentheses.
    fn cut(&self) -> Vec<Self> {
        let (mut parts, mut depth, mut from) = (Vec::new(), 0_usize, 0);
        for at in 0..self.tokens.len() {
            if self.is_sign(at, b'(') {
                depth += 1;
            } else if self.is_sign(at, b')') {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && self.is_sign(at, b',') {
                parts.push(self.of(from, at));
                from = at + 1;
            }
        }
        parts.push(self.of(from, self.tokens.len()));
        parts
    }

    /// Returns whatever may be a column, in small letters.
    fn names(&self) -> Vec<String> {
        let names = (0..self.tokens.len()).filter_map(|at| self.name(at));
        names.map(|name| name.to_lowercase()).collect()
    }

    fn find(&self, from: usize, word: &str) -> Option<usize> {
        (from..self.tokens.len()).find(|at| self.is_word(*at, word))
    }
}

impl Definition {
    /// Reads what SHOW CREATE TABLE printed with an empty `sql_mode`; `None` where it is not understood.
    pub(super) fn of(create: &[u8]) -> Option<Self> {
        let tokens: Vec<Token> = all_tokens(create)?
            .into_iter()
            // What some servers only execute counts as if all did.
            .filter(|token| !matches!(token.kind, TokenKind::Gate | TokenKind::GateEnd))
            .collect();
        let all = Run {
            text: create,
            tokens: &tokens,
        };
        let (inside, close) = all.inside(0)?;
        let mut found = Self::default();
        for line in inside.cut() {
            found.line(line)?;
        }
        found.partitions(all.of(close + 1, tokens.len()))?;
        Some(found)
    }

    fn line(&mut self, line: Run<'_>) -> Option<()> {
        if line.tokens.first()?.kind == TokenKind::Name {
            return self.column(line);
        }
        let skip = if line.is_word(0, "CONSTRAINT") { 2 } else { 0 };
        let word = |word: &str| line.is_word(skip, word);
        match () {
            () if word("PRIMARY") || word("UNIQUE") => {
                let parts = line.inside(skip)?.0.cut();
                self.unique
                    .push(parts.into_iter().map(part).collect::<Option<_>>()?);
            }
            () if word("FOREIGN") => self.foreign.push(foreign(line, skip)?),
            () if word("CHECK") => self.checks.push(check(line.inside(skip)?.0)),
            () => {}
        }
        Some(())
    }

    fn column(&mut self, line: Run<'_>) -> Option<()> {
        let name = line.name(0)?.to_lowercase();
        for at in 1..line.tokens.len() {
            if !line.is_sign(at + 1, b'(') {
                continue;
            }
            if line.is_word(at, "CHECK") {
                self.checks.push(check(line.inside(at)?.0));
            } else if line.is_word(at, "AS") && !self.computed.iter().any(|one| one.0 == name) {
                self.computed
                    .push((name.clone(), line.inside(at)?.0.names()));
            }
        }
        Some(())
    }

    fn partitions(&mut self, options: Run<'_>) -> Option<()> {
        let mut from = 0;
        while let Some(at) = options.find(from, "BY") {
            if options.is_word(at + 1, "RANGE") || options.is_word(at + 1, "LIST") {
                self.partitioned.extend(options.inside(at)?.0.names());
            }
            from = at + 1;
        }
        Some(())
    }
}

fn part(run: Run<'_>) -> Option<Part> {
    if run.tokens.first()?.kind != TokenKind::Name {
        return Some(Part::Computed(run.names()));
    }
    let prefix = match run.is_sign(1, b'(') {
        true => run.name(2)?.parse().ok()?,
        false => usize::MAX,
    };
    Some(Part::Column {
        name: run.name(0)?.to_lowercase(),
        prefix,
    })
}

fn check(inside: Run<'_>) -> Check {
    let tokens = inside.tokens.len();
    Check {
        names: inside.names(),
        is_json: tokens == 4 && inside.is_word(0, "JSON_VALID") && inside.is_sign(1, b'('),
    }
}

fn foreign(line: Run<'_>, from: usize) -> Option<Foreign> {
    let (columns, close) = line.inside(from)?;
    let at = line.find(close, "REFERENCES")?;
    let (schema, table) = match line.is_sign(at + 2, b'.') {
        true => (Some(line.name(at + 1)?), line.name(at + 3)?),
        false => (None, line.name(at + 1)?),
    };
    Some(Foreign {
        columns: columns.names(),
        schema,
        table,
        referenced: line.inside(at)?.0.names(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    fn column(name: &str, prefix: usize) -> Part {
        Part::Column {
            name: name.to_owned(),
            prefix,
        }
    }

    #[test]
    fn what_counts_is_found() {
        let create = b"CREATE TABLE `t` (\n  `Id` int(11) NOT NULL AUTO_INCREMENT,\n  \
            `a,(` varchar(20) DEFAULT 'PRIMARY KEY (`x`)' CHECK (octet_length(`Id`) > 1),\n  \
            `j` longtext CHECK (json_valid(`j`)),\n  \
            `g` varchar(9) GENERATED ALWAYS AS (concat(`Id`,'`no`')) STORED,\n  \
            PRIMARY KEY (`Id` DESC),\n  UNIQUE KEY `u` (`a,(`(10),`j`),\n  UNIQUE KEY `f` ((lower(`j`))),\n  \
            KEY `k` (`j`),\n  CONSTRAINT `c` CHECK (`j` <> '') /*!80016 NOT ENFORCED */,\n  \
            CONSTRAINT `f1` FOREIGN KEY (`Id`, `j`) REFERENCES `p` (`A`, `b`) ON DELETE CASCADE,\n  \
            CONSTRAINT `f2` FOREIGN KEY (`j`) REFERENCES `d`.`p` (`c`)\n) ENGINE=InnoDB COMMENT='BY RANGE (`q`)'\n\
            /*!50100 PARTITION BY RANGE (`Id`)\nSUBPARTITION BY HASH (`j`)\n(PARTITION p0 VALUES LESS THAN (3)) */";
        let found = Definition::of(create).unwrap();
        assert_eq!(
            found.unique,
            [
                vec![column("id", usize::MAX)],
                vec![column("a,(", 10), column("j", usize::MAX)],
                vec![Part::Computed(names(&["lower", "j"]))],
            ]
        );
        let checked: Vec<(usize, bool)> = found
            .checks
            .iter()
            .map(|check| (check.names.len(), check.is_json))
            .collect();
        assert_eq!(checked, [(3, false), (2, true), (1, false)]);
        assert_eq!(found.computed, [("g".to_owned(), names(&["concat", "id"]))]);
        assert_eq!(found.partitioned, ["id"]);
        let first = &found.foreign[0];
        assert_eq!((&*first.table, &first.schema), ("p", &None));
        assert_eq!(
            (&first.columns, &first.referenced),
            (&names(&["id", "j"]), &names(&["a", "b"]))
        );
        assert_eq!(found.foreign[1].schema.as_deref(), Some("d"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[`'(), a-c0-9/*!]{0,60}|CREATE TABLE `t` \\([`'(), a-c0-9]{0,40}\\)") {
            let _ = Definition::of(text.as_bytes());
        }
    }
}
