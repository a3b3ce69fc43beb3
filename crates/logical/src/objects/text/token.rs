//! The tokens of an SQL text that a server printed, or that is to be understood as far as it goes.

use evenkeel_sql::{Mode, Tokens, code, unquoted};
pub(crate) use evenkeel_sql::{Token, TokenKind};

/// Walks over the tokens of `text`; white space and comments that no server executes are none. Ends early
/// where a literal or name has no end.
pub(crate) fn tokens(text: &[u8]) -> impl Iterator<Item = Token> + '_ {
    tokens_under(text, Mode::default())
}

/// The same, for a text whose `sql_mode` is known.
pub(crate) fn tokens_under(text: &[u8], mode: Mode) -> impl Iterator<Item = Token> + '_ {
    code(text, mode).take_while(|token| !token.is_cut)
}

/// Returns all tokens of `text`, or `None` when something in it has no end.
pub(crate) fn all_tokens(text: &[u8]) -> Option<Vec<Token>> {
    all_tokens_under(text, Mode::default())
}

/// The same, for a text whose `sql_mode` is known.
pub(crate) fn all_tokens_under(text: &[u8], mode: Mode) -> Option<Vec<Token>> {
    let mut walk = Tokens::new(text, mode);
    let mut found = Vec::new();
    for token in walk.by_ref() {
        if token.is_cut {
            return None;
        }
        if token.is_code() {
            found.push(token);
        }
    }
    (!walk.in_gate()).then_some(found)
}

/// Returns the name that a token in backticks, in quotes or bare means.
pub(crate) fn name_of(token: &[u8]) -> String {
    name_under(token, Mode::default())
}

/// The same, for a text whose `sql_mode` is known.
pub(crate) fn name_under(token: &[u8], mode: Mode) -> String {
    String::from_utf8_lossy(&unquoted(token, mode)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_has_no_end_is_noticed() {
        for sql in ["'a", "`a``", "/* a", "/*!50100 a", "'\\'"] {
            assert_eq!(all_tokens(sql.as_bytes()), None, "{sql}");
        }
        assert_eq!(tokens(b"a, 'b").count(), 2);
    }

    proptest! {
        #[test]
        fn any_name_and_any_literal_is_one_token(name in ".{0,20}", literal in ".{0,20}") {
            let name_sql = format!("`{}`", name.replace('`', "``"));
            let literal_sql = evenkeel_server::connect::quote(&literal);
            let sql = format!("{name_sql},{literal_sql}");
            let found = all_tokens(sql.as_bytes()).unwrap();
            let texts: Vec<_> = found.iter().map(|token| token.of(sql.as_bytes())).collect();
            prop_assert_eq!(texts, [name_sql.as_bytes(), b",", literal_sql.as_bytes()]);
            prop_assert_eq!(name_of(name_sql.as_bytes()), name);
            prop_assert_eq!(name_of(literal_sql.as_bytes()), literal);
        }
    }
}
