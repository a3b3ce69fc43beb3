//! Ends a lock that is held for too long, from a connection of its own.

use crate::connect::Session;
use crate::options::ConnectOptions;
use evenkeel_op::{Error, Result};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

enum Order {
    Arm(Duration),
}

/// A thread that kills the lock's connection when its time is up.
pub(super) struct Watchdog {
    // Dropping the sender ends the thread.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<bool>>,
}

impl Watchdog {
    /// Opens the second connection; fails when the server has none to spare.
    pub(super) fn start(options: &ConnectOptions, guarded: u64) -> Result<Self> {
        let mut session = Session::open(options)?;
        // It may have to wait as long as the lock is held.
        session.run("SET SESSION wait_timeout = 28800")?;
        let (orders, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("lock-watchdog".to_owned())
            .spawn(move || {
                let Ok(Order::Arm(limit)) = inbox.recv() else {
                    return false;
                };
                let until = Instant::now() + limit;
                loop {
                    match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                        Ok(Order::Arm(_)) => {}
                        Err(RecvTimeoutError::Disconnected) => return false,
                        Err(RecvTimeoutError::Timeout) => break,
                    }
                }
                // Without the privilege the lock's owner still learns that it was too long.
                let _ = session.run(&format!("KILL {guarded}"));
                true
            })
            .map_err(|e| Error::failed("failed to start the lock's watchdog").because(e))?;
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    /// Starts the clock, once: later calls change nothing.
    pub(super) fn arm(&self, limit: Duration) {
        if let Some(orders) = &self.orders {
            // The thread is only gone when it was never armed and dropped, or has fired.
            let _ = orders.send(Order::Arm(limit));
        }
    }

    /// Returns whether the clock has run out.
    pub(super) fn has_fired(&self) -> bool {
        // The thread ends by itself only then.
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Stops the clock; returns whether it had run out.
    pub(super) fn disarm(&mut self) -> bool {
        self.orders = None;
        self.thread
            .take()
            .is_some_and(|thread| thread.join().unwrap_or(true))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.disarm();
    }
}
