//! The LSN that no page may be beyond: the end of the redo log.

use evenkeel_server::connect::Session;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No server writes so much log in [`FRESH`]: what is farther beyond is not asked about again.
const LEAP: u64 = 16 << 30;
const FRESH: Duration = Duration::from_secs(1);

/// The end of the redo log.
pub(super) enum Bound {
    /// There is no log to tell.
    Unknown,
    /// The log does not grow.
    Fixed(u64),
    /// A running server continues writing: it is asked again when a page is beyond what it said
    /// last.
    Moving {
        known: AtomicU64,
        server: Mutex<Asked>,
    },
}

/// A server that is asked.
pub(super) struct Asked {
    session: Session,
    last: Instant,
}

impl Bound {
    /// Asks a running server.
    pub(super) fn of_server(mut session: Session) -> evenkeel_op::Result<Self> {
        let known = AtomicU64::new(session.lsn()?);
        let server = Mutex::new(Asked {
            session,
            last: Instant::now(),
        });
        Ok(Self::Moving { known, server })
    }

    /// Returns the end as far as it is known.
    pub(super) fn end(&self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Fixed(end) => Some(*end),
            Self::Moving { known, .. } => Some(known.load(Ordering::Relaxed)),
        }
    }

    /// Returns the end if a page that was read before has an LSN beyond it.
    pub(super) fn is_passed_by(&self, lsn: u64) -> Option<u64> {
        let end = self.end()?;
        if lsn <= end {
            return None;
        }
        match self {
            Self::Unknown | Self::Fixed(_) => Some(end),
            Self::Moving { known, server } => {
                let mut asked = server.lock().unwrap_or_else(|e| e.into_inner());
                let mut end = known.load(Ordering::Relaxed);
                let is_far = lsn > end.saturating_add(LEAP) && asked.last.elapsed() < FRESH;
                if lsn > end && !is_far {
                    // A server that does not answer any more wrote what it wrote.
                    end = asked.session.lsn().ok()?;
                    asked.last = Instant::now();
                    known.fetch_max(end, Ordering::Relaxed);
                }
                (lsn > end).then_some(end)
            }
        }
    }
}
