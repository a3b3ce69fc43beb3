//! The replica's SQL thread at the very place that a view of the source sees, for as long as its rows are changed.

use super::writer::HUNG;
use crate::checksum::ChecksumRequest;
use crate::checksum::align::{HOLD, View, again, is_as_good, look};
use crate::checksum::sides::Sides;
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_server::replication::{Advance, Position, StopLimits, Stopped};
use std::time::{Duration, Instant};

/// Nothing is committed when the watchdog would start the SQL thread so soon.
const MARGIN: Duration = Duration::from_secs(10);

/// A replica that stands where a view of its source looks. The SQL thread runs again when this is dropped.
#[derive(Debug)]
pub(super) struct Standing {
    stopped: Stopped,
    begun: Instant,
    /// When the watchdog starts it.
    until: Instant,
    allowed: Duration,
}

impl Standing {
    /// Stops the SQL thread where it is.
    pub(super) fn anywhere(
        side: &crate::checksum::sides::Side,
        pid: Option<i32>,
        request: &ChecksumRequest,
        run: Run<'_>,
    ) -> Result<Self> {
        let begun = Instant::now();
        let deadline = request.limits.deadline;
        let limits = StopLimits {
            deadline,
            hold: deadline * 2 + HOLD,
        };
        let allowed = limits.deadline + limits.hold;
        let stopped = Stopped::stop(
            &side.options,
            pid,
            &request.watchdog,
            &limits,
            run.progress,
            run.cancel,
        )?;
        let stopped =
            stopped.ok_or_else(|| Error::refused("the replica does not replicate any more"))?;
        Ok(Self {
            stopped,
            begun,
            until: begun + allowed,
            allowed,
        })
    }

    /// Fails when the SQL thread has moved, or is about to.
    pub(super) fn check(&mut self) -> Result<()> {
        if Instant::now() + MARGIN >= self.until {
            return Err(Error::new(
                ErrorKind::LockTimeout,
                "the repair took too long: the SQL thread must run again",
            )
            .hint("allow more time with --lock-deadline"));
        }
        self.stopped.still_stands()
    }

    /// Has the SQL thread run again, and returns how long it stood.
    pub(super) fn end(self) -> (Result<()>, Duration) {
        let ended = self.stopped.start();
        (ended, self.begun.elapsed())
    }
}

/// Has the replica stand where a view of the source looks.
///
/// Errors: as [`crate::checksum::checksum`].
pub(super) fn stand(
    sides: &mut Sides,
    request: &ChecksumRequest,
    run: Run<'_>,
) -> Result<(Standing, View, Position)> {
    again(run, || try_to(sides, request, run))
}

fn try_to(
    sides: &mut Sides,
    request: &ChecksumRequest,
    run: Run<'_>,
) -> Result<(Standing, View, Position)> {
    let deadline = request.limits.deadline;
    let mut view = View::open(&sides.source.options, run.cancel)?;
    // Rows of the replica are locked while it is read.
    view.set_silence(HUNG);
    let mut standing = Standing::anywhere(&sides.replica, sides.replica_pid, request, run)?;
    let (groups, _) = look(sides, vec![view], deadline, run)?;
    let group = groups.into_iter().next();
    let seen = group.and_then(|group| Some((group.place, group.views.into_iter().next()?)));
    let (place, view) = seen.ok_or_else(|| Error::failed("the source shows nothing"))?;
    let session = &mut sides.source.session;
    let moved = Instant::now();
    standing.stopped.advance(
        Advance {
            channel: &sides.channel,
            to: &place,
            deadline,
            is_as_good: &mut |at| is_as_good(session, at, &place),
        },
        run.cancel,
    )?;
    // It may have been on its way for longer.
    standing.until = standing.until.max(moved + standing.allowed);
    Ok((standing, view, place))
}
