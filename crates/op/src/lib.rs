//! What every evenkeel operation is built on: errors that say what to do next, exit codes,
//! typed progress events, cancellation, units and pacing. No I/O to the user happens here.

pub mod boot;
pub mod cancel;
pub mod disk;
pub mod error;
pub mod exit;
pub mod living;
pub mod notes;
pub mod obeyed;
pub mod open_directory;
pub mod open_files;
pub mod own_directory;
pub mod paths;
pub mod progress;
pub mod rate;
pub mod run;
pub mod units;
pub mod workers;

pub use cancel::Cancel;
pub use error::{Context, Error, ErrorKind, Result};
pub use progress::{Event, Progress, Silent, Unit};
pub use run::Run;
