//! `replica`.

mod asked;
mod checksum;
mod diagnose;
mod heal;
mod named;
mod repair;
mod resync;
mod status;

use crate::args::{Replica, ReplicaVerb};
use crate::show::Ui;
use evenkeel_op::{Error, Result};
use std::ffi::OsString;

/// Runs the command.
pub(super) fn run(args: &Replica, ui: &Ui) -> Result<u8> {
    match &args.verb {
        ReplicaVerb::Status(args) => status::run(args, ui),
        ReplicaVerb::Diagnose(args) => diagnose::run(args, ui),
        ReplicaVerb::Checksum(args) => checksum::run(args, ui),
        ReplicaVerb::Repair(args) => repair::run(args, ui),
        ReplicaVerb::Heal(args) => heal::run(args, ui),
        // The broken replica's host is the one where it is typed.
        ReplicaVerb::Resync(_) => Err(Error::usage("'replica resync' runs on this host only")),
    }
}

/// Runs a verb that composes others, of which one may run on another host. `words` are the command line.
pub(super) fn run_here(args: &Replica, words: &[OsString], ui: &Ui) -> Result<u8> {
    match &args.verb {
        ReplicaVerb::Resync(args) => resync::run_here(args, words, ui),
        _ => run(args, ui),
    }
}
