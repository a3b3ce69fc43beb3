//! Prepares what a tool once copied: crash recovery up to the copy's instant, by the tool itself.
//!
//! A server of the same version would recover most of it by itself when it starts. But the copy of a
//! table that was made or renamed meanwhile lies under a name that only the tool puts right, so no
//! data directory is shown to a server before this.

use super::process;
use super::tool::Tool;
use crate::Run;
use evenkeel_op::{Context, Result, Unit};
use evenkeel_server::launch::Account;
use evenkeel_server::lock::Limits;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown, lchown};
use std::path::Path;
use std::process::Command;

/// What the tool needs of itself, and a server does not: notes, and the settings to recover with.
const NOTES: [&str; 9] = [
    "backup-my.cnf",
    "xtrabackup_checkpoints",
    "xtrabackup_info",
    "xtrabackup_binlog_info",
    "xtrabackup_binlog_pos_innodb",
    "xtrabackup_logfile",
    "xtrabackup_tablespaces",
    "mariadb_backup_checkpoints",
    "mariadb_backup_info",
];
/// More of them, of newer MariaDBs.
const NOTES_TOO: [&str; 2] = ["mariadb_backup_binlog_info", "innodb_corrupted_pages"];

/// Makes the copy in `dir` one that a server starts on. Files that the tool makes get `owner`, or that of
/// `dir`.
pub(crate) fn prepare(tool: &Tool, dir: &Path, owner: Option<Account>, run: Run<'_>) -> Result<()> {
    run.progress.phase("preparing", None, Unit::Items);
    process::run(
        tool,
        command(tool, dir),
        &Limits::default(),
        run,
        |mut out, _| {
            io::copy(&mut out, &mut io::sink()).context(|| "failed to read what the tool prints")
        },
    )
    .context(|| format!("failed to prepare {}", dir.display()))?;
    for note in NOTES.iter().chain(&NOTES_TOO) {
        match fs::remove_file(dir.join(note)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context(|| format!("failed to remove {note}"));
            }
            _ => {}
        }
    }
    give_to_owner(dir, owner)?;
    run.progress.end();
    Ok(())
}

fn command(tool: &Tool, dir: &Path) -> Command {
    let mut command = Command::new(&tool.program);
    command.args(["--no-defaults", "--prepare"]);
    command.arg({
        let mut target = std::ffi::OsString::from("--target-dir=");
        target.push(dir);
        target
    });
    command
}

/// Gives everything to the owner of the directory, or another one, and what the tool made the mode of the
/// server's own files.
fn give_to_owner(dir: &Path, owner: Option<Account>) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let failed = || {
        format!(
            "failed to give the files of {} to their owner",
            dir.display()
        )
    };
    let found = fs::metadata(dir).context(failed)?;
    let owner = owner.unwrap_or(Account {
        uid: found.uid(),
        gid: found.gid(),
    });
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).context(failed)? {
            let path = entry.context(failed)?.path();
            if give_one(&path, owner).context(failed)? {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

/// Gives a file or directory, and nothing that a link leads to; returns whether it is a directory.
fn give_one(path: &Path, owner: Account) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(open) => fs::File::from(open),
        Err(Errno::LOOP) => {
            lchown(path, Some(owner.uid), Some(owner.gid))?;
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let found = open.metadata()?;
    if (found.uid(), found.gid()) != (owner.uid, owner.gid) {
        fchown(&open, Some(owner.uid), Some(owner.gid))?;
        if found.is_file() {
            open.set_permissions(fs::Permissions::from_mode(0o660))?;
        }
    }
    Ok(found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::abilities::Version;

    #[test]
    fn both_tools_prepare_by_the_same_words() {
        for name in ["mariadb-backup", "xtrabackup"] {
            let tool = Tool {
                program: name.into(),
                name,
                version: Version::new(8, 0, 36),
            };
            let line = format!("{:?}", command(&tool, Path::new("/srv/data")));
            let expected =
                format!("\"{name}\" \"--no-defaults\" \"--prepare\" \"--target-dir=/srv/data\"");
            assert_eq!(line, expected);
        }
    }
}
