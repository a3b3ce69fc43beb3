//! The `filename` character set: how servers spell identifiers in file names.
//!
//! Digits, Latin letters and `_` stand for themselves. Letters that have two cases are `@` and two
//! characters, which a file system that ignores case still tells apart; everything else is `@` and
//! four hexadecimal digits. A name that Windows reserves has `@@@` behind it.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Two characters of code and the letter, by blanks: as MariaDB's `CONVERT(… USING filename)`
/// gives them for all of Unicode's first 65 536.
static LETTERS: LazyLock<HashMap<&'static str, char>> = LazyLock::new(|| {
    include_str!("letters.txt")
        .split_ascii_whitespace()
        .filter_map(|entry| Some((entry.get(..2)?, entry[2..].chars().next()?)))
        .collect()
});

/// Returns the identifier that part of a file name stands for. What is not in the encoding stays
/// as it is.
#[must_use]
pub fn decode(part: &str) -> String {
    let mut name = String::with_capacity(part.len());
    let mut rest = part.strip_suffix("@@@").unwrap_or(part);
    while let Some(at) = rest.find('@') {
        name.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let letter = rest
            .get(..2)
            .and_then(|code| LETTERS.get(code))
            .map(|letter| (*letter, 2));
        let hex = || {
            let digits = rest.get(..4)?;
            let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).ok().filter(|_| valid)?;
            Some((char::from_u32(code)?, 4))
        };
        match letter.or_else(hex) {
            Some((letter, length)) => {
                name.push(letter);
                rest = &rest[length..];
            }
            None => name.push('@'),
        }
    }
    name.push_str(rest);
    name
}

/// Spells an identifier so that [`decode`] gives it back; a server may spell some letters shorter.
#[must_use]
pub(super) fn encode(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '_' => part.push(letter),
            other => part.push_str(&format!("@{:04x}", u32::from(other))),
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_servers_wrote() {
        assert_eq!(decode("accounts_2"), "accounts_2");
        assert_eq!(decode("k@002d1@0020@0p"), "k-1 é");
        assert_eq!(decode("a@0023b@002ec@65e5"), "a#b.c日");
        assert_eq!(decode("CON@@@"), "CON");
        assert_eq!(decode("@0G@0g"), "Àà");
        assert_eq!(decode("@o0@O0"), "иИ");
    }

    #[test]
    fn other_names_stay() {
        assert_eq!(decode("#sql-ib42"), "#sql-ib42");
        assert_eq!(decode("mail@"), "mail@");
        assert_eq!(decode("a@zz"), "a@zz");
        assert_eq!(decode("@d800"), "@d800");
        assert_eq!(decode("@+123"), "@+123");
        assert_eq!(decode("@é"), "@é");
    }

    #[test]
    fn every_code_is_one_letter() {
        assert_eq!(LETTERS.len(), 1510);
        for (code, letter) in LETTERS.iter() {
            assert_eq!(decode(&format!("@{code}")), letter.to_string());
        }
    }
}
