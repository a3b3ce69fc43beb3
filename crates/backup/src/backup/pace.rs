//! How long to read and how long to leave the server alone, from what the server gets done.
//!
//! A round is work, during which files are read, and a rest. What the server answers while it is
//! left alone is what it can do; what is missing from that during work is what reading costs it. The
//! loss over a whole round is that cost times the share of work, so a longer rest makes it as small
//! as wanted, however much a disk suffers. The rate of the rest just before and of the one just
//! after are the measure, so an application whose own load rises and falls is not taken for a loss.
//!
//! Pure arithmetic: nothing here waits, looks at a clock, or talks to a server.

use std::time::Duration;

/// Work in one go while at least as long is rested. Long enough to tell a few dozen statements
/// apart from none on a server that is worth watching, short enough to be a hiccup.
const WORK: Duration = Duration::from_millis(60);
/// The shortest rest.
const REST: Duration = Duration::from_millis(60);
/// The longest rest, where one go took long although it should not have: a slow disk, a low rate.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(5);
/// The least share of the time that is work: a run ends, whatever the server suffers.
pub(super) const LEAST: f64 = 1.0 / 32.0;
/// The largest share of the time that is work on a server that is busy: else nobody would notice
/// that it began to suffer.
const MOST: f64 = 5.0 / 6.0;
/// What is aimed at, of what is allowed: counts are noisy.
const MARGIN: f64 = 0.75;
/// How much of what was learned is left after another round.
const MEMORY: f64 = 0.95;
/// The same for whole rounds.
const LONG_MEMORY: f64 = 0.99;
/// At most so many times less is lost than aimed at while a former loss is given back.
const MOST_BACK: f64 = 4.0;
/// Statements in a rest that say by themselves what the server can do.
const ENOUGH: f64 = 50.0;
/// How much of earlier rests counts where one does not say enough.
const CALM_MEMORY: f64 = 0.95;
/// What work costs until something was learned, and for how many seconds of work that counts.
const GUESS: (f64, f64) = (0.6, 0.06);
/// Up to this many statements a second are a monitor and a console, not an application.
const IDLE_PER_S: f64 = 10.0;
/// Seconds after which a server's statements are mostly forgotten when it is asked whether it is
/// busy.
const BUSY_MEMORY_S: f64 = 2.0;
/// Statements above the idle rate that make a server busy, in seconds' worth.
const BUSY_SLACK_S: f64 = 0.5;

/// Statements that a server answered in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Span {
    pub(super) statements: f64,
    pub(super) seconds: f64,
}

impl Span {
    fn and(self, other: Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            seconds: self.seconds + other.seconds,
        }
    }

    /// Makes spans of different lengths count the same.
    fn per_second(self) -> Self {
        self.times(1.0 / self.seconds.max(f64::MIN_POSITIVE))
    }

    fn times(self, factor: f64) -> Self {
        Self {
            statements: self.statements * factor,
            seconds: self.seconds * factor,
        }
    }
}

/// Decides about rounds so that the loss stays under a limit.
#[derive(Debug)]
pub(super) struct Pace {
    /// Share of the server's work that may be lost.
    limit: f64,
    /// Seconds' worth of statements that were lost, and seconds of work that cost them; older
    /// rounds count less.
    lost_s: f64,
    work_s: f64,
    /// The same for whole rounds, remembered longer.
    all_lost_s: f64,
    all_s: f64,
    /// The last rest, and earlier ones where the last one does not say enough.
    before: Option<Span>,
    /// The last seconds, whatever was done in them.
    recent: Span,
}

impl Pace {
    /// Makes one that lets the server lose at most `percent`.
    pub(super) fn new(percent: u8) -> Self {
        Self {
            limit: f64::from(percent) / 100.0,
            lost_s: GUESS.0 * GUESS.1,
            work_s: GUESS.1,
            all_lost_s: 0.0,
            all_s: 0.0,
            before: None,
            recent: Span::default(),
        }
    }

    /// Returns how long to work before the next look at the server.
    pub(super) fn work(&self) -> Duration {
        let share = self.share();
        // Where the shortest rest is longer than needed, work is.
        WORK.max(REST.mul_f64(share / (1.0 - share)))
    }

    /// Returns whether the server has anything to do besides ours, as far as it was seen.
    pub(super) fn is_busy(&self) -> bool {
        self.recent.statements > IDLE_PER_S * (self.recent.seconds + BUSY_SLACK_S)
    }

    /// Returns how long to rest after work that really took so many seconds.
    pub(super) fn rest(&self, work_s: f64) -> Duration {
        let share = self.share();
        let rest_s = work_s * (1.0 - share) / share;
        Duration::from_secs_f64(rest_s.min(LONGEST_REST.as_secs_f64())).max(REST)
    }

    /// Takes note of a time at whose end nobody rests.
    pub(super) fn worked_on(&mut self, work: Span) {
        self.saw(work);
        // A rest from before the server was idle says nothing about now.
        self.before = None;
    }

    /// Learns from a whole round: the work, the moment of recovery after it, whose losses are the
    /// work's too, and the rest.
    pub(super) fn learn(&mut self, work: Span, recovery: Span, rest: Span) {
        for span in [work, recovery, rest] {
            self.saw(span);
        }
        let enough = rest.statements >= ENOUGH;
        let calm = match self.before {
            None => rest,
            Some(before) if enough => before.per_second().and(rest.per_second()),
            Some(before) => before.and(rest),
        };
        self.before = Some(match self.before {
            Some(before) if !enough => before.times(CALM_MEMORY).and(rest),
            _ => rest,
        });
        let disturbed = work.and(recovery);
        if calm.statements <= 0.0 || work.seconds <= 0.0 {
            return;
        }
        let lost_s = disturbed.seconds - disturbed.statements * calm.seconds / calm.statements;
        // One round in which the application did something else altogether must not decide alone.
        let lost_s = lost_s.clamp(-disturbed.seconds, disturbed.seconds);
        self.lost_s = self.lost_s * MEMORY + lost_s;
        self.work_s = self.work_s * MEMORY + work.seconds;
        self.all_lost_s = self.all_lost_s * LONG_MEMORY + lost_s;
        self.all_s = self.all_s * LONG_MEMORY + disturbed.seconds + rest.seconds;
    }

    fn saw(&mut self, span: Span) {
        let left = (-span.seconds / BUSY_MEMORY_S).exp();
        self.recent = self.recent.times(left).and(span);
    }

    /// Returns the share of the time that may be work.
    fn share(&self) -> f64 {
        let cost = self.lost_s / self.work_s;
        if cost <= 0.0 {
            return MOST;
        }
        let mut aim = self.limit * MARGIN;
        // What was lost too much is given back: a cost that is guessed too low by chance makes long
        // work, one that is guessed too high short work, and so the errors do not cancel out.
        let too_much = self.all_lost_s / (self.all_s * aim).max(f64::MIN_POSITIVE);
        if too_much > 1.0 {
            aim /= too_much.min(MOST_BACK);
        }
        (aim / cost).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests;
