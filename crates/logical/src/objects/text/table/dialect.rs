//! What one flavour writes otherwise than the other and means the same.

use super::super::token::{Token, TokenKind, all_tokens};
use super::{Definition, Line, definitions};
use evenkeel_server::abilities::{Mark, TableDialect};

/// Types whose columns MySQL gives a default only by an expression.
const LONG: [&str; 9] = [
    "TINYTEXT",
    "TEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
    "TINYBLOB",
    "BLOB",
    "MEDIUMBLOB",
    "LONGBLOB",
    "JSON",
];
/// What may stand behind a default.
const BEHIND: [&str; 8] = [
    "AUTO_INCREMENT",
    "CHECK",
    "COLUMN_FORMAT",
    "COMMENT",
    "COMPRESSED",
    "INVISIBLE",
    "ON",
    "REF_SYSTEM_ID",
];

/// How literals say that they are in the character set of a session that loads, or in a part of it.
const INTRODUCERS: [&str; 3] = ["_UTF8MB4", "_UTF8MB3", "_UTF8"];

/// Returns what SHOW CREATE TABLE printed as the other flavour reads it: the type GEOMCOLLECTION, columns and keys that
/// are not seen, defaults that are expressions, literals in them. A text that is not understood comes back unchanged.
pub(in crate::objects) fn in_dialect(create: &[u8], to: &TableDialect) -> Vec<u8> {
    let Some(tokens) = all_tokens(create) else {
        return create.to_vec();
    };
    let Some((definitions, _)) = tokens.get(4).and_then(|_| definitions(create, &tokens)) else {
        return create.to_vec();
    };
    let mut edits = Vec::new();
    for one in &definitions {
        let writer = Writer {
            create,
            parts: &tokens[one.first..=one.last],
        };
        writer.edit(one, to, &mut edits);
        if to.keeps_expressions_as_text {
            edits.extend(writer.introducers());
        }
    }
    edits.sort_by_key(|edit| edit.0);
    let (mut out, mut copied) = (Vec::with_capacity(create.len()), 0);
    for (from, until, text) in edits {
        out.extend_from_slice(&create[copied..from]);
        out.extend_from_slice(text.as_bytes());
        copied = until;
    }
    out.extend_from_slice(&create[copied..]);
    out
}

/// What takes the place of the bytes from one place to another.
type Edit = (usize, usize, String);

/// One definition.
struct Writer<'a> {
    create: &'a [u8],
    parts: &'a [Token],
}

