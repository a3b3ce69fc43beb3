//! What a server's errors mean to who puts routines into it.

use evenkeel_op::Error;
use evenkeel_plugins::refusal::refused;
use evenkeel_server::connect::ServerNumber;

/// Adds what to do.
pub(crate) fn explain(error: Error) -> Error {
    let hint = ServerNumber::of(&error).and_then(hint);
    refused(error, hint)
}

fn hint(code: u16) -> Option<&'static str> {
    Some(match code {
        // a database, a table, an operation, a routine
        1044 | 1142 | 1227 | 1370 => {
            "the account needs CREATE, DROP, ALTER, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE, SELECT, \
             INSERT, UPDATE and DELETE on the database"
        }
        // where a binary log is written
        1418 | 1419 => {
            "set log_bin_trust_function_creators=ON (on managed servers: a parameter), or use an \
             account with SUPER"
        }
        1290 | 1836 => "connect to the writable server: this one is read-only",
        1304 => "another run created it meanwhile: run this again",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;

    #[test]
    fn each_number_says_what_to_do() {
        for number in [1044, 1142, 1227, 1370, 1418, 1419, 1290, 1836, 1304] {
            let error = explain(Error::failed("text").stating(ServerNumber(number)));
            assert_eq!(error.kind(), ErrorKind::Refused, "{number}");
            assert_eq!(error.hints().len(), 1, "{number}");
        }
        let other = explain(Error::failed("near").stating(ServerNumber(1064)));
        assert!(other.hints().is_empty() && other.kind() == ErrorKind::Failed);
    }
}
