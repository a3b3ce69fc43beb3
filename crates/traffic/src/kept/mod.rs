//! Statements that are kept: a capture as a directory of Parquet files, which other programs query with SQL.
//!
//! | file | what |
//! |---|---|
//! | `columns` | what a row has |
//! | `facts` | what a file says of itself, and the last one of what the capture missed |
//! | `rows` | rows in memory, until they are written as a row group |
//! | `redact` | statements without their values |
//! | `writing` | files that appear when they are complete |
//! | `file` | the rows of one file, read back |
//! | `bounds` | how large they may be |
//! | `reading` | all files of a directory, as a source |

mod bounds;
mod columns;
mod facts;
mod file;
mod reading;
mod redact;
mod rows;
mod writing;

pub use facts::{CaptureEnd, FileFacts, FilePart};
pub use file::is_begun_by as is_begun_by_parquet;
pub use reading::{KeptCapture, Missing};
pub use writing::{Append, CaptureDirectory, Settings, Written};

use evenkeel_op::Error;
use parquet::errors::ParquetError;

/// The object that says that a directory holds captures. Engines pass over names that begin like this.
pub const MARK: &str = "_capture.json";
/// What it says.
const MARK_TEXT: &str = "{\"schema\":\"evenkeel/capture-directory/1\"}\n";
/// What the names of files end with.
const ENDING: &str = ".parquet";
/// What the names of encrypted ones end with.
const ENCRYPTED_ENDING: &str = ".parquet.age";

/// Puts an error of the Parquet library into our words; what went wrong below it is told as such.
fn fault(what: String, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => evenkeel_op::Error::out_of(*cause)
                .unwrap_or_else(|cause| Error::failed(what).because(cause)),
            Err(cause) => Error::failed(what).because(cause),
        },
        error => Error::failed(what).because(error),
    }
}
