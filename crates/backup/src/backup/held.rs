//! What a clone makes of a held image, as a backup makes it of its own.

use super::freeze::hold::HeldImage;
use super::read::pages::Findings;
use super::request::BackupRequest;
use super::settle::{self, Settled};
use evenkeel_op::{Error, ErrorKind, Result, Run};

impl HeldImage {
    /// Says that the snapshot was lost, where that is why it could not be read.
    pub(crate) fn lost(&self, error: Error) -> Error {
        match self.frozen.snapshot.stayed_frozen() {
            Err(lost) if error.kind() == ErrorKind::Failed => lost.because(error),
            _ => error,
        }
    }

    /// Tells torn pages, which crash recovery restores, from corrupt ones, whose tables are named.
    pub(crate) fn settle(
        &self,
        findings: &Findings,
        request: &BackupRequest,
        run: Run<'_>,
    ) -> Result<Settled> {
        settle::settle(&self.frozen, findings, request, run)
    }
}
