//! How an import ended that did not reach the file's end, and how to continue.

use super::batch::Batch;
use super::driver::{ALL, Driver};
use super::work::Failure;
use evenkeel_op::{Error, ErrorKind};
use std::collections::BTreeMap;

/// Puts the error together: the line, the server's words, and how to continue. `error` is what
/// stopped the reader of the file, if it was not one of the connections.
pub(super) fn failed(driver: &Driver<'_>, error: Option<Error>) -> Error {
    let (mut failures, dropped) = driver.pool.leftovers();
    if let Some(error) = error {
        failures.push(Failure {
            at: driver.at,
            table: None,
            error: Box::new(error),
            again: driver.at_hand,
        });
    }
    let undone = undone(driver, &failures, dropped);
    // A request to stop is why all else failed.
    failures.sort_by_key(|one| (!is_stop(&one.error), one.at));
    let Some(first) = failures.into_iter().next() else {
        return Error::failed("the import stopped for an unknown reason");
    };
    let place = driver.places.shown(first.at);
    let frontier = undone.values().copied().min().unwrap_or(driver.at.line + 1);
    let kind = match first.error.kind() {
        ErrorKind::Failed if driver.statements > 0 => ErrorKind::Partial,
        other => other,
    };
    let lost = matches!(first.error.kind(), ErrorKind::Unreachable) || is_stop(&first.error);
    let mut error = Error::new(kind, format!("stopped at {place}")).because(*first.error);
    let (mut flags, mut unsure) = (format!("--from-line {}", frontier.max(1)), Vec::new());
    if driver.tables.iter().any(|known| !known.exact) {
        flags.push_str(&format!(" --done {ALL}={frontier}"));
    }
    for (number, known) in driver.tables.iter().enumerate() {
        if known.exact || known.last_line < frontier {
            continue;
        }
        let next = undone.get(&Some(number)).copied();
        // The statement at hand was not handed on.
        let here = driver.at_hand && known.last_line == driver.at.line;
        let after = known.last_line + u64::from(!here);
        flags.push_str(&format!(" --done {}={}", known.name, next.unwrap_or(after)));
        if lost && let Some(next) = next {
            unsure.push(format!("{} (line {next})", known.name));
        }
    }
    if !unsure.is_empty() {
        error = error.hint(format!(
            "it is unknown whether the last statement for these tables was executed, so count their rows: {}",
            unsure.join(", ")
        ));
    }
    if driver.places.are_several() {
        error = error.hint("lines to resume from are counted through all files that are run, in the order in which they are read");
    }
    error.hint(format!(
        "everything before line {frontier} was executed; when the cause is fixed, resume with {flags}"
    ))
}

/// Returns the tables whose work was not done, with the first line of it.
fn undone(
    driver: &Driver<'_>,
    failures: &[Failure],
    dropped: Vec<(usize, u64)>,
) -> BTreeMap<Option<usize>, u64> {
    let mut undone: BTreeMap<Option<usize>, u64> = BTreeMap::new();
    let pending = driver.pending.iter();
    let pending = pending.map(|(table, batch): (&usize, &Batch)| (Some(*table), batch.at().line));
    let dropped = dropped.into_iter().map(|(table, line)| (Some(table), line));
    let dropped = dropped.filter(|(_, line)| *line != u64::MAX);
    let waiting = pending.chain(dropped);
    let failing = failures.iter().filter(|one| one.again);
    let failing = failing.map(|one| (one.table, one.at.line));
    let at_hand = driver.at_hand.then_some((None, driver.at.line));
    // What is open goes with its connection.
    let open = driver.transaction.map(|line| (None, line));
    for (table, line) in waiting.chain(failing).chain(at_hand).chain(open) {
        let first = undone.entry(table).or_insert(line);
        *first = (*first).min(line);
    }
    undone
}

fn is_stop(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Terminated)
}
