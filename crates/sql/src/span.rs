//! Where strings, names and comments begin and end.

use crate::{Mode, Wide, is_blank};
use memchr::{memchr, memchr2};

/// What has an end that has to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// A literal or a name between such quotes.
    Quoted(u8),
    /// A comment that ends with its line.
    Line,
    /// A comment that ends with `*/`.
    Block,
}

/// How far something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It ends here: behind its last byte, before the end of the line for what ends with its line.
    Ended(usize),
    /// It goes on. What comes before this was looked at; the rest is to be looked at again with what follows.
    Open(usize),
}

impl Inside {
    /// Looks for the end in what follows the opening, or in what follows what was looked at before.
    ///
    /// A quote that stands twice ends the string here, and begins it again: who needs to know looks behind it.
    #[must_use]
    pub fn pass(self, rest: &[u8], mode: Mode) -> Passed {
        match self {
            Self::Quoted(quote) if mode.wide != Wide::No => pass_wide(rest, quote, mode),
            Self::Quoted(quote) => pass_quoted(rest, quote, mode),
            Self::Line => match memchr(b'\n', rest) {
                Some(length) => Passed::Ended(length),
                None => Passed::Open(rest.len()),
            },
            Self::Block => pass_block(rest),
        }
    }
}

fn pass_block(rest: &[u8]) -> Passed {
    let mut at = 0;
    while let Some(found) = memchr(b'*', &rest[at..]) {
        at += found;
        match rest.get(at + 1) {
            Some(b'/') => return Passed::Ended(at + 2),
            Some(_) => at += 1,
            None => return Passed::Open(at),
        }
    }
    Passed::Open(rest.len())
}

fn pass_quoted(rest: &[u8], quote: u8, mode: Mode) -> Passed {
    let escapes = mode.escapes(quote);
    let mut at = 0;
    loop {
        let ahead = &rest[at..];
        let found = match escapes {
            true => memchr2(quote, b'\\', ahead),
            false => memchr(quote, ahead),
        };
        match found {
            None => return Passed::Open(rest.len()),
            Some(found) if ahead[found] == quote => return Passed::Ended(at + found + 1),
            Some(found) if found + 1 < ahead.len() => at += found + 2,
            Some(found) => return Passed::Open(at + found),
        }
    }
}

/// The same where a quote may be half a character.
fn pass_wide(rest: &[u8], quote: u8, mode: Mode) -> Passed {
    let escapes = mode.escapes(quote);
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let is_last = at + 1 == rest.len();
        at += match byte {
            _ if byte == quote => return Passed::Ended(at + 1),
            b'\\' if escapes && is_last => return Passed::Open(at),
            _ if is_last && mode.wide.is_first(byte) => return Passed::Open(at),
            b'\\' if escapes => 2,
            _ if mode.wide.is_pair(&rest[at..]) => 2,
            _ => 1,
        };
    }
    Passed::Open(at)
}

/// A comment, by how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comment {
    /// `# …`, `-- …`
    Line,
    /// `/* … */`
    Block,
    /// `/*+ … */`
    Hint,
    /// `/*!`, `/*M!`: some servers execute what is inside. How long the opening is, with its version.
    Gate(usize),
}

/// Returns what comment begins here, as a server sees it.
#[must_use]
pub fn comment_at(rest: &[u8]) -> Option<Comment> {
    match rest {
        [b'#', ..] | [b'-', b'-'] => Some(Comment::Line),
        [b'-', b'-', after, ..] if is_blank(*after) || after.is_ascii_control() => {
            Some(Comment::Line)
        }
        [b'/', b'*', b'+', ..] => Some(Comment::Hint),
        [b'/', b'*', ..] => Some(gate_at(rest).map_or(Comment::Block, Comment::Gate)),
        _ => None,
    }
}

/// Returns how long the opening of an executed comment is that stands here, with its version.
#[must_use]
pub fn gate_at(rest: &[u8]) -> Option<usize> {
    let opening = match rest {
        [b'/', b'*', b'!', ..] => 3,
        [b'/', b'*', b'M', b'!', ..] => 4,
        _ => return None,
    };
    let digits = rest[opening..].iter().take(6);
    Some(opening + digits.take_while(|byte| byte.is_ascii_digit()).count())
}
