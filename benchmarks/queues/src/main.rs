//! Producers and consumers of a queue, of either kind, on a server that `benchmarks/queue` has started. Each
//! command prints one JSON document: what was done, and the processor time that server and clients took.

mod clients;
mod cost;
mod idle;
mod load;
mod stall;
mod wake;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser)]
enum Args {
    /// So many producers and consumers, as fast as they can.
    Load(load::Load),
    /// How long after an INSERT a consumer has its row, when nothing else is going on.
    Wake(wake::Wake),
    /// What consumers cost that wait for nothing.
    Idle(idle::Idle),
    /// The slowest INSERT and the slowest message while the queue is compacted.
    Stall(stall::Stall),
}

/// The server.
#[derive(clap::Args, Clone)]
struct Server {
    /// Its socket.
    #[arg(long)]
    socket: PathBuf,
    /// Its process, whose processor time is counted.
    #[arg(long)]
    pid: u32,
}

/// How messages are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// `SELECT … WHERE queue_wait(…)`: waits, takes and consumes what was taken before.
    Queue,
    /// `SELECT queue_wait(…)`, then `SELECT …`.
    QueueTwo,
    /// `SELECT … FOR UPDATE SKIP LOCKED`, `DELETE`, `COMMIT`; sleeps when there is nothing.
    SkipLocked,
}

/// How long a consumer that found nothing sleeps before it asks again, where it has to.
const POLL: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    let answer = match Args::parse() {
        Args::Load(load) => load.run()?,
        Args::Wake(wake) => wake.run()?,
        Args::Idle(idle) => idle.run()?,
        Args::Stall(stall) => stall.run()?,
    };
    println!("{answer}");
    Ok(())
}
