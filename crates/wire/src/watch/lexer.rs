//! The parts of a statement, as far as strings, comments and placeholders are distinguished. Bytes, because the
//! text is in the connection's character set.

/// What decides where a string ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lexing {
    /// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
    pub(super) no_backslash: bool,
    /// The second byte of a character may be a backslash or a quote: big5, sjis, gbk, cp932, gb18030.
    pub(super) is_wide: bool,
}

impl Lexing {
    /// Returns whether the character set of a collation has such second bytes.
    pub(super) fn is_wide(collation: u8) -> bool {
        matches!(
            collation,
            1 | 84 | 13 | 88 | 28 | 87 | 95 | 96 | 248 | 249 | 250
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword, a name or a number, also of hexadecimal digits.
    Word,
    /// A string in either kind of quotes.
    Literal,
    /// A name in backticks.
    Name,
    /// `?`
    Placeholder,
    /// Any other character.
    Mark(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Walks over the parts; white space and comments are passed over, but not those that servers execute.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    lexing: Lexing,
    /// Inside of a comment that servers execute.
    is_executed: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(sql: &'a [u8], lexing: Lexing) -> Self {
        Self {
            sql,
            at: 0,
            lexing,
            is_executed: false,
        }
    }

    /// Goes behind the beginning of a comment that servers execute, and behind the version that it is for.
    fn executed(&mut self, mark: usize, inside: &[u8]) -> usize {
        self.is_executed = true;
        let version = inside
            .iter()
            .take(6)
            .take_while(|byte| byte.is_ascii_digit());
        self.at + mark + version.count()
    }

    /// Returns where the string that begins at `start` ends, behind its closing quote.
    fn end_of_quoted(&self, start: usize, quote: u8) -> usize {
        let escapes = quote != b'`' && !self.lexing.no_backslash;
        let mut at = start + 1;
        while let Some(&byte) = self.sql.get(at) {
            let is_pair = self.sql.get(at + 1) == Some(&quote);
            at += match byte {
                b'\\' if escapes => 2,
                _ if self.lexing.is_wide && (0x81..0xFF).contains(&byte) => 2,
                _ if byte == quote && is_pair => 2,
                _ if byte == quote => return at + 1,
                _ => 1,
            };
        }
        self.sql.len()
    }

    fn end_of_comment(&self, start: usize, mark: &[u8]) -> usize {
        let rest = &self.sql[start..];
        let found = rest.windows(mark.len()).position(|window| window == mark);
        found.map_or(self.sql.len(), |found| start + found + mark.len())
    }

    /// Passes over white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.sql[self.at.min(self.sql.len())..];
            self.at = match rest {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => self.at + 1,
                // What is inside is executed: its parts count, the version before them does not.
                [b'/', b'*', b'!', inside @ ..] => self.executed(3, inside),
                [b'/', b'*', b'M', b'!', inside @ ..] => self.executed(4, inside),
                [b'/', b'*', ..] => self.end_of_comment(self.at + 2, b"*/"),
                [b'*', b'/', ..] if self.is_executed => {
                    self.is_executed = false;
                    self.at + 2
                }
                [b'#', ..] => self.end_of_comment(self.at, b"\n"),
                [b'-', b'-'] => self.at + 2,
                [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..] => {
                    self.end_of_comment(self.at + 2, b"\n")
                }
                _ => return,
            };
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip();
        let start = self.at;
        let first = *self.sql.get(start)?;
        let (kind, end) = match first {
            b'\'' | b'"' => (Kind::Literal, self.end_of_quoted(start, first)),
            b'`' => (Kind::Name, self.end_of_quoted(start, first)),
            b'?' => (Kind::Placeholder, start + 1),
            _ if is_word(first) => {
                let rest = &self.sql[start..];
                let length = rest.iter().position(|byte| !is_word(*byte));
                (Kind::Word, start + length.unwrap_or(rest.len()))
            }
            _ => (Kind::Mark(first), start + 1),
        };
        self.at = end.min(self.sql.len());
        Some(Token {
            kind,
            start,
            end: self.at,
        })
    }
}

/// Appends where the placeholders of a statement are.
pub(super) fn placeholders(sql: &[u8], lexing: Lexing) -> Vec<u32> {
    Lexer::new(sql, lexing)
        .filter(|token| token.kind == Kind::Placeholder)
        .map(|token| token.start as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(sql: &[u8]) -> usize {
        placeholders(sql, Lexing::default()).len()
    }

    #[test]
    fn only_placeholders_are_placeholders() {
        for (sql, expected) in [
            (&b"SELECT ?, '?', \"?\", `?`, ?"[..], 2),
            (b"SELECT 'it''s ?', 'a\\'?', ? -- ?\n, ?", 2),
            (b"SELECT /* ? */ ? /*! , ? */ /*M!100100 , ? */ # ?", 3),
            (b"SELECT 1--?", 1),
            (b"SELECT 'open ?", 0),
            (b"", 0),
        ] {
            assert_eq!(count(sql), expected, "{}", String::from_utf8_lossy(sql));
        }
    }

    #[test]
    fn modes_and_character_sets_decide_where_strings_end() {
        let no_backslash = Lexing {
            no_backslash: true,
            is_wide: false,
        };
        assert_eq!(placeholders(b"SELECT '\\', ?", no_backslash), [12]);
        let gbk = Lexing {
            no_backslash: false,
            is_wide: Lexing::is_wide(28),
        };
        assert_eq!(placeholders(b"SELECT '\x81\x5c', ?", gbk), [13]);
    }
}
