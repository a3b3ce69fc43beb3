//! Where the loop hears of everything: descriptors at which something came, and threads that have something to say.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{read, write};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What the bell is called; everything else has a number of its own.
const BELL: u64 = u64::MAX;
/// So many are heard at once.
const EVENTS: usize = 64;

/// Descriptors that are listened to, and a bell that any thread can ring.
#[derive(Debug)]
pub(crate) struct Ears {
    epoll: OwnedFd,
    bell: OwnedFd,
}

impl Ears {
    /// Makes them. Errors: those of the operating system.
    pub(crate) fn new() -> io::Result<Self> {
        let ears = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        ears.add(&ears.bell, BELL)?;
        Ok(ears)
    }

    /// Listens to a descriptor from now on, under a number. Errors: those of the operating system.
    pub(crate) fn add(&self, descriptor: impl AsFd, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, descriptor, data, EventFlags::IN)?)
    }

    /// Has whoever listens look.
    pub(crate) fn ring(&self) {
        // A bell that has rung so often that it is full is still heard.
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Waits until something is heard, and returns the numbers of descriptors at which something came.
    pub(crate) fn listen(&self, wait: Duration) -> Vec<u64> {
        // Whole milliseconds: who is woken before its time would look in vain.
        let millis = wait.as_nanos().div_ceil(1_000_000);
        let wait = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        let wait = Timespec::try_from(wait).ok();
        let mut events = Vec::with_capacity(EVENTS);
        let spare = rustix::buffer::spare_capacity(&mut events);
        // Where that fails, which a signal may cause, nothing was heard.
        let _ = epoll::wait(&self.epoll, spare, wait.as_ref());
        let mut numbers = Vec::with_capacity(events.len());
        for Event { data, .. } in events {
            match data.u64() {
                BELL => {
                    let _ = read(&self.bell, &mut [0; 8]);
                }
                number => numbers.push(number),
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_came_is_heard_and_nothing_else() {
        let ears = Ears::new().unwrap();
        let (mut here, there) = UnixStream::pair().unwrap();
        ears.add(&there, 7).unwrap();
        assert!(ears.listen(Duration::ZERO).is_empty());
        here.write_all(b"x").unwrap();
        assert_eq!(ears.listen(Duration::from_secs(60)), [7]);
        // What is closed is not heard any more.
        drop(there);
        assert!(ears.listen(Duration::ZERO).is_empty());
    }

    #[test]
    fn a_bell_wakes_once() {
        let ears = Ears::new().unwrap();
        ears.ring();
        ears.ring();
        // It would wait for ever.
        assert!(ears.listen(Duration::MAX).is_empty());
        assert!(ears.listen(Duration::ZERO).is_empty());
    }
}
