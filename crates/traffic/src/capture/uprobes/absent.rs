//! What a program says that was built without it.

use super::Settings;
use crate::Seen;
use crate::statement::Coverage;
use evenkeel_op::{Cancel, Error, Result};
use std::convert::Infallible;

/// A capture that cannot be.
#[derive(Debug)]
pub struct Uprobes {
    never: Infallible,
}

impl Uprobes {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// `Refused`, always.
    pub fn open(_: &Settings) -> Result<Self> {
        Err(Error::refused("this evenkeel was built without --uprobes").hint(
            "install clang and build it with `cargo build --release --package evenkeel-cli --features uprobes`; or \
             capture packets with --interface, or use --tap",
        ))
    }

    /// Returns how many connections were seen.
    #[must_use]
    pub fn connections(&self) -> u64 {
        match self.never {}
    }

    /// Returns why the capture ended before it was to.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        match self.never {}
    }

    /// Hands out nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn watch(
        &mut self,
        _: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        _: &Cancel,
    ) -> Result<Coverage> {
        match self.never {}
    }
}
