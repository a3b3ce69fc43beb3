//! What consumers cost that have nothing to do.

use crate::clients::{Consumer, connect, reported};
use crate::cost::Moment;
use crate::request::{Server, Way};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[derive(clap::Args)]
pub(crate) struct Idle {
    #[command(flatten)]
    server: Server,
    #[arg(long, value_enum)]
    way: Way,
    #[arg(long, default_value_t = 100)]
    consumers: u32,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
}

impl Idle {
    pub(crate) fn run(&self) -> Result<Value> {
        match self.way {
            Way::SkipLocked => self.poll(),
            Way::Queue | Way::QueueTwo => self.wait(),
        }
    }

    /// Each asks every 2 ms.
    fn poll(&self) -> Result<Value> {
        let consumers = (0..self.consumers).map(|_| Consumer::new(&self.server, self.way, 1));
        let consumers: Vec<Consumer> = consumers.collect::<Result<_>>()?;
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            for mut consumer in consumers {
                let stops = &stops;
                scope.spawn(
                    move || while !stops.load(Ordering::Relaxed) && consumer.take().is_ok() {},
                );
            }
            let answer = self.measure();
            stops.store(true, Ordering::Relaxed);
            answer
        })
    }

    /// Each sleeps within one call, which is longer than the measurement.
    fn wait(&self) -> Result<Value> {
        let sql = format!("SELECT queue_wait('jobs', {})", self.seconds + 5.0);
        let connections = (0..self.consumers).map(|_| connect(&self.server));
        let connections: Vec<_> = connections.collect::<Result<_>>()?;
        let ids: Vec<u32> = connections
            .iter()
            .map(evenkeel_wire::Connection::id)
            .collect();
        thread::scope(|scope| {
            for mut connection in connections {
                let sql = &sql;
                // It ends when it is killed, below.
                scope.spawn(move || connection.run(sql).is_ok());
            }
            let answer = self.measure();
            let mut one = connect(&self.server)?;
            for id in ids {
                one.run(&format!("KILL QUERY {id}")).map_err(reported)?;
            }
            answer
        })
    }

    fn measure(&self) -> Result<Value> {
        let mut one = connect(&self.server)?;
        // Until all wait.
        thread::sleep(Duration::from_secs_f64(self.seconds.min(1.0)));
        let queries = |one: &mut evenkeel_wire::Connection| -> Result<u64> {
            let mut rows = one
                .query("SHOW GLOBAL STATUS LIKE 'Questions'")
                .map_err(reported)?;
            let row = rows
                .next()
                .map_err(reported)?
                .context("the server counts")?;
            let mut cells = row.cells();
            let (Ok(_), Ok(Some(number))) = (cells.next(), cells.next()) else {
                anyhow::bail!("the server's count cannot be read");
            };
            Ok(std::str::from_utf8(number)?.parse()?)
        };
        let before = (Moment::now(self.server.pid)?, queries(&mut one)?);
        thread::sleep(Duration::from_secs_f64(self.seconds));
        let after = (Moment::now(self.server.pid)?, queries(&mut one)?);
        let cost = after.0.since(before.0);
        Ok(json!({
            "way": format!("{:?}", self.way), "consumers": self.consumers, "seconds": cost.seconds,
            // Without the one that asked.
            "queries": after.1 - before.1 - 1,
            "server_cpu_s": cost.server_s, "clients_cpu_s": cost.clients_s,
        }))
    }
}
