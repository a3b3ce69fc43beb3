//! A head that another host sends: kept back until it is whole, and checked before it takes its place.

use super::guard::Guard;
use evenkeel_repository::store::{Existing, NewObject, Store};
use evenkeel_repository::{Succession, check_next_head};
use std::io;
use std::sync::Arc;

/// More than any head is long.
const LENGTH_MAX: usize = 64 << 20;

/// Writes nothing but what passes.
pub(super) struct CheckedHead {
    pub(super) store: Arc<dyn Store>,
    pub(super) guard: Arc<Guard>,
    pub(super) name: String,
    pub(super) may: Succession,
    pub(super) bytes: Vec<u8>,
}

impl NewObject for CheckedHead {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > LENGTH_MAX {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the other host's head is too large",
            ));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let _writing = self.guard.writing()?;
        check_next_head(&*self.store, &self.bytes, self.may)
            .map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error.chain()))?;
        // Made only now: nothing can have been put under the name of what is not finished.
        let mut new = self.store.create(&self.name, Existing::Replace)?;
        new.write(&self.bytes)?;
        new.finish()
    }
}
