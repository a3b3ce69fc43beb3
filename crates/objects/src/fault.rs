//! What goes wrong in a store, as an I/O error that says what to do.

use crate::way::{OF_GOOGLES, OF_MICROSOFTS, OF_THE_MACHINE, Unreached};
use evenkeel_op::{Error, ErrorKind};
use object_store::Error as Fault;
use std::io;

/// What stores call a bucket that is not there.
const NO_BUCKET: [&str; 3] = [
    "NoSuchBucket",
    "ContainerNotFound",
    "The specified bucket does not exist",
];

/// What was asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Read,
    List,
    Write,
    Remove,
}

impl Asked {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Remove => "remove",
        }
    }

    /// What to do about credentials that may not do it.
    fn rights(self) -> &'static str {
        match self {
            Self::Read | Self::List => {
                "these credentials do not allow reading: grant them read and list, or use others"
            }
            Self::Write | Self::Remove => {
                "these credentials do not allow writing: grant them write, list and delete, or \
                 use others"
            }
        }
    }
}

/// Translates an error about an object. Where there is something to do about it, the error carries an
/// [`Error`] with a kind and hints.
pub(crate) fn io_error(asked: Asked, error: Fault) -> io::Error {
    let kind = match &error {
        Fault::NotFound { .. } => io::ErrorKind::NotFound,
        Fault::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Fault::PermissionDenied { .. } | Fault::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Fault::NotImplemented { .. } | Fault::NotSupported { .. } => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    let said = said(&error);
    if is_without_credentials(&said) {
        return io::Error::other(without_credentials(&said));
    }
    if is_without_bucket(&said) {
        // Not as an object that is not there: nothing could be put in its place.
        return io::Error::other(without_bucket(&said));
    }
    if let Some(unreached) = unreached(&error) {
        return io::Error::other(unreachable(unreached));
    }
    if is_refused(&error, &said) {
        let refused = refused(&said, asked, "what is there");
        return io::Error::new(io::ErrorKind::PermissionDenied, refused);
    }
    let text = match &error {
        Fault::Unauthenticated { path, .. } | Fault::PermissionDenied { path, .. } => {
            return io::Error::new(kind, refused(&said, asked, path));
        }
        Fault::Precondition { path, .. } => {
            format!("another program changed {path} meanwhile")
        }
        Fault::AlreadyExists { path, .. } => format!("{path} exists already"),
        Fault::NotFound { path, .. } => format!("{path} does not exist"),
        _ => cut(&said),
    };
    io::Error::new(kind, text)
}

/// Whether trying again may help: the store or the way to it had trouble, nobody said no, and it is no
/// address at which nobody ever answered.
pub(crate) fn is_passing(error: &Fault) -> bool {
    if !matches!(error, Fault::Generic { .. }) {
        return false;
    }
    let said = said(error);
    let is_final =
        is_without_credentials(&said) || is_without_bucket(&said) || is_refused(error, &said);
    !is_final && unreached(error).is_none_or(|unreached| unreached.ever_reached)
}

fn is_without_credentials(said: &str) -> bool {
    OF_THE_MACHINE.iter().any(|path| said.contains(path))
}

fn is_without_bucket(said: &str) -> bool {
    NO_BUCKET.iter().any(|name| said.contains(name))
}

/// The library tells a refusal to list from other refusals: as trouble.
fn is_refused(error: &Fault, said: &str) -> bool {
    let is_no = |code| said.contains(&format!("status code: {code} "));
    matches!(error, Fault::Generic { .. }) && (is_no("403") || is_no("401"))
}

fn unreached(error: &Fault) -> Option<&Unreached> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

/// Whose machine was asked in vain tells whose credentials are missing.
fn without_credentials(said: &str) -> Error {
    let hint = if said.contains(OF_GOOGLES) {
        "set GOOGLE_SERVICE_ACCOUNT to the key file of a service account"
    } else if said.contains(OF_MICROSOFTS) {
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
    } else {
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile in ~/.aws/credentials"
    };
    Error::refused("no credentials for the object store were given, and this machine has no role")
        .hint(hint)
}

fn without_bucket(said: &str) -> Error {
    let resource = || {
        let path = between(said, "<Resource>", "</Resource>")?;
        path.trim_start_matches('/').split('/').next()
    };
    let name = between(said, "<BucketName>", "</BucketName>").or_else(resource);
    let named = name.map_or_else(String::new, |name| format!(" '{name}'"));
    Error::new(
        ErrorKind::NoRepository,
        format!("the bucket{named} does not exist"),
    )
    .hint("create it with the store's own tool, or check its name and the store's address (AWS_REGION, AWS_ENDPOINT_URL)")
}

fn unreachable(unreached: &Unreached) -> Error {
    let host = &unreached.host;
    let text = format!("cannot reach the store at {host}: {}", unreached.reason());
    let error = Error::new(ErrorKind::Unreachable, text);
    match unreached.ever_reached {
        true => error.hint("run it again when the store or the network is back"),
        false => error.hint("check the address (AWS_ENDPOINT_URL, AWS_REGION), the network, and that the store runs"),
    }
}

fn refused(said: &str, asked: Asked, path: &str) -> Error {
    let is = |code: &str| said.contains(code);
    if is("SignatureDoesNotMatch") {
        Error::refused("the store rejected the secret key")
            .hint("check AWS_SECRET_ACCESS_KEY, or the profile in ~/.aws/credentials")
            .hint("if it is right, compare this host's clock with the store's")
    } else if is("InvalidAccessKeyId") || is("InvalidToken") {
        Error::refused("the store does not know the access key").hint(
            "check AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN, or the profile in ~/.aws/credentials",
        )
    } else if is("ExpiredToken") || is("TokenRefreshRequired") {
        Error::refused("the credentials for the store have expired").hint("get new ones")
    } else if is("RequestTimeTooSkewed") {
        Error::refused("the store's clock and this host's are too far apart")
            .hint("set this host's clock, for example with chrony")
    } else {
        let why = between(said, "<Message>", "</Message>");
        let why = why.map_or_else(|| cut(said), |why| why.trim_end_matches('.').to_owned());
        let word = asked.word();
        Error::refused(format!("the store refuses to {word} {path}: {why}")).hint(asked.rights())
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(found, _)| found)
}

/// The error with its causes, each said once, in one line: stores answer in pages of XML.
fn said(error: &Fault) -> String {
    let mut text = one_line(&error.to_string());
    let mut last: &dyn std::error::Error = error;
    while let Some(cause) = last.source() {
        let more = one_line(&cause.to_string());
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        last = cause;
    }
    text
}

/// The last cause of an error, in one line.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    one_line(&last.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(body: &str) -> io::Error {
        let denied = Fault::PermissionDenied {
            path: "db/x".to_owned(),
            source: format!("403: <Error>{body}</Error>").into(),
        };
        io_error(Asked::Write, denied)
    }

    #[test]
    fn refusals_name_what_was_refused() {
        for (body, text) in [
            (
                "<Code>SignatureDoesNotMatch</Code>",
                "the store rejected the secret key",
            ),
            (
                "<Code>InvalidAccessKeyId</Code>",
                "the store does not know the access key",
            ),
            (
                "<Code>AccessDenied</Code><Message>Access Denied.</Message>",
                "the store refuses to write db/x: Access Denied",
            ),
        ] {
            let error = denied(body);
            assert_eq!(error.to_string(), text);
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let carried = Error::carried_by(&error).expect("an error of ours");
            assert_eq!(carried.kind(), ErrorKind::Refused);
        }
    }

    #[test]
    fn credentials_are_those_of_the_store_in_use() {
        for (path, variable) in [
            ("/latest/api/token", "AWS_ACCESS_KEY_ID"),
            (OF_GOOGLES, "GOOGLE_SERVICE_ACCOUNT"),
            (OF_MICROSOFTS, "AZURE_STORAGE_ACCOUNT_NAME"),
        ] {
            let nobody = Fault::Generic {
                store: "S3",
                source: format!("http://169.254.169.254{path}: no answer").into(),
            };
            let error = io_error(Asked::Read, nobody);
            let hints = Error::carried_by(&error).expect("an error of ours").hints();
            assert_eq!(hints.len(), 1);
            assert!(hints[0].contains(variable), "{hints:?}");
        }
    }

    #[test]
    fn buckets_are_named_and_not_asked_for_again() {
        for body in [
            "<Code>NoSuchBucket</Code><BucketName>shop</BucketName>",
            "<Code>NoSuchBucket</Code><Resource>/shop/db/x</Resource>",
        ] {
            let fault = || Fault::Generic {
                store: "S3",
                source: body.into(),
            };
            assert!(!is_passing(&fault()));
            assert_eq!(
                io_error(Asked::Read, fault()).to_string(),
                "the bucket 'shop' does not exist"
            );
        }
        let refused = Fault::Generic {
            store: "S3",
            source: "non-2xx status code: 403 Forbidden: <Message>No</Message>".into(),
        };
        assert!(!is_passing(&refused));
        let refused = io_error(Asked::List, refused);
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(
            refused.to_string(),
            "the store refuses to list what is there: No"
        );
        let trouble = Fault::Generic {
            store: "S3",
            source: "503".into(),
        };
        assert!(is_passing(&trouble));
    }
}
