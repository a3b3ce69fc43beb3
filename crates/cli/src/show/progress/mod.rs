//! Progress: bars on a terminal, else a line at phase changes and every thirty seconds; and a line for
//! whoever asks.

mod bars;
mod lines;
mod overheard;
mod phase;
mod reported;

pub(super) use bars::Bars;
pub(super) use lines::Lines;
pub(super) use overheard::Overheard;
pub(super) use reported::Noted;

/// Progress that can be asked for.
pub(super) trait Shown: evenkeel_op::Progress {
    /// Says how far the current phase is, at once.
    fn tell(&self);
}
