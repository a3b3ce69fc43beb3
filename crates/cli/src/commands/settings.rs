//! `settings`.

use crate::args::Settings;
use crate::show::Face;
use evenkeel_op::{Error, Result};

/// Runs the command.
pub fn run(_args: &Settings, _face: &Face) -> Result<u8> {
    Err(Error::failed("not built yet"))
}
