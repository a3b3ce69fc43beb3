//! What outlasts the process, written on a thread of its own: a disk that is slow or full delays no verdict. What could
//! not be written is tried again.

use crate::board::Board;
use crate::keep::Keep;
use evenkeel_op::{Context, Error, Result, units};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// From a failure to the next try.
const RETRY: Duration = Duration::from_secs(5);

/// Writes what is known to the directory, whenever that is wanted.
#[derive(Debug)]
pub struct Saver {
    shared: Arc<SaverShared>,
}

#[derive(Debug, Default)]
struct SaverShared {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

/// Wishes are counted: many of them are one write.
#[derive(Debug, Default)]
struct Wishes {
    wanted: u64,
    saved: u64,
    ends: bool,
    /// Why the last try failed, in words.
    failure: Option<String>,
    /// What nobody was told yet.
    news: Option<Result<()>>,
}

impl Saver {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// `Failed` where the system gives no threads.
    pub fn start(keep: Arc<Keep>, board: Arc<Board>) -> Result<Self> {
        Self::saving("save", move || keep.save(&board))
    }

    fn saving(name: &str, save: impl Fn() -> Result<()> + Send + 'static) -> Result<Self> {
        let shared = Arc::new(SaverShared::default());
        let own = shared.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || own.work(&save))
            .context(|| "failed to start a thread")?;
        Ok(Self { shared })
    }

    /// Has what is known now written soon.
    pub fn want(&self) {
        self.shared.wishes().wanted += 1;
        self.shared.changed.notify_all();
    }

    /// Returns that it failed, or that it no longer does, once.
    #[must_use]
    pub fn news(&self) -> Option<Result<()>> {
        self.shared.wishes().news.take()
    }

    /// Has what is known now written, and waits for it, but no longer than this.
    ///
    /// # Errors
    ///
    /// `Failed` if it is not written by then.
    pub fn finish(self, within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        let mut wishes = self.shared.wishes();
        wishes.wanted += 1;
        wishes.ends = true;
        let last = wishes.wanted;
        self.shared.changed.notify_all();
        while wishes.saved < last {
            if let Some(Err(error)) = wishes.news.take() {
                return Err(error);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let within = units::duration(within);
                let failure = match wishes.failure.take() {
                    Some(why) => why,
                    None => format!("the state was not written within {within}: its disk is slow"),
                };
                return Err(Error::failed(failure)
                    .hint("at the next start, drains and failures are those of the last file"));
            }
            let waited = self.shared.changed.wait_timeout(wishes, left);
            wishes = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        Ok(())
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.shared.wishes().ends = true;
        self.shared.changed.notify_all();
    }
}

impl SaverShared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn work(&self, save: &dyn Fn() -> Result<()>) {
        while let Some(wanted) = self.next() {
            // Nobody waits for the lock while the disk is waited for.
            let saved = save();
            let mut wishes = self.wishes();
            match saved {
                Ok(()) => {
                    wishes.saved = wanted;
                    if wishes.failure.take().is_some() {
                        wishes.news = Some(Ok(()));
                    }
                }
                Err(error) => {
                    // The same failure again and again is one.
                    let is_new = wishes.failure.replace(error.chain()).is_none();
                    if is_new || wishes.ends {
                        wishes.news = Some(Err(error));
                    }
                    self.changed.notify_all();
                    let until = Instant::now() + RETRY;
                    while !wishes.ends && Instant::now() < until {
                        let left = until.saturating_duration_since(Instant::now());
                        let waited = self.changed.wait_timeout(wishes, left);
                        wishes = waited.unwrap_or_else(|e| e.into_inner()).0;
                    }
                    if wishes.ends && wishes.wanted == wanted {
                        return;
                    }
                }
            }
            drop(wishes);
            self.changed.notify_all();
        }
    }

    /// Waits for a wish; `None` in the end.
    fn next(&self) -> Option<u64> {
        let mut wishes = self.wishes();
        while wishes.saved == wishes.wanted {
            if wishes.ends {
                return None;
            }
            let waited = self.changed.wait(wishes);
            wishes = waited.unwrap_or_else(|e| e.into_inner());
        }
        Some(wishes.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn who_wants_it_waits_for_nothing_and_many_wishes_are_one_write() {
        let (open, gate) = channel::<()>();
        let saves = Arc::new(AtomicU32::new(0));
        let counted = saves.clone();
        let saver = Saver::saving("test", move || {
            let _ = gate.recv();
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
        for _ in 0..100 {
            saver.want();
        }
        let error = saver.finish(Duration::from_millis(20)).unwrap_err();
        assert!(error.chain().contains("was not written"), "{error}");
        drop(open);
        let count = || saves.load(Ordering::SeqCst);
        for _ in 0..1000 {
            if count() > 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!((1..=2).contains(&count()), "{}", count());
    }

    #[test]
    fn a_failure_is_said_once_and_tried_again() {
        let is_full = Arc::new(AtomicBool::new(true));
        let now = is_full.clone();
        let saver = Saver::saving("test", move || match now.load(Ordering::SeqCst) {
            true => Err(Error::failed("the disk is full")),
            false => Ok(()),
        })
        .unwrap();
        saver.want();
        let news = || {
            for _ in 0..3000 {
                if let Some(news) = saver.news() {
                    return news;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("no news");
        };
        assert!(news().is_err());
        is_full.store(false, Ordering::SeqCst);
        // Nobody has to ask for it.
        assert!(news().is_ok());
        saver.finish(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn what_cannot_be_written_in_the_end_is_said() {
        let saver = Saver::saving("test", || Err(Error::failed("the disk is full"))).unwrap();
        saver.want();
        let error = saver.finish(Duration::from_secs(60)).unwrap_err();
        assert!(error.chain().contains("the disk is full"), "{error}");
    }
}
