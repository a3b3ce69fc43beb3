//! Tokens that a parser reads as one.

use crate::{Mode, TokenKind, Tokens, is_word};

/// A piece of a statement, as a parser gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lexeme<'a> {
    /// A keyword or a name without quotes.
    Word(&'a [u8]),
    /// A name in quotes, with them. One that is cut may be anything, and is a text.
    Name(&'a [u8]),
    /// `@a`, `@@global.a`; what is in quotes behind an `@` is a name of its own.
    Variable(&'a [u8]),
    /// A string, with its quotes and with what says how it is read: `_utf8mb4'…'`, `N'…'`, `X'…'`, `b'…'`.
    Text(&'a [u8]),
    /// A number without its sign: `1`, `.5`, `1e-3`, `0xFF`, `0b1`.
    Number(&'a [u8]),
    /// `?`
    Placeholder,
    /// Anything else: operators, marks, and bytes that mean nothing to a server.
    Sign(&'a [u8]),
}

/// Signs of more than one byte, the longest first.
const SIGNS: [&[u8]; 12] = [
    b"<=>", b"->>", b":=", b"->", b"<=", b">=", b"<>", b"!=", b"||", b"&&", b"<<", b">>",
];

/// Takes a statement to pieces; white space, comments and the marks of executed comments are none.
#[derive(Debug, Clone)]
pub struct Lexemes<'a> {
    tokens: Tokens<'a>,
    begin: usize,
    after_name: bool,
}

impl<'a> Lexemes<'a> {
    /// Starts at the beginning of `sql`.
    #[must_use]
    pub fn new(sql: &'a [u8], mode: Mode) -> Self {
        Self {
            tokens: Tokens::new(sql, mode),
            begin: 0,
            after_name: false,
        }
    }

    /// Returns where the last piece began.
    #[must_use]
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// Returns where the last piece ended.
    #[must_use]
    pub fn end(&self) -> usize {
        self.tokens.at
    }

    /// Goes on behind `text` if that is what follows right here.
    pub fn takes(&mut self, text: &[u8]) -> bool {
        let is_there = self.rest().starts_with(text);
        if is_there {
            self.tokens.at += text.len();
        }
        is_there
    }

    fn rest(&self) -> &'a [u8] {
        &self.tokens.text[self.tokens.at..]
    }

    /// Returns what lies between the beginning and the cursor.
    fn piece(&self) -> &'a [u8] {
        &self.tokens.text[self.begin..self.tokens.at]
    }

    fn variable(&mut self) -> Lexeme<'a> {
        self.tokens.at += count(self.rest(), |byte| byte == b'@');
        self.tokens.at += count(self.rest(), |byte| is_word(byte) || byte == b'.');
        Lexeme::Variable(self.piece())
    }

    fn word(&mut self) -> Lexeme<'a> {
        let word = self.piece();
        // A character set, or the kind of a literal, belongs to the string that follows.
        let is_kind = word[0] == b'_' || word.len() == 1 && b"nNxXbB".contains(&word[0]);
        if is_kind && matches!(self.rest().first(), Some(b'\'' | b'"')) {
            let behind = self.tokens.at;
            match self.tokens.next() {
                Some(token) if token.kind == TokenKind::Text => return Lexeme::Text(self.piece()),
                _ => self.tokens.at = behind,
            }
        }
        Lexeme::Word(word)
    }

    fn digits(&mut self) {
        self.tokens.at += count(self.rest(), |byte| byte.is_ascii_digit());
        let exponent = exponent(self.rest());
        self.tokens.at += exponent;
    }

    /// Takes a number, or a name that begins like one.
    fn number(&mut self) -> Lexeme<'a> {
        let run = self.piece();
        let behind = self.tokens.at;
        let is_based = |mark: u8, digit: fn(&u8) -> bool| {
            run.len() > 2 && run[0] == b'0' && run[1] == mark && run[2..].iter().all(digit)
        };
        if is_based(b'x', u8::is_ascii_hexdigit)
            || is_based(b'b', |byte| matches!(byte, b'0' | b'1'))
        {
            return Lexeme::Number(run);
        }
        self.tokens.at = self.begin;
        self.digits();
        if self.tokens.at < behind {
            self.tokens.at = behind;
            return Lexeme::Word(run);
        }
        if self.tokens.at == behind && self.rest().starts_with(b".") {
            self.tokens.at += 1;
            self.digits();
        }
        Lexeme::Number(self.piece())
    }

    fn sign(&mut self) -> Lexeme<'a> {
        let rest = &self.tokens.text[self.begin..];
        if let Some(long) = SIGNS.iter().find(|sign| rest.starts_with(sign)) {
            self.tokens.at = self.begin + long.len();
        }
        Lexeme::Sign(self.piece())
    }
}

impl<'a> Iterator for Lexemes<'a> {
    type Item = Lexeme<'a>;

    fn next(&mut self) -> Option<Lexeme<'a>> {
        let token = loop {
            let token = self.tokens.next_code();
            self.begin = token.map_or(self.tokens.at, |token| token.start);
            let token = token?;
            if !token.is_gate() {
                break token;
            }
        };
        let lexeme = match token.kind {
            TokenKind::Text => Lexeme::Text(self.piece()),
            TokenKind::Name if token.is_cut => Lexeme::Text(self.piece()),
            TokenKind::Name => Lexeme::Name(self.piece()),
            TokenKind::Word if self.piece()[0].is_ascii_digit() => self.number(),
            TokenKind::Word => self.word(),
            TokenKind::Sign(b'@') => self.variable(),
            TokenKind::Sign(b'?') => Lexeme::Placeholder,
            TokenKind::Sign(b'.')
                if !self.after_name && self.rest().first().is_some_and(u8::is_ascii_digit) =>
            {
                self.digits();
                Lexeme::Number(self.piece())
            }
            _ => self.sign(),
        };
        self.after_name = matches!(lexeme, Lexeme::Word(_) | Lexeme::Name(_));
        Some(lexeme)
    }
}

/// Returns how many bytes are such.
fn count(rest: &[u8], is_such: impl Fn(u8) -> bool) -> usize {
    let other = rest.iter().position(|byte| !is_such(*byte));
    other.unwrap_or(rest.len())
}

/// Returns how long `e-3` is, where it is one.
fn exponent(rest: &[u8]) -> usize {
    if !matches!(rest.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
    match count(&rest[1 + sign..], |byte| byte.is_ascii_digit()) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}
