//! Whose rights a view, routine, trigger or event runs with.

use super::token::{Token, TokenKind, name_of, tokens};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The words that end the head of a statement: nothing behind them names its definer.
const WHAT: [&str; 6] = [
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "TRIGGER",
    "EVENT",
    "PACKAGE",
];

/// An account: `'user'@'host'`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// The user's name.
    pub user: String,
    /// Where from; empty for a role of MariaDB, which has no host.
    pub host: String,
}

impl fmt::Display for Account {
    /// Writes it as SQL, both parts in backticks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.as_str() {
            "" => f.write_str(&quote_name(&self.user)),
            host => write!(f, "{}@{}", quote_name(&self.user), quote_name(host)),
        }
    }
}

impl FromStr for Account {
    type Err = Error;

    /// Reads `USER@HOST`, each bare or in quotes; the last `@` outside of quotes counts, and without
    /// a host it is `%`.
    ///
    /// Errors: `Usage`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::usage(format!("'{text}' is not an account")).hint("write USER@HOST");
        let bytes = text.as_bytes();
        let (user, host) = match bytes.first() {
            Some(b'\'' | b'"' | b'`') => {
                let mut tokens = tokens(bytes);
                let user = tokens.next().ok_or_else(wrong)?;
                (&text[..user.end], text[user.end..].strip_prefix('@'))
            }
            _ => match text.rsplit_once('@') {
                Some((user, host)) => (user, Some(host)),
                None => (text, None),
            },
        };
        let whole = user.len() + host.map_or(0, |host| host.len() + 1);
        if whole != text.len() || host == Some("") {
            return Err(wrong());
        }
        Ok(Self {
            user: name_of(user.as_bytes()),
            host: host.map_or_else(|| "%".to_owned(), |host| name_of(host.as_bytes())),
        })
    }
}

/// What to do with the definers of views, routines, triggers and events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Definer {
    /// They stay.
    #[default]
    Keep,
    /// They go: whoever creates the object becomes its definer.
    Drop,
    /// This account takes the place of all.
    Map(Account),
}

impl fmt::Display for Definer {
    /// Writes what [`Definer::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Drop => f.write_str("drop"),
            Self::Map(account) => write!(f, "{account}"),
        }
    }
}

impl FromStr for Definer {
    type Err = Error;

    /// Reads `keep`, `drop` or an account. Errors: `Usage`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "keep" => Ok(Self::Keep),
            "drop" => Ok(Self::Drop),
            account => Ok(Self::Map(account.parse()?)),
        }
    }
}

/// Returns a CREATE or ALTER statement with another definer in its head; bodies are never touched.
pub(in crate::objects) fn with_definer(create: &[u8], definer: &Definer) -> Vec<u8> {
    let account = match definer {
        Definer::Keep => return create.to_vec(),
        Definer::Drop => None,
        Definer::Map(account) => Some(account),
    };
    let new = account.map_or_else(String::new, |account| format!("DEFINER={account}"));
    let (start, end) = match find(create) {
        Some((start, end)) if account.is_some() => (start, end),
        Some((start, end)) => {
            let blank = create[end..].iter().take_while(|byte| **byte == b' ');
            (start, end + blank.count())
        }
        None => match (account, tokens(create).next()) {
            (Some(_), Some(verb)) => {
                return [
                    &create[..verb.end],
                    b" ",
                    new.as_bytes(),
                    &create[verb.end..],
                ]
                .concat();
            }
            _ => return create.to_vec(),
        },
    };
    [&create[..start], new.as_bytes(), &create[end..]].concat()
}

/// Returns where the head's `DEFINER = account` lies.
fn find(create: &[u8]) -> Option<(usize, usize)> {
    let mut tokens = tokens(create).peekable();
    let definer = tokens.by_ref().find(|token| {
        let ends = WHAT.iter().any(|word| token.is_word(create, word));
        ends || token.is_word(create, "DEFINER")
    })?;
    // `SQL SECURITY DEFINER` has no equals sign; it stands behind the account where both are there.
    if !definer.is_word(create, "DEFINER") || !tokens.next()?.is_sign(b'=') {
        return None;
    }
    let user = tokens.next()?;
    let mut end = user.end;
    if user.is_word(create, "CURRENT_USER") || tokens.peek()?.is_sign(b'@') {
        // A bare host may have dots and dashes: it continues until the next blank.
        let mut quoted = false;
        while let Some(next) = tokens.next_if(|next: &Token| next.start == end && !quoted) {
            quoted = matches!(next.kind, TokenKind::Name | TokenKind::Text);
            end = next.end;
        }
    }
    Some((definer.start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changed(create: &str, definer: &str) -> String {
        let definer: Definer = definer.parse().unwrap();
        String::from_utf8(with_definer(create.as_bytes(), &definer)).unwrap()
    }

    #[test]
    fn only_the_head_is_changed() {
        let body = "VIEW `v` AS select 'DEFINER=`a`@`b`' AS `DEFINER=``x``@``y```";
        for account in [
            "`a b`@`%`",
            "'DEFINER='@'h'",
            "root@127.0.0.1",
            "CURRENT_USER()",
            "`r`",
        ] {
            let create =
                format!("CREATE ALGORITHM=MERGE DEFINER={account} SQL SECURITY DEFINER {body}");
            assert_eq!(changed(&create, "keep"), create);
            let head = "CREATE ALGORITHM=MERGE";
            let dropped = format!("{head} SQL SECURITY DEFINER {body}");
            assert_eq!(changed(&create, "drop"), dropped);
            let mapped = format!("{head} DEFINER=`x y`@`h` SQL SECURITY DEFINER {body}");
            assert_eq!(changed(&create, "'x y'@h"), mapped);
        }
    }

    #[test]
    fn heads_without_one_get_one_when_mapped() {
        let create = "CREATE PROCEDURE p() SELECT 'DEFINER=`a`@`b`'";
        assert_eq!(changed(create, "drop"), create);
        let mapped = "CREATE DEFINER=`u`@`%` PROCEDURE p() SELECT 'DEFINER=`a`@`b`'";
        assert_eq!(changed(create, "u"), mapped);
    }

    #[test]
    fn accounts_are_read_with_and_without_quotes() {
        let read = |text: &str| text.parse::<Account>().map(|one| (one.user, one.host));
        let pair = |user: &str, host: &str| (user.to_owned(), host.to_owned());
        assert_eq!(read("u@h").unwrap(), pair("u", "h"));
        assert_eq!(read("a@b@c.d-e").unwrap(), pair("a@b", "c.d-e"));
        assert_eq!(read("'a@''b'@'%'").unwrap(), pair("a@'b", "%"));
        assert_eq!(read("`a``b`").unwrap(), pair("a`b", "%"));
        for wrong in ["u@", "'u", "'u'x", "'u'@"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_account_is_found_and_any_body_kept(
            user in ".{1,16}", host in "[a-z%.]{1,12}", body in ".{0,40}",
        ) {
            let account = Account { user, host };
            let tail = format!("PROCEDURE `p`(){body}");
            let create = format!("CREATE DEFINER={account} {tail}");
            prop_assert_eq!(changed(&create, "drop"), format!("CREATE {tail}"));
            prop_assert_eq!(changed(&create, "n@m"), format!("CREATE DEFINER=`n`@`m` {tail}"));
            prop_assert_eq!(account.to_string().parse::<Account>().unwrap(), account);
        }
    }
}
