//! What may take long, beside the loop that probes: a thread with a bounded queue. Handing over never waits. What does
//! not fit is dropped and counted.

use evenkeel_op::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the end of a thread is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// A thread that works on what it is handed.
#[derive(Debug)]
pub struct Aside<T> {
    to: SyncSender<T>,
    thread: JoinHandle<()>,
    /// Handed over, and not worked on yet.
    waiting: Arc<AtomicU64>,
    dropped: u64,
}

impl<T: Send + 'static> Aside<T> {
    /// Starts the thread. So many may wait.
    ///
    /// # Errors
    ///
    /// `Failed` where the system gives no threads.
    pub fn start(
        name: &str,
        most: usize,
        mut work: impl FnMut(T) + Send + 'static,
    ) -> Result<Self> {
        let (to, from) = sync_channel(most);
        let waiting = Arc::new(AtomicU64::new(0));
        let counted = waiting.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for one in from {
                    work(one);
                    counted.fetch_sub(1, Ordering::SeqCst);
                }
            })
            .context(|| "failed to start a thread")?;
        Ok(Self {
            to,
            thread,
            waiting,
            dropped: 0,
        })
    }

    /// Hands one over; returns whether there was room.
    pub fn hand(&mut self, one: T) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let has_room = self.to.try_send(one).is_ok();
        if !has_room {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.dropped += 1;
        }
        has_room
    }

    /// Returns how many were dropped since this was asked last.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Waits until everything is worked on, but no longer than this. Returns how many are not, or were dropped since
    /// that was asked last.
    #[must_use]
    pub fn finish(self, within: Duration) -> u64 {
        let Self {
            to,
            thread,
            waiting,
            dropped,
        } = self;
        drop(to);
        let until = Instant::now() + within;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        waiting.load(Ordering::SeqCst) + dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn who_hands_over_never_waits_and_what_is_dropped_is_counted() {
        let (open, gate) = channel::<()>();
        let (tell, told) = channel();
        let mut aside = Aside::start("test", 2, move |number: u32| {
            let _ = gate.recv();
            let _ = tell.send(number);
        })
        .unwrap();
        let taken = (0..100).filter(|number| aside.hand(*number)).count();
        // One may be in the thread's hands.
        assert!((2..=3).contains(&taken), "{taken}");
        assert_eq!(aside.dropped(), 100 - taken as u64);
        assert_eq!(aside.dropped(), 0);
        drop(open);
        assert_eq!(aside.finish(Duration::from_secs(60)), 0);
        assert_eq!(told.iter().count(), taken);
    }

    #[test]
    fn what_is_stuck_is_left_behind() {
        let (open, gate) = channel::<()>();
        let mut aside = Aside::start("test", 4, move |()| {
            let _ = gate.recv();
        })
        .unwrap();
        assert!(aside.hand(()) && aside.hand(()));
        assert_eq!(aside.finish(Duration::from_millis(20)), 2);
        drop(open);
    }
}
