//! Who depends on whom.

use super::CASES;
use crate::workspace::Workspace;
use std::collections::BTreeSet;

/// Returns the package and all whose tests may go otherwise when it changes.
///
/// What only tests need goes one step far: a package is not another when its tests are. Nobody is
/// reached through the cases, for whom the table decides; they themselves are among the result only
/// when asked for.
pub(super) fn dependents(workspace: &Workspace, name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([name.to_owned()]);
    let mut todo = vec![name.to_owned()];
    let mut tested = BTreeSet::new();
    while let Some(next) = todo.pop() {
        for package in &workspace.packages {
            let mut needs = package.dependencies.iter();
            let needs = needs.by_ref().filter(|need| need.name == next);
            for need in needs.filter(|_| package.name != CASES) {
                if need.is_only_for_tests() {
                    tested.insert(package.name.clone());
                } else if reached.insert(package.name.clone()) {
                    todo.push(package.name.clone());
                }
            }
        }
    }
    reached.extend(tested);
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made;

    #[test]
    fn tests_are_the_end_of_the_line() {
        let workspace = made(&[
            ("ground", "crates/ground", &[]),
            ("kit", "kit", &["ground"]),
            ("middle", "crates/middle", &["ground", "?kit", "?side"]),
            ("side", "crates/side", &[]),
            ("top", "crates/top", &["middle"]),
            (CASES, "cases", &["top", "side"]),
            ("after", "after", &[CASES]),
        ]);
        let of = |name| {
            dependents(&workspace, name)
                .into_iter()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(of("ground"), "ground kit middle top");
        assert_eq!(of("kit"), "kit middle");
        assert_eq!(of("side"), "middle side");
        assert_eq!(of("top"), "top");
        assert_eq!(of(CASES), format!("after {CASES}"));
    }
}
