//! `replica`.

mod asked;
mod checksum;
mod diagnose;
mod named;
mod repair;
mod status;

use crate::args::{Replica, ReplicaVerb};
use crate::show::Ui;
use evenkeel_op::Result;

/// Runs the command.
pub(super) fn run(args: &Replica, ui: &Ui) -> Result<u8> {
    match &args.verb {
        ReplicaVerb::Status(args) => status::run(args, ui),
        ReplicaVerb::Diagnose(args) => diagnose::run(args, ui),
        ReplicaVerb::Checksum(args) => checksum::run(args, ui),
        ReplicaVerb::Repair(args) => repair::run(args, ui),
    }
}
