//! What a server replicates, from whom and how far; and its applier stopped for a moment.
//!
//! The *receiver* fetches the source's binary log, the *applier* does what stands in it. What an
//! image of a replica holds is what was applied, so its place in the source's binary log is the
//! *executed* pair (`Relay_Master_Log_File`, `Exec_Master_Log_Pos`), never the one that was read.
//!
//! **Why the applier always runs again.** [`Stopped`] is made in this order: a note of what is about
//! to be stopped, a watchdog process with a connection of its own, the stop. The watchdog starts the
//! applier when it is asked to, when the process that stopped it is gone (a closed pipe: also
//! `kill -9`), and when it stood for too long. If both are killed, [`heal`] does what the note says,
//! at the next command.
//!
//! **What is not ours to start.** An applier that did not run before; one of a server that was
//! restarted since (`skip-slave-start` may be meant); one that ran since the note was written and
//! was stopped again, by somebody else.

mod advance;
mod filters;
mod lease;
mod note;
mod rejoin;
mod seed;
mod statements;
mod status;
mod stop;
mod watchdog;

pub use advance::Advance;
pub use filters::Filters;
pub use lease::{Halted, ReplicaLease};
pub use note::{LeftStanding, heal};
pub use rejoin::rejoining;
pub use seed::{Seeding, SourceCoordinates, seeding};
pub use statements::of_channel;
pub use status::{Channel, Position, Positioning, Replication, ThreadState, applied_under_lock};
pub use stop::{StopLimits, Stopped};
pub use watchdog::{Program, watch};
