//! How this crate fails: damage to the repository, and a store that cannot do what was asked.

use crate::names;
use evenkeel_op::{Error, ErrorKind, units};
use std::io;

/// What an error of this crate is about.
struct About {
    object: String,
    /// What is wrong with it; the whole error says so where this is not known by itself.
    what: Option<String>,
}

/// Returns the object that an error of this crate is about, and what is wrong with it.
pub(crate) fn describe(error: &Error) -> (String, String) {
    let (object, what) = match error.fact::<About>() {
        Some(about) => (about.object.as_str(), about.what.clone()),
        None => ("repository", None),
    };
    (object.to_owned(), what.unwrap_or_else(|| error.chain()))
}

/// Whether an error ends a check, rather than being something that the check found.
pub(crate) fn is_stop(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted | ErrorKind::Terminated | ErrorKind::Busy
    )
}

/// Makes the error for bytes that are not what was written.
pub(crate) fn damaged(object: &str, what: impl std::fmt::Display) -> Error {
    let about = About {
        object: object.to_owned(),
        what: Some(what.to_string()),
    };
    let message = format!("{object} is damaged: {what}");
    let error = Error::new(ErrorKind::Differs, message).stating(about);
    match object {
        // Verify cannot begin without them, and would say the same.
        names::IDENTITY | names::HEAD => error,
        _ => error.hint(
            "run 'evenkeel verify' to see what else is damaged and which generations it affects",
        ),
    }
}

/// Makes the error for a repository whose identity file is damaged, as `error` says: nothing of it can be opened.
pub(crate) fn unopenable(place: &str, error: &Error) -> Error {
    let (object, what) = describe(error);
    Error::new(
        error.kind(),
        format!("{place} cannot be opened: its file '{object}' is damaged ({what})"),
    )
    .hint(
        "copy that file from a copy of this repository: it is identical there, unless the copy \
         has different keys",
    )
    .hint("the backups are in other files: do not remove those")
}

/// Makes the error for a store that keeps what it should have removed.
pub(crate) fn refused(objects: &[String]) -> Error {
    let first = objects.first().map_or("", String::as_str);
    Error::refused(format!(
        "the store refuses to remove {} that nothing needs; the first is {first}",
        units::count(objects.len(), "object")
    ))
    .hint("nothing is lost, and nothing needs them: everything else was done")
    .hint(
        "when the store allows it (the retention has ended, or the credentials can delete), \
         run 'evenkeel prune --execute' again",
    )
}

/// Makes the error for generations that the store does not let anybody forget.
pub(crate) fn not_forgotten(generations: &[u32]) -> Error {
    let numbers: Vec<String> = generations.iter().map(u32::to_string).collect();
    Error::refused(format!(
        "the store refuses to remove the lists of files of generations {}: they were not forgotten",
        numbers.join(", ")
    ))
    .hint("nothing is lost: you can still restore them; the others were forgotten")
    .hint(
        "when the store allows it (the retention has ended, or the credentials can delete), \
         forget them again",
    )
}

/// Makes the error for a store that failed while `action` ("write", "read" …) was done to `object`.
///
/// An object that must be there and is not is damage.
pub(crate) fn store_failed(action: &str, object: &str, cause: io::Error) -> Error {
    use io::ErrorKind::{
        NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull, UnexpectedEof,
    };
    let cause = match Error::out_of(cause) {
        // A store that knows what to do says it better.
        Ok(reported) => return reported,
        Err(cause) => cause,
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
    let error = Error::new(kind, format!("failed to {action} {object}")).stating(About {
        object: object.to_owned(),
        what: None,
    });
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
    .because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_reported_with_its_object() {
        let error = damaged("packs/0001", "its header is broken");
        let expected = ("packs/0001".to_owned(), "its header is broken".to_owned());
        assert_eq!(describe(&error), expected);
        assert_eq!(error.chain(), "packs/0001 is damaged: its header is broken");
        assert_eq!(
            describe(&Error::failed("x: y is damaged: z")).0,
            "repository"
        );
    }

    #[test]
    fn what_a_store_says_is_not_taken_apart() {
        let cause = io::Error::other("the disk is damaged: replace it");
        let error = store_failed("read", "packs/0001", cause);
        let text = "failed to read packs/0001: the disk is damaged: replace it";
        assert_eq!(describe(&error), ("packs/0001".to_owned(), text.to_owned()));
    }
}
