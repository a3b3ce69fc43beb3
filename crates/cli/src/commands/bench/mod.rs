//! `bench`.

mod recovery;

use crate::args::{Bench, BenchVerb};
use crate::show::Face;
use evenkeel_op::Result;

/// Runs the command.
pub fn run(args: &Bench, face: &Face) -> Result<u8> {
    match &args.verb {
        BenchVerb::Recovery(args) => recovery::run(args, face),
    }
}
