//! Producers and consumers, as fast as they can.

use crate::clients::{Consumer, Producer};
use crate::cost::Moment;
use crate::request::{Server, Way};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Load {
    #[command(flatten)]
    server: Server,
    #[arg(long, value_enum)]
    way: Way,
    /// Messages that a consumer takes at once, at most.
    #[arg(long, default_value_t = 1)]
    batch: u32,
    #[arg(long, default_value_t = 0)]
    producers: u32,
    #[arg(long, default_value_t = 0)]
    consumers: u32,
    /// Messages that are there already. It is over when they are gone, if nobody produces.
    #[arg(long, default_value_t = 0)]
    backlog: u64,
    /// Messages that may be waiting while producers go on; more make them wait, if somebody consumes.
    #[arg(long, default_value_t = 1000)]
    ahead: u64,
    /// Bytes of a message's text.
    #[arg(long, default_value_t = 92)]
    bytes: usize,
    /// How long is measured.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How long all run before that.
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
}

/// What all clients count.
#[derive(Default)]
struct Counts {
    put: AtomicU64,
    taken: AtomicU64,
    again: AtomicU64,
    stops: AtomicBool,
    failed: Mutex<Option<anyhow::Error>>,
}

impl Counts {
    fn continues(&self) -> bool {
        !self.stops.load(Ordering::Relaxed)
    }

    fn done(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.stops.store(true, Ordering::Relaxed);
            let mut failed = self.failed.lock().unwrap_or_else(|held| held.into_inner());
            failed.get_or_insert(error);
        }
    }

    fn both(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.put), of(&self.taken))
    }
}

impl Load {
    pub(crate) fn run(&self) -> Result<Value> {
        ensure!(self.producers + self.consumers > 0, "nobody does anything");
        let producers = (0..self.producers).map(|_| Producer::new(&self.server, self.bytes));
        let producers: Vec<Producer> = producers.collect::<Result<_>>()?;
        let consumers =
            (0..self.consumers).map(|_| Consumer::new(&self.server, self.way, self.batch));
        let consumers: Vec<Consumer> = consumers.collect::<Result<_>>()?;
        let counts = Counts::default();
        let answer = thread::scope(|scope| {
            for producer in producers {
                scope.spawn(|| counts.done(self.produce(producer, &counts)));
            }
            for consumer in consumers {
                scope.spawn(|| counts.done(consume(consumer, &counts)));
            }
            let answer = self.measure(&counts);
            counts.stops.store(true, Ordering::Relaxed);
            answer
        })?;
        let failed = counts
            .failed
            .lock()
            .unwrap_or_else(|held| held.into_inner())
            .take();
        match failed {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    fn produce(&self, mut producer: Producer, counts: &Counts) -> Result<()> {
        while counts.continues() {
            let (put, taken) = counts.both();
            if self.consumers > 0 && put.saturating_sub(taken) > self.ahead {
                thread::sleep(Duration::from_micros(500));
                continue;
            }
            let id = counts.put.fetch_add(1, Ordering::Relaxed);
            producer.put(1 + self.backlog + id)?;
        }
        Ok(())
    }

    /// Waits until the time is over or everything is consumed, and says what was done meanwhile.
    fn measure(&self, counts: &Counts) -> Result<Value> {
        let is_drained =
            || self.producers == 0 && counts.taken.load(Ordering::Relaxed) >= self.backlog;
        rest(self.warm_up, || counts.continues() && !is_drained());
        let before = (Moment::now(self.server.pid)?, counts.both());
        rest(self.seconds, || counts.continues() && !is_drained());
        let after = (Moment::now(self.server.pid)?, counts.both());
        let cost = after.0.since(before.0);
        let (put, taken) = (after.1.0 - before.1.0, after.1.1 - before.1.1);
        let messages = if self.consumers > 0 { taken } else { put };
        let each_ms = |seconds: f64| 1000.0 * seconds / messages.max(1) as f64;
        Ok(json!({
            "way": format!("{:?}", self.way), "batch": self.batch,
            "producers": self.producers, "consumers": self.consumers,
            "seconds": cost.seconds, "put": put, "taken": taken, "again": counts.again.load(Ordering::Relaxed),
            "per_s": messages as f64 / cost.seconds,
            "server_cpu_ms": each_ms(cost.server_s), "clients_cpu_ms": each_ms(cost.clients_s),
        }))
    }
}

fn rest(seconds: f64, continues: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while continues() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(5)));
    }
}

fn consume(mut consumer: Consumer, counts: &Counts) -> Result<()> {
    loop {
        let taken = consumer.take()?;
        counts.taken.fetch_add(taken, Ordering::Relaxed);
        if !counts.continues() {
            break;
        }
    }
    counts.again.fetch_add(consumer.again, Ordering::Relaxed);
    consumer.end()
}
