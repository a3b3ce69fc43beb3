//! One error type for all operations: what kind it is (and so which exit code), what happened,
//! why, and what the user can do next.

use crate::exit;
use std::any::Any;
use std::error::Error as StdError;

/// What sort of failure it was. Each kind has one exit code and one name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The operation failed for a reason outside the program.
    Failed,
    /// The command line or a setting makes no sense.
    Usage,
    /// Part of the work was done.
    Partial,
    /// A check found something different, damaged or down.
    Differs,
    /// There is no repository at that place.
    NoRepository,
    /// Another run holds the lock.
    Busy,
    /// The key does not open the repository.
    WrongKey,
    /// The server cannot be reached.
    Unreachable,
    /// The server refuses: a privilege, version or setting is in the way.
    Refused,
    /// Gave up waiting for a lock rather than block queries.
    LockTimeout,
    /// Stopped by SIGINT.
    Interrupted,
    /// Stopped by SIGTERM.
    Terminated,
}

impl ErrorKind {
    /// Returns the exit code that the `evenkeel` binary ends with for this kind.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => exit::FAILED,
            Self::Usage => exit::USAGE,
            Self::Partial => exit::PARTIAL,
            Self::Differs => exit::DIFFERS,
            Self::NoRepository => exit::NO_REPOSITORY,
            Self::Busy => exit::BUSY,
            Self::WrongKey => exit::WRONG_KEY,
            Self::Unreachable => exit::UNREACHABLE,
            Self::Refused => exit::REFUSED,
            Self::LockTimeout => exit::LOCK_TIMEOUT,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Terminated => exit::TERMINATED,
        }
    }

    /// Returns the name used in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Partial => "partial",
            Self::Differs => "differs",
            Self::NoRepository => "no-repository",
            Self::Busy => "busy",
            Self::WrongKey => "wrong-key",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::LockTimeout => "lock-timeout",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
        }
    }
}