impl Writer<'_> {
    fn is(&self, at: usize, words: &[&str]) -> bool {
        let token = self.parts.get(at);
        token.is_some_and(|one| words.iter().any(|word| one.is_word(self.create, word)))
    }

    fn edit(&self, definition: &Definition, to: &TableDialect, edits: &mut Vec<Edit>) {
        match definition.line {
            Line::Column => {
                if self.is(1, &["GEOMCOLLECTION"]) {
                    let word = self.parts[1];
                    edits.push((word.start, word.end, "geometrycollection".to_owned()));
                }
                if to.expression_defaults_in_parentheses {
                    edits.extend(self.default_in_parentheses());
                }
                if self.has_value() || !to.hides_only_columns_with_values {
                    edits.extend(self.mark(&to.invisible_column));
                }
            }
            Line::Index { .. } => edits.extend(self.mark(&to.invisible_index)),
            _ => {}
        }
    }

    /// Takes the character set in front of literals away, where it is the session's: MariaDB keeps an expression as text, and
    /// what it writes for such a literal it reads back as another if it is more than plain ASCII.
    fn introducers(&self) -> impl Iterator<Item = Edit> {
        let plain =
            |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'\'' | b'"');
        self.parts.windows(2).filter_map(move |pair| {
            let literal = pair[1].of(self.create);
            let is_one = INTRODUCERS
                .iter()
                .any(|word| pair[0].is_word(self.create, word))
                && pair[1].kind == TokenKind::Text;
            let inside = literal.get(1..literal.len().saturating_sub(1))?;
            (is_one && !inside.iter().all(plain))
                .then(|| (pair[0].start, pair[0].end, String::new()))
        })
    }

    /// Returns whether a row that says nothing of a column gives it a value: MariaDB hides no other.
    fn has_value(&self) -> bool {
        let says = |word: &str| (1..self.parts.len()).any(|at| self.is(at, &[word]));
        let refuses_null =
            (1..self.parts.len()).any(|at| self.is(at, &["NOT"]) && self.is(at + 1, &["NULL"]));
        !refuses_null || says("DEFAULT") || says("GENERATED") || says("AUTO_INCREMENT")
    }

    /// Replaces the other flavour's mark.
    fn mark(&self, mark: &Mark) -> Option<Edit> {
        match mark.other_is_in_comment {
            true => self.gated(mark.other, mark.own),
            false => self.bare(mark.other, mark.own),
        }
    }

    /// Replaces a word that is alone in a comment that some servers execute.
    fn gated(&self, word: &str, with: &str) -> Option<Edit> {
        let at = (1..self.parts.len()).find(|at| {
            let ends = self.parts.get(at + 1).map(|one| one.kind) == Some(TokenKind::GateEnd);
            self.parts[at - 1].kind == TokenKind::Gate && ends && self.is(*at, &[word])
        })?;
        Some((
            self.parts[at - 1].start,
            self.parts[at + 1].end,
            with.to_owned(),
        ))
    }

    /// Replaces a word that stands in no such comment.
    fn bare(&self, word: &str, with: &str) -> Option<Edit> {
        let at = (1..self.parts.len())
            .find(|at| self.parts[at - 1].kind != TokenKind::Gate && self.is(*at, &[word]))?;
        Some((self.parts[at].start, self.parts[at].end, with.to_owned()))
    }

    /// Puts parentheses around a default that MySQL takes only so.
    fn default_in_parentheses(&self) -> Vec<Edit> {
        let depths: Vec<usize> = self
            .parts
            .iter()
            .scan(0_usize, |depth, token| {
                match token.kind {
                    TokenKind::Sign(b'(') => *depth += 1,
                    TokenKind::Sign(b')') => *depth = depth.saturating_sub(1),
                    _ => {}
                }
                Some(*depth)
            })
            .collect();
        let outside = |at: &usize| depths[*at] == 0;
        let all = 0..self.parts.len();
        let Some(word) = all
            .clone()
            .filter(outside)
            .find(|at| self.is(*at, &["DEFAULT"]))
        else {
            return Vec::new();
        };
        let first = word + 1;
        let ends = |at: &usize| self.is(*at, &BEHIND) || self.parts[*at].kind == TokenKind::Gate;
        let end = all.filter(|at| *at > first).filter(outside).find(ends);
        let last = end.unwrap_or(self.parts.len()) - 1;
        let opens = |at: usize| self.parts.get(at).is_some_and(|one| one.is_sign(b'('));
        let is_call = opens(first + 1)
            && self.parts[first].kind == TokenKind::Word
            && !self.is(first, &["CURRENT_TIMESTAMP"]);
        let is_long = self.is(1, &LONG) && !opens(first) && !self.is(first, &["NULL"]);
        if first > last || !(is_call || is_long) {
            return Vec::new();
        }
        let (from, until) = (self.parts[first].start, self.parts[last].end);
        vec![(from, from, "(".to_owned()), (until, until, ")".to_owned())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::abilities::Abilities;

    fn dialect(version: &str) -> TableDialect {
        let abilities = Abilities::of_version(version, "").unwrap();
        abilities.table_dialect
    }

    fn table(lines: &[&str]) -> String {
        format!(
            "CREATE TABLE `INVISIBLE` (\n  {}\n) ENGINE=InnoDB COMMENT='IGNORED'",
            lines.join(",\n  ")
        )
    }

    #[track_caller]
    fn becomes(to: &str, pairs: &[(&str, &str)]) {
        let before: Vec<&str> = pairs.iter().map(|pair| pair.0).collect();
        let after: Vec<&str> = pairs.iter().map(|pair| pair.1).collect();
        let to = dialect(to);
        let found = in_dialect(table(&before).as_bytes(), &to);
        assert_eq!(String::from_utf8(found).unwrap(), table(&after));
        let again = in_dialect(table(&after).as_bytes(), &to);
        assert_eq!(String::from_utf8(again).unwrap(), table(&after));
    }

    #[test]
    fn mariadb_reads_what_mysql_wrote() {
        let same = |text| (text, text);
        becomes(
            "11.8.2-MariaDB",
            &[
                (
                    "`g` geomcollection DEFAULT NULL",
                    "`g` geometrycollection DEFAULT NULL",
                ),
                (
                    "`i` int DEFAULT '3' /*!80023 INVISIBLE */ COMMENT 'x'",
                    "`i` int DEFAULT '3' /*M!100303 INVISIBLE */ COMMENT 'x'",
                ),
                same("`j` int NOT NULL /*!80023 INVISIBLE */"),
                same("`geomcollection` point COMMENT '/*!80023 INVISIBLE */'"),
                (
                    "`k` int NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */",
                    "`k` int NOT NULL AUTO_INCREMENT /*M!100303 INVISIBLE */",
                ),
                same("`u` char(36) DEFAULT (uuid())"),
                (
                    r"`s` varchar(9) GENERATED ALWAYS AS (concat(_utf8mb4'a\\n',_utf8mb4'ü',_utf8mb4'plain')) STORED /*!80023 INVISIBLE */",
                    r"`s` varchar(9) GENERATED ALWAYS AS (concat('a\\n','ü',_utf8mb4'plain')) STORED /*M!100303 INVISIBLE */",
                ),
                (
                    r"`q` varchar(9) DEFAULT (_utf8mb4'it\'s') COMMENT '_utf8mb4'",
                    r"`q` varchar(9) DEFAULT ('it\'s') COMMENT '_utf8mb4'",
                ),
                (
                    r"CONSTRAINT `c` CHECK ((`q` <> _utf8mb4'q\\q'))",
                    r"CONSTRAINT `c` CHECK ((`q` <> 'q\\q'))",
                ),
                same("PRIMARY KEY (`k`)"),
                (
                    "KEY `i` (`i`) /*!80000 INVISIBLE */",
                    "KEY `i` (`i`) /*M!100600 IGNORED */",
                ),
            ],
        );
    }

    #[test]
    fn mysql_reads_what_mariadb_wrote() {
        let same = |text| (text, text);
        becomes(
            "9.7.0",
            &[
                (
                    "`i` int(11) INVISIBLE DEFAULT 3",
                    "`i` int(11) /*!80023 INVISIBLE */ DEFAULT 3",
                ),
                (
                    "`l` int(11) DEFAULT octet_length(')') INVISIBLE COMMENT 'x'",
                    "`l` int(11) DEFAULT (octet_length(')')) /*!80023 INVISIBLE */ COMMENT 'x'",
                ),
                (
                    "`u` char(36) NOT NULL DEFAULT uuid()",
                    "`u` char(36) NOT NULL DEFAULT (uuid())",
                ),
                (
                    "`t` text DEFAULT 'a' CHECK (`t` <> '')",
                    "`t` text DEFAULT ('a') CHECK (`t` <> '')",
                ),
                (
                    "`b` blob DEFAULT _utf8mb4'x'",
                    "`b` blob DEFAULT (_utf8mb4'x')",
                ),
                same("`x` int(11) DEFAULT (`i` + 1)"),
                same("`n` longtext DEFAULT NULL"),
                same(
                    "`d` timestamp(3) NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)",
                ),
                same("`v` bit(3) DEFAULT b'101'"),
                same("`m` int(11) DEFAULT -5 COMMENT 'DEFAULT uuid()'"),
                same("`c` varchar(3) DEFAULT '(' CHECK (length(`c`) > 1)"),
                (
                    "UNIQUE KEY `IGNORED` (`i`) IGNORED",
                    "UNIQUE KEY `IGNORED` (`i`) /*!80000 INVISIBLE */",
                ),
            ],
        );
    }

    #[test]
    fn what_is_not_understood_stays() {
        for text in [
            "",
            "CREATE TABLE",
            "CREATE TABLE `t` (`a` int INVISIBLE, WHAT)",
            "CREATE TABLE `t` ('",
        ] {
            let found = in_dialect(text.as_bytes(), &dialect("9.7.0"));
            assert_eq!(found, text.as_bytes());
        }
    }
}
