//! What a server's errors mean to who puts functions into it.

use evenkeel_op::{Error, ErrorKind};
use evenkeel_server::connect::ServerNumber;

/// Adds what to do where functions and libraries were put into a server.
#[must_use]
pub fn explain(error: Error) -> Error {
    let number = match ServerNumber::of(&error) {
        // MariaDB says by this number what MySQL says by another.
        Some(1123) if error.to_string().contains("--skip-grant-tables") => Some(1290),
        other => other,
    };
    refused(error, number.and_then(hint))
}

/// Adds a hint, if there is one: then it is the server that refuses, for a privilege, a setting or a file.
#[must_use]
pub fn refused(error: Error, hint: Option<&'static str>) -> Error {
    let Some(hint) = hint else {
        return error;
    };
    match error.kind() {
        ErrorKind::Failed => error.of_kind(ErrorKind::Refused).hint(hint),
        _ => error.hint(hint),
    }
}

fn hint(code: u16) -> Option<&'static str> {
    Some(match code {
        // access to a database, a table, an operation
        1044 | 1142 | 1227 => {
            "the account needs SELECT, INSERT and DELETE on the database mysql, and with a \
             binary log the right to turn it off for a session (SUPER, BINLOG ADMIN or \
             SESSION_VARIABLES_ADMIN)"
        }
        1290 => {
            "functions cannot be added while the server runs with that option: start it without, \
             or set read_only=OFF meanwhile"
        }
        // a variable that only the command line sets
        1238 => "set it in the server's configuration, and restart the server",
        1125 => "another run created it meanwhile: run this again",
        1126 => {
            "the server cannot load the library: check that it is in the server's plugin \
             directory, that the server's user can read it, that AppArmor or SELinux allows it, \
             and that it was built on a system no newer than the server's"
        }
        1127 => "the library there is a different one: copy it again, completely",
        1123 => {
            "check that the table's file is beside the library, complete and readable by the server"
        }
        _ => return None,
    })
}

/// Returns the error where the server is on another host and cannot open the library: what has to be there. `also` is
/// what else there is to copy.
#[must_use]
pub fn to_copy(error: &Error, plugin_dir: &str, library: &str, also: Option<String>) -> Error {
    let directory = plugin_dir.trim_end_matches('/');
    let mut refused =
        Error::refused("the server is not on this host, and does not have the library yet")
            .because(Error::failed(error.to_string()))
            .hint(format!(
                "copy the library to {directory}/{library} on the server's host, readable by the server's user"
            ));
    if let Some(also) = also {
        refused = refused.hint(also);
    }
    refused
        .hint("then run this again; or run it on the server's host, which does all of it")
        .hint("if the server's files are on this host, add --plugin-dir")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(number: u16, text: &str) -> Error {
        Error::failed(text).stating(ServerNumber(number))
    }

    #[test]
    fn each_number_says_what_to_do() {
        for number in [1044, 1142, 1290, 1238, 1125, 1126, 1127, 1123] {
            let error = explain(said(number, "text"));
            assert_eq!(error.kind(), ErrorKind::Refused, "{number}");
            assert_eq!(error.hints().len(), 1, "{number}");
        }
        let unavailable = "UDFs are unavailable with the --skip-grant-tables option";
        let error = explain(said(1123, unavailable));
        assert!(error.hints()[0].contains("start it without"), "{error}");
        let other = explain(said(1064, "near"));
        assert!(other.hints().is_empty() && other.kind() == ErrorKind::Failed);
    }

    #[test]
    fn a_text_that_looks_like_a_servers_is_none() {
        let error = explain(Error::failed("ERROR 1126 (HY000): of a file's name"));
        assert!(error.hints().is_empty() && error.kind() == ErrorKind::Failed);
    }
}
