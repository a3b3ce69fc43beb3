//! How long one INSERT and one message take at most while the queue is compacted, and how long when it
//! is not.

use crate::clients::{Consumer, Producer, connect, reported};
use crate::cost::quantile;
use crate::request::{Server, Way};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Stall {
    #[command(flatten)]
    server: Server,
    /// How long is measured before compaction is asked for.
    #[arg(long, default_value_t = 5.0)]
    calm: f64,
    /// The id of the first message that is put in.
    #[arg(long)]
    first: u64,
}

/// Milliseconds that each took.
#[derive(Default)]
struct Took {
    inserts: Vec<f64>,
    messages: Vec<f64>,
}

impl Stall {
    pub(crate) fn run(&self) -> Result<Value> {
        let mut producer = Producer::new(&self.server, 90)?;
        let mut consumer = Consumer::new(&self.server, Way::Queue, 1)?;
        let mut compacting = connect(&self.server)?;
        let (stops, took) = (AtomicBool::new(false), Mutex::new(Took::default()));
        let held = || took.lock().unwrap_or_else(|held| held.into_inner());
        let continues = || !stops.load(Ordering::Relaxed);
        let since = |start: Instant| start.elapsed().as_secs_f64() * 1000.0;
        thread::scope(|scope| {
            let inserting = scope.spawn(|| -> Result<()> {
                for id in self.first.. {
                    if !continues() {
                        break;
                    }
                    let start = Instant::now();
                    producer.put(id)?;
                    held().inserts.push(since(start));
                }
                Ok(())
            });
            let consuming = scope.spawn(|| -> Result<()> {
                while continues() {
                    let start = Instant::now();
                    consumer.take()?;
                    held().messages.push(since(start));
                }
                consumer.end()
            });
            thread::sleep(Duration::from_secs_f64(self.calm));
            let calm = std::mem::take(&mut *held());
            let start = Instant::now();
            let compacted = compacting
                .run("SELECT queue_compact('jobs')")
                .map_err(reported);
            let compaction_s = start.elapsed().as_secs_f64();
            let during = std::mem::take(&mut *held());
            stops.store(true, Ordering::Relaxed);
            compacted?;
            for thread in [inserting, consuming] {
                let outcome = thread.join().ok().context("a client panicked")?;
                outcome?;
            }
            Ok(
                json!({"compaction_s": compaction_s, "calm": calm.reported(), "during": during.reported()}),
            )
        })
    }
}

impl Took {
    fn reported(mut self) -> Value {
        let of = |all: &mut Vec<f64>| {
            json!({
                "count": all.len(), "p50_ms": quantile(all, 0.5), "p99_ms": quantile(all, 0.99),
                "max_ms": quantile(all, 1.0), "above_20_ms": all.iter().filter(|ms| **ms > 20.0).count(),
            })
        };
        json!({"inserts": of(&mut self.inserts), "messages": of(&mut self.messages)})
    }
}
