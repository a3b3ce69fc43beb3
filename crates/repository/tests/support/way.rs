//! Whether the repositories of a test are encrypted.

use evenkeel_op::Result;
use evenkeel_repository::store::Store;
use evenkeel_repository::{Create, Credentials, Encrypt, NewIdentity, Recipient, Repository};
use std::sync::{Arc, LazyLock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Plain,
    Sealed,
}

pub const WAYS: [Way; 2] = [Way::Plain, Way::Sealed];

/// Someone with an identity.
pub struct Person {
    pub recipient: Recipient,
    pub credentials: Credentials,
}

impl Person {
    pub fn new() -> Self {
        let identity = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
        let mut credentials = Credentials::default();
        credentials.add_identities("i", &identity.file).unwrap();
        Self {
            recipient: identity.recipient,
            credentials,
        }
    }
}

static READER: LazyLock<Person> = LazyLock::new(Person::new);

/// How a repository is made that these may read and write.
pub fn sealed_for(readers: &[&Person], writers: &[&Person]) -> Create {
    let all = |them: &[&Person]| them.iter().map(|one| one.recipient.clone()).collect();
    Create {
        encrypt: Some(Encrypt {
            readers: all(readers),
            writers: all(writers),
            passphrase: None,
        }),
        ..Create::default()
    }
}

impl Way {
    /// Makes a repository and opens it for everything.
    pub fn create(self, store: impl Store + 'static) -> Result<Repository> {
        match self {
            Self::Plain => Repository::create_on(Arc::new(store), Create::default()),
            Self::Sealed => Repository::create_on(Arc::new(store), sealed_for(&[&READER], &[]))?
                .unlock(&READER.credentials),
        }
    }

    /// Opens a repository for everything.
    pub fn open(self, store: impl Store + 'static) -> Result<Repository> {
        let repo = Repository::open_on(Arc::new(store))?;
        match self {
            Self::Plain => Ok(repo),
            Self::Sealed => repo.unlock(&READER.credentials),
        }
    }
}
