//! Rows of values: whether they are plain values, how many, and whether the file counts for itself.

use evenkeel_sql::Mode;
use memchr::{memchr, memchr2};

/// What comes after VALUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    /// How many rows.
    pub(super) rows: u64,
    /// Whether each row says its own AUTO_INCREMENT value; true where nobody asked.
    pub(super) numbered: bool,
}

/// Functions and words in their parentheses whose outcome depends on nothing else.
const PURE: [&str; 34] = [
    "CONVERT",
    "CAST",
    "UNHEX",
    "FROM_BASE64",
    "UUID_TO_BIN",
    "ST_GEOMFROMTEXT",
    "ST_GEOMFROMWKB",
    "GEOMFROMTEXT",
    "GEOMFROMWKB",
    "INET6_ATON",
    "USING",
    "AS",
    "CHAR",
    "BINARY",
    "JSON",
    "SIGNED",
    "UNSIGNED",
    "DATE",
    "DATETIME",
    "TIME",
    "DECIMAL",
    "UTF8",
    "UTF8MB3",
    "UTF8MB4",
    "LATIN1",
    "ASCII",
    "UCS2",
    "UTF16",
    "UTF32",
    "NULL",
    "TRUE",
    "FALSE",
    "CHARACTER",
    "CHARSET",
];

struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    mode: Mode,
}

/// Reads the rows in `text` to its end; `None` when there is anything in them but plain values.
/// `counter` is which value of each row, from 0, is that of the AUTO_INCREMENT column, and whether
/// 0 stands for itself there.
pub(super) fn read(text: &[u8], mode: Mode, counter: Option<(usize, bool)>) -> Option<Values> {
    let mut walk = Walk { text, at: 0, mode };
    let mut found = Values {
        rows: 0,
        numbered: true,
    };
    loop {
        walk.expect(b'(')?;
        let mut column = 0;
        let mut seen = false;
        while !walk.takes(b')') {
            if column > 0 {
                walk.expect(b',')?;
            }
            walk.blank();
            let start = walk.at;
            walk.value()?;
            if let Some((wanted, zero_counts)) = counter
                && wanted == column
            {
                let numbered = is_number(&text[start..walk.at], zero_counts);
                (seen, found.numbered) = (true, found.numbered && numbered);
            }
            column += 1;
        }
        found.numbered &= seen || counter.is_none();
        found.rows += 1;
        walk.blank();
        if walk.at == text.len() {
            return Some(found);
        }
        walk.expect(b',')?;
    }
}

/// Returns whether a value is one that the server does not replace by the next of its own.
fn is_number(value: &[u8], zero_counts: bool) -> bool {
    let bare = value.trim_ascii();
    let bare = match bare {
        [b'\'' | b'"', inner @ .., b'\'' | b'"'] => inner,
        other => other,
    };
    let digits = bare.strip_prefix(b"-").unwrap_or(bare);
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits && (zero_counts || digits.iter().any(|digit| *digit != b'0'))
}

