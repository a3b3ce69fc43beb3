//! Waiting for a thing to become true, without guessing how long that takes.

use std::time::{Duration, Instant};

/// Polls `ready` until it is true. Panics after 30 s, naming `what`.
#[track_caller]
pub fn until(what: &str, ready: impl FnMut() -> bool) {
    until_within(Duration::from_secs(30), what, ready);
}

/// Polls `ready` until it is true. Panics after `limit`, naming `what`.
#[track_caller]
pub fn until_within(limit: Duration, what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !ready() {
        assert!(
            Instant::now() < end,
            "waited {limit:?} in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
