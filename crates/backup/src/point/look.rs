//! Looks on behind a time: whether transactions follow there that are earlier.
//!
//! A session may say that it is any time, and clocks are set. The first transaction that says it is of
//! the point or later is then no proof that those before it are all: what is behind it is read on, until
//! the clock of the server that wrote the log has continued by [`LOOK_SECONDS`] since, or to the
//! archive's end. No session sets that clock; where a log does not show it, as MariaDB's when only rows
//! change, the beginnings of files stand for it.

use super::reached::Reached;
use super::transaction::Transaction;

/// How long is looked on, by the server's clock.
const LOOK_SECONDS: u32 = 3600;
/// By how much a transaction may be earlier than one before it, as on any busy server: statements that
/// began in one second are logged in another order, a little later.
const STRAGGLES_SECONDS: i64 = 2;

/// What is seen of time behind a point.
pub(super) struct Look {
    /// The point.
    point: i64,
    /// The earliest time so far that is not before the point.
    least: i64,
    /// Where the first transaction of the point or later begins.
    pub(super) first: Reached,
    /// Behind the last earlier one, and how many there are.
    pub(super) last: Option<(Reached, u64)>,
    by_clock: Span,
    by_files: Span,
}

/// How far something continued that tells the time.
#[derive(Default)]
struct Span {
    from: Option<u32>,
    is_over: bool,
}

impl Span {
    fn hear(&mut self, time: u32) {
        let from = self.from.map_or(time, |from| from.min(time));
        self.from = Some(from);
        self.is_over |= time - from >= LOOK_SECONDS;
    }
}

impl Look {
    /// Begins before `transaction`, the first that is of the second `point` or later.
    pub(super) fn new(point: i64, first: Reached, transaction: &Transaction) -> Self {
        Self {
            point,
            least: seconds(transaction),
            first,
            last: None,
            by_clock: Span::default(),
            by_files: Span::default(),
        }
    }

    /// Takes what comes next, when all up to its end is `reached`.
    pub(super) fn take(&mut self, transaction: &Transaction, reached: &Reached) {
        let time = seconds(transaction);
        if time >= self.point {
            self.least = self.least.min(time);
        } else if time + STRAGGLES_SECONDS < self.least {
            let count = self.last.as_ref().map_or(0, |(_, count)| *count);
            self.last = Some((reached.clone(), count + 1));
            // Now it has to continue from here.
            (self.by_clock, self.by_files) = Default::default();
            return;
        }
        if let Some((last, _)) = &mut self.last {
            last.next.get_or_insert_with(|| transaction.clone());
        }
    }

    /// Notes what the server's own clock said.
    pub(super) fn clock(&mut self, time: u32) {
        self.by_clock.hear(time);
    }

    /// Notes when a file was begun, which is as true as the session that did it.
    pub(super) fn file_begun(&mut self, time: u32) {
        self.by_files.hear(time);
    }

    /// Whether it was looked far enough.
    pub(super) fn is_over(&self) -> bool {
        match self.by_clock.from {
            Some(_) => self.by_clock.is_over,
            None => self.by_files.is_over,
        }
    }
}

/// Returns a transaction's time in seconds since 1970.
pub(super) fn seconds(transaction: &Transaction) -> i64 {
    transaction.time.map_or(0, |time| time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::LogPosition;

    fn of(time: i64) -> Transaction {
        let at = LogPosition {
            file: "b.000001".to_owned(),
            position: 4,
        };
        Transaction {
            at,
            end: 5,
            time: jiff::Timestamp::from_second(time).ok(),
            gtid: None,
        }
    }

    /// Looks on behind a transaction of `first`; the point is 1000. Returns how many are earlier.
    fn looked(first: i64, behind: &[i64]) -> u64 {
        let reached = Reached::at(of(0).at);
        let mut look = Look::new(1000, reached.clone(), &of(first));
        for time in behind {
            look.take(&of(*time), &reached);
        }
        look.last.map_or(0, |(_, count)| count)
    }

    #[test]
    fn times_that_go_back_are_told_from_stragglers() {
        assert_eq!(looked(1000, &[999, 998, 1000, 999, 1500]), 0);
        assert_eq!(looked(1000, &[997]), 1);
        // One far ahead: nothing straggles behind that.
        assert_eq!(looked(5000, &[999, 998, 1000]), 2);
        // Behind the true ones something may straggle again.
        assert_eq!(looked(5000, &[1000, 999, 1001]), 0);
        assert_eq!(looked(1000, &[]), 0);
    }

    #[test]
    fn it_ends_when_the_clock_went_on_without_going_back() {
        let mut look = Look::new(1000, Reached::at(of(0).at), &of(1000));
        look.file_begun(1000);
        look.file_begun(9000);
        assert!(look.is_over(), "nothing better is told");
        look.clock(1000);
        assert!(!look.is_over(), "the clock tells more");
        look.clock(4599);
        assert!(!look.is_over());
        let reached = Reached::at(of(0).at);
        look.take(&of(900), &reached);
        look.clock(4700);
        assert!(!look.is_over(), "it went back meanwhile");
        look.clock(8300);
        assert!(look.is_over());
    }
}
