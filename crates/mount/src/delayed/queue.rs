//! Answers that are ready and wait for their time. They wait side by side: the threads that give
//! them are few, and each answer is held by none of them until it is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that give answers: the kernel copies the bytes of several at once.
const THREADS: usize = 4;

type Answer = Box<dyn FnOnce() + Send>;

/// Answers in the order in which they are due.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<DelayQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct DelayQueue {
    /// By when it is due, and by number: two may be due at once.
    waiting: BTreeMap<(Instant, u64), Answer>,
    next: u64,
    /// Until when a thread sleeps for the first of them. The others sleep until they are called.
    watched_until: Option<Instant>,
    is_closed: bool,
    most: usize,
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, DelayQueue> {
        // A thread that panicked has given its answer away first.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives answers until the queue is closed and empty.
    fn work(&self) {
        let mut state = self.held();
        loop {
            let first = state.waiting.first_key_value().map(|(key, _)| key.0);
            let now = Instant::now();
            state = match first {
                Some(due) if due <= now => {
                    let taken = state.waiting.pop_first();
                    let others_wait = !state.waiting.is_empty();
                    drop(state);
                    if others_wait {
                        // Another thread takes the next while this one is being given.
                        self.changed.notify_one();
                    }
                    if let Some((_, answer)) = taken {
                        answer();
                    }
                    self.held()
                }
                Some(due) if state.watched_until.is_none_or(|until| due < until) => {
                    state.watched_until = Some(due);
                    let woken = self.changed.wait_timeout(state, due - now);
                    let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
                    if state.watched_until == Some(due) {
                        state.watched_until = None;
                    }
                    state
                }
                None if state.is_closed => {
                    self.changed.notify_all();
                    return;
                }
                _ => {
                    let woken = self.changed.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

impl Queue {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let threads = (0..THREADS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                let named = std::thread::Builder::new().name("answers".to_owned());
                named.spawn(move || shared.work())
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    /// Gives an answer when `delay` has passed since `asked`; at once if that is now.
    pub(crate) fn answer(
        &self,
        asked: Instant,
        delay: Duration,
        answer: impl FnOnce() + Send + 'static,
    ) {
        if delay.is_zero() {
            return answer();
        }
        let due = asked + delay;
        let mut state = self.shared.held();
        let number = state.next;
        state.next += 1;
        state.waiting.insert((due, number), Box::new(answer));
        state.most = state.most.max(state.waiting.len());
        let is_first = state.waiting.first_key_value().map(|(key, _)| key.1) == Some(number);
        if is_first {
            // Whoever sleeps for what was first until now would sleep too long.
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    /// Returns how many answers have waited at once, at most.
    pub(crate) fn most(&self) -> usize {
        self.shared.held().most
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.held().is_closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}
