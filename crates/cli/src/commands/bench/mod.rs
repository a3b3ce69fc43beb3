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
use crate::show::Ui;
use evenkeel_op::Result;

/// Runs the command.
pub fn run(args: &Bench, ui: &Ui) -> Result<u8> {
    match &args.verb {
        BenchVerb::Recovery(args) => recovery::run(args, ui),
        BenchVerb::Inserts(args) => experiment::inserts(args, ui),
        BenchVerb::Compression(args) => experiment::compression(args, ui),
        BenchVerb::Cache(args) => experiment::cache(args, ui),
        BenchVerb::Compare(args) => compare::run(args, ui),
        BenchVerb::Oltp(args) => oltp::run(args, ui),
        BenchVerb::Tpcc(args) => tpcc::run(args, ui),
        BenchVerb::Showdown(args) => showdown::run(args, ui),
    }
}
