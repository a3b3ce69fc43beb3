//! How thoroughly to compress: quickly while other programs want the processors.
//!
//! Nearly all processor time of a full backup is compression. While a database keeps the processors busy, each
//! second of it is a second that the database does not have. So a thread asks the kernel how long it waited for a
//! processor, of the time in which it wanted one.

/// The level of zstd while processors are free: as fast as the disks usually are.
pub(super) const USUAL: i32 = 1;
/// The level while they are not: on pages of a database a third of the usual time, and 1.6 times the size.
const QUICK: i32 = -3;
/// The share of its time that a thread waits for a processor, from which on it is quick. Threads of this run wait
/// for each other, too, but not that long while there is a processor for each.
const CONTENDED: f64 = 0.35;
/// How much of what was learned is left after another megabyte.
const MEMORY: f64 = 0.75;

/// How thoroughly blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As a level of zstd says, from -7 to 19.
    Level(i32),
    /// As level 1; quickly while other programs want the processors.
    ByLoad,
}

impl Compression {
    /// Returns the level where processors are free.
    #[must_use]
    pub fn usual_level(self) -> i32 {
        match self {
            Self::Level(level) => level,
            Self::ByLoad => USUAL,
        }
    }
}

/// Decides on the level of one thread, frame by frame.
#[derive(Debug)]
pub(crate) struct Effort {
    compression: Compression,
    seen: Seen,
}

/// What a thread saw of the processors.
#[derive(Debug, Default)]
struct Seen {
    last: Counts,
    wait: Wait,
}

/// What the kernel counts of a thread, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// On a processor.
    ran: u64,
    /// Waiting for one.
    waited: u64,
}

/// The share of its time that a thread waited lately.
#[derive(Debug, Default)]
struct Wait {
    share: f64,
}

impl Effort {
    pub(crate) fn new(compression: Compression) -> Self {
        Self {
            compression,
            seen: Seen::default(),
        }
    }

    /// Returns the level for the next frame of the calling thread, which is the same one each time.
    pub(crate) fn level(&mut self) -> i32 {
        match self.compression {
            Compression::Level(level) => level,
            Compression::ByLoad => self.seen.level(),
        }
    }
}

impl Seen {
    /// Where the kernel counts nothing, the level is the usual one.
    fn level(&mut self) -> i32 {
        if let Some(now) = read() {
            self.wait.learn(self.last, now);
            self.last = now;
        }
        self.wait.level()
    }
}

impl Wait {
    fn learn(&mut self, before: Counts, now: Counts) {
        let ran = now.ran.saturating_sub(before.ran) as f64;
        let waited = now.waited.saturating_sub(before.waited) as f64;
        if ran + waited > 0.0 {
            let share = waited / (ran + waited);
            self.share = self.share * MEMORY + share * (1.0 - MEMORY);
        }
    }

    fn level(&self) -> i32 {
        if self.share < CONTENDED { USUAL } else { QUICK }
    }
}

/// Returns what was counted of the calling thread so far. Nothing is kept open: a run may have many threads.
fn read() -> Option<Counts> {
    parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Reads `ran waited slices`.
fn parse(text: &str) -> Option<Counts> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Counts { ran, waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_for_processors_is_quick_until_it_need_not_wait() {
        let mut wait = Wait::default();
        let mut at = Counts::default();
        let mut levels = Vec::new();
        for waited in [0, 5, 0, 0, 20, 20, 20, 20, 20, 0, 0, 0, 0, 0] {
            let now = Counts {
                ran: at.ran + 10,
                waited: at.waited + waited,
            };
            wait.learn(at, now);
            at = now;
            levels.push(wait.level());
        }
        // A short wait is no reason; a frame without one does not end it.
        assert_eq!(levels, [1, 1, 1, 1, 1, 1, -3, -3, -3, -3, 1, 1, 1, 1]);
    }

    #[test]
    fn a_level_that_was_asked_for_stays() {
        let mut effort = Effort::new(Compression::Level(7));
        assert_eq!([effort.level(), effort.level()], [7, 7]);
    }

    #[test]
    fn the_kernel_counts_what_a_thread_ran() {
        let before = read().unwrap();
        let mut sum = 0_u64;
        for _ in 0..30_000_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(read().unwrap().ran > before.ran, "{sum}");
        assert_eq!(
            parse("12 34 5\n"),
            Some(Counts {
                ran: 12,
                waited: 34
            })
        );
        assert_eq!(parse(""), None);
    }
}
