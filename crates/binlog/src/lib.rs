//! Binary logs of MySQL and MariaDB, as far as an archive and a point in time need them.
//!
//! A file begins with the magic `fe 62 69 6e`; events follow, each a header of 19 bytes, a body
//! and, where the file's format description says so, a CRC32 of both:
//!
//! ```text
//! u32 time  u8 kind  u32 server id  u32 length  u32 next position  u16 flags   (little endian)
//! ```
//!
//! Source: the binary log pages of the MySQL internals manual and of the MariaDB knowledge base.
//!
//! * [`Header`], [`Format`], [`Rotate`]: single events.
//! * [`Events`]: the events of a file, which distinguish the torn tail that a crash leaves from damage.
//! * [`Groups`]: which events belong to one transaction, by which GTID, and where it ends.
//! * [`end_of_file`]: how far a file goes, read from headers alone.
//! * [`change`]: which table an event changes, as far as it says.
//! * [`Layout`]: which columns an update changed; [`Images`]: its rows as if they were inserted elsewhere.
//! * [`Gtid`], [`GtidSet`]: one transaction's name, and what a server or an archive has.

mod clock;
mod end;
mod event;
mod events;
mod groups;
mod gtid;
mod images;
mod inserted;
pub mod kind;
mod name;
mod set;
mod tables;

pub use end::{End, end_of_file, last_in_index};
pub use event::{Format, Header, Rotate, body};
pub use events::{Event, Events, Tail};
pub use groups::{Group, Groups, Unfinished, statement};
pub use gtid::Gtid;
pub use images::Layout;
pub use inserted::{Images, begins_group, event_of, renamed};
pub use name::{number_of, successor};
pub use set::GtidSet;
pub use tables::{Change, Done, change, started};

/// The first bytes of every binary log file.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];
/// The first bytes of one that MySQL encrypted.
pub const MAGIC_ENCRYPTED: [u8; 4] = [0xfd, b'b', b'i', b'n'];
/// Length of an event's header, in bytes.
pub const HEADER: usize = 19;
/// Length of an event's checksum, in bytes.
pub const CHECKSUM: usize = 4;
/// An event cannot be longer than a packet of 1 GiB and what surrounds it.
pub const EVENT_MAX: u32 = (1 << 30) + (1 << 20);
