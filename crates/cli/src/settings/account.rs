//! Which account of this host is meant.

use evenkeel_op::{Error, Result};
use std::process::Command;

/// Returns user and group id of the account that files are made for, by name or `UID:GID`.
///
/// Errors: usage where there is no such account, and where it is not ours and we are not root: what cannot be given
/// away would stay ours.
pub fn owner(name: &str) -> Result<(u32, u32)> {
    let (uid, gid) = user(name)?;
    let own = rustix::process::geteuid();
    if !own.is_root() && own.as_raw() != uid {
        return Err(
            Error::usage(format!("only root can give files to '{name}'"))
                .hint("run it as root, or remove --owner: then the files are yours"),
        );
    }
    Ok((uid, gid))
}

/// Returns user and group id of an account, by name or `UID:GID`.
fn user(name: &str) -> Result<(u32, u32)> {
    if let Some((uid, gid)) = name.split_once(':')
        && let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse())
    {
        return Ok((uid, gid));
    }
    // getent also asks LDAP and the like, which /etc/passwd does not know.
    let output = Command::new("getent").args(["passwd", name]).output();
    let line = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let unknown = || {
        Error::usage(format!("there is no user '{name}' on this host"))
            .hint("name an account, or give --owner UID:GID")
    };
    let line = line.map_err(|error| unknown().because(error))?;
    let mut fields = line.trim().split(':').skip(2);
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    match (number(), number()) {
        (Some(uid), Some(gid)) => Ok((uid, gid)),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name_and_number() {
        assert_eq!(user("root").unwrap(), (0, 0));
        assert_eq!(user("12:34").unwrap(), (12, 34));
        assert_eq!(user("no-such-user").unwrap_err().kind().exit_code(), 2);
    }
}
