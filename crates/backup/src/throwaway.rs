//! Whom a server, or another program, belongs to that evenkeel starts for itself, on files of which it
//! knows nothing but that they were in a repository: never root.

use evenkeel_op::{Error, Result};
use evenkeel_server::launch::{Account, Binary};
use std::fs;
use std::os::unix::fs::MetadataExt;
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

/// Returns the owner of a data directory as an account to start a server as, or where that is root a number
/// that is nobody's. `None` without root.
pub(crate) fn account_of(owner: Account) -> Option<Account> {
    nobodys_account().map(|nobodys| if owner.uid == 0 { nobodys } else { owner })
}

/// Fails when the account cannot get to where its server has to work, or to its program.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach(account: Account, binary: &Binary, dirs: &[&Path]) -> Result<()> {
    dirs.iter()
        .try_for_each(|dir| reach_directory(account, dir))?;
    reach_program(account, &binary.path, "--server-binary")
}

/// Fails when the account cannot get to a directory in which it has to work.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach_directory(account: Account, dir: &Path) -> Result<()> {
    match closed_above(account, dir) {
        None => Ok(()),
        Some(closed) => Err(Error::refused(format!(
            "evenkeel runs this server as user {}, not as root, and that user cannot enter {}",
            account.uid,
            closed.display()
        ))
        .hint(
            "name a directory that every user can reach, for example in /srv: --target, or \
             --scratch",
        )),
    }
}

/// Fails when the account cannot get to a program, which `option` names.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach_program(account: Account, program: &Path, option: &str) -> Result<()> {
    match closed_above(account, program) {
        None => Ok(()),
        Some(closed) => Err(Error::refused(format!(
            "evenkeel runs {} as user {}, not as root, and that user cannot enter {}",
            program.display(),
            account.uid,
            closed.display()
        ))
        .hint(format!(
            "name a program with {option} that every user may run"
        ))),
    }
}

/// Returns the topmost directory above `path` that the account may not enter.
fn closed_above(account: Account, path: &Path) -> Option<std::path::PathBuf> {
    let parent = path.parent().unwrap_or(path);
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    let mut above: Vec<&Path> = parent.ancestors().collect();
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

/// Whether a server that is started for `verify` could work at a place: whether everybody may enter all
/// directories above it, where it would not be this user's.
#[must_use]
pub fn is_enterable(place: &Path) -> bool {
    nobodys_account().is_none_or(|account| closed_above(account, place).is_none())
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
    fn roots_files_are_worked_on_by_nobody() {
        let nobodys = nobodys_account().expect("only root can start a server as another");
        assert!(NOBODYS.contains(&nobodys.uid));
        let (root, own) = (Account { uid: 0, gid: 0 }, Account { uid: 4242, gid: 7 });
        assert_eq!(account_of(root), Some(nobodys));
        assert_eq!(account_of(own), Some(own));
    }
}
