//! Progress for the user of another host.

use evenkeel_op::{Event, Progress};
use evenkeel_transport::{Far, Word};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Small steps are reported together, this often.
const EVERY: Duration = Duration::from_millis(100);

/// Tells events over the link.
pub(in crate::show) struct Noted {
    far: Far,
    untold: Mutex<Untold>,
}

/// Steps that were not reported yet.
struct Untold {
    by: u64,
    noted: Instant,
}

impl Noted {
    pub(in crate::show) fn to(far: Far) -> Self {
        let untold = Untold {
            by: 0,
            noted: Instant::now(),
        };
        Self {
            far,
            untold: Mutex::new(untold),
        }
    }

    fn untold(&self) -> MutexGuard<'_, Untold> {
        self.untold.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Untold {
    /// Takes the steps to tell now, if any.
    fn take(&mut self) -> Option<Event> {
        self.noted = Instant::now();
        let by = std::mem::take(&mut self.by);
        (by > 0).then_some(Event::Advanced { by })
    }
}

impl Progress for Noted {
    fn event(&self, event: Event) {
        let mut untold = self.untold();
        if let Event::Advanced { by } = event {
            untold.by += by;
            if untold.noted.elapsed() < EVERY {
                return;
            }
        }
        let steps = untold.take();
        drop(untold);
        let other = (!matches!(event, Event::Advanced { .. })).then_some(event);
        for event in steps.into_iter().chain(other) {
            self.far.say(&Word::Progress(event));
        }
    }
}
