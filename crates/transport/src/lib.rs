//! The same program on another host, over ssh.
//!
//! ```text
//! here                                                   there
//! near ── ssh ── bootstrap: directory, program, hash ──► attach ──► serve (outlives the connection)
//!   │                                                                │
//!   ├── link: numbered messages, any number of connections ──────────┤
//!   │     control: what to do ►                   ◄ progress, answer │
//!   └── repository ◄── store: objects, locks ────────────────────────┘
//! ```
//!
//! The work is done on the other host: reading, comparing, hashing, compressing. What crosses the
//! link is what would be written to the repository, and what little of it is read to compare with.
//! Nothing on the other host waits for the link while a lock is held.

mod far;
mod frame;
mod link;
mod message;
mod near;
mod program;
mod ssh;
mod store;

pub use far::{Far, attach, serve};
pub use link::{Carrier, Link, LinkTimeouts, SessionId, Traffic};
pub use message::{Failure, Order, Word};
pub use near::{Near, Outcome};
pub use ssh::Ssh;
pub use store::{Access, LinkStore};
