//! `doctor`: whether a backup can go into the repository, and who else on this host may read what is in it.

use super::{fine, wrong};
use crate::settings;
use crate::show::answers::Check;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::Repository;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAME: &str = "repository";

/// Looks at a repository, or at the place of a future one. Nothing is made.
pub(super) fn check(path: &Path) -> Check {
    look(path).unwrap_or_else(|error| wrong(NAME, &error))
}

fn look(path: &Path) -> Result<Check> {
    let shown = path.display();
    if settings::is_url(path) {
        let found =
            format!("{shown} is in an object store, which has its own rules about who may read it");
        return Ok(fine(NAME, found));
    }
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let found = format!(
                "{shown} does not exist; the first backup creates it, closed to other users"
            );
            return Ok(fine(NAME, found));
        }
        found => found.context(|| format!("failed to look at {shown}"))?,
    };
    if !found.is_dir() {
        return Err(Error::failed(format!("{shown} is not a directory"))
            .hint("name a repository, or a new or an empty directory"));
    }
    Repository::fits(path)?;
    let own = rustix::process::geteuid().as_raw();
    Ok(said(path, found.mode(), found.uid(), own))
}

/// Says who may read a directory of this mode that `owner` has, when the account `own` looks.
fn said(path: &Path, mode: u32, owner: u32, own: u32) -> Check {
    let shown = path.display();
    let (mode, others, group) = (mode & 0o777, mode & 0o007, mode & 0o070);
    let whose = match owner == own {
        true => String::new(),
        false => format!(" and belongs to the user with id {owner}"),
    };
    let who = match (others, group) {
        (0, 0) => {
            let found = format!("{shown} is closed to other users (0{mode:03o}){whose}");
            return fine(NAME, found);
        }
        (0, _) => "its group",
        _ => "other users",
    };
    // A backup closes what is its own account's, and nothing else.
    let (then, hint) = match owner == own {
        true => ("the next backup closes it", "to close it now"),
        false => ("no backup of this account closes it", "to close it"),
    };
    Check {
        warning: true,
        hints: vec![format!("{hint}: chmod go= {shown}")],
        ..fine(
            NAME,
            format!("{shown} can be read by {who} (0{mode:03o}){whose}; {then}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn with_mode(path: &Path, mode: u32) -> Check {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        check(path)
    }

    #[test]
    fn who_may_read_it_is_reported_by_its_mode() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("shop");
        let absent = check(&path);
        assert!(absent.ok && !absent.warning, "{absent:?}");
        assert!(absent.found.contains("does not exist;"), "{absent:?}");
        assert!(!path.exists());

        fs::create_dir(&path).unwrap();
        let closed = with_mode(&path, 0o700);
        assert!(closed.ok && !closed.warning, "{closed:?}");
        assert!(
            closed
                .found
                .ends_with("shop is closed to other users (0700)"),
            "{closed:?}"
        );
        for (mode, reported) in [
            (0o755, "can be read by other users (0755); the next backup"),
            (0o750, "can be read by its group (0750); the next backup"),
        ] {
            let open = with_mode(&path, mode);
            assert!(open.ok && open.warning, "{open:?}");
            assert!(open.found.contains(reported), "{open:?}");
            assert!(open.hints[0].contains("chmod go= "), "{open:?}");
        }
    }

    #[test]
    fn of_another_account_no_promise_is_made() {
        let open = said(Path::new("/r"), 0o40755, 998, 0);
        assert!(
            open.found.ends_with(
                "(0755) and belongs to the user with id 998; no backup of this account closes it"
            ),
            "{open:?}"
        );
        let closed = said(Path::new("/r"), 0o40700, 998, 0);
        assert!(!closed.warning && closed.found.ends_with("id 998"));
    }

    #[test]
    fn where_no_backup_can_go_is_not_ready() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("passwd"), "x").unwrap();
        for path in [scratch.path().to_owned(), scratch.path().join("passwd")] {
            let refused = check(&path);
            assert!(!refused.ok && !refused.hints.is_empty(), "{refused:?}");
        }
    }
}
