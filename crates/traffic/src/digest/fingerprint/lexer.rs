//! A statement's pieces, as a server reads them. Comments are none.

/// How quotes are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) ansi_quotes: bool,
    pub(crate) backslash: bool,
}

/// A piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lexeme<'a> {
    /// A keyword or a name without quotes.
    Word(&'a [u8]),
    /// A name in quotes, with them; the byte is the quote.
    Name(&'a [u8], u8),
    /// `@a`, `@@global.a`.
    Variable(&'a [u8]),
    /// A string, with its quotes.
    Text(&'a [u8]),
    /// A number or a placeholder.
    Value,
    /// `(...)`, as fingerprints have it.
    List,
    /// Anything else.
    Sign(&'a [u8]),
}

/// Signs of more than one byte, the longest first.
const SIGNS: [&[u8]; 12] = [
    b"<=>", b"->>", b":=", b"->", b"<=", b">=", b"<>", b"!=", b"||", b"&&", b"<<", b">>",
];

/// Takes a statement to pieces.
pub(crate) struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    begin: usize,
    /// In how many comments that servers read.
    read_comments: usize,
    dialect: Dialect,
    after_name: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(sql: &'a [u8], dialect: Dialect) -> Self {
        Self {
            sql,
            at: 0,
            begin: 0,
            read_comments: 0,
            dialect,
            after_name: false,
        }
    }

    /// Where the last piece began.
    pub(crate) fn begin(&self) -> usize {
        self.begin
    }

    /// Where the last piece ended.
    pub(crate) fn end(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        &self.sql[self.at..]
    }

    pub(crate) fn next(&mut self) -> Option<Lexeme<'a>> {
        self.skip();
        self.begin = self.at;
        let rest = self.rest();
        let first = *rest.first()?;
        let lexeme = match first {
            b'\'' => self.text(b'\''),
            b'"' if !self.dialect.ansi_quotes => self.text(b'"'),
            b'"' | b'`' => self.name(first),
            b'@' => self.variable(),
            b'?' => self.take(1, Lexeme::Value),
            b'(' if rest.starts_with(b"(...)") => self.take(5, Lexeme::List),
            b'0'..=b'9' => self.number(),
            b'.' if !self.after_name && rest.get(1).is_some_and(u8::is_ascii_digit) => {
                self.at += 1;
                self.digits();
                Lexeme::Value
            }
            _ if is_word(first) => self.word(),
            _ => self.sign(),
        };
        self.after_name = matches!(lexeme, Lexeme::Word(_) | Lexeme::Name(..));
        Some(lexeme)
    }

    fn take(&mut self, bytes: usize, lexeme: Lexeme<'a>) -> Lexeme<'a> {
        self.at += bytes;
        lexeme
    }

    /// Passes over what is between pieces.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let after = |at: usize| rest.get(at).copied();
            match rest.first() {
                None => return,
                Some(byte) if *byte <= b' ' || *byte == 0x7f => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'-')
                    if after(1) == Some(b'-') && after(2).is_none_or(|byte| byte <= b' ') =>
                {
                    self.skip_line();
                }
                Some(b'/') if after(1) == Some(b'*') => self.comment(),
                Some(b'*') if after(1) == Some(b'/') && self.read_comments > 0 => {
                    self.read_comments -= 1;
                    self.at += 2;
                }
                Some(_) => return,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    fn comment(&mut self) {
        let rest = &self.rest()[2..];
        let read = [&b"!"[..], b"M!"]
            .into_iter()
            .find(|mark| rest.starts_with(mark));
        if let Some(mark) = read {
            self.read_comments += 1;
            self.at += 2 + mark.len();
            let version = self
                .rest()
                .iter()
                .take(6)
                .take_while(|byte| byte.is_ascii_digit());
            self.at += version.count();
            return;
        }
        let end = memchr::memmem::find(rest, b"*/").map(|end| end + 2);
        self.at += 2 + end.unwrap_or(rest.len());
    }

    /// Finds the end of what is quoted; none where it does not end.
    fn quoted(&self, quote: u8, backslash: bool) -> Option<usize> {
        let mut at = self.at + 1;
        loop {
            let rest = &self.sql[at..];
            let found = match backslash {
                true => memchr::memchr2(quote, b'\\', rest)?,
                false => memchr::memchr(quote, rest)?,
            };
            at += found + 1;
            let is_quote = rest[found] == quote;
            if is_quote && self.sql.get(at) != Some(&quote) {
                return Some(at);
            }
            // A quote that is doubled, or whatever the backslash is before.
            at += 1;
            if at > self.sql.len() {
                return None;
            }
        }
    }

    fn text(&mut self, quote: u8) -> Lexeme<'a> {
        let begin = self.at;
        let end = self.quoted(quote, self.dialect.backslash);
        self.at = end.unwrap_or(self.sql.len());
        Lexeme::Text(&self.sql[begin..self.at])
    }

    fn name(&mut self, quote: u8) -> Lexeme<'a> {
        let begin = self.at;
        let end = self.quoted(quote, false);
        self.at = end.unwrap_or(self.sql.len());
        match end {
            Some(end) => Lexeme::Name(&self.sql[begin..end], quote),
            // Who knows what it is.
            None => Lexeme::Text(&self.sql[begin..]),
        }
    }

    fn run(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| is_word(**byte)).count()
    }

    fn variable(&mut self) -> Lexeme<'a> {
        let begin = self.at;
        while self.sql.get(self.at) == Some(&b'@') {
            self.at += 1;
        }
        let rest = self.rest();
        self.at += rest
            .iter()
            .take_while(|byte| is_word(**byte) || **byte == b'.')
            .count();
        Lexeme::Variable(&self.sql[begin..self.at])
    }

    fn word(&mut self) -> Lexeme<'a> {
        let begin = self.at;
        self.at += self.run(begin);
        let word = &self.sql[begin..self.at];
        // A character set, or the kind of a literal, belongs to the string that follows.
        let is_kind = word[0] == b'_' || word.len() == 1 && b"nNxXbB".contains(&word[0]);
        match self.sql.get(self.at) {
            Some(b'\'') if is_kind => self.text(b'\''),
            Some(b'"') if is_kind && !self.dialect.ansi_quotes => self.text(b'"'),
            _ => Lexeme::Word(word),
        }
    }

    fn digits(&mut self) {
        while self.sql.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.exponent();
    }

    /// Takes `e-3`, where it is one.
    fn exponent(&mut self) {
        let rest = self.rest();
        if !matches!(rest.first(), Some(b'e' | b'E')) {
            return;
        }
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        let digits = rest[1 + sign..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits > 0 {
            self.at += 1 + sign + digits;
        }
    }

    /// Takes a number, or a name that begins like one.
    fn number(&mut self) -> Lexeme<'a> {
        let begin = self.at;
        let run = &self.sql[begin..begin + self.run(begin)];
        let is_based = |mark: u8, digit: fn(&u8) -> bool| {
            run.len() > 2 && run[0] == b'0' && run[1] == mark && run[2..].iter().all(digit)
        };
        if is_based(b'x', u8::is_ascii_hexdigit)
            || is_based(b'b', |byte| matches!(byte, b'0' | b'1'))
        {
            return self.take(run.len(), Lexeme::Value);
        }
        self.digits();
        if self.at >= begin + run.len() {
            if self.sql.get(self.at) == Some(&b'.') && self.at == begin + run.len() {
                self.at += 1;
                self.digits();
            }
            return Lexeme::Value;
        }
        self.at = begin + run.len();
        Lexeme::Word(run)
    }

    fn sign(&mut self) -> Lexeme<'a> {
        let rest = self.rest();
        let long = SIGNS.iter().find(|sign| rest.starts_with(sign));
        let bytes = long.map_or(1, |sign| sign.len());
        self.take(bytes, Lexeme::Sign(&rest[..bytes]))
    }
}

/// Whether a byte may stand in a name without quotes.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Returns what a string says.
pub(crate) fn unquoted(text: &[u8], dialect: Dialect) -> Vec<u8> {
    let begin = text.iter().position(|byte| matches!(byte, b'\'' | b'"'));
    let Some(begin) = begin else {
        return Vec::new();
    };
    let quote = text[begin];
    let mut said = Vec::with_capacity(text.len());
    let mut rest = text[begin + 1..].iter().copied();
    while let Some(byte) = rest.next() {
        let next = match byte {
            b'\\' if dialect.backslash => rest.next().map(|next| match next {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'0' => 0,
                other => other,
            }),
            // The second of two, or the last.
            quoted if quoted == quote => rest.next(),
            other => Some(other),
        };
        said.extend(next);
    }
    said
}
