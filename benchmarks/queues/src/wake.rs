//! How soon a consumer has a row that is put in while nothing else is going on.

use crate::clients::{Consumer, Producer};
use crate::cost::quantile;
use crate::request::{Server, Way};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Wake {
    #[command(flatten)]
    server: Server,
    #[arg(long, value_enum)]
    way: Way,
    /// Messages, one after the other.
    #[arg(long, default_value_t = 400)]
    messages: u64,
}

/// How long one waits for a message before something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

impl Wake {
    pub(crate) fn run(&self) -> Result<Value> {
        let mut producer = Producer::new(&self.server, 92)?;
        let mut consumer = Consumer::new(&self.server, self.way, 1)?;
        let (say, hear) = mpsc::sync_channel(1);
        let (mut from_start, mut from_return) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let messages = self.messages;
            let consuming = scope.spawn(move || -> Result<()> {
                let mut taken = 0;
                while taken < messages {
                    if consumer.take()? == 1 {
                        taken += 1;
                        say.send(consumer.received)?;
                    }
                }
                consumer.end()
            });
            for id in 1..=self.messages {
                // Until the consumer waits again; not in step with one that polls.
                thread::sleep(Duration::from_micros(8000 + id * 7919 % 4000));
                let start = Instant::now();
                producer.put(id)?;
                let returned = Instant::now();
                let woken = hear
                    .recv_timeout(PATIENCE)
                    .context("a message was not received")?;
                let ms =
                    |since: Instant| woken.saturating_duration_since(since).as_secs_f64() * 1000.0;
                from_start.push(ms(start));
                from_return.push(ms(returned));
            }
            let consumed = consuming.join();
            ensure!(
                matches!(consumed, Ok(Ok(()))),
                "the consumer failed: {consumed:?}"
            );
            Ok(())
        })?;
        let reported = |all: &mut Vec<f64>| json!({"p50_ms": quantile(all, 0.5), "p99_ms": quantile(all, 0.99), "max_ms": quantile(all, 1.0)});
        Ok(json!({
            "way": format!("{:?}", self.way), "messages": self.messages,
            "from_return": reported(&mut from_return), "from_start": reported(&mut from_start),
        }))
    }
}
