//! One transaction, from the journal to its end.

use super::journal::{JournalFile, JournalRecord};
use super::plan::now;
use super::stand::Standing;
use super::writer::{Change, Writer};
use evenkeel_op::{Error, ErrorKind, Result};

/// Names so many rows at most.
const NAMED: usize = 10;

/// Refuses rows that are not as they should be.
pub(super) fn refuse_changed(changed: &[String], since: &str, hint: &str) -> Error {
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = changed.iter().take(NAMED).map(String::as_str).collect();
    let rows = match changed.len() {
        1 => "1 row was".to_owned(),
        count => format!("{count} rows were"),
    };
    Error::refused(format!(
        "{rows} changed since {since}, so nothing was done: {}{more}",
        named.join("; ")
    ))
    .hint(hint)
}

/// Writes the rows and commits. The journal has them already.
///
/// Errors: those of the server: then everything is as it was. If the answer to COMMIT never came, the error says so.
pub(super) fn carry_out(
    mut writer: Writer,
    standing: &mut Standing,
    may_go_on: &mut dyn FnMut() -> Result<()>,
    changes: &[Change<'_>],
    journal: &mut JournalFile,
) -> Result<()> {
    fail::fail_point!("repair::journalled");
    let written = writer
        .write(changes)
        .and_then(|()| writer.read_back(changes))
        .and_then(|()| may_go_on())
        // Not a moment earlier: who moves the SQL thread changes what the rows should be.
        .and_then(|()| standing.check());
    if let Err(error) = written {
        writer.roll_back();
        // The rows say so, too.
        let _ = journal.append(&JournalRecord::RolledBack {
            time: now(),
            why: error.chain(),
        });
        return Err(error);
    }
    fail::fail_point!("repair::committing");
    if let Err(error) = writer.commit() {
        let why = error.chain();
        let _ = journal.append(&JournalRecord::Unknown { time: now(), why });
        return Err(Error::failed(
            "nobody knows whether the repair was committed: its answer never came",
        )
        .because(error)
        .hint("run the same command again: it looks at the rows, and says so"));
    }
    fail::fail_point!("repair::committed");
    journal.committed().map_err(|error| {
        let message = "the repair was committed, but its journal could not be told";
        Error::new(ErrorKind::Partial, message).because(error)
    })?;
    fail::fail_point!("repair::noted");
    Ok(())
}
