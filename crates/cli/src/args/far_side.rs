//! What runs on the other host, started by ourselves.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Serve another host. Started by `--ssh`, not by people.
#[derive(Args, Debug)]
pub struct Helper {
    /// What to do.
    #[command(subcommand)]
    pub verb: HelperVerb,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum HelperVerb {
    /// Connect standard input and output with a session.
    Attach(Attach),
    /// Run a session.
    Serve(Session),
}

/// Connect standard input and output with a session.
#[derive(Args, Debug)]
pub struct Attach {
    /// Which session.
    #[command(flatten)]
    pub session: Session,
    /// Start the session.
    #[arg(long)]
    pub start: bool,
}

/// Which session.
#[derive(Args, Debug)]
pub struct Session {
    /// The directory of sessions.
    pub here: PathBuf,
    /// Its name, in hexadecimal digits.
    #[arg(long)]
    pub session: String,
    /// How long a connection may be silent, in milliseconds.
    #[arg(long)]
    pub stall: u64,
    /// How long a connection may be missing, in milliseconds.
    #[arg(long)]
    pub loss: u64,
}
