//! What the account may see: servers leave out of their lists, without a word, what it may not.

use super::super::text::{Token, TokenKind, all_tokens, name_of};
use super::ask;
use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::connect::Session;

/// One line of SHOW GRANTS.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    revoked: bool,
    privileges: Vec<String>,
    /// A pattern of schemas; `None` for all.
    database: Option<String>,
    /// One table or routine; `None` for all.
    object: Option<String>,
}

/// What SHOW GRANTS says, roles that are switched on included.
pub(super) struct Grants {
    lines: Vec<Line>,
    /// The server asks nobody for privileges.
    open: bool,
}

impl Grants {
    /// Asks the server. Errors: those of the session.
    pub(super) fn of_session(session: &mut Session) -> Result<Self> {
        match ask::rows(session, "SHOW GRANTS") {
            Ok(rows) => Ok(Self {
                lines: rows.iter().filter_map(|row| line(row.first()?)).collect(),
                open: false,
            }),
            // --skip-grant-tables: everybody may do everything.
            Err(error) if error.kind() == ErrorKind::Refused => Ok(Self {
                lines: Vec::new(),
                open: error.to_string().contains("skip-grant-tables"),
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the account holds a privilege on all of a schema, or on one object in it.
    pub(super) fn hold(&self, privilege: &str, database: &str, object: Option<&str>) -> bool {
        let about = |line: &&Line| {
            let all = line.privileges.iter().any(|one| one == "ALL PRIVILEGES");
            all || line.privileges.iter().any(|one| one == privilege)
        };
        let at = |line: &&Line| {
            let schema = line.database.as_deref();
            let name = line.object.as_deref();
            schema.is_none_or(|pattern| matches(pattern.as_bytes(), database.as_bytes()))
                && name.is_none_or(|name| object == Some(name))
        };
        let mut reported = self.lines.iter().filter(about).filter(at);
        let revoked = |line: &Line| line.revoked;
        let exact = |line: &&Line| line.database.is_some();
        // A partial revoke takes a schema away from what was granted on all of them.
        let taken = self.lines.iter().filter(about).filter(at).any(revoked);
        match taken {
            false => self.open || reported.next().is_some(),
            true => reported.any(|line| exact(&line) && !line.revoked),
        }
    }

    /// Returns whether the account holds a privilege everywhere.
    pub(super) fn hold_everywhere(&self, privilege: &str) -> bool {
        let everywhere = |line: &Line| {
            let one = |name: &String| name == privilege || name == "ALL PRIVILEGES";
            !line.revoked && line.database.is_none() && line.privileges.iter().any(one)
        };
        self.open || self.lines.iter().any(everywhere)
    }
}

/// Reads one line; `None` for grants of roles and what else is not about objects.
fn line(sql: &[u8]) -> Option<Line> {
    let tokens = all_tokens(sql)?;
    let on = tokens.iter().position(|one| one.is_word(sql, "ON"))?;
    let to = |one: &Token| one.is_word(sql, "TO") || one.is_word(sql, "FROM");
    let end = on + tokens[on..].iter().position(to)?;
    let mut privileges = vec![String::new()];
    let mut depth = 0_usize;
    for token in &tokens[1..on] {
        match token.kind {
            TokenKind::Sign(b'(') => depth += 1,
            TokenKind::Sign(b')') => depth = depth.saturating_sub(1),
            TokenKind::Sign(b',') if depth == 0 => privileges.push(String::new()),
            TokenKind::Word if depth == 0 => {
                let last = privileges.last_mut()?;
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(&String::from_utf8_lossy(token.of(sql)).to_uppercase());
            }
            _ => {}
        }
    }
    let dot = on + tokens[on..end].iter().position(|one| one.is_sign(b'.'))?;
    let part = |at: usize| {
        let token = tokens.get(at)?;
        (!token.is_sign(b'*')).then(|| name_of(token.of(sql)))
    };
    Some(Line {
        revoked: tokens[0].is_word(sql, "REVOKE"),
        privileges,
        database: part(dot - 1),
        object: part(dot + 1),
    })
}

/// Returns whether a name is of a pattern with `%`, `_` and `\`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'%', rest @ ..] => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        [b'_', rest @ ..] => !name.is_empty() && matches(rest, &name[1..]),
        [b'\\', exact, rest @ ..] | [exact, rest @ ..] => {
            name.first() == Some(exact) && matches(rest, &name[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(lines: &[&str]) -> Grants {
        Grants {
            lines: lines
                .iter()
                .filter_map(|sql| line(sql.as_bytes()))
                .collect(),
            open: false,
        }
    }

    #[test]
    fn schemas_tables_and_patterns_count() {
        let held = grants(&[
            "GRANT USAGE ON *.* TO `b`@`localhost` IDENTIFIED BY PASSWORD '*X'",
            "GRANT SELECT, SHOW VIEW ON `a\\_%`.* TO 'b'@'localhost'",
            "GRANT SELECT (`ON`, b), TRIGGER ON `d`.`t` TO `b`@`localhost`",
            "GRANT `role` TO `b`@`localhost`",
        ]);
        assert!(held.hold("SHOW VIEW", "a_1", None) && held.hold("SELECT", "a_", Some("x")));
        assert!(!held.hold("SELECT", "ab", None) && !held.hold("TRIGGER", "a_1", None));
        assert!(held.hold("TRIGGER", "d", Some("t")) && !held.hold("TRIGGER", "d", Some("u")));
        assert!(!held.hold("TRIGGER", "d", None) && !held.hold_everywhere("SELECT"));
    }

    #[test]
    fn everything_but_what_was_taken_back() {
        let held = grants(&[
            "GRANT ALL PRIVILEGES ON *.* TO `b`@`%` WITH GRANT OPTION",
            "REVOKE TRIGGER ON `d`.* FROM `b`@`%`",
        ]);
        assert!(held.hold("TRIGGER", "e", None) && held.hold_everywhere("SELECT"));
        assert!(!held.hold("TRIGGER", "d", None) && held.hold("EVENT", "d", None));
    }
}
