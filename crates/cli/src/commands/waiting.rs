//! Waiting for another run to end.

use crate::args::Waiting;
use crate::show::Ui;
use evenkeel_op::{Error, ErrorKind, Result, units};
use std::time::{Duration, Instant};

/// How long to rest before the next try.
const REST: Duration = Duration::from_secs(1);
/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work`, and does it again as long as another run is in its way and there is time to wait. Work that ended
/// with `Busy` is done from its beginning.
pub(super) fn for_others<T>(
    waiting: &Waiting,
    ui: &Ui,
    mut work: impl FnMut() -> Result<T>,
) -> Result<T> {
    let Some(wait) = waiting.wait else {
        return work().map_err(or_wait);
    };
    let begun = Instant::now();
    let mut reported = false;
    loop {
        let error = match work() {
            Err(error) if error.kind() == ErrorKind::Busy => error,
            ended => return ended,
        };
        let left = wait.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(in_vain(&error, wait));
        }
        if !std::mem::replace(&mut reported, true) {
            let (why, wait) = (error.chain(), units::span(wait));
            ui.note(&format!("{why}; waiting for it, up to {wait}"));
        }
        let next = Instant::now() + REST.min(left);
        while Instant::now() < next {
            ui.cancel().check()?;
            std::thread::sleep(LOOK);
        }
    }
}

/// Names the way out to who did not wait.
fn or_wait(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Busy => error.hint("or wait for it: --wait=30m"),
        _ => error,
    }
}

/// Says that the time was up, and not that one could wait.
fn in_vain(error: &Error, wait: Duration) -> Error {
    let (wait, why) = (units::span(wait), error.chain());
    let reported = Error::new(ErrorKind::Busy, format!("still busy after {wait}: {why}"));
    let longer = "wait longer: --wait=30m";
    match error.holder() {
        Some(holder) => reported.hint(format!("{longer}, or look at {holder}")),
        None => reported.hint(longer),
    }
}