impl Walk<'_> {
    fn blank(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, sign: u8) -> bool {
        self.blank();
        let there = self.peek() == Some(sign);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, sign: u8) -> Option<()> {
        self.takes(sign).then_some(())
    }

    /// Passes one value.
    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            quote @ (b'\'' | b'"') => self.literal(quote),
            b'0'..=b'9' | b'-' | b'+' | b'.' => {
                self.number();
                Some(())
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => self.word(),
            _ => None,
        }
    }

    fn number(&mut self) {
        let sign = |before: Option<u8>, byte: u8| {
            matches!(byte, b'-' | b'+') && matches!(before, None | Some(b'e' | b'E'))
        };
        let mut before = None;
        while let Some(byte) = self.peek() {
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || sign(before, byte)) {
                break;
            }
            before = Some(byte);
            self.at += 1;
        }
    }

    /// Passes a string, and those right behind it that belong to it.
    fn literal(&mut self, quote: u8) -> Option<()> {
        if quote == b'"' && self.mode.ansi_quotes {
            return None;
        }
        loop {
            self.at += 1;
            let rest = self.text.get(self.at..)?;
            let found = match self.mode.no_backslash_escapes {
                true => memchr(quote, rest)?,
                false => memchr2(quote, b'\\', rest)?,
            };
            self.at += found + 1;
            if rest[found] == quote && self.peek() != Some(quote) {
                return Some(());
            }
        }
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.at += 1;
        }
        let word = self.text[start..self.at].to_ascii_uppercase();
        let next = self.peek();
        match &word[..] {
            b"X" | b"B" | b"N" if matches!(next, Some(b'\'')) => self.literal(b'\''),
            b"NULL" | b"TRUE" | b"FALSE" | b"DEFAULT" => Some(()),
            // A character set in front of a literal.
            [b'_', ..] => {
                self.blank();
                match self.peek()? {
                    quote @ (b'\'' | b'"') => self.literal(quote),
                    b'0' => {
                        self.number();
                        Some(())
                    }
                    b'x' | b'X' | b'b' | b'B' if self.text.get(self.at + 1) == Some(&b'\'') => {
                        self.at += 1;
                        self.literal(b'\'')
                    }
                    _ => None,
                }
            }
            _ if is_pure(&word) => self.call(),
            _ => None,
        }
    }

    /// Passes a function's parentheses.
    fn call(&mut self) -> Option<()> {
        self.expect(b'(')?;
        let mut depth = 1;
        while depth > 0 {
            self.blank();
            match self.peek()? {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b',' => {}
                byte if byte.is_ascii_alphabetic() => {
                    let rest = &self.text[self.at..];
                    let word = rest
                        .iter()
                        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
                    let length = word.count();
                    if !is_pure(&rest[..length].to_ascii_uppercase())
                        && !rest[length..].starts_with(b"'")
                    {
                        return None;
                    }
                    if rest[length..].starts_with(b"'") {
                        self.value()?;
                    } else {
                        self.at += length;
                    }
                    continue;
                }
                _ => {
                    self.value()?;
                    continue;
                }
            }
            self.at += 1;
        }
        Some(())
    }
}

fn is_pure(word: &[u8]) -> bool {
    PURE.iter().any(|pure| pure.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, counter: Option<(usize, bool)>) -> Option<(u64, bool)> {
        read(text.as_bytes(), Mode::default(), counter).map(|found| (found.rows, found.numbered))
    }

    #[test]
    fn plain_values_are_plain() {
        for text in [
            "(1,'a)',NULL)",
            "( -1.5e+10 , \"it''s\\\"\" ,0xFF)",
            "(x'00',b'1',_binary '\\'',_utf8mb4 0x41,_binary X'00', N'x')",
            "(DEFAULT,TRUE)",
            "()",
            "(CONVERT('{}' USING utf8mb4), ST_GeomFromText('POINT(1 2)', 4326))",
            "(UNHEX('00'),CAST('[1]' AS JSON))",
        ] {
            assert_eq!(of(text, None), Some((1, true)), "{text}");
        }
        assert_eq!(of("(1),(2) ,\n(3)", None), Some((3, true)));
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "(@a)",
            "(LAST_INSERT_ID())",
            "((SELECT 1))",
            "(CONVERT((SELECT 1) USING utf8))",
            "(1) ON DUPLICATE KEY UPDATE a = 1",
            "(NOW())",
            "(nextval(s))",
            "(1",
            "('a",
            "(1)(2)",
            "(a)",
            "(1 /* x */)",
            "(1 + @a)",
            "ROW(1)",
            "",
        ] {
            assert_eq!(of(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_file_counts_for_itself_or_not() {
        for (text, zero_counts, numbered) in [
            ("(5,'a'),(-6,'b')", false, true),
            ("('7',NULL)", false, true),
            ("(0,1)", true, true),
            ("(0,1)", false, false),
            ("(1,1),('0',1)", false, false),
            ("(1,1),(NULL,1)", true, false),
            ("(DEFAULT,1)", true, false),
            ("('',1)", true, false),
            ("()", true, false),
        ] {
            let found = of(text, Some((0, zero_counts))).unwrap();
            assert_eq!(found.1, numbered, "{text}");
        }
        assert!(!of("(1,NULL)", Some((1, true))).unwrap().1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let text = [b"('", &bytes[..]].concat();
            read(&text, Mode::default(), Some((0, true)));
            read(&bytes, Mode::default(), None);
        }
    }
}
