//! Adds and removes who may open a repository: the plan, then the change.

use super::credentials::Recipient;
use super::document::{self, Copies, KeyHolder, KeysDocument, Role};
use super::ring::{self, Access};
use crate::locks;
use crate::repository::Repository;
use age::secrecy::SecretString;
use evenkeel_op::{Error, ErrorKind, Result};
use std::time::Duration;

/// A change of who may open a repository.
#[derive(Debug, Clone)]
pub enum KeyChange {
    /// Someone may, from now on.
    Add(Recipient, Role),
    /// Whoever knows this passphrase may read, from now on.
    AddPassphrase(SecretString),
    /// Someone may not any more. What is written from then on has new keys.
    Remove(Recipient),
}

/// What a change of keys would do.
#[derive(Debug)]
pub struct KeyPlan {
    /// Who can open the repository then.
    pub after: Vec<KeyHolder>,
    /// Whether anything changes.
    pub needed: bool,
    /// Whether new keys are drawn for what is written from then on.
    pub rotates: bool,
    document: KeysDocument,
    sequence: u64,
}

impl Repository {
    /// Lists who can open the repository; nobody in particular when it is not encrypted.
    pub fn key_holders(&self) -> Result<Vec<KeyHolder>> {
        if !self.keys().is_encrypted() {
            return Ok(Vec::new());
        }
        Ok(document::read(&**self.store(), self.id())?.holders)
    }

    /// Plans a change of keys. Needs the identity of a reader. Changes nothing.
    pub fn plan_keys(&self, change: &KeyChange) -> Result<KeyPlan> {
        match self.access() {
            Access::Plain => {
                return Err(Error::usage("this repository is not encrypted").hint(
                    "an existing repository cannot be encrypted: create a new one with 'evenkeel \
                     backup --encrypt-to'",
                ));
            }
            Access::Reader => {}
            Access::Writer => return Err(ring::no_reader()),
            Access::Locked => self.keys().begin_run().map(|_| ())?,
        }
        let mut document = document::read(&**self.store(), self.id())?;
        let sequence = document.sequence;
        let mut epochs = self.keys().epochs();
        let (needed, rotates) = match change {
            KeyChange::Add(recipient, role) => (document.hold(recipient, *role)?, false),
            KeyChange::AddPassphrase(passphrase) => {
                document.hold_passphrase(passphrase)?;
                (true, false)
            }
            KeyChange::Remove(recipient) => {
                document.let_go(&recipient.to_string())?;
                document.rotate(&mut epochs)?;
                (true, true)
            }
        };
        document.wrap_all(&epochs)?;
        Ok(KeyPlan {
            after: document.holders.clone(),
            needed,
            rotates,
            document,
            sequence,
        })
    }

    /// Finishes a change of keys that was interrupted, if nobody else is at work.
    pub fn finish_key_change(&self) -> Result<()> {
        let store = &**self.store();
        if !self.keys().is_encrypted()
            || matches!(document::check_copies(store, self.id())?, Copies::Same)
        {
            return Ok(());
        }
        let _lock = locks::writer(store, Duration::ZERO)?;
        document::repair(store, self.id()).map(|_| ())
    }

    /// Does what the plan says. Busy if the keys have changed since. Interrupted, either the old
    /// or the new keys hold, and the next run that writes finishes the rest. Who opened the
    /// repository before opens it again to use new keys.
    pub fn perform_keys(&self, plan: &KeyPlan, wait: Duration) -> Result<()> {
        let store = &**self.store();
        let _lock = locks::writer(store, wait)?;
        document::repair(store, self.id())?;
        if document::read(store, self.id())?.sequence != plan.sequence {
            return Err(Error::new(
                ErrorKind::Busy,
                "the keys have changed since the plan was made",
            )
            .hint("run the command again"));
        }
        plan.document.write(store)
    }
}
