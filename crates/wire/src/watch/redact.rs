//! Passwords in statements, replaced before anything leaves.

use evenkeel_sql::{Mode, Token, TokenKind, code};

/// What stands in the place of a password.
const HIDDEN: &[u8] = b"'***'";

/// A password stands only in a statement with one of these.
const WORDS: [&[u8]; 4] = [b"identified", b"passw", b"secret", b"sst_auth"];
/// How each of them begins.
const STARTS: [[u8; 3]; 4] = [*b"ide", *b"pas", *b"sec", *b"sst"];
/// What names end in whose values are passwords.
const NAMES: [&[u8]; 5] = [
    b"password",
    b"passwd",
    b"secret",
    b"secret_key",
    b"sst_auth",
];

/// Returns the text without passwords; `None` where it has none, which is nearly always.
pub fn redacted(sql: &[u8], mode: Mode) -> Option<Vec<u8>> {
    if !is_suspect(sql) {
        return None;
    }
    let known = hidden(sql, mode);
    // Whether a backslash ends a string is a matter of the session's sql_mode and character set, of which not every
    // source knows all. Where it matters, nothing is shown after the first password.
    let others: Vec<_> = mode.readings(sql).map(|other| hidden(sql, other)).collect();
    if others.iter().all(|other| *other == known) {
        return known.map(|(text, _)| text);
    }
    let starts = others.iter().chain([&known]).flatten();
    let first = starts.map(|(_, start)| *start).min().unwrap_or(0);
    Some([&sql[..first], HIDDEN].concat())
}

/// Returns the text without passwords, and where the first one began.
fn hidden(sql: &[u8], mode: Mode) -> Option<(Vec<u8>, usize)> {
    let mut walk = Walk {
        sql,
        ..Walk::default()
    };
    let mut out = Vec::new();
    let mut copied = 0;
    let mut first = None;
    for token in code(sql, mode).filter(|token| !token.is_gate()) {
        if walk.is_secret(token) {
            out.extend_from_slice(&sql[copied..token.start]);
            out.extend_from_slice(HIDDEN);
            copied = token.end;
            first = first.or(Some(token.start));
        }
        walk.step(token);
    }
    out.extend_from_slice(&sql[copied..]);
    first.map(|first| (out, first))
}

/// Returns whether any word is in it that a password follows.
fn is_suspect(sql: &[u8]) -> bool {
    contains(sql, &WORDS)
}

/// Returns whether anything begins like one of the words. This runs for every statement, and has no branches: sixteen
/// bytes are looked at together.
fn has_start(text: &[u8]) -> bool {
    let count = text.len().saturating_sub(2);
    let mut found = false;
    for ((first, second), third) in text
        .iter()
        .zip(&text[text.len().min(1)..])
        .zip(&text[text.len() - count..])
    {
        // The bit makes letters small.
        let letters = [first | 0x20, second | 0x20, third | 0x20];
        found |= STARTS.iter().fold(false, |found, start| {
            found | ((letters[0] == start[0]) & (letters[1] == start[1]) & (letters[2] == start[2]))
        });
    }
    found
}

/// Returns whether one of `words`, which are of [`WORDS`], is in it, in letters of either case.
fn contains(text: &[u8], words: &[&[u8]]) -> bool {
    has_start(text)
        && (0..text.len()).any(|at| {
            let rest = &text[at..];
            let begins = |word: &&[u8]| {
                let there = rest.get(..word.len());
                there.is_some_and(|there| there.eq_ignore_ascii_case(word))
            };
            words.iter().any(begins)
        })
}

/// What was read so far.
#[derive(Default)]
struct Walk<'a> {
    sql: &'a [u8],
    /// Every literal is a password until the statement ends: after IDENTIFIED, or SET PASSWORD.
    until_end: bool,
    /// Inside of `PASSWORD(`: parentheses that are open.
    open: u32,
    /// The previous word ended as names of passwords do, and only `=` or `:=` came since.
    is_named: bool,
    /// The statement is a SET.
    is_set: bool,
    /// Something of the statement came before.
    is_begun: bool,
    /// The previous part was `@`: a host or a variable's name follows.
    after_at: bool,
}

impl Walk<'_> {
    fn is_secret(&self, token: Token) -> bool {
        let text = token.of(self.sql);
        let is_literal = match token.kind {
            TokenKind::Text => true,
            TokenKind::Word => text.len() > 2 && text[..2].eq_ignore_ascii_case(b"0x"),
            _ => false,
        };
        if !is_literal {
            return false;
        }
        let is_place = (self.until_end || self.is_named || self.open > 0) && !self.after_at;
        is_place || is_dynamic(text)
    }

    fn step(&mut self, token: Token) {
        let text = token.of(self.sql);
        let was_named = std::mem::take(&mut self.is_named);
        self.after_at = token.kind == TokenKind::Sign(b'@');
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        match token.kind {
            TokenKind::Sign(b';') => {
                *self = Self {
                    sql: self.sql,
                    ..Self::default()
                }
            }
            TokenKind::Sign(b'(') if was_named || self.open > 0 => self.open += 1,
            TokenKind::Sign(b')') => self.open = self.open.saturating_sub(1),
            TokenKind::Sign(b'=' | b':') => self.is_named = was_named,
            TokenKind::Word | TokenKind::Name => {
                let word = text.strip_suffix(b"`").unwrap_or(text);
                let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
                // A string may say in which character set it is: PASSWORD = _utf8mb4'…', b'…'.
                let is_prefix = is(b"b") || is(b"x") || is(b"n") || word.starts_with(b"_");
                let tail = |name: &[u8]| &word[word.len().saturating_sub(name.len())..];
                self.is_named = was_named && is_prefix
                    || NAMES
                        .iter()
                        .any(|name| tail(name).eq_ignore_ascii_case(name));
                self.is_set |= is_first && is(b"set");
                self.until_end |= is(b"identified") || self.is_set && is(b"password");
            }
            // It may be put together of several.
            TokenKind::Text => self.until_end |= is_suspect(text),
            _ => {}
        }
    }
}

