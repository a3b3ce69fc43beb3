//! How long to read and how long to leave the server alone, from what the server gets done.
//!
//! A round is work, during which files are read, and a rest. What the server answers while it is
//! left alone is what it can do; what is missing from that during work is what reading costs it. The
//! loss over a whole round is that cost times the share of work, so a longer rest makes it as small
//! as wanted, however much a disk suffers. Only the last second or so of rest is the measure, so an
//! application whose own load rises and falls is not taken for a loss.
//!
//! Pure arithmetic: nothing here waits, looks at a clock, or talks to a server.

use std::time::Duration;

/// Work in one go while at least as long is rested. Long enough to tell a few dozen statements
/// apart from none on a server that is worth watching, short enough to be a hiccup.
const WORK: Duration = Duration::from_millis(60);
/// The shortest rest.
const REST: Duration = Duration::from_millis(60);
/// The longest rest, where one go took long although it should not have: a slow disk, a low rate.
pub(in crate::backup) const LONGEST_REST: Duration = Duration::from_secs(5);
/// The longest first rest, of which only a guess says how long it should be. What it is too short
/// is given back later, and a run that is nearly at its end need not wait.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The least share of the time that is work: a run ends, whatever the server suffers.
pub(in crate::backup) const LEAST: f64 = 1.0 / 32.0;
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
/// The largest gain, as a share, that work is believed to be.
const BURST: f64 = 0.5;
/// Seconds of rest after which former rests are mostly forgotten: short rests are counted together.
const CALM_MEMORY_S: f64 = 1.0;
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
pub(in crate::backup) struct Span {
    pub(in crate::backup) statements: f64,
    pub(in crate::backup) seconds: f64,
}

impl Span {
    fn and(self, other: Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            seconds: self.seconds + other.seconds,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            statements: self.statements * factor,
            seconds: self.seconds * factor,
        }
    }
}

/// How much was lost, of how much there would have been; what is older counts less.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    lost: f64,
    of: f64,
}

impl Loss {
    fn add(&mut self, lost: f64, of: f64) {
        self.lost += lost;
        self.of += of;
        // A burst of the application's just then is no reason to read on and on.
        self.lost = self.lost.max(-BURST * self.of);
    }

    fn forget(&mut self, memory: f64) {
        self.lost *= memory;
        self.of *= memory;
    }

    fn share(self) -> f64 {
        self.lost / self.of.max(f64::MIN_POSITIVE)
    }
}

/// Decides about rounds so that the loss stays under a limit.
#[derive(Debug)]
pub(in crate::backup) struct Pace {
    /// Share of the server's work that may be lost.
    limit: f64,
    /// Statements lost by work, and those that would have been answered during work without it.
    during_work: Loss,
    /// The same during whole rounds.
    during_all: Loss,
    /// The last second or so of rest.
    calm: Span,
    /// The last seconds, whatever was done in them.
    recent: Span,
}

impl Pace {
    /// Makes one that lets the server lose at most `percent`.
    pub(in crate::backup) fn new(percent: u8) -> Self {
        Self {
            limit: f64::from(percent) / 100.0,
            during_work: Loss::default(),
            during_all: Loss::default(),
            calm: Span::default(),
            recent: Span::default(),
        }
    }

    /// Returns how long to work before the next look at the server.
    pub(in crate::backup) fn work(&self) -> Duration {
        let share = self.share();
        // Where the shortest rest is longer than needed, work is.
        WORK.max(REST.mul_f64(share / (1.0 - share)))
    }

    /// Returns whether the server has anything to do besides ours, as far as it was seen.
    pub(in crate::backup) fn is_busy(&self) -> bool {
        self.recent.statements > IDLE_PER_S * (self.recent.seconds + BUSY_SLACK_S)
    }

    /// Returns how long to rest after work that really took so many seconds.
    pub(in crate::backup) fn rest(&self, work_s: f64) -> Duration {
        let share = self.share();
        let rest_s = work_s * (1.0 - share) / share;
        let longest = match self.during_work.of {
            0.0 => FIRST_REST,
            _ => LONGEST_REST,
        };
        Duration::from_secs_f64(rest_s.min(longest.as_secs_f64())).max(REST)
    }

    /// Takes note of a time at whose end nobody rests.
    pub(in crate::backup) fn worked_on(&mut self, work: Span) {
        self.saw(work);
        // A rest from before the server was idle says nothing about now.
        self.calm = Span::default();
    }

    /// Learns from a whole round: the work, the moment of recovery after it, whose losses are the
    /// work's too, and the rest.
    pub(in crate::backup) fn learn(&mut self, work: Span, recovery: Span, rest: Span) {
        for span in [work, recovery, rest] {
            self.saw(span);
        }
        let left = (-rest.seconds / CALM_MEMORY_S).exp();
        self.calm = self.calm.times(left).and(rest);
        let calm = self.calm;
        let disturbed = work.and(recovery);
        if calm.statements <= 0.0 || work.seconds <= 0.0 {
            return;
        }
        let calm_per_s = calm.statements / calm.seconds;
        if self.during_work.of == 0.0 {
            self.during_work
                .add(GUESS.0 * GUESS.1 * calm_per_s, GUESS.1 * calm_per_s);
        }
        // In statements, not in shares of each round's: the mean of shares would be off by as much as
        // the rests' counts are noisy.
        let lost = calm_per_s * disturbed.seconds - disturbed.statements;
        self.during_work.forget(MEMORY);
        self.during_work.add(lost, calm_per_s * work.seconds);
        self.during_all.forget(LONG_MEMORY);
        self.during_all
            .add(lost, calm_per_s * (disturbed.seconds + rest.seconds));
    }

    fn saw(&mut self, span: Span) {
        let left = (-span.seconds / BUSY_MEMORY_S).exp();
        self.recent = self.recent.times(left).and(span);
    }

    /// Returns the share of the time that may be work.
    fn share(&self) -> f64 {
        let cost = match self.during_work.of {
            0.0 => GUESS.0,
            _ => self.during_work.share(),
        };
        if cost <= 0.0 {
            return MOST;
        }
        let mut aim = self.limit * MARGIN;
        // What was lost too much is given back: a cost that is guessed too low by chance makes long
        // work, one that is guessed too high short work, and so the errors do not cancel out.
        let too_much = self.during_all.share() / aim;
        if too_much > 1.0 {
            aim /= too_much.min(MOST_BACK);
        }
        (aim / cost).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests;
