//! An object on the other side being read: in pieces that are kept, ahead of who reads it in order.

use super::Ask;
use super::client::Held;
use super::kept::{Kept, PIECE, Run};
use evenkeel_repository::store::StoredObject;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The longest read that is asked for at once, and the farthest step ahead that still counts as
/// reading in order.
const AHEAD_MAX: u64 = 1 << 20;
/// Runs of that length that are under way before somebody waits for them.
const RUNS_AHEAD: u64 = 2;

pub(super) struct LinkObject {
    held: Held,
    size: u64,
    kept: Arc<Kept>,
    reading: Mutex<Reading>,
}

/// How the object is being read.
#[derive(Debug, Default)]
struct Reading {
    /// Where the last run that was asked for ends.
    end: u64,
    /// How much is asked for at once: doubled while reads continue in order.
    ahead: u64,
}

impl Reading {
    /// Returns how many bytes to ask for from `at` on, where nothing is kept.
    fn miss(&mut self, at: u64) -> u64 {
        let in_order = self.end > 0 && (self.end..=self.end + AHEAD_MAX).contains(&at);
        self.ahead = match in_order {
            true => (self.ahead * 2).clamp(PIECE, AHEAD_MAX),
            false => PIECE,
        };
        self.ahead
    }
}

impl LinkObject {
    /// Makes an object of what was said when it was opened.
    pub(super) fn new(held: Held, kept: Arc<Kept>, size: u64, ends: Vec<u8>) -> io::Result<Self> {
        let [front, back] = super::ends(size);
        let lengths = [front.end - front.start, back.end - back.start];
        if ends.len() as u64 != lengths[0] + lengths[1] {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let reading = Reading {
            end: front.end,
            ahead: PIECE,
        };
        let (first, last) = ends.split_at(lengths[0] as usize);
        for (range, bytes) in [(front, first), (back, last)] {
            if !range.is_empty() {
                kept.keep(held.object, Run::have(range, bytes.to_vec()));
            }
        }
        Ok(Self {
            held,
            size,
            kept,
            reading: Mutex::new(reading),
        })
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the run with the byte at `at`, of which `wanted` bytes are wanted; asks for it, and for
    /// more, where it is not there.
    fn run(&self, at: u64, wanted: u64) -> io::Result<Arc<Run>> {
        self.kept.find(self.held.object, at, |limit| {
            let start = at / PIECE * PIECE;
            let wanted = (at + wanted).div_ceil(PIECE) * PIECE - start;
            let mut reading = self.reading();
            let length = reading.miss(start).max(wanted).min(AHEAD_MAX);
            let run = self.ask(start..limit.min(start + length))?;
            reading.end = run.range().end;
            self.held.calls.turn();
            Ok(run)
        })
    }

    /// Asks for what comes next, when the end of what was asked for is being read in order.
    fn go_ahead(&self, run: &Run) -> io::Result<()> {
        let end = run.range().end;
        let near = end + (RUNS_AHEAD - 1) * AHEAD_MAX;
        loop {
            // Not held while asking: whoever asks holds what is kept, and then comes here.
            let from = {
                let reading = self.reading();
                match reading.ahead == AHEAD_MAX && (end..=near).contains(&reading.end) {
                    true => reading.end,
                    false => return Ok(()),
                }
            };
            if from >= self.size {
                return Ok(());
            }
            let next = self.kept.find(self.held.object, from, |limit| {
                self.ask(from..limit.min(from + AHEAD_MAX))
            })?;
            let mut reading = self.reading();
            reading.end = reading.end.max(next.range().end);
        }
    }

    fn ask(&self, range: Range<u64>) -> io::Result<Arc<Run>> {
        let range = range.start..range.end.min(self.size);
        let ask = Ask::Read {
            object: self.held.object,
            offset: range.start,
            length: (range.end - range.start) as u32,
        };
        let pending = self.held.calls.begin(ask, &[])?;
        Ok(Run::asked(range, pending))
    }
}

impl Drop for LinkObject {
    fn drop(&mut self) {
        self.kept.forget_object(self.held.object);
    }
}

impl StoredObject for LinkObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let run = self.run(at, rest.len() as u64)?;
            self.go_ahead(&run)?;
            let bytes = run
                .bytes()
                .inspect_err(|_| self.kept.forget(self.held.object, &run))?;
            let from = &bytes[(at - run.range().start) as usize..];
            let length = from.len().min(rest.len());
            rest[..length].copy_from_slice(&from[..length]);
            rest = &mut rest[length..];
            at += length as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_reads_in_order_is_read_ahead_of() {
        let mut reading = Reading::default();
        let mut asked = Vec::new();
        for _ in 0..7 {
            let length = reading.miss(reading.end);
            reading.end += length;
            asked.push(length / PIECE);
        }
        assert_eq!(asked, [1, 2, 4, 8, 16, 16, 16]);
        // A small step ahead is still in order, one back or a large one is not.
        assert_eq!(reading.miss(reading.end + AHEAD_MAX), AHEAD_MAX);
        assert_eq!(reading.miss(reading.end + AHEAD_MAX + PIECE), PIECE);
        assert_eq!(reading.miss(reading.end), 2 * PIECE);
        assert_eq!(reading.miss(reading.end - PIECE), PIECE);
    }
}
