//! What one line of an option file says. Works on bytes: files need not be UTF-8.

/// Longest piece that the MySQL programs read at once, in bytes. A longer line continues as if a
/// new one began there.
const PIECE_MAX: usize = 4094;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Empty, a comment, or an unknown `!` word.
    Nothing,
    /// `!include PATH`.
    Include(Vec<u8>),
    /// `!includedir PATH`.
    IncludeDir(Vec<u8>),
    /// `[NAME]`.
    Group(Vec<u8>),
    /// `name` or `name = value`.
    Option(Vec<u8>, Option<Vec<u8>>),
}

/// What makes the MySQL programs give a file up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// `[` without `]`.
    Group,
    /// `!include` or `!includedir` without a path.
    NoPath(&'static str),
}

/// Splits a file into what is read as lines, newlines included.
pub(super) fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| line.chunks(PIECE_MAX))
}

/// Returns whether this is a `!` directive, whatever it says.
pub(super) fn is_directive(piece: &[u8]) -> bool {
    trim_start(until_nul(piece)).first() == Some(&b'!')
}

/// Reads one line.
pub(super) fn parse(piece: &[u8]) -> Result<Line, Fault> {
    let text = trim_start(until_nul(piece));
    match text.first() {
        None | Some(b'#' | b';') => Ok(Line::Nothing),
        Some(b'!') => directive(trim_start(&text[1..])),
        Some(b'[') => group(&text[1..]),
        Some(_) => Ok(option(text)),
    }
}

fn directive(text: &[u8]) -> Result<Line, Fault> {
    for (word, make) in [
        ("includedir", Line::IncludeDir as fn(Vec<u8>) -> Line),
        ("include", Line::Include),
    ] {
        let Some(rest) = text.strip_prefix(word.as_bytes()) else {
            continue;
        };
        if !rest.first().copied().is_some_and(is_space) {
            continue;
        }
        // The last byte counts as the newline, even in a file that ends without one.
        let argument = match trim_start(rest).split_last() {
            Some((_, argument)) => trim_end(argument),
            None => &[],
        };
        if argument.is_empty() {
            return Err(Fault::NoPath(word));
        }
        return Ok(make(argument.to_vec()));
    }
    Ok(Line::Nothing)
}

fn group(text: &[u8]) -> Result<Line, Fault> {
    let end = text.iter().position(|byte| *byte == b']');
    let name = &text[..end.ok_or(Fault::Group)?];
    Ok(Line::Group(trim_end(name).to_vec()))
}

fn option(text: &[u8]) -> Line {
    let text = without_comment(text);
    match text.iter().position(|byte| *byte == b'=') {
        None => Line::Option(trim_end(text).to_vec(), None),
        Some(equals) => {
            let value = trim_end(trim_start(&text[equals + 1..]));
            Line::Option(
                trim_end(&text[..equals]).to_vec(),
                Some(unescaped(unquoted(value))),
            )
        }
    }
}

/// Cuts a `#` comment off. A `#` inside quotes is none, and a quote that never ends hides them all.
fn without_comment(text: &[u8]) -> &[u8] {
    let mut quote = None;
    let mut escaped = false;
    for (at, byte) in text.iter().copied().enumerate() {
        if matches!(byte, b'\'' | b'"') && !escaped {
            match quote {
                None => quote = Some(byte),
                Some(open) if open == byte => quote = None,
                Some(_) => {}
            }
        }
        if byte == b'#' && quote.is_none() {
            return &text[..at];
        }
        escaped = quote.is_some() && byte == b'\\' && !escaped;
    }
    text
}

/// Takes one pair of equal quotes off, if they are the first and the last byte.
fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [open @ (b'\'' | b'"'), inner @ .., close] if open == close => inner,
        _ => value,
    }
}

/// Replaces the escapes; an unknown one stays with its backslash, and so does a last backslash.
fn unescaped(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let known = match (byte, bytes.peek().copied()) {
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b't')) => b'\t',
            (b'\\', Some(b'r')) => b'\r',
            (b'\\', Some(b'b')) => 8,
            (b'\\', Some(b's')) => b' ',
            (b'\\', Some(same @ (b'\\' | b'"' | b'\''))) => same,
            (b'\\', Some(other)) => {
                out.push(b'\\');
                other
            }
            (plain, _) => {
                out.push(plain);
                continue;
            }
        };
        out.push(known);
        bytes.next();
    }
    out
}

/// White space of Latin-1, in which the MySQL programs read: it has 0xA0, which is also the last
/// byte of `à` in UTF-8. They cut that off too.
fn is_space(byte: u8) -> bool {
    matches!(byte, 0x09..=0x0d | b' ' | 0xa0)
}

fn trim_start(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte));
    &text[start.unwrap_or(text.len())..]
}

fn trim_end(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|byte| !is_space(*byte));
    &text[..last.map_or(0, |at| at + 1)]
}

fn until_nul(text: &[u8]) -> &[u8] {
    let nul = text.iter().position(|byte| *byte == 0);
    &text[..nul.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        match parse(text.as_bytes()) {
            Ok(Line::Option(_, Some(value))) => String::from_utf8(value).unwrap(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn comments_end_values_except_in_quotes() {
        assert_eq!(value("p=se#cret"), "se");
        assert_eq!(value("p=\"se#cret\" # x"), "se#cret");
        assert_eq!(value("p=it's # not"), "it's # not");
        assert_eq!(value("p=a ; b"), "a ; b");
    }

    #[test]
    fn quotes_and_escapes() {
        assert_eq!(value(r#"p="a\tb\sc\qd\\n\"e\'""#), "a\tb c\\qd\\n\"e'");
        assert_eq!(value(r"p=a\"), "a\\");
        assert_eq!(value("p=\""), "\"");
        assert_eq!(value("p=\"\""), "");
        assert_eq!(value("p = ' a '  "), " a ");
        assert_eq!(value("p="), "");
    }

    #[test]
    fn directives_lose_their_last_byte() {
        let path = |text: &[u8]| match parse(text) {
            Ok(Line::Include(path) | Line::IncludeDir(path)) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(path(b"!include /a b \n"), b"/a b");
        assert_eq!(path(b"! includedir\t/d\r\n"), b"/d");
        assert_eq!(path(b"!include /a.cnf"), b"/a.cn");
        assert_eq!(parse(b"!include\n"), Err(Fault::NoPath("include")));
        assert_eq!(parse(b"!includefoo x\n"), Ok(Line::Nothing));
    }

    #[test]
    fn groups_keep_leading_space_only() {
        assert_eq!(parse(b"[ a ] x\n"), Ok(Line::Group(b" a".to_vec())));
        assert_eq!(parse(b"[a\n"), Err(Fault::Group));
    }

    #[test]
    fn long_lines_fall_apart() {
        let text = [b'x'; 5000];
        let lengths: Vec<_> = pieces(&text).map(<[u8]>::len).collect();
        assert_eq!(lengths, [4094, 906]);
    }
}
