//! The tokens of an SQL text that a server printed.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, digits, `_`, `$` and all bytes beyond ASCII: a keyword, a number, a bare name.
    Word,
    /// A name in backticks.
    Name,
    /// A literal in single or double quotes.
    Text,
    /// The start of a comment that some servers execute: `/*!50100`, `/*M!100108`.
    Gate,
    /// The end of such a comment.
    GateEnd,
    /// Any other byte.
    Sign(u8),
}

/// One token: what it is, and where it lies in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its first byte.
    pub(crate) start: usize,
    /// The byte after its last.
    pub(crate) end: usize,
}

impl Token {
    /// Returns whether this is the keyword `word`, given in capitals.
    pub(crate) fn is_word(&self, text: &[u8], word: &str) -> bool {
        self.kind == Kind::Word && text[self.start..self.end].eq_ignore_ascii_case(word.as_bytes())
    }

    /// Returns whether this is the byte `sign`.
    pub(crate) fn is_sign(&self, sign: u8) -> bool {
        self.kind == Kind::Sign(sign)
    }

    /// Returns the bytes of it.
    pub(crate) fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.end]
    }
}

/// How the quotes of a text are meant: its `sql_mode` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quoting {
    /// Double quotes are around names.
    pub(crate) ansi: bool,
    /// A backslash is one.
    pub(crate) no_escapes: bool,
}

impl Quoting {
    /// Returns what a `sql_mode` means.
    pub(crate) fn of(sql_mode: &str) -> Self {
        const ANSI: [&str; 7] = [
            "ANSI",
            "ANSI_QUOTES",
            "DB2",
            "MAXDB",
            "MSSQL",
            "ORACLE",
            "POSTGRESQL",
        ];
        let has = |word: &str| {
            let mut modes = sql_mode.split(',');
            modes.any(|mode| mode.trim().eq_ignore_ascii_case(word))
        };
        Self {
            ansi: ANSI.into_iter().any(has),
            no_escapes: has("NO_BACKSLASH_ESCAPES"),
        }
    }
}

/// Walks over the tokens of a text; comments that no server executes are no tokens.
///
/// Ends early, with [`Tokens::is_broken`], where a literal, name or comment has no end.
pub(crate) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    gates: usize,
    broken: bool,
    quoting: Quoting,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of `text`.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            gates: 0,
            broken: false,
            quoting: Quoting::default(),
        }
    }

    /// Returns whether the walk ended at something without an end.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Moves past white space and comments that are only comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            match rest {
                [first, ..] if first.is_ascii_whitespace() => self.at += 1,
                [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => return,
                [b'/', b'*', inside @ ..] => match find(inside, b"*/") {
                    Some(length) => self.at += length + 4,
                    None => return self.give_up(),
                },
                [b'#', ..] => self.skip_line(),
                [b'-', b'-', after, ..] if after.is_ascii_whitespace() => self.skip_line(),
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        self.at += length.unwrap_or(rest.len());
    }

    fn give_up(&mut self) {
        self.broken = true;
        self.at = self.text.len();
    }

    /// Returns whether what is in these quotes is a name.
    fn is_name(&self, quote: u8) -> bool {
        quote == b'`' || (quote == b'"' && self.quoting.ansi)
    }

    /// Returns where the thing in `quote`s ends that begins here, after its last quote.
    fn quoted(&self, quote: u8) -> Option<usize> {
        let mut at = self.at + 1;
        while let Some(&byte) = self.text.get(at) {
            if byte == b'\\' && !self.is_name(quote) && !self.quoting.no_escapes {
                at += 2;
            } else if byte != quote {
                at += 1;
            } else if self.text.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return Some(at + 1);
            }
        }
        None
    }

    /// Returns the length of the opening of an executed comment, with its version.
    fn gate(rest: &[u8]) -> Option<usize> {
        let opening = match rest {
            [b'/', b'*', b'!', ..] => 3,
            [b'/', b'*', b'M', b'!', ..] => 4,
            _ => return None,
        };
        let digits = rest[opening..].iter().take(6);
        Some(opening + digits.take_while(|byte| byte.is_ascii_digit()).count())
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_blank();
        let start = self.at;
        let rest = &self.text[start..];
        let first = *rest.first()?;
        let (kind, end) = if let Some(length) = Self::gate(rest) {
            self.gates += 1;
            (Kind::Gate, start + length)
        } else if self.gates > 0 && rest.starts_with(b"*/") {
            self.gates -= 1;
            (Kind::GateEnd, start + 2)
        } else if matches!(first, b'\'' | b'"' | b'`') {
            let Some(end) = self.quoted(first) else {
                self.give_up();
                return None;
            };
            let kind = if self.is_name(first) {
                Kind::Name
            } else {
                Kind::Text
            };
            (kind, end)
        } else if is_word(first) {
            let length = rest.iter().take_while(|byte| is_word(**byte)).count();
            (Kind::Word, start + length)
        } else {
            (Kind::Sign(first), start + 1)
        };
        self.at = end;
        Some(Token { kind, start, end })
    }
}

