//! Queues of a generation that is proved: the server that does it loads no library, so that it knows no queue.
//! Their files are read here, as `queue check` reads them.

use super::report::BootReport;
use evenkeel_op::{Context, Result};
use evenkeel_queue::place::{anchors, root_of};
use evenkeel_queue::salvage;
use std::path::Path;

/// What servers say of a table whose engine is not loaded; MySQL in its dictionary's words.
const UNKNOWN: [&str; 2] = [
    "Unknown storage engine 'QUEUE'",
    "Unknown table engine 'QUEUE'",
];

/// Whether a server says that a table is a queue, and that it cannot say more.
pub(super) fn is_one(said: &str) -> bool {
    UNKNOWN.iter().any(|words| said.contains(words))
}

/// Checks the files of all queues in a data directory before a server starts there. Returns how many there are.
///
/// Errors: a directory cannot be listed.
pub(super) fn check(datadir: &Path, report: &mut BootReport) -> Result<u64> {
    let failed = || format!("failed to list {}", datadir.display());
    let anchors = anchors(datadir).context(failed)?;
    for anchor in &anchors {
        report.tables_checked += 1;
        let name = anchor.strip_prefix(datadir).unwrap_or(anchor).display();
        match salvage::check(anchor, &root_of(datadir, anchor)) {
            Ok(found) => {
                let damage = found.damage.iter();
                let said = damage.map(|one| format!("{name}: at {}: {}", one.offset, one.what));
                report.problems.extend(said);
            }
            Err(error) => report.problems.push(format!("{name}: {error}")),
        }
    }
    Ok(anchors.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_queue_that_is_none_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = BootReport::of(1, "11.4".into());
        assert_eq!(check(dir.path(), &mut report).unwrap(), 0);
        assert!(report.problems.is_empty());
        fs::create_dir(dir.path().join("shop")).unwrap();
        fs::write(dir.path().join("shop/jobs.QUE"), "not a queue").unwrap();
        assert_eq!(check(dir.path(), &mut report).unwrap(), 1);
        assert!(
            report.problems[0].starts_with("shop/jobs.QUE: "),
            "{report:?}"
        );
    }
}
