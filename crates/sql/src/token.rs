//! The tokens of a text.

use crate::{Comment, Inside, Mode, Passed, Wide, comment_at, is_blank, is_word};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// White space.
    Blank,
    /// A comment that no server reads.
    Comment,
    /// `/*+ … */`
    Hint,
    /// The start of a comment that some servers execute: `/*!50100`, `/*M!100108`.
    Gate,
    /// The end of such a comment.
    GateEnd,
    /// Letters, digits, `_`, `$` and all bytes beyond ASCII: a keyword, a bare name, a number or a part of one.
    Word,
    /// A name in backticks, or in double quotes where they are those of names.
    Name,
    /// A literal in quotes.
    Text,
    /// Any other byte.
    Sign(u8),
}

/// One token: what it is, and where it lies in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// The text ends before it does.
    pub is_cut: bool,
}

impl Token {
    /// Returns the bytes of it.
    #[must_use]
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.end]
    }

    /// Returns whether this is the keyword `word`, in letters of either case.
    #[must_use]
    pub fn is_word(&self, text: &[u8], word: &str) -> bool {
        self.kind == TokenKind::Word && self.of(text).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Returns whether this is the byte `sign`.
    #[must_use]
    pub fn is_sign(&self, sign: u8) -> bool {
        self.kind == TokenKind::Sign(sign)
    }

    /// Returns whether it is a mark of an executed comment.
    #[must_use]
    pub const fn is_gate(&self) -> bool {
        matches!(self.kind, TokenKind::Gate | TokenKind::GateEnd)
    }

    /// Returns whether it is neither white space nor a comment.
    #[must_use]
    pub const fn is_code(&self) -> bool {
        !matches!(
            self.kind,
            TokenKind::Blank | TokenKind::Comment | TokenKind::Hint
        )
    }
}

/// Walks over all tokens of a text: each begins where the one before ended.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
    mode: Mode,
    in_gate: bool,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of `text`.
    #[must_use]
    pub fn new(text: &'a [u8], mode: Mode) -> Self {
        Self {
            text,
            at: 0,
            mode,
            in_gate: false,
        }
    }

    /// Returns whether an executed comment was begun and not ended.
    #[must_use]
    pub fn in_gate(&self) -> bool {
        self.in_gate
    }

    /// Returns the next token that is neither white space nor a comment.
    #[inline]
    pub(crate) fn next_code(&mut self) -> Option<Token> {
        loop {
            self.at += run(&self.text[self.at..], Class::Blank);
            let token = self.next()?;
            if token.is_code() {
                return Some(token);
            }
        }
    }

    /// Returns what the quoted thing at the beginning of `rest` is.
    fn quoted(&self, rest: &[u8], quote: u8) -> (TokenKind, usize, bool) {
        let kind = match self.mode.is_name(quote) {
            true => TokenKind::Name,
            false => TokenKind::Text,
        };
        let mut at = 1;
        while let Passed::Ended(length) = Inside::Quoted(quote).pass(&rest[at..], self.mode) {
            at += length;
            if rest.get(at) != Some(&quote) {
                return (kind, at, false);
            }
            at += 1;
        }
        (kind, rest.len(), true)
    }

    /// Returns what comment begins here or ends here, if one does.
    fn comment(&mut self, rest: &[u8]) -> Option<(TokenKind, usize, bool)> {
        // A server that executes what is inside of an executed comment ends it at the first end, however many began.
        if self.in_gate && rest.starts_with(b"*/") {
            self.in_gate = false;
            return Some((TokenKind::GateEnd, 2, false));
        }
        let (kind, inside) = match comment_at(rest)? {
            Comment::Gate(length) => {
                self.in_gate = true;
                return Some((TokenKind::Gate, length, false));
            }
            Comment::Line => (TokenKind::Comment, Inside::Line),
            Comment::Block => (TokenKind::Comment, Inside::Block),
            Comment::Hint => (TokenKind::Hint, Inside::Block),
        };
        let opening = if inside == Inside::Block { 2 } else { 0 };
        match inside.pass(&rest[opening..], self.mode) {
            Passed::Ended(length) => Some((kind, opening + length, false)),
            Passed::Open(_) => Some((kind, rest.len(), inside == Inside::Block)),
        }
    }

    fn word(&self, rest: &[u8]) -> usize {
        if self.mode.wide == Wide::No {
            return run(rest, Class::Word);
        }
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            at += match () {
                () if self.mode.wide.is_pair(&rest[at..]) => 2,
                () if is_word(byte) => 1,
                () => break,
            };
        }
        at
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let start = self.at;
        let rest = &self.text[start..];
        let first = *rest.first()?;
        let sign = (TokenKind::Sign(first), 1, false);
        let (kind, length, is_cut) = match CLASSES[usize::from(first)] {
            Class::Word => (TokenKind::Word, self.word(rest), false),
            Class::Blank => (TokenKind::Blank, run(rest, Class::Blank), false),
            Class::Quote => self.quoted(rest, first),
            Class::Comment => self.comment(rest).unwrap_or(sign),
            Class::Sign => sign,
        };
        self.at = start + length;
        Some(Token {
            kind,
            start,
            end: self.at,
            is_cut,
        })
    }
}

/// Walks over a text's tokens without white space and comments; of executed comments the marks are left.
#[derive(Debug, Clone)]
pub struct Code<'a>(Tokens<'a>);

impl Iterator for Code<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        self.0.next_code()
    }
}

/// Starts at the beginning of `text`.
#[must_use]
pub fn code(text: &[u8], mode: Mode) -> Code<'_> {
    Code(Tokens::new(text, mode))
}

/// What begins with a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Sign,
    Blank,
    Word,
    Quote,
    /// A comment, or the end of one, or a sign.
    Comment,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Sign; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        classes[at] = match byte {
            b'\'' | b'"' | b'`' => Class::Quote,
            b'#' | b'-' | b'/' | b'*' => Class::Comment,
            _ if is_blank(byte) => Class::Blank,
            _ if is_word(byte) => Class::Word,
            _ => Class::Sign,
        };
        at += 1;
    }
    classes
};

#[inline]
fn run(rest: &[u8], class: Class) -> usize {
    let other = |byte: &u8| CLASSES[usize::from(*byte)] != class;
    rest.iter().position(other).unwrap_or(rest.len())
}
