//! Opens a repository to add to it, or makes it, as was asked for.

use crate::crypt::{self, Access, Credentials, Encrypt, Recipient, Role};
use crate::repository::{Create, Repository};
use crate::store::Location;
use evenkeel_op::{Error, ErrorKind, Result};

impl Repository {
    /// Opens the repository at a place to add to it, or makes it, encrypted if the place says so.
    /// Fails rather than add in clear where encryption was asked for.
    pub fn open_or_create(at: &Location) -> Result<Self> {
        match Self::open(at) {
            Err(error) if error.kind() == ErrorKind::NoRepository => {
                if at.encrypt().is_empty() && !at.credentials().is_empty() {
                    return Err(Error::new(
                        ErrorKind::WrongKey,
                        format!("{}, and a new one would not be encrypted", error.chain()),
                    )
                    .hint("choose how to encrypt it: --encrypt-to or --encrypt-passphrase-file")
                    .hint("to create it unencrypted, remove --identity and --passphrase-file"));
                }
                let how = Create {
                    encrypt: crypt::wish(at.encrypt(), at.credentials()),
                    ..Create::default()
                };
                let made = Self::create_on(at.store(), how)?;
                // Whoever may read opens it for that, too.
                match at.credentials().is_empty() {
                    true => Ok(made),
                    false => made.unlock(at.credentials()),
                }
            }
            Err(error) => Err(error),
            Ok(opened) => {
                check_wish(at.encrypt(), at.credentials(), &opened)?;
                Ok(opened)
            }
        }
    }
}

/// Fails if a repository that is there is not as was asked for.
pub(crate) fn check_wish(
    encrypt: &Encrypt,
    credentials: &Credentials,
    opened: &Repository,
) -> Result<()> {
    if opened.access() == Access::Plain {
        if encrypt.is_empty() && credentials.is_empty() {
            return Ok(());
        }
        let place = opened.place();
        return Err(Error::new(
            ErrorKind::WrongKey,
            format!(
                "the repository {place} is not encrypted: anyone who can access it could read \
                 this backup"
            ),
        )
        .hint(
            "an existing repository cannot be encrypted: back up to a new or empty place with \
             --encrypt-to",
        )
        .hint(
            "to continue without encryption, remove --encrypt-to, --identity and --passphrase-file",
        ));
    }
    if encrypt.passphrase.is_some() && credentials.is_empty() {
        return Err(
            Error::usage("--encrypt-passphrase-file is for a new repository")
                .hint("this one is opened with --passphrase-file or --identity")
                .hint("'evenkeel keys add --new-passphrase-file' adds a passphrase"),
        );
    }
    let holders = opened.key_holders()?;
    let is_held = |recipient: &Recipient, role| {
        let text = recipient.to_string();
        holders
            .iter()
            .any(|one| one.recipient == text && one.role == role)
    };
    let all = encrypt.readers.iter().map(|one| (one, Role::Reader));
    let mut all = all.chain(encrypt.writers.iter().map(|one| (one, Role::Writer)));
    match all.find(|(recipient, role)| !is_held(recipient, *role)) {
        None => Ok(()),
        Some((recipient, role)) => Err(Error::new(
            ErrorKind::WrongKey,
            format!("{recipient} is not a {role:?} of this repository").to_lowercase(),
        )
        .hint("--encrypt-to only names the recipients of a new repository")
        .hint("a reader can add another to an existing repository: 'evenkeel keys add'")),
    }
}