/// Returns all tokens of `text`, or `None` when something in it has no end.
pub(crate) fn all_tokens(text: &[u8]) -> Option<Vec<Token>> {
    all_tokens_under(text, Quoting::default())
}

/// The same, for a text whose `sql_mode` is known.
pub(crate) fn all_tokens_under(text: &[u8], quoting: Quoting) -> Option<Vec<Token>> {
    let mut walk = Tokens {
        quoting,
        ..Tokens::new(text)
    };
    let tokens: Vec<Token> = walk.by_ref().collect();
    (!walk.is_broken() && walk.gates == 0).then_some(tokens)
}

/// Returns the name that a token in backticks, in quotes or bare means.
pub(crate) fn name_of(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(token);
    match token.first() {
        Some(b'`') => text[1..text.len() - 1].replace("``", "`"),
        Some(b'\'') => unescaped(&text[1..text.len() - 1], '\''),
        Some(b'"') => unescaped(&text[1..text.len() - 1], '"'),
        _ => text.into_owned(),
    }
}

fn unescaped(inside: &str, quote: char) -> String {
    let mut name = String::new();
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.extend(characters.next()),
            // The second of two.
            same if same == quote => name.extend(characters.next()),
            other => name.push(other),
        }
    }
    name
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(sql: &str) -> Vec<String> {
        all_tokens(sql.as_bytes())
            .unwrap()
            .iter()
            .map(|token| String::from_utf8_lossy(token.of(sql.as_bytes())).into_owned())
            .collect()
    }

    #[test]
    fn quotes_hide_what_is_in_them() {
        assert_eq!(texts("a`b``,)`'c'',\\')'"), ["a", "`b``,)`", "'c'',\\')'"]);
        assert_eq!(texts("\"x\"\"'\",é_1"), ["\"x\"\"'\"", ",", "é_1"]);
    }

    #[test]
    fn executed_comments_are_read_and_others_are_not() {
        let sql = "/*!80016 CHECK */ /* 'no */ -- it's\n# it's\n /*M!100108 X*/*/";
        let all = ["/*!80016", "CHECK", "*/", "/*M!100108", "X", "*/", "*", "/"];
        assert_eq!(texts(sql), all);
    }

    #[test]
    fn modes_say_what_quotes_mean() {
        let kinds = |sql: &str, mode: &str| {
            let all = all_tokens_under(sql.as_bytes(), Quoting::of(mode));
            all.map(|all| all.iter().map(|one| one.kind).collect::<Vec<_>>())
        };
        assert_eq!(
            kinds("\"a\\\"", "STRICT_ALL_TABLES,ANSI_QUOTES"),
            Some(vec![Kind::Name])
        );
        assert_eq!(
            kinds("'a\\'", "NO_BACKSLASH_ESCAPES"),
            Some(vec![Kind::Text])
        );
        assert_eq!(kinds("'a\\'", "ANSI"), None);
        assert_eq!(kinds("\"a\"", ""), Some(vec![Kind::Text]));
    }

    #[test]
    fn what_has_no_end_is_noticed() {
        for sql in ["'a", "`a``", "/* a", "/*!50100 a", "'\\'"] {
            assert_eq!(all_tokens(sql.as_bytes()), None, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn any_name_and_any_literal_is_one_token(name in ".{0,20}", literal in ".{0,20}") {
            let name_sql = format!("`{}`", name.replace('`', "``"));
            let literal_sql = evenkeel_server::connect::quote(&literal);
            let sql = format!("{name_sql},{literal_sql}");
            prop_assert_eq!(texts(&sql), [name_sql.clone(), ",".to_owned(), literal_sql.clone()]);
            prop_assert_eq!(name_of(name_sql.as_bytes()), name);
            prop_assume!(!literal.contains('\0'));
            prop_assert_eq!(name_of(literal_sql.as_bytes()), literal);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut last = 0;
            for token in Tokens::new(&bytes) {
                prop_assert!(token.start >= last && token.end > token.start);
                prop_assert!(token.end <= bytes.len());
                last = token.end;
            }
        }
    }
}
