//! What a view's text speaks of.

use super::token::{TokenKind, name_of, tokens};
use std::collections::BTreeSet;

/// A name in a text: the schema when it is said, and the object; both in lower case, as servers
/// differ in whether case counts.
pub(in crate::objects) type Mention = (Option<String>, String);

/// Returns every name in a view's text that could be another view's or a function's.
///
/// These are too many rather than too few: names of columns are among them.
pub(in crate::objects) fn mentions(create: &[u8]) -> BTreeSet<Mention> {
    let mut found = BTreeSet::new();
    let mut chain: Vec<String> = Vec::new();
    let (mut dot, mut alias) = (false, false);
    for token in tokens(create) {
        match token.kind {
            TokenKind::Sign(b'.') => dot = true,
            TokenKind::Name => {
                if !dot {
                    chain.clear();
                }
                chain.push(name_of(token.of(create)).to_lowercase());
                match chain.as_slice() {
                    [only] if !alias => drop(found.insert((None, only.clone()))),
                    [schema, name] => drop(found.insert((Some(schema.clone()), name.clone()))),
                    _ => {}
                }
                (dot, alias) = (false, false);
            }
            _ => {
                dot = false;
                alias = token.is_word(create, "AS");
            }
        }
    }
    found
}

/// Returns a CREATE VIEW statement that replaces what stands in its place.
pub(in crate::objects) fn or_replace(create: &[u8]) -> Vec<u8> {
    match tokens(create).next() {
        Some(verb) if verb.is_word(create, "CREATE") => {
            [&create[..verb.end], b" OR REPLACE", &create[verb.end..]].concat()
        }
        _ => create.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_views_and_functions_are_mentioned() {
        let sql = b"CREATE VIEW `v` AS select `B`.`x` AS `y`,`d`.`f`(`a``b`.`z`) AS `w`,'`no`' AS \
                    `m` from (`B` join `e`.`c`)";
        let found = mentions(sql);
        let has = |schema: Option<&str>, name: &str| {
            found.contains(&(schema.map(str::to_owned), name.to_owned()))
        };
        assert!(has(None, "b") && has(Some("d"), "f") && has(Some("e"), "c") && has(None, "a`b"));
        assert!(!has(None, "y") && !has(None, "w") && !has(None, "no") && !has(None, "m"));
    }

    #[test]
    fn replacing_is_said_once_at_the_front() {
        let sql = or_replace(b"CREATE ALGORITHM=MERGE VIEW `CREATE` AS select 1");
        assert_eq!(
            sql,
            b"CREATE OR REPLACE ALGORITHM=MERGE VIEW `CREATE` AS select 1"
        );
    }
}
