//! What an error says about the server.

use super::step::Step;
use crate::reason::{Cause, Reason};
use evenkeel_op::{Error, ErrorKind};
use evenkeel_server::connect::{ServerNumber, TooLong};

/// Too many connections, of all or of the account.
const NO_CONNECTION_FREE: [u16; 3] = [1040, 1203, 1226];
/// The disk is full; a temporary file, a table or a file could not be written for that reason.
const DISK_FULL: [u16; 2] = [1021, 1114];
const DISK_FULL_WORDS: [&str; 3] = ["Errcode: 28 ", "errno: 28 ", "No space left on device"];

/// Options of the server forbid the statement: that is no privilege of the account.
const FORBIDDEN: [u16; 2] = [1290, 1836];
/// A transaction that may not write.
const READ_ONLY: [u16; 1] = [1792];
/// In offline mode, the server lets nobody in but administrators.
const OFFLINE: u16 = 3032;

/// No descriptor is left, of this process or of the system, or no memory.
const OWN_LACKS: [&str; 3] = ["(os error 24)", "(os error 23)", "(os error 12)"];

/// Returns whether an error says that a check could not be made, rather than what it looks for: the account or this
/// process may not look.
pub(super) fn is_no_answer(reason: &Reason, error: &Error) -> bool {
    reason.cause == Cause::Login || error.fact::<NotAllowed>().is_some() || is_denied(error)
}

/// This process may not look at something, or it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAllowed;

fn is_denied(error: &Error) -> bool {
    let number = ServerNumber::of(error);
    error.kind() == ErrorKind::Refused
        && number.is_some_and(|number| !FORBIDDEN.contains(&number) && !is_full(number))
}

fn is_read_only(number: u16) -> bool {
    FORBIDDEN.contains(&number) || READ_ONLY.contains(&number)
}

fn is_full(number: u16) -> bool {
    NO_CONNECTION_FREE.contains(&number)
}

/// Returns why a server that answered with an error, or not at all, is not up. `step` is what was asked.
pub(super) fn reason_at(step: &Step, error: &Error) -> Reason {
    let text = in_short(error);
    let cause = match ServerNumber::of(error) {
        Some(number) if NO_CONNECTION_FREE.contains(&number) => Cause::Connections,
        Some(number) if DISK_FULL.contains(&number) => Cause::Disk,
        Some(OFFLINE) => Cause::Refused,
        _ if DISK_FULL_WORDS.iter().any(|words| text.contains(words)) => Cause::Disk,
        _ if error.kind() == ErrorKind::Unreachable => {
            match OWN_LACKS.iter().any(|words| text.contains(words)) {
                true => Cause::Stalled,
                false => Cause::Refused,
            }
        }
        Some(number) if matches!(step, Step::Write(_)) && is_read_only(number) => Cause::Role,
        _ if is_denied(error) => Cause::Login,
        _ => match step {
            Step::Write(_) => Cause::Unwritable,
            Step::Table(_) => Cause::Unreadable,
            Step::Query => Cause::Query,
            Step::Disk => Cause::Disk,
            _ if error.fact::<TooLong>().is_some() => Cause::Refused,
            _ => Cause::Login,
        },
    };
    Reason::new(cause, text)
}

/// Returns why a server that cannot be logged into is not up.
#[must_use]
pub fn reason_of(error: &Error) -> Reason {
    reason_at(&Step::Login, error)
}

/// On one line, and without the statement: that is known.
fn in_short(error: &Error) -> String {
    let text = error.chain();
    let text = text.split(", in: ").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(step: &Step, kind: ErrorKind, number: u16, text: &str) -> Cause {
        let error = Error::new(kind, text);
        let error = match number {
            0 => error,
            number => error.stating(ServerNumber(number)),
        };
        reason_at(step, &error).cause
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        use ErrorKind::{Failed, Refused, Unreachable};
        let table = Step::Table("SELECT".to_owned());
        let write = Step::Write("REPLACE".to_owned());
        for (step, kind, number, text, expected) in [
            (
                &Step::Login,
                Unreachable,
                0,
                "no server at /s",
                Cause::Refused,
            ),
            (&Step::Login, Refused, 1040, "Too many", Cause::Connections),
            (&Step::Login, Refused, 1226, "max_user", Cause::Connections),
            (&Step::Login, Refused, 1045, "denied", Cause::Login),
            (&Step::Sources, Refused, 1227, "denied", Cause::Login),
            (&Step::Login, Refused, 3032, "offline", Cause::Refused),
            (&table, Failed, 1194, "crashed", Cause::Unreadable),
            (&table, Refused, 1142, "denied", Cause::Login),
            (&Step::Query, Refused, 1142, "denied", Cause::Login),
            (&write, Refused, 1142, "denied", Cause::Login),
            (&write, Refused, 1290, "--read-only", Cause::Role),
            (&write, Failed, 1792, "READ ONLY", Cause::Role),
            (&write, Failed, 1146, "no table", Cause::Unwritable),
            (&write, Failed, 1114, "is full", Cause::Disk),
            (&table, Failed, 3, "(Errcode: 28 \"No\")", Cause::Disk),
            (&Step::Query, Failed, 1114, "is full", Cause::Disk),
            (&Step::Query, Failed, 1064, "syntax", Cause::Query),
            (&Step::Query, Unreachable, 2013, "lost", Cause::Refused),
        ] {
            assert_eq!(cause(step, kind, number, text), expected, "{step:?} {text}");
        }
    }

    #[test]
    fn what_this_process_lacks_is_not_the_servers_fault() {
        let text = "no server at db1: Too many open files (os error 24)";
        let of = |kind| cause(&Step::Login, kind, 0, text);
        assert_eq!(of(ErrorKind::Unreachable), Cause::Stalled);
        // A server's own words.
        let said = cause(&Step::Query, ErrorKind::Failed, 1017, text);
        assert_eq!(said, Cause::Query);
    }

    #[test]
    fn a_reason_is_one_line() {
        let error = Error::failed("a\nb\tc, in: SELECT 1");
        assert_eq!(reason_of(&error).text, "a b c");
    }
}
