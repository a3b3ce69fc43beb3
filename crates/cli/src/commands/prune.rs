//! `prune`.

use crate::args::Prune;
use crate::show::Face;
use evenkeel_op::{Error, Result};

/// Runs the command.
pub fn run(_args: &Prune, _face: &Face) -> Result<u8> {
    Err(Error::failed("not built yet"))
}
