//! What a file of definitions sets before it makes something.

use crate::objects::text::{Token, TokenKind, name_of};

/// Settings that decide what a program means; `None` where nothing was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Under {
    pub(super) character_set_client: Option<String>,
    pub(super) collation_connection: Option<String>,
    pub(super) sql_mode: Option<String>,
    pub(super) time_zone: Option<String>,
    pub(super) database_collation: Option<String>,
}

impl Under {
    /// Takes in a SET statement, given its tokens behind `SET`. What else it sets is the business of
    /// who runs the file, and is not needed here.
    pub(super) fn set(&mut self, text: &[u8], tokens: &[Token]) {
        for part in tokens.split(|token| token.is_sign(b',')) {
            if let [names, value, ..] = part
                && names.is_word(text, "NAMES")
            {
                self.character_set_client = Some(name_of(value.of(text)));
                self.collation_connection = None;
                continue;
            }
            let Some(at) = part.iter().position(|token| token.is_sign(b'=')) else {
                continue;
            };
            let ats = part[..at].iter().filter(|token| token.is_sign(b'@'));
            let (Some(name), Some(value)) =
                (at.checked_sub(1).map(|one| part[one]), part.get(at + 1))
            else {
                continue;
            };
            // One is a user's variable, two are the server's.
            if ats.count() != 1 {
                self.one(&name_of(name.of(text)), said(text, value));
            }
        }
    }

    fn one(&mut self, name: &str, value: Option<String>) {
        let slot = match name.to_ascii_lowercase().as_str() {
            "character_set_client" => &mut self.character_set_client,
            "collation_connection" => &mut self.collation_connection,
            "sql_mode" => &mut self.sql_mode,
            "time_zone" => &mut self.time_zone,
            _ => return,
        };
        *slot = value;
    }
}

/// Returns a value; `None` where a variable gives it back as it was.
fn said(text: &[u8], value: &Token) -> Option<String> {
    match value.kind {
        TokenKind::Word | TokenKind::Name | TokenKind::Text => Some(name_of(value.of(text))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::text::all_tokens;

    fn after(statements: &[&str]) -> Under {
        let mut under = Under::default();
        for one in statements {
            let text = one.as_bytes();
            under.set(text, &all_tokens(text).unwrap()[1..]);
        }
        under
    }

    #[test]
    fn settings_are_remembered_and_put_back() {
        let set = after(&[
            "SET NAMES binary",
            "SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='ANSI,STRICT', @sql_mode = 'no'",
            "SET @@SESSION.collation_connection = utf8_bin",
            "SET SESSION time_zone = 'SYSTEM'",
        ]);
        assert_eq!(set.character_set_client.as_deref(), Some("binary"));
        assert_eq!(set.sql_mode.as_deref(), Some("ANSI,STRICT"));
        assert_eq!(set.collation_connection.as_deref(), Some("utf8_bin"));
        assert_eq!(set.time_zone.as_deref(), Some("SYSTEM"));
        let back = after(&["SET sql_mode = 'ANSI'", "SET sql_mode = @saved_sql_mode"]);
        assert_eq!(back, Under::default());
    }
}
