//! What is wrong with the files of all queues, before a server is started on them that loads no library.

use evenkeel_op::{Context, Result};
use evenkeel_queue::place::{anchors, root_of};
use evenkeel_queue::salvage;
use std::path::Path;

/// Returns of each queue in a data directory what is wrong with its files, one sentence for each piece of damage.
///
/// Errors: a directory cannot be listed.
pub fn problems(datadir: &Path) -> Result<Vec<Vec<String>>> {
    let failed = || format!("failed to list {}", datadir.display());
    let anchors = anchors(datadir).context(failed)?;
    Ok(anchors.iter().map(|one| of_one(datadir, one)).collect())
}

fn of_one(datadir: &Path, anchor: &Path) -> Vec<String> {
    let name = anchor.strip_prefix(datadir).unwrap_or(anchor).display();
    match salvage::check(anchor, &root_of(datadir, anchor)) {
        Ok(found) => {
            let damage = found.damage.iter();
            let said = damage.map(|one| format!("{name}: at {}: {}", one.offset, one.what));
            said.collect()
        }
        Err(error) => vec![format!("{name}: {error}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_queue_that_is_none_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        assert!(problems(dir.path()).unwrap().is_empty());
        fs::create_dir(dir.path().join("shop")).unwrap();
        fs::write(dir.path().join("shop/jobs.QUE"), "not a queue").unwrap();
        let found = problems(dir.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0][0].starts_with("shop/jobs.QUE: "), "{found:?}");
    }
}