impl ErrorKind {
    const ALL: [Self; 12] = [
        Self::Failed,
        Self::Usage,
        Self::Partial,
        Self::Differs,
        Self::NoRepository,
        Self::Busy,
        Self::WrongKey,
        Self::Unreachable,
        Self::Refused,
        Self::LockTimeout,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the kind of that name, the reverse of [`ErrorKind::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A failure: kind, sentence, cause and hints.
///
/// Messages fit after "failed to …" or stand alone; they do not end in a full stop. A hint is one
/// sentence that says what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    holder: Option<Box<str>>,
    fact: Option<Box<dyn Any + Send + Sync>>,
    #[source]
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error of a kind with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hints: Vec::new(),
            holder: None,
            fact: None,
            cause: None,
        }
    }

    /// Makes an [`ErrorKind::Failed`] error.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Makes an [`ErrorKind::Usage`] error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Makes an [`ErrorKind::Refused`] error.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    /// Adds one sentence that says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says every hint in other words, where `say` has some.
    #[must_use]
    pub fn rehinted(mut self, say: impl Fn(&str) -> Option<String>) -> Self {
        for hint in &mut self.hints {
            if let Some(said) = say(hint) {
                *hint = said;
            }
        }
        self
    }

    /// Says who is in the way, in words: `process 4711`.
    #[must_use]
    pub fn held_by(mut self, holder: Option<String>) -> Self {
        self.holder = holder.map(String::into_boxed_str);
        self
    }

    /// Adds what the message says in a type, for code that decides by it. It is not shown.
    #[must_use]
    pub fn stating(mut self, fact: impl Any + Send + Sync) -> Self {
        self.fact = Some(Box::new(fact));
        self
    }

    /// Makes it an error of another kind, and leaves everything else.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.cause = Some(unwrapped(cause.into()));
        self
    }

    /// Returns the evenkeel error that an I/O error carries, if it does: stores say so what to do.
    #[must_use]
    pub fn carried_by(error: &std::io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Takes out the evenkeel error that an I/O error carries, or returns the I/O error.
    pub fn out_of(error: std::io::Error) -> std::result::Result<Self, std::io::Error> {
        error.downcast()
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns this error's hints, then those of the errors it was caused by.
    #[must_use]
    pub fn hints(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.hints.iter().map(String::as_str).collect();
        if let Some(inner) = self.cause.as_ref().and_then(|c| c.downcast_ref::<Self>()) {
            all.extend(inner.hints());
        }
        all
    }

    /// Returns who is in the way, where this error or one that it was caused by says so.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        let inner = self.cause.as_ref().and_then(|c| c.downcast_ref::<Self>());
        self.holder.as_deref().or_else(|| inner?.holder())
    }

    /// Returns the fact of this type that this error states, or one that it was caused by.
    #[must_use]
    pub fn fact<T: Any>(&self) -> Option<&T> {
        let own = self.fact.as_ref().and_then(|fact| fact.downcast_ref());
        own.or_else(|| self.cause.as_ref()?.downcast_ref::<Self>()?.fact())
    }

    /// Returns the message followed by every cause, joined by ": ".
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        let mut next: Option<&(dyn StdError + 'static)> = self.source();
        while let Some(cause) = next {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            next = cause.source();
        }
        text
    }
}

/// Takes an evenkeel error out of the I/O error that carries it, so that its kind and its hints count.
fn unwrapped(cause: Box<dyn StdError + Send + Sync>) -> Box<dyn StdError + Send + Sync> {
    match cause.downcast::<std::io::Error>() {
        Ok(io) => match Error::out_of(*io) {
            Ok(carried) => carried.into(),
            Err(io) => io.into(),
        },
        Err(other) => other,
    }
}

/// The result of every fallible evenkeel function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was being done when something failed.
pub trait Context<T> {
    /// Wraps the error in a message; an evenkeel error keeps its kind, any other becomes `Failed`.
    fn context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| {
            let cause = unwrapped(error.into());
            let kind = cause
                .downcast_ref::<Error>()
                .map_or(ErrorKind::Failed, Error::kind);
            Error::new(kind, message()).because(cause)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_kind_and_collects_hints() {
        let inner = Error::new(ErrorKind::Busy, "locked").hint("wait");
        let inner: Result<()> = Err(inner.held_by(Some("process 7".to_owned())));
        let outer = inner.context(|| "failed to open").unwrap_err();
        assert_eq!(outer.kind(), ErrorKind::Busy);
        assert_eq!(outer.hints(), ["wait"]);
        assert_eq!(outer.holder(), Some("process 7"));
        assert_eq!(outer.chain(), "failed to open: locked");
    }

    #[test]
    fn facts_are_found_by_type_through_causes() {
        let inner: Result<()> = Err(Error::failed("7 is odd").stating(7_u16));
        let outer = inner.context(|| "failed to count").unwrap_err();
        let outer = outer.stating("odd").of_kind(ErrorKind::Refused);
        assert_eq!((outer.fact(), outer.fact()), (Some(&7_u16), Some(&"odd")));
        assert_eq!(outer.fact::<u32>(), None);
        assert_eq!(outer.chain(), "failed to count: 7 is odd");
        assert_eq!(outer.kind(), ErrorKind::Refused);
    }

    #[test]
    fn what_an_io_error_carries_counts() {
        let carried = Error::refused("no").hint("ask");
        let io: std::io::Result<()> = Err(std::io::Error::other(carried));
        let error = io.context(|| "failed to read x").unwrap_err();
        assert_eq!(
            (error.kind(), error.hints()),
            (ErrorKind::Refused, vec!["ask"])
        );
        assert_eq!(error.chain(), "failed to read x: no");
    }

    #[test]
    fn foreign_errors_become_failed() {
        let io: std::result::Result<(), _> = Err(std::io::Error::other("gone"));
        let error = io.context(|| "failed to read x").unwrap_err();
        assert_eq!(error.kind().exit_code(), 1);
        assert_eq!(error.chain(), "failed to read x: gone");
    }
}
