//! The connection options that option files may hold, by every name the MySQL clients take.

/// Options about a connection, as `[client]` names them, `-` for `_`.
pub(super) const CONNECTION: [&str; 16] = [
    "host",
    "port",
    "socket",
    "user",
    "password",
    "protocol",
    "ssl-mode",
    "ssl",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-verify-server-cert",
    "server-public-key-path",
    "get-server-public-key",
    "connect-timeout",
    "login-path",
];

/// Options that people shorten; the MySQL clients take any unambiguous beginning.
const SHORTENED: [&str; 2] = ["password", "socket"];

/// An option name taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// With `-`, without prefixes, in full.
    pub(super) key: String,
    /// `loose-`: do not complain about it.
    pub(super) loose: bool,
    /// `skip-` or `disable-`: the contrary.
    pub(super) negated: bool,
}

impl Name {
    /// Takes a name apart as an option file writes it.
    pub(super) fn of(text: &str) -> Self {
        let dashed = text.replace('_', "-");
        let (loose, rest) = match dashed.strip_prefix("loose-") {
            Some(rest) => (true, rest),
            None => (false, dashed.as_str()),
        };
        let contrary = rest
            .strip_prefix("skip-")
            .or_else(|| rest.strip_prefix("disable-"));
        let plain = contrary.or_else(|| rest.strip_prefix("enable-"));
        let key = plain.unwrap_or(rest);
        let full = SHORTENED
            .into_iter()
            .find(|full| key.len() >= 4 && full.starts_with(key));
        Self {
            key: full.unwrap_or(key).to_owned(),
            loose,
            negated: contrary.is_some(),
        }
    }
}

/// Returns whether a value may not be shown.
pub(super) fn is_secret(key: &str) -> bool {
    ["password", "passphrase", "secret"]
        .iter()
        .any(|word| key.contains(word))
}

/// Returns the known name most like `key`, if one is alike enough to be meant.
pub(super) fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (distance(key, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

/// Returns how many letters to insert, delete or replace to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_off() {
        let name = Name::of("loose_skip_ssl");
        assert!(name.loose && name.negated && name.key == "ssl");
        assert_eq!(Name::of("pass").key, "password");
        assert_eq!(Name::of("pas").key, "pas");
        assert_eq!(Name::of("ssl_ca").key, "ssl-ca");
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let near = |key| nearest(key, CONNECTION.into_iter());
        assert_eq!(near("sockt"), Some("socket"));
        assert_eq!(near("pasword"), Some("password"));
        assert_eq!(near("ssl-mod"), Some("ssl-mode"));
        assert_eq!(near("frobnicate"), None);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
