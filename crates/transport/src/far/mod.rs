//! The side that works, on the other host.

mod attach;
mod directory;

pub use attach::attach;

use crate::link::{Carrier, Link, LinkTimeouts, SessionId};
use crate::message::{self, Lane, Order, Word};
use crate::store::{Calls, LinkStore};
use directory::Directory;
use evenkeel_op::{Cancel, Context, Error, Result};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Before there is an order, nothing is lost with a connection.
const FIRST_ORDER: Duration = Duration::from_secs(10);

/// The far end of a link, while an order is carried out.
#[derive(Clone)]
pub struct Far {
    link: Link,
    calls: Arc<Calls>,
}

/// Waits for the near side in the session's directory below `here`, takes its order, and lets
/// `perform` carry it out. Ends when the near side knows the outcome, or is gone for longer than
/// `timeouts`: then `cancel` is set. Leaves nothing in the directory.
pub fn serve(
    here: &Path,
    session: SessionId,
    timeouts: LinkTimeouts,
    cancel: &Cancel,
    perform: impl FnOnce(&Far, Vec<Vec<u8>>, String) -> Result<u8>,
) -> Result<()> {
    let directory = Directory::of(here, session);
    let listener = UnixListener::bind(directory.socket())
        .context(|| format!("failed to listen at {}", directory.socket().display()))?;
    let link = Link::new(session, timeouts.min_loss(FIRST_ORDER));
    let accepting = link.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let link = accepting.clone();
            std::thread::spawn(move || {
                // A stream that cannot be doubled is of no use; the near side tries again.
                if speaks(&stream)
                    && let Ok(carrier) = carrier(stream)
                {
                    link.attach(carrier);
                }
            });
        }
    });
    let far = Far {
        calls: Arc::new(Calls::new(link.clone())),
        link,
    };
    let outcome = far.obey(timeouts, cancel, perform);
    directory.remove();
    let outcome = outcome.map_err(|error| message::Failure::of(&error));
    let word = message::encode(Lane::Control, &Word::Done { outcome }, &[])?;
    if far.link.send(word).is_ok() {
        far.link.close();
    }
    Ok(())
}

impl Far {
    fn obey(
        &self,
        timeouts: LinkTimeouts,
        cancel: &Cancel,
        perform: impl FnOnce(&Self, Vec<Vec<u8>>, String) -> Result<u8>,
    ) -> Result<u8> {
        let Some(Order::Run { words, repository }) = self.first_order()? else {
            return Err(Error::failed("the first message was not an order"));
        };
        self.link.set_timeouts(timeouts);
        let receiving = (self.link.clone(), self.calls.clone(), cancel.clone());
        std::thread::spawn(move || {
            let (link, calls, cancel) = receiving;
            // However it ends: nobody is there any more for whom to continue.
            let _ = listen(&link, &calls, &cancel);
            calls.end();
            cancel.cancel(15);
        });
        perform(self, words, repository)
    }

    fn first_order(&self) -> Result<Option<Order>> {
        match self.link.receive()? {
            Some(bytes) => match message::split(&bytes)? {
                (Lane::Control, head, _) => message::head(head).map(Some),
                _ => Ok(None),
            },
            None => Ok(None),
        }
    }

    /// Says something to the near side.
    pub fn say(&self, word: &Word) {
        // A near side that is gone hears nothing, and the run ends for that reason soon.
        let _ = message::encode(Lane::Control, word, &[]).and_then(|word| self.link.send(word));
    }

    /// Returns the near side's repository; `place` is what it is called in messages.
    #[must_use]
    pub fn store(&self, place: &str) -> LinkStore {
        LinkStore::new(self.calls.clone(), place.to_owned())
    }
}

/// Takes what arrives, until the end.
fn listen(link: &Link, calls: &Calls, cancel: &Cancel) -> Result<()> {
    while let Some(bytes) = link.receive()? {
        match message::split(&bytes)? {
            (Lane::Reply, head, body) => calls.reply(head, body)?,
            (Lane::Control, head, _) => {
                if let Order::Cancel { signal } = message::head(head)? {
                    cancel.cancel(signal);
                }
            }
            (Lane::Ask, ..) => {}
        }
    }
    Ok(())
}

/// Waits until something arrives, which stays to be read. Another session that only looks whether this one is still
/// there says nothing, and must not take the place of the connection.
fn speaks(stream: &UnixStream) -> bool {
    let mut first = [0];
    loop {
        match rustix::net::recv(stream, &mut first, RecvFlags::PEEK) {
            Err(Errno::INTR) => {}
            Ok((_, length)) => return length > 0,
            Err(_) => return false,
        }
    }
}

fn carrier(stream: UnixStream) -> std::io::Result<Carrier> {
    let reader = stream.try_clone()?;
    let writer = stream.try_clone()?;
    Ok(Carrier {
        reader: Box::new(reader),
        writer: Box::new(writer),
        pushed: 0,
        cut: Box::new(move || {
            // One that is closed is fine.
            let _ = stream.shutdown(Shutdown::Both);
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn who_only_looks_is_no_connection() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(b"hello").unwrap();
        assert!(speaks(&far));
        let mut said = [0; 5];
        far.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"hello");
        drop(near);
        assert!(!speaks(&far));
    }
}
