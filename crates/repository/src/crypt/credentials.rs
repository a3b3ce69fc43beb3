//! What people bring: identities, passphrases, recipients.

use age::secrecy::{ExposeSecret, SecretString};
use age::x25519;
use evenkeel_op::{Error, ErrorKind, Result};
use std::str::FromStr;
use zeroize::Zeroizing;

/// Someone that keys can be wrapped for: an X25519 recipient of `age`, `age1…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient(pub(super) x25519::Recipient);

impl std::fmt::Display for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Recipient {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.trim().parse::<x25519::Recipient>();
        parsed.map(Self).map_err(|_| {
            Error::usage(format!("'{text}' is not the public key of an age identity"))
                .hint("a public key begins with 'age1' and has 62 characters")
                .hint(
                    "'evenkeel keys generate --output FILE' creates an identity and prints its \
                     public key; so does age-keygen",
                )
        })
    }
}

/// A new identity and its recipient.
pub struct NewIdentity {
    /// Whom to wrap for.
    pub recipient: Recipient,
    /// The text of an identity file, as age-keygen writes it.
    pub file: Zeroizing<String>,
}

impl NewIdentity {
    /// Draws an identity. `created` is written into the file for people.
    #[must_use]
    pub fn generate(created: jiff::Timestamp) -> Self {
        let identity = x25519::Identity::generate();
        let recipient = Recipient(identity.to_public());
        let secret = identity.to_string();
        let file = Zeroizing::new(format!(
            "# created: {created}\n# public key: {recipient}\n{}\n",
            secret.expose_secret()
        ));
        Self { recipient, file }
    }
}

/// What opens an encrypted repository. Shows nothing of itself.
#[derive(Clone, Default)]
pub struct Credentials {
    pub(super) identities: Vec<x25519::Identity>,
    pub(super) passphrases: Vec<SecretString>,
    pub(super) session: Option<SecretString>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (identities, passphrases) = (self.identities.len(), self.passphrases.len());
        write!(f, "{identities} identities, {passphrases} passphrases")
    }
}

impl Credentials {
    /// Adds what an identity file holds: lines of `AGE-SECRET-KEY-1…`; empty lines and those
    /// that begin with `#` mean nothing. `name` is the file, for messages.
    pub fn add_identities(&mut self, name: &str, text: &str) -> Result<()> {
        let before = self.identities.len();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The parser's own message might show the line.
            let identity = line.parse::<x25519::Identity>().map_err(|_| {
                Error::new(
                    ErrorKind::WrongKey,
                    format!("{name} holds a line that is not an age identity"),
                )
                .hint("identity files hold lines that begin with 'AGE-SECRET-KEY-1'")
            })?;
            self.identities.push(identity);
        }
        if self.identities.len() == before {
            return Err(
                Error::new(ErrorKind::WrongKey, format!("{name} holds no identity"))
                    .hint("'evenkeel keys generate --output FILE' or age-keygen creates one"),
            );
        }
        Ok(())
    }

    /// Adds a passphrase.
    pub fn add_passphrase(&mut self, passphrase: SecretString) {
        self.passphrases.push(passphrase);
    }

    /// Adds what [`crate::Repository::session_keys`] returned.
    pub fn add_session(&mut self, keys: SecretString) {
        self.session = Some(keys);
    }

    /// Returns the recipients of the identities.
    #[must_use]
    pub fn recipients(&self) -> Vec<Recipient> {
        let all = self.identities.iter();
        all.map(|one| Recipient(one.to_public())).collect()
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty() && self.passphrases.is_empty() && self.session.is_none()
    }
}

/// For whom a new repository is encrypted.
#[derive(Debug, Clone, Default)]
pub struct Encrypt {
    /// Who may read backups.
    pub readers: Vec<Recipient>,
    /// Who may add to them, and no more.
    pub writers: Vec<Recipient>,
    /// Who knows this may read them, too.
    pub passphrase: Option<SecretString>,
}

impl Encrypt {
    /// Whether nobody was named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty() && self.passphrase.is_none()
    }
}

/// Returns for whom a new repository is encrypted: whoever makes it may add to it later.
pub(crate) fn wish(encrypt: &Encrypt, credentials: &Credentials) -> Option<Encrypt> {
    if encrypt.is_empty() {
        return None;
    }
    let mut encrypt = encrypt.clone();
    for own in credentials.recipients() {
        if !encrypt.readers.contains(&own) && !encrypt.writers.contains(&own) {
            encrypt.writers.push(own);
        }
    }
    Some(encrypt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_files_read_back_and_show_nothing() {
        let new = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
        let mut credentials = Credentials::default();
        credentials.add_identities("f", &new.file).unwrap();
        assert_eq!(credentials.recipients(), [new.recipient]);
        assert!(!format!("{credentials:?}").contains("AGE-SECRET"));
        let error = credentials
            .add_identities("f", "AGE-SECRET-KEY-1QQQ")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongKey);
        assert!(!error.chain().contains("QQQ"), "{}", error.chain());
        assert!(credentials.add_identities("f", "# nothing\n").is_err());
        assert!("age1x".parse::<Recipient>().is_err());
    }
}
