//! `bench`.

mod about;
mod compare;
mod experiment;
mod oltp;
mod recovery;
mod showdown;
mod tpcc;

use crate::args::{Bench, BenchVerb};
use crate::show::Face;
use evenkeel_bench::Run;
use evenkeel_bench::repeated::{Repeatable, Repeated};
use evenkeel_op::{Context, Error, Result};
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::path::Path;

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

/// Whom a measurement tells, and what stops it.
fn whom(face: &Face) -> Run<'_> {
    Run {
        progress: face.progress(),
        cancel: face.cancel(),
    }
}

fn create(path: &Path) -> Result<File> {
    File::create(path).context(|| format!("failed to create {}", path.display()))
}

/// Returns a number that nobody knows beforehand, short enough to be typed.
fn any_number() -> u64 {
    RandomState::new().hash_one(0) % 1_000_000
}

/// Returns the run that pictures are of.
fn middle<R: Repeatable>(runs: &Repeated<R>) -> Result<&R> {
    let none = || Error::failed("nothing was measured");
    runs.middle().ok_or_else(none)
}
