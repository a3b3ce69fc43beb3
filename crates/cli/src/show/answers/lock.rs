//! What `lock` says when the command has ended.

use super::Answer;
use crate::child::Ended;
use evenkeel_op::units;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::lock::Held;
use serde::Serialize;

/// How a command under a lock went.
#[derive(Debug, Clone, Serialize)]
pub struct LockReport {
    /// What the server was locked with.
    pub lock: String,
    /// Where the server stood meanwhile.
    pub coordinates: Coordinates,
    /// From the first lock to the release of the last.
    pub lock_ms: f64,
    /// Of it, how long writes or commits were paused.
    pub write_pause_ms: f64,
    /// The exit code that is passed on.
    pub exit_code: u8,
    #[serde(skip)]
    held: Held,
    #[serde(skip)]
    ended: Ended,
}

impl LockReport {
    /// Puts the report together.
    #[must_use]
    pub fn new(lock: String, coordinates: Coordinates, held: Held, ended: Ended) -> Self {
        Self {
            lock,
            coordinates,
            lock_ms: held.lock.as_secs_f64() * 1000.0,
            write_pause_ms: held.writes_stopped.as_secs_f64() * 1000.0,
            exit_code: ended.exit_code(),
            held,
            ended,
        }
    }
}

impl Answer for LockReport {
    const SCHEMA: &'static str = "evenkeel/lock/1";

    fn text(&self) -> String {
        format!(
            "evenkeel: unlocked after {}, writes paused for {}; command {}\n",
            units::duration(self.held.lock),
            units::duration(self.held.writes_stopped),
            self.ended
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn people_read_how_long_writes_stood_still() {
        let held = Held {
            lock: Duration::from_millis(1500),
            writes_stopped: Duration::from_millis(250),
        };
        let report = LockReport::new("x".into(), Coordinates::default(), held, Ended::Code(3));
        assert_eq!(
            report.text(),
            "evenkeel: unlocked after 1.5 s, writes paused for 250 ms; \
             command exited with code:3\n"
        );
        assert_eq!(
            serde_json::to_value(&report).unwrap()["write_pause_ms"],
            250.0
        );
    }
}
