//! Prepares what a tool once copied: crash recovery up to the copy's point in time, by the tool
//! itself.
//!
//! A server of the same version would recover most of it by itself when it starts. But the copy of a
//! table that was made or renamed meanwhile lies under a name that only the tool puts right, so no
//! data directory is shown to a server before this.
//!
//! The tool reads what was in a repository, so it runs as throwaway servers do: never as root.

use super::tool::Tool;
use super::{process, recorded};
use crate::throwaway;
use evenkeel_op::{Context, Result, Run, Unit};
use evenkeel_server::launch::Account;
use evenkeel_server::lock::Limits;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
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

/// What the tool works on.
pub(crate) struct Copied<'a> {
    /// Where it is.
    pub(crate) dir: &'a Path,
    /// Gives all of it to the account that the tool runs as.
    pub(crate) lend: &'a dyn Fn(Account) -> Result<()>,
    /// Makes it root's again.
    pub(crate) take_back: &'a dyn Fn() -> Result<()>,
}

/// Makes the copy one that a server starts on. `account` is what the tool runs as, none without root; what the
/// copy is to belong to in the end is up to the caller.
///
/// Errors: `Refused` for options that are not taken from a repository; `Failed` with the tool's own words.
pub(crate) fn prepare(
    tool: &Tool,
    copied: &Copied<'_>,
    account: Option<Account>,
    run: Run<'_>,
) -> Result<()> {
    let dir = copied.dir;
    run.progress.phase("preparing", None, Unit::Items);
    recorded::keep_known(dir)?;
    account.map_or(Ok(()), copied.lend)?;
    process::run(
        tool,
        command(tool, dir, account),
        &Limits::default(),
        run,
        |mut out, _| {
            io::copy(&mut out, &mut io::sink()).context(|| "failed to read what the tool prints")
        },
    )
    .context(|| format!("failed to prepare {}", dir.display()))?;
    account.map_or(Ok(()), |_| (copied.take_back)())?;
    for note in NOTES.iter().chain(&NOTES_TOO) {
        match fs::remove_file(dir.join(note)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context(|| format!("failed to remove {note}"));
            }
            _ => {}
        }
    }
    run.progress.end();
    Ok(())
}

/// Fails where the tool's account cannot work.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach(account: Account, tool: &Tool, dir: &Path) -> Result<()> {
    throwaway::reach_directory(account, dir)?;
    reach_tool(account, tool)
}

/// A tool that is named without a directory is looked for where everybody's programs are.
fn reach_tool(account: Account, tool: &Tool) -> Result<()> {
    match tool.program.parent() {
        Some(above) if !above.as_os_str().is_empty() => {
            throwaway::reach_program(account, &tool.program, "--engine-tool")
        }
        _ => Ok(()),
    }
}

fn command(tool: &Tool, dir: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new(&tool.program);
    command.args(["--no-defaults", "--prepare"]);
    command.arg({
        let mut target = std::ffi::OsString::from("--target-dir=");
        target.push(dir);
        target
    });
    if let Some(Account { uid, gid }) = account {
        command.uid(uid).gid(gid);
    }
    command
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
            let line = format!("{:?}", command(&tool, Path::new("/srv/data"), None));
            let expected =
                format!("\"{name}\" \"--no-defaults\" \"--prepare\" \"--target-dir=/srv/data\"");
            assert_eq!(line, expected);
        }
    }
}
