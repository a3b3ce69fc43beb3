//! Does a string end where it ends, whatever is in it and in however many pieces it comes?

mod texts;

use evenkeel_sql::{Inside, Mode, Passed, TokenKind, Tokens, Wide, unquoted};
use proptest::prelude::*;
use texts::{any_mode, any_text};

/// Writes bytes between quotes, as far as a mode can.
fn quoted(bytes: &[u8], quote: u8, mode: Mode) -> Vec<u8> {
    let mut text = vec![quote];
    for byte in bytes {
        if *byte == quote {
            text.push(quote);
        }
        if *byte == b'\\' && mode.escapes(quote) {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(quote);
    text
}

/// Looks byte by byte, with all there is at hand.
fn end_of(inside: Inside, text: &[u8], mode: Mode) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        at += match inside {
            Inside::Line if *byte == b'\n' => return Some(at),
            Inside::Block if rest.starts_with(b"*/") => return Some(at + 2),
            Inside::Quoted(quote) if *byte == quote => return Some(at + 1),
            Inside::Quoted(_) if mode.wide.is_pair(rest) => 2,
            Inside::Quoted(quote) if *byte == b'\\' && mode.escapes(quote) => 2,
            _ => 1,
        };
    }
    None
}

/// Texts of little else than what ends something or keeps it from ending.
fn any_ends() -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::sample::select(&b"''\"`\\\\*/\na\x81\xe0"[..]);
    proptest::collection::vec(bytes, 0..20)
}

fn any_inside() -> impl Strategy<Value = Inside> {
    proptest::sample::select(vec![
        Inside::Quoted(b'\''),
        Inside::Quoted(b'"'),
        Inside::Quoted(b'`'),
        Inside::Line,
        Inside::Block,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_between_quotes_is_one_token(
        bytes in any_text(),
        quote in proptest::sample::select(&b"'\"`"[..]),
        mode in any_mode(),
    ) {
        let mode = Mode { wide: Wide::No, ..mode };
        let text = [quoted(&bytes, quote, mode), b",".to_vec()].concat();
        let mut tokens = Tokens::new(&text, mode);
        let first = tokens.next().unwrap();
        let kind = if mode.is_name(quote) { TokenKind::Name } else { TokenKind::Text };
        prop_assert_eq!((first.kind, first.end, first.is_cut), (kind, text.len() - 1, false));
        prop_assert_eq!(unquoted(first.of(&text), mode), bytes);
    }

    #[test]
    fn pieces_end_where_the_whole_ends(
        text in any_ends(),
        sizes in proptest::collection::vec(1usize..4, 1..8),
        inside in any_inside(),
        mode in any_mode(),
    ) {
        let (mut at, mut have, mut found) = (0, 0, None);
        for size in sizes.iter().cycle() {
            have = (have + size).min(text.len());
            match inside.pass(&text[at..have], mode) {
                Passed::Ended(length) => found = Some(at + length),
                Passed::Open(length) => at += length,
            }
            prop_assert!(at <= have);
            if found.is_some() || have == text.len() {
                break;
            }
        }
        prop_assert_eq!(found, end_of(inside, &text, mode));
    }
}

#[test]
fn half_a_character_is_no_quote() {
    let gbk = Mode {
        wide: Wide::of("gbk"),
        ..Mode::default()
    };
    let first = |text: &[u8], mode| {
        let token = Tokens::new(text, mode).next().unwrap();
        (token.end, token.is_cut)
    };
    assert_eq!(first(b"'\x81\x5c', ?", gbk), (4, false));
    assert_eq!(first(b"'\x81\x5c', ?", Mode::default()), (7, true));
    // This is no character of the set, so that the quote is one.
    assert_eq!(first(b"'\x81', ?", gbk), (3, false));
    assert_eq!(unquoted(b"'\x81\x5c'", gbk), b"\x81\x5c");
    assert_eq!(Wide::of_collation(28), Wide::Gbk);
}
