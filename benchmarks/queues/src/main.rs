//! Producers and consumers of a queue, of either kind, on a server that `benchmarks/queue` has started. Each
//! command prints one JSON document: what was done, and the processor time that server and clients took.

mod clients;
mod cost;
mod idle;
mod load;
mod request;
mod stall;
mod wake;

use anyhow::Result;
use clap::Parser;

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