/// Returns whether a string seems to hold a statement about a password, as after PREPARE s FROM.
fn is_dynamic(text: &[u8]) -> bool {
    let inner = text
        .get(1..text.len().saturating_sub(1))
        .unwrap_or_default();
    let has_value = inner
        .iter()
        .any(|byte| matches!(byte, b'\'' | b'"' | b'=' | b'('));
    contains(text, &WORDS[..1]) || has_value && is_suspect(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_sql::Wide;
    use proptest::prelude::*;

    #[test]
    fn a_backslash_that_may_mean_two_things_hides_the_rest() {
        for sql in [
            &br"CREATE USER n@x IDENTIFIED BY 'a\' REQUIRE SUBJECT 'Hush'"[..],
            b"CREATE USER n@x IDENTIFIED BY '\xbf\\' REQUIRE SUBJECT 'Hush'",
            br"SELECT 'a\', IDENTIFIED, 'Hush'",
            b"CREATE USER n@x IDENTIFIED BY '\xbf\\\\', REQUIRE SUBJECT 'Hush'",
        ] {
            for no_backslash_escapes in [false, true] {
                let mode = Mode {
                    no_backslash_escapes,
                    ..Mode::default()
                };
                let out = redacted(sql, mode).unwrap();
                assert!(!out.windows(4).any(|part| part == b"Hush"), "{out:?}");
                assert!(out.ends_with(HIDDEN), "{out:?}");
            }
        }
    }

    #[test]
    fn passwords_do_not_leave() {
        for sql in [
            "CREATE USER a@'h' IDENTIFIED BY 'Hush', b@'i' identified by \"Hush\" COMMENT 'x'",
            "ALTER USER a@'h' IDENTIFIED WITH mysql_native_password AS 0xHush REPLACE 'Hush'",
            "GRANT ALL ON *.* TO a@'h' /* c */ IDENTIFIED /* d */ BY PASSWORD 'Hush'",
            "SET PASSWORD FOR a@'h' = 'Hush'",
            "set  password = password ( 'Hush' )",
            "SELECT PASSWORD(concat('Hush', 'Hush')), OLD_PASSWORD('Hush')",
            "CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='Hush', MASTER_PORT=1",
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'h', PASSWORD 'Hush')",
            "CREATE USER a@'h' /*! IDENTIFIED BY 'Hush' */",
            "PREPARE s FROM 'SET PASSWORD = ''Hush'''",
            "EXECUTE IMMEDIATE \"ALTER USER a IDENTIFIED BY 'Hush'\"",
            "UPDATE users SET `password` = 'Hush' WHERE name = 'h'",
            "SET PASSWORD = 'Hush",
            "SET @x = 1, PASSWORD FOR a@'h' = 'Hush'",
            "CHANGE MASTER TO MASTER_PASSWORD=/*!50000 'Hush' */",
            "SET /*!50000 PASSWORD FOR a = 'Hush' */",
            "PREPARE s FROM 'CHANGE MASTER TO MASTER_PASSWORD = ''Hush'''",
            "SET @s = 'ALTER USER a' ' IDENTIFIED' ' BY ''Hush'''",
            "CHANGE MASTER TO MASTER_PASSWORD = _utf8mb4'Hush'",
            "SELECT 2*/*it's*/3, 'h'; ALTER USER a IDENTIFIED BY 'Hush'",
            "SET GLOBAL wsrep_sst_auth = 'u:Hush'",
        ] {
            let out = redacted(sql.as_bytes(), Mode::default()).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert!(!out.contains("Hush"), "{out}");
            assert!(out.contains("'***'"), "{out}");
            assert_eq!(out.contains("'h'"), sql.contains("'h'"), "{out}");
        }
    }

    #[test]
    fn other_literals_stay() {
        for sql in [
            "SELECT 'identified', password FROM users WHERE id = '3'",
            "SELECT 'a' AS x",
            "SHOW VARIABLES LIKE 'validate_password%'",
        ] {
            let out = redacted(sql.as_bytes(), Mode::default());
            assert!(
                out.is_none() || sql.contains("'identified'"),
                "{sql} {out:?}"
            );
        }
        let sql = b"SET PASSWORD = 'a'; SELECT 'b'";
        let out = redacted(sql, Mode::default()).unwrap();
        assert_eq!(out, b"SET PASSWORD = '***'; SELECT 'b'");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            head in "(password|identified|set password|'|\"|`|/\\*!|\\\\|@|=| )*",
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let sql = [head.as_bytes(), &bytes].concat();
            let wide = if bytes.len() % 3 == 0 { Wide::Gbk } else { Wide::No };
            let mode = Mode { no_backslash_escapes: bytes.len() % 2 == 0, wide, ..Mode::default() };
            let _ = redacted(&sql, mode);
        }
    }
}
