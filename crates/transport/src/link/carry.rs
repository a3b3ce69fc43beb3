//! One connection of a link: a thread that writes and a thread that reads.

use super::state::{Attached, End, LinkState};
use super::{Carrier, Shared, TICK, WINDOW};
use crate::frame::{self, FrameKind, Header};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A side with nothing to say says so this often, or three times before the other gives it up.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// What was taken is acknowledged with the next message, or after this time. At once, it would go in
/// a packet of its own just before most replies, and TCP holds back the second of two small packets
/// until the first is acknowledged: 40 ms a question.
const TOLD_LATE: Duration = Duration::from_millis(10);
/// So much that was taken is acknowledged at once: the other side may be waiting for room.
const TOLD_BYTES: usize = WINDOW / 8;
/// Small frames leave together, in one packet.
const BUFFER: usize = 64 << 10;

/// Continues over `carrier`.
pub(super) fn attach(shared: &Arc<Shared>, carrier: Carrier) {
    let Carrier {
        reader,
        writer,
        pushed,
        cut,
    } = carrier;
    let mut state = shared.state();
    state.detach();
    if state.end.is_some() {
        cut();
        return;
    }
    state.epochs += 1;
    let epoch = state.epochs;
    state.carrier = Some(Attached {
        epoch,
        cut,
        heard: Instant::now(),
        greeted: false,
    });
    state.traffic.connections += 1;
    state.traffic.sent += pushed;
    shared.changed.notify_all();
    drop(state);
    for (name, run) in [
        (
            "link-write",
            Box::new(Writing {
                shared: shared.clone(),
                epoch,
                writer: BufWriter::with_capacity(BUFFER, writer),
            }) as Box<dyn Side>,
        ),
        (
            "link-read",
            Box::new(Reading {
                shared: shared.clone(),
                epoch,
                reader: BufReader::new(reader),
            }),
        ),
    ] {
        let thread = std::thread::Builder::new().name(name.to_owned());
        // Without threads there is no connection, and the link gives up in time.
        let _ = thread.spawn(move || run.run());
    }
}

trait Side: Send {
    fn run(self: Box<Self>);
}

struct Writing {
    shared: Arc<Shared>,
    epoch: u64,
    writer: BufWriter<Box<dyn Write + Send>>,
}

impl Side for Writing {
    fn run(mut self: Box<Self>) {
        // Whatever went wrong, the connection is of no use any more.
        let _ = self.write();
        self.shared.state().detach_epoch(self.epoch);
        self.shared.changed.notify_all();
    }
}

/// What to write next.
enum Next {
    Frame(FrameKind, u64, u64, Arc<[u8]>),
    Flush,
    End,
}

impl Writing {
    fn write(&mut self) -> io::Result<()> {
        let (arrived, taken) = {
            let state = self.shared.state();
            (state.arrived, state.taken)
        };
        let session = self.shared.session;
        self.frame(FrameKind::Hello, arrived, taken, &session)?;
        self.writer.flush()?;
        let mut said = Instant::now();
        let mut flushed = true;
        loop {
            match self.next(said, flushed) {
                Next::Frame(kind, number, taken, payload) => {
                    self.frame(kind, number, taken, &payload)?;
                    said = Instant::now();
                    flushed = false;
                    if kind == FrameKind::Bye {
                        self.writer.flush()?;
                        self.shared.state().bye_said = true;
                        self.shared.changed.notify_all();
                    }
                }
                Next::Flush => {
                    self.writer.flush()?;
                    flushed = true;
                }
                Next::End => return Ok(()),
            }
        }
    }

    /// Waits for something to write.
    fn next(&self, said: Instant, flushed: bool) -> Next {
        let mut state = self.shared.state();
        loop {
            let Some(carrier) = state.carrier.as_ref().filter(|one| one.epoch == self.epoch) else {
                return Next::End;
            };
            let greeted = carrier.greeted;
            if state.end.is_some() {
                return Next::End;
            }
            let taken = state.taken;
            let quiet_max = SIGN_OF_LIFE.min(state.timeouts.stall / 3);
            if greeted {
                if let Some((number, message)) = state.next() {
                    state.reported(taken);
                    return Next::Frame(FrameKind::Data, number, taken, message);
                }
                if state.bye && !state.bye_said && state.is_drained() {
                    return Next::Frame(FrameKind::Bye, 0, taken, Arc::from([]));
                }
            }
            let untold = taken != state.taken_reported;
            let late = state
                .untold_since
                .is_some_and(|since| since.elapsed() > TOLD_LATE);
            if untold && (late || state.untold_bytes > TOLD_BYTES) || said.elapsed() > quiet_max {
                state.reported(taken);
                return Next::Frame(FrameKind::Alive, 0, taken, Arc::from([]));
            }
            if !flushed {
                return Next::Flush;
            }
            state = self
                .shared
                .wait(state, if untold { TOLD_LATE } else { TICK });
        }
    }

    fn frame(
        &mut self,
        kind: FrameKind,
        number: u64,
        taken: u64,
        payload: &[u8],
    ) -> io::Result<()> {
        let header = Header {
            kind,
            number,
            taken,
        };
        frame::write(&mut self.writer, header, payload)?;
        self.shared.state().traffic.sent += frame::length(payload);
        Ok(())
    }
}

struct Reading {
    shared: Arc<Shared>,
    epoch: u64,
    reader: BufReader<Box<dyn Read + Send>>,
}

impl Side for Reading {
    fn run(mut self: Box<Self>) {
        // As above.
        let _ = self.read();
        self.shared.state().detach_epoch(self.epoch);
        self.shared.changed.notify_all();
    }
}

impl Reading {
    fn read(&mut self) -> io::Result<()> {
        loop {
            let (header, payload) = frame::read(&mut self.reader)?;
            let mut state = self.shared.state();
            let Some(carrier) = state.carrier.as_mut().filter(|one| one.epoch == self.epoch) else {
                return Ok(());
            };
            carrier.heard = Instant::now();
            let greeted = carrier.greeted;
            state.traffic.received += frame::length(&payload);
            if !greeted && header.kind != FrameKind::Hello {
                return Err(io::Error::other("no hello"));
            }
            state.acknowledge(header.taken);
            let fits = match header.kind {
                FrameKind::Hello => self.hello(&mut state, header.number, &payload),
                FrameKind::Data => state.deliver(header.number, payload),
                FrameKind::Alive => true,
                FrameKind::Bye => {
                    state.end.get_or_insert(End::Bye);
                    false
                }
            };
            self.shared.changed.notify_all();
            if !fits {
                return Ok(());
            }
        }
    }

    fn hello(&self, state: &mut LinkState, arrived: u64, session: &[u8]) -> bool {
        if session != self.shared.session || !state.resume_after(arrived) {
            return false;
        }
        state.alone_since = None;
        if let Some(carrier) = state.carrier.as_mut() {
            carrier.greeted = true;
        }
        true
    }
}
