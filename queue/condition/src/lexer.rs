//! From text to tokens.

use crate::{Decimal, Wrong};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A word as it was written: a keyword or a column.
    Word(String),
    /// A name between backquotes: never a keyword.
    Quoted(String),
    Text(String),
    /// X'00FF'
    Bytes(Vec<u8>),
    Number(i128),
    Decimal(Decimal),
    Real(f64),
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
        let (token, len) = if rest.starts_with("x'") || rest.starts_with("X'") {
            let (inside, len) =
                quoted(&rest[1..], '\'').ok_or_else(|| wrong("a quote is not closed"))?;
            let bytes = bytes(&inside).ok_or_else(|| wrong("this is not a string of bytes"))?;
            (Token::Bytes(bytes), 1 + len)
        } else if next == '\'' || next == '`' {
            let (inside, len) = quoted(rest, next).ok_or_else(|| wrong("a quote is not closed"))?;
            let token = if next == '`' {
                Token::Quoted(inside)
            } else {
                Token::Text(inside)
            };
            (token, len)
        } else if next.is_ascii_digit() || behind_point(rest) > 0 {
            let len = length(rest);
            // A number ends before what is no letter.
            let ends = !rest[len..].starts_with(is_word);
            let token = ends.then(|| number(&rest[..len])).flatten();
            (token.ok_or_else(|| wrong("this is not a number"))?, len)
        } else if is_word(next) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (Token::Word(rest[..len].to_owned()), len)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| wrong("this character has no meaning here"))?;
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

/// Two hexadecimal digits for each byte.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let [high, low] = pair else { return None };
        let digit = |digit: u8| char::from(digit).to_digit(16);
        u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
    };
    pairs.map(byte).collect()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// How many digits follow a point that a text begins with.
fn behind_point(text: &str) -> usize {
    text.strip_prefix('.').map_or(0, digits)
}

/// How many bytes belong to the number that a text begins with.
fn length(text: &str) -> usize {
    if text.starts_with("0x") || text.starts_with("0X") {
        return 2 + text[2..].bytes().take_while(u8::is_ascii_hexdigit).count();
    }
    let mut len = digits(text);
    let behind = behind_point(&text[len..]);
    len += if behind > 0 { 1 + behind } else { 0 };
    let Some(exponent) = text[len..].strip_prefix(['e', 'E']) else {
        return len;
    };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(unsigned) {
        0 => len,
        more => len + 1 + exponent.len() - unsigned.len() + more,
    }
}

fn number(word: &str) -> Option<Token> {
    if let Some(digits) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        let number = u64::from_str_radix(digits, 16).ok()?;
        return Some(Token::Number(i128::from(number)));
    }
    if word.contains(['e', 'E']) {
        let real: f64 = word.parse().ok()?;
        return real.is_finite().then_some(Token::Real(real));
    }
    if word.contains('.') {
        return Decimal::read(word).map(Token::Decimal);
    }
    let number = if word.len() > 1 && word.starts_with('0') {
        u64::from_str_radix(word, 8)
    } else {
        word.parse()
    };
    Some(Token::Number(i128::from(number.ok()?)))
}
