//! `bench`.

pub(super) mod about;
mod compare;
mod experiment;
mod oltp;
mod parts;
mod recovery;
mod showdown;
mod tpcc;

use crate::args::{Bench, BenchVerb};
use crate::show::Face;
use evenkeel_op::Result;

/// Runs the command.
pub fn run(args: &Bench, face: &Face) -> Result<u8> {
    match &args.verb {
        BenchVerb::Recovery(args) => recovery::run(args, face),
        BenchVerb::Inserts(args) => experiment::inserts(args, face),
        BenchVerb::Compression(args) => experiment::compression(args, face),
        BenchVerb::Cache(args) => experiment::cache(args, face),
        BenchVerb::Compare(args) => compare::run(args, face),
        BenchVerb::Oltp(args) => oltp::run(args, face),
        BenchVerb::Tpcc(args) => tpcc::run(args, face),
        BenchVerb::Showdown(args) => showdown::run(args, face),
    }
}
