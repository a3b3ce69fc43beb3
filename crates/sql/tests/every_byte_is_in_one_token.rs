//! Is every byte of any text in exactly one token, and is only the last one cut?

mod texts;

use evenkeel_sql::{Lexemes, TokenKind, Tokens, code};
use proptest::prelude::*;
use texts::{any_mode, any_text};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn tokens_are_the_text(text in any_text(), mode in any_mode()) {
        let mut end = 0;
        for token in Tokens::new(&text, mode) {
            prop_assert_eq!(token.start, end);
            prop_assert!(token.end > token.start);
            prop_assert!(!token.is_cut || token.end == text.len());
            end = token.end;
        }
        prop_assert_eq!(end, text.len());
    }

    #[test]
    fn code_is_the_tokens_without_blanks(text in any_text(), mode in any_mode()) {
        let all: Vec<_> = Tokens::new(&text, mode).filter(|token| token.is_code()).collect();
        prop_assert_eq!(all, code(&text, mode).collect::<Vec<_>>());
    }

    /// A piece that a parser gets begins and ends where tokens do, but for numbers and variables.
    #[test]
    fn lexemes_leave_out_what_is_no_code(text in any_text(), mode in any_mode()) {
        let mut lexemes = Lexemes::new(&text, mode);
        let mut end = 0;
        while lexemes.next().is_some() {
            prop_assert!(lexemes.begin() >= end && lexemes.end() > lexemes.begin());
            for token in code(&text[end..lexemes.begin()], mode) {
                // An end of an executed comment, when its beginning is not seen, is two signs.
                let is_mark = matches!(token.kind, TokenKind::Gate | TokenKind::GateEnd | TokenKind::Sign(b'*' | b'/'));
                prop_assert!(is_mark, "{:?}", token);
            }
            end = lexemes.end();
        }
    }
}
