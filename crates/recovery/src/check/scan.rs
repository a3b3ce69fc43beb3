//! Reads every page of every file, many threads at once.
//!
//! Files are cut into pieces; a thread takes one after the other and reads it through one buffer of
//! 1 MiB, which stays in the processor's cache. What was in the page cache before stays there; what was
//! not is announced ahead and given back afterwards.

use super::reading::Reading;
use super::survey::{CheckContext, Subject};
use super::tally::{Findings, Tally};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::workers::all_joined;
use evenkeel_op::{Cancel, Progress, Result, Unit};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes that one thread reads before it takes the next piece.
const PIECE: u64 = 64 << 20;

/// How to read.
pub(super) struct How<'a> {
    pub(super) workers: usize,
    pub(super) rate: RateLimit,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
}

/// A part of a file.
pub(super) struct Piece {
    pub(super) subject: usize,
    pub(super) range: Range<u64>,
}

/// Reads all files of the ground.
pub(super) fn scan(context: &CheckContext, how: &How<'_>, findings: &Findings) -> Result<Tally> {
    let total = context.subjects.iter().map(|subject| subject.size).sum();
    how.progress
        .phase("checking pages", Some(total), Unit::Bytes);
    let pieces = pieces(&context.subjects);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<Tally> {
        let mut reading = Reading::new(context, how, findings);
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let done = how.cancel.check().and_then(|()| reading.piece(piece));
            if done.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done?;
        }
        Ok(reading.tally)
    };
    let tallies: Vec<Result<Tally>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..how.workers.max(1)).map(|_| scope.spawn(work)).collect();
        all_joined(threads, "a thread")
    });
    how.progress.end();
    let mut sum = Tally::default();
    for tally in tallies {
        sum.add(&tally?);
    }
    Ok(sum)
}

fn pieces(subjects: &[Subject]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (subject, file) in subjects.iter().enumerate() {
        let mut at = 0;
        loop {
            let end = (at + PIECE).min(file.size);
            pieces.push(Piece {
                subject,
                range: at..end,
            });
            at = end;
            if at >= file.size {
                break;
            }
        }
    }
    pieces
}
