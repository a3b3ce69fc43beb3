//! Statements out of packets: from files of them, from a pipe, from an interface; out of what a relay passes on,
//! and from within a server.
//!
//! | file | what |
//! |---|---|
//! | `pcap` | files of packets |
//! | `frame` | a packet's part of a stream |
//! | `order` | both directions of a connection, in the order in which they were said |
//! | `connections` | all connections, each with its decoder |
//! | `live/` | packets of an interface, as they go by |
//! | `tap/` | what passes through a relay |
//! | `uprobes/` | what a server's own functions get |

mod connections;
mod frame;
pub mod live;
mod order;
mod pcap;
pub mod tap;
pub mod uprobes;

pub use connections::Options;
pub(crate) use pcap::is_begun_by;
pub use pcap::{Frame, Frames};

use crate::statement::{Coverage, Source, Statement};
use connections::Connections;
use evenkeel_op::{Cancel, Error, Result};
use frame::Held;
use std::io::Read;

/// Statements out of a capture.
#[derive(Debug)]
pub struct Capture<R> {
    frames: Frames<R>,
    options: Options,
    damage: Option<Error>,
}

impl<R: Read> Capture<R> {
    /// Starts to read a capture in pcap or pcapng.
    ///
    /// # Errors
    ///
    /// `Usage` when it is neither; when it cannot be read.
    pub fn new(from: R, options: Options) -> Result<Self> {
        Ok(Self {
            frames: Frames::new(from)?,
            options,
            damage: None,
        })
    }

    /// Returns whether the capture ended within a packet.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.frames.is_cut()
    }

    /// Returns what is wrong with the capture from where it was not read on.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }
}

impl<R: Read> Source for Capture<R> {
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let mut all = Connections::new(self.options.clone());
        let mut unreadable = 0;
        while !cancel.is_cancelled() {
            let frame = match self.frames.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.damage = Some(error);
                    break;
                }
            };
            all.coverage.packets += 1;
            if !frame::is_known(frame.link) {
                return Err(unknown_link(frame.link));
            }
            match frame::read(frame.link, frame.data) {
                Held::Segment(segment) => all.take(frame.at_ns, &segment, each)?,
                Held::Unreadable => unreadable += 1,
                Held::Other => {}
            }
        }
        all.end_all(each)?;
        all.coverage.undecodable += unreadable;
        Ok(all.coverage)
    }
}

fn unknown_link(link: u16) -> Error {
    Error::failed(format!(
        "the capture has packets of link type {link}, which cannot be read"
    ))
    .hint("capture on an Ethernet interface, on lo, or with -i any")
}
