//! A head that another host sends: kept back until it is whole, and checked before it takes its place.

use super::guard::Guard;
use evenkeel_repository::store::{NewObject, Store};
use evenkeel_repository::{Succession, check_next_head};
use std::io;
use std::sync::Arc;

/// More than any head is long.
const LENGTH_MAX: usize = 64 << 20;

/// Writes nothing but what passes.
pub(super) struct CheckedHead {
    pub(super) store: Arc<dyn Store>,
    pub(super) guard: Arc<Guard>,
    pub(super) new: Box<dyn NewObject>,
    pub(super) may: Succession,
    pub(super) bytes: Vec<u8>,
}

impl NewObject for CheckedHead {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > LENGTH_MAX {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the other host's head is larger than any head",
            ));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if !self.guard.is_writing() {
            let why = "the other host wanted to replace the head without the lock for that";
            return Err(denied(why.to_owned()));
        }
        check_next_head(&*self.store, &self.bytes, self.may)
            .map_err(|error| denied(error.chain()))?;
        self.new.write(&self.bytes)?;
        self.new.finish()
    }
}
