//! Statements as the server's own functions get them: also what TLS hides on the wire, and what comes by a Unix socket.
//!
//! | file | what |
//! |---|---|
//! | `server.bpf.c` | what runs in the kernel, whenever the server calls one of these functions |
//! | `symbols` | where the functions are in the server's program |
//! | `probes` | programs into the kernel, records out of it |
//! | `record` | what they write |
//! | `parameters` | MySQL's parameters as the protocol has them |
//! | `sessions` | statements out of records |
//! | `built`, `absent` | the capture, in a program that was built with the feature `uprobes`, and in one that was not |

#[cfg(not(feature = "uprobes"))]
mod absent;
#[cfg(feature = "uprobes")]
mod built;
#[cfg(feature = "uprobes")]
mod parameters;
#[cfg(feature = "uprobes")]
mod probes;
#[cfg(feature = "uprobes")]
mod record;
#[cfg(feature = "uprobes")]
mod sessions;
#[cfg(feature = "uprobes")]
mod symbols;

#[cfg(not(feature = "uprobes"))]
pub use absent::Uprobes;
#[cfg(feature = "uprobes")]
pub use built::Uprobes;

use std::time::Duration;

/// Of a text no more is read than this.
pub const MOST_TEXT: usize = 1 << 20;

/// How to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The server's process.
    pub pid: i32,
    /// Bytes of memory for what was not decoded yet; by the host's memory where it is not said.
    pub ring_bytes: Option<u64>,
    /// Bytes of a statement that are kept; at most [`MOST_TEXT`].
    pub text_bytes: usize,
    /// How long to capture.
    pub span: Option<Duration>,
}
