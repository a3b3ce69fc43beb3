//! From text to tokens.

use crate::Wrong;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word as it was written: a keyword or a column.
    Word(String),
    /// A name between backquotes: never a keyword.
    Quoted(String),
    Text(String),
    Number(i128),
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 23] = [
    "||", "&&", "<=", ">=", "<>", "!=", "<<", ">>", "=", "<", ">", "|", "&", "+", "-", "*", "%",
    "^", "~", "(", ")", ",", "!",
];

/// Tokens and where they start; the last is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Wrong> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let wrong = |what: &str| Wrong {
            at,
            what: what.to_owned(),
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (token, len) = if next == '\'' || next == '`' {
            let (inside, len) = quoted(rest, next).ok_or_else(|| wrong("a quote is not closed"))?;
            let token = if next == '`' {
                Token::Quoted(inside)
            } else {
                Token::Text(inside)
            };
            (token, len)
        } else if is_word(next) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = &rest[..len];
            let token = if next.is_ascii_digit() {
                Token::Number(number(word).ok_or_else(|| wrong("this is no number"))?)
            } else {
                Token::Word(word.to_owned())
            };
            (token, len)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| wrong("this sign means nothing here"))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push((at, token));
        at += len;
    }
    tokens.push((at, Token::End));
    Ok(tokens)
}

/// What is between quotes, in which two stand for one, and how long all is.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut inside = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            inside.push(letter);
        } else if letters.next_if(|(_, next)| *next == quote).is_some() {
            inside.push(quote);
        } else {
            return Some((inside, at + 1));
        }
    }
    None
}

fn number(word: &str) -> Option<i128> {
    let number = if let Some(digits) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16)
    } else if word.len() > 1 && word.starts_with('0') {
        u64::from_str_radix(word, 8)
    } else {
        word.parse()
    };
    number.ok().map(i128::from)
}
