//! `verify`.

use crate::args::Verify;
use crate::show::Face;
use evenkeel_op::{Error, Result};

/// Runs the command.
pub fn run(_args: &Verify, _face: &Face) -> Result<u8> {
    Err(Error::failed("not built yet"))
}
