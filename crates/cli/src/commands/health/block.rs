//! `health run --block`.

use crate::args::HealthRun;
use crate::show::Ui;
use evenkeel_health::block::{Block, Blocker};
use evenkeel_op::{Error, Result};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};

/// Where nft is: nobody's PATH decides what is run with the right to change rules.
const PLACES: [&str; 4] = [
    "/usr/sbin/nft",
    "/sbin/nft",
    "/usr/bin/nft",
    "/usr/local/sbin/nft",
];

/// Takes the port that is to be blocked, if there is one.
///
/// # Errors
///
/// `Usage` with several servers; `Refused` where it cannot be blocked; `Busy` where another process does.
pub(super) fn blocker(args: &HealthRun, servers: usize, ui: &Ui) -> Result<Option<Blocker>> {
    let Some(port) = args.block else {
        return Ok(None);
    };
    if servers > 1 {
        return Err(
            Error::usage("--block is the port of one server, and there are several")
                .hint("run one 'evenkeel health run --block PORT' on the host of each"),
        );
    }
    let exempt = args.block_exempt.iter().map(|text| text.parse());
    let blocker = Blocker::take(Block {
        program: program()?,
        port,
        exempt: exempt.collect::<Result<_>>()?,
        ends_sessions: args.block_sessions,
    })?;
    if blocker.is_closed() {
        ui.note(&format!(
            "port {port} is still blocked, as an earlier process left it: it stays so until a check says 'up'"
        ));
    }
    Ok(Some(blocker))
}

fn program() -> Result<PathBuf> {
    let mut places = PLACES.iter().map(Path::new);
    let found = places.find(|place| place.is_file());
    let found = found.ok_or_else(|| {
        Error::refused("--block needs nft, which is not installed")
            .hint("install the package nftables")
    })?;
    if geteuid().is_root() {
        super::refuse_program_of_others(found, "give it back to root")?;
    }
    Ok(found.to_owned())
}
