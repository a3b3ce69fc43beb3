//! Whom a server belongs to that evenkeel starts for itself, on files of which it knows nothing but that
//! they were in a repository: never root.

use evenkeel_op::{Context, Error, Result};
use evenkeel_server::launch::{Account, Binary};
use std::fs;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

/// Numbers that systemd gives to services for as long as they run: nobody's.
const NOBODYS: std::ops::Range<u32> = 61_184..65_520;

/// Returns a number that is nobody's. `None` without root, who alone can start a server as another.
pub(crate) fn nobodys_account() -> Option<Account> {
    let count = NOBODYS.end - NOBODYS.start;
    let number = NOBODYS.start + std::process::id() % count;
    rustix::process::geteuid().is_root().then_some(Account {
        uid: number,
        gid: number,
    })
}

/// Returns the owner of a data directory, or where that is root a number that is nobody's. `None` without
/// root.
pub(crate) fn owner_of(datadir: &Path) -> Result<Option<Account>> {
    let nobodys = nobodys_account();
    let found =
        fs::metadata(datadir).context(|| format!("failed to look at {}", datadir.display()))?;
    let owner = Account {
        uid: found.uid(),
        gid: found.gid(),
    };
    Ok(nobodys.map(|nobodys| if owner.uid == 0 { nobodys } else { owner }))
}

/// Fails when the account cannot get to where its server has to work, or to its program.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach(account: Account, binary: &Binary, dirs: &[&Path]) -> Result<()> {
    for dir in dirs {
        if let Some(closed) = closed_above(account, dir) {
            return Err(Error::refused(format!(
                "the server that is started for this does not run as root, and user {} cannot enter {}",
                account.uid,
                closed.display()
            ))
            .hint("name a place below directories that everybody may enter, for example in /srv"));
        }
    }
    match closed_above(account, &binary.path) {
        None => Ok(()),
        Some(closed) => Err(Error::refused(format!(
            "{} does not run as root here, and user {} cannot enter {}",
            binary.path.display(),
            account.uid,
            closed.display()
        ))
        .hint("name a program with --server-binary that everybody may run")),
    }
}

/// Returns the topmost directory above `path` that the account may not enter.
fn closed_above(account: Account, path: &Path) -> Option<std::path::PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let closed = above.into_iter().find(|dir| {
        let Ok(found) = fs::metadata(dir) else {
            return true;
        };
        let bit = match () {
            () if found.uid() == account.uid => 0o100,
            () if found.gid() == account.gid => 0o010,
            () => 0o001,
        };
        found.mode() & bit == 0
    });
    closed.map(Path::to_owned)
}

/// Gives a directory with all that is in it to an account. Links are not followed.
pub(crate) fn give(top: &Path, to: Account) -> Result<()> {
    let failed = || format!("failed to set owners in {}", top.display());
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let found = fs::symlink_metadata(&path).context(failed)?;
        if (found.uid(), found.gid()) != (to.uid, to.gid) {
            lchown(&path, Some(to.uid), Some(to.gid)).context(failed)?;
        }
        if found.is_dir() {
            for entry in fs::read_dir(&path).context(failed)? {
                waiting.push(entry.context(failed)?.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_closed_directory_above_is_named() {
        let room = tempfile::tempdir().unwrap();
        let open = |mode: u32| fs::Permissions::from_mode(mode);
        let inner = room.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(room.path(), open(0o711)).unwrap();
        let stranger = Account {
            uid: 4242,
            gid: 4242,
        };
        assert_eq!(closed_above(stranger, &inner), None);
        let top = fs::canonicalize(room.path()).unwrap().join("a");
        fs::set_permissions(&top, open(0o700)).unwrap();
        assert_eq!(closed_above(stranger, &inner), Some(top.clone()));
        let owner = fs::metadata(&top).unwrap();
        let own = Account {
            uid: owner.uid(),
            gid: owner.gid(),
        };
        assert_eq!(closed_above(own, &inner), None);
    }

    #[test]
    fn all_of_a_tree_is_given_and_no_link_followed() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give files away"
        );
        let room = tempfile::tempdir().unwrap();
        let outside = room.path().join("outside");
        fs::write(&outside, "").unwrap();
        let top = room.path().join("top");
        fs::create_dir_all(top.join("in")).unwrap();
        fs::write(top.join("in/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("in/link")).unwrap();
        let to = Account {
            uid: 4242,
            gid: 4243,
        };
        give(&top, to).unwrap();
        for name in ["", "in", "in/file", "in/link"] {
            let found = fs::symlink_metadata(top.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (4242, 4243), "{name}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().uid(), 0);
        assert!(NOBODYS.contains(&nobodys_account().unwrap().uid));
    }
}
