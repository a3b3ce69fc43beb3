//! Processor time of the server and of this process.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// How many of the kernel's units are a second, towards programs.
const TICKS_PER_S: f64 = 100.0;

/// One moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    server_s: f64,
    clients_s: f64,
}

/// What passed between two moments, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) server_s: f64,
    pub(crate) clients_s: f64,
}

impl Moment {
    pub(crate) fn now(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let stat = std::fs::read_to_string(&path).context(path)?;
        let behind = stat
            .rsplit(')')
            .next()
            .context("the kernel names a process")?;
        // The second field is the name; user and system time are the 14th and the 15th.
        let ticks: u64 = behind
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            at: Instant::now(),
            server_s: ticks as f64 / TICKS_PER_S,
            clients_s: own.tv_sec as f64 + own.tv_nsec as f64 / 1e9,
        })
    }

    pub(crate) fn since(self, before: Self) -> Cost {
        Cost {
            seconds: (self.at - before.at).as_secs_f64(),
            server_s: self.server_s - before.server_s,
            clients_s: self.clients_s - before.clients_s,
        }
    }
}

/// The value that so much of all are not above; all are sorted here.
pub(crate) fn quantile(all: &mut [f64], part: f64) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    let at = ((all.len() as f64 * part).ceil() as usize).clamp(1, all.len().max(1)) - 1;
    all.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_there_are() {
        let mut all: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut all, 0.5), 50.0);
        assert_eq!(quantile(&mut all, 0.99), 99.0);
        assert_eq!(quantile(&mut all, 1.0), 100.0);
        assert_eq!(quantile(&mut [7.0], 0.01), 7.0);
    }
}
