//! Queues of a generation that is proved: the server that does it loads no library, so that it knows no queue.
//! Who asks for the proof says how their files are checked.

use super::report::BootReport;
use evenkeel_op::Result;
use std::path::Path;

/// Checks the files of all queues in a data directory: returns of each what is wrong with it.
pub type CheckQueues = fn(&Path) -> Result<Vec<Vec<String>>>;

/// What servers say of a table whose engine is not loaded; MySQL in its dictionary's words.
const UNKNOWN: [&str; 2] = [
    "Unknown storage engine 'QUEUE'",
    "Unknown table engine 'QUEUE'",
];

/// Whether a server says that a table is a queue, and that it cannot say more.
pub(super) fn is_one(said: &str) -> bool {
    UNKNOWN.iter().any(|words| said.contains(words))
}

/// Checks the files of all queues in the data directory before a server starts there. Returns how many there are.
///
/// Errors: those of the check.
pub(super) fn check(check: CheckQueues, datadir: &Path, report: &mut BootReport) -> Result<u64> {
    let queues = check(datadir)?;
    let number = queues.len() as u64;
    report.tables_checked += number;
    report.problems.extend(queues.into_iter().flatten());
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_a_table_and_all_problems_are_reported() {
        let found = |_: &Path| Ok(vec![vec!["a".into(), "b".into()], vec![], vec!["c".into()]]);
        let mut report = BootReport::of(1, "11.4".into());
        assert_eq!(check(found, Path::new("/data"), &mut report).unwrap(), 3);
        assert_eq!(report.tables_checked, 3);
        assert_eq!(report.problems, ["a", "b", "c"]);
    }
}
