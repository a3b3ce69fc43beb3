//! Transactions of the file.
//!
//! Rows of a transaction go to all connections as others do, each of which commits what it was handed: that is
//! the same, unless the file takes back what it did. Where it may, a transaction is run as it stands there, on the
//! one connection that the file sees.

use super::classify::StatementKind;
use super::driver::Driver;
use evenkeel_op::{Error, Result};

impl Driver<'_> {
    /// Returns whether transactions are run as they stand in the file at hand.
    pub(super) fn keeps_transactions(&mut self) -> Result<bool> {
        self.files.may_take_back(&self.pool.cancel)
    }

    /// Runs what begins or ends a transaction, or leaves it out.
    pub(super) fn transaction(&mut self, kind: &StatementKind, text: &[u8]) -> Result<bool> {
        if !self.left_open && self.keeps_transactions()? {
            return self.alone(text);
        }
        match kind {
            StatementKind::Rollback if self.left_open => Err(Error::failed(
                "the file rolls back what another file did, which is already committed",
            )
            .hint("import this file with the mariadb or mysql client")),
            StatementKind::Rollback => self.alone(text),
            _ => {
                self.left_open = matches!(
                    kind,
                    StatementKind::Begin | StatementKind::Autocommit(false)
                );
                Ok(true)
            }
        }
    }

    /// Notes whether the connection that the file sees has a transaction open.
    pub(super) fn note_transaction(&mut self) {
        let session = self.main.session();
        let open = session.in_transaction || !session.autocommit;
        self.transaction = open.then(|| self.transaction.unwrap_or(self.at.line));
    }
}
