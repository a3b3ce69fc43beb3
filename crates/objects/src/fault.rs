//! What goes wrong in a store, as an I/O error that says what to do.

use object_store::Error;
use std::io;

/// Translates an error about an object.
pub(crate) fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    let text = match &error {
        Error::Unauthenticated { path, .. } => format!(
            "the store does not know these credentials (at {path}): {}",
            innermost(&error)
        ),
        Error::PermissionDenied { path, .. } => {
            format!(
                "the store does not allow this at {path}: {}",
                innermost(&error)
            )
        }
        Error::Precondition { path, .. } => {
            format!("{path} was changed by someone else meanwhile")
        }
        Error::AlreadyExists { path, .. } => format!("{path} exists already"),
        Error::NotFound { path, .. } => format!("{path} is not there"),
        _ => whole(&error),
    };
    io::Error::new(kind, text)
}

/// Whether trying again may help: the store or the way to it had trouble, nobody said no.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(error, Error::Generic { .. })
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    one_line(&last.to_string())
}

/// The error with its causes, each said once.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = one_line(&error.to_string());
    let mut last = error;
    while let Some(cause) = last.source() {
        let more = one_line(&cause.to_string());
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        last = cause;
    }
    text
}

/// Stores answer in pages of XML.
fn one_line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}
