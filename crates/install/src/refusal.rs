//! What a server's errors mean to who puts functions into it.

use evenkeel_op::{Error, ErrorKind};

/// Returns the server's number of an error, as the message has it.
pub(crate) fn code(error: &Error) -> Option<u16> {
    let text = error.to_string();
    let rest = text.strip_prefix("ERROR ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Adds what to do.
pub(crate) fn told(error: Error) -> Error {
    let text = error.to_string();
    let number = match code(&error) {
        // MariaDB says by this number what MySQL says by another.
        Some(1123) if text.contains("--skip-grant-tables") => Some(1290),
        other => other,
    };
    let Some(hint) = number.and_then(hint) else {
        return error;
    };
    // A privilege, a setting, a file: it is the server that refuses.
    match error.kind() {
        ErrorKind::Failed => Error::refused(error.to_string()).hint(hint),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_says_what_to_do() {
        for number in [1044, 1142, 1290, 1238, 1125, 1126, 1127, 1123] {
            let error = told(Error::failed(format!("ERROR {number} (HY000): text")));
            assert_eq!(error.kind(), ErrorKind::Refused, "{number}");
            assert_eq!(error.hints().len(), 1, "{number}");
        }
        let unavailable =
            "ERROR 1123 (HY000): UDFs are unavailable with the --skip-grant-tables option";
        let error = told(Error::failed(unavailable));
        assert!(error.hints()[0].contains("start it without"), "{error}");
        let other = told(Error::failed("ERROR 1064 (42000): near"));
        assert!(other.hints().is_empty() && other.kind() == ErrorKind::Failed);
    }
}
