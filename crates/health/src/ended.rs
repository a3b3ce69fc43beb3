//! The end of a program that was started: waited for, and forced.

use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What programs find their own programs by.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Waits for its end, for so long, or until it has to stop. `None` if it had to be killed, with its group, which must
/// be its own.
pub(crate) fn ended(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK);
    }
    // Not reaped yet: the number is its own.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()?;
    Ok(None)
}
