//! How this crate fails: damage to the repository, and a store that cannot do what was asked.

use evenkeel_op::{Error, ErrorKind};
use std::io;

/// Makes the error for bytes that are not what was written.
pub(crate) fn damaged(object: &str, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Differs, format!("{object} is damaged: {what}"))
        .hint("run 'evenkeel verify' to see what else is damaged and which generations it affects")
}

/// Makes the error for a store that failed while `action` ("write", "read" …) was done to `object`.
///
/// An object that must be there and is not is damage.
pub(crate) fn store_failed(action: &str, object: &str, cause: io::Error) -> Error {
    use io::ErrorKind::{
        NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, UnexpectedEof,
    };
    let kind = match cause.kind() {
        NotFound | UnexpectedEof if action == "read" => ErrorKind::Differs,
        _ => ErrorKind::Failed,
    };
    let hint = match cause.kind() {
        StorageFull => {
            Some("free space there, or run 'evenkeel forget' and 'evenkeel prune', then run again")
        }
        QuotaExceeded => Some("raise the disk quota, or forget and prune generations"),
        ReadOnlyFilesystem => Some("the repository's filesystem is read-only: remount it"),
        PermissionDenied => Some("run as a user who may read and write the repository"),
        _ => None,
    };
    let error = Error::new(kind, format!("failed to {action} {object}"));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
    .because(cause)
}
