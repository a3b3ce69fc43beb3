//! From changed files to tests.

use super::closure::dependents;
use super::table::{AffectedRules, meant};
use super::{CASES, XTASK};
use crate::workspace::{Package, Target, Workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The tests that are touched.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Everything,
    These {
        /// Packages, with all their tests.
        packages: BTreeSet<String>,
        /// Of other packages, the test files.
        files: BTreeMap<String, BTreeSet<String>>,
    },
}

/// Returns the names of a package's test files.
pub(super) fn test_files(package: &Package) -> BTreeSet<String> {
    let tests = package.targets.iter().filter(|target| target.is_test());
    tests.map(|target: &Target| target.name.clone()).collect()
}

/// Decides for a set of changed files.
pub(super) fn plan(
    workspace: &Workspace,
    table: &AffectedRules,
    changed: &BTreeSet<String>,
) -> Plan {
    let cases = workspace.package(CASES).map(test_files).unwrap_or_default();
    let mut packages = BTreeSet::new();
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in changed {
        if table.is_everything(path) {
            return Plan::Everything;
        }
        // The rules of the house are about every file.
        packages.insert(XTASK.to_owned());
        let looking = table.packages(path);
        packages.extend(looking.unwrap_or_default().iter().cloned());
        let owner = workspace.owner(path);
        if let Some(package) = owner {
            let inside = workspace.inside(package, path);
            if let Ok(test) = inside.strip_prefix("tests") {
                match of_a_test(test) {
                    Some(name) if test_files(package).contains(name) => {
                        let of_it = files.entry(package.name.clone()).or_default();
                        of_it.insert(name.to_owned());
                    }
                    // It is gone: there is nothing to run.
                    Some(_) => {}
                    // Test files share it.
                    None => drop(packages.insert(package.name.clone())),
                }
                continue;
            }
            packages.extend(dependents(workspace, &package.name));
        }
        match table.cases(path) {
            Some(names) => {
                let of_it = files.entry(CASES.to_owned()).or_default();
                of_it.extend(meant(names, &cases).cloned());
            }
            None if is_product(path) => drop(packages.insert(CASES.to_owned())),
            None if owner.is_none() && looking.is_none() => return Plan::Everything,
            None => {}
        }
    }
    files.retain(|package, names| !packages.contains(package) && !names.is_empty());
    Plan::These { packages, files }
}

/// Whether it is part of what is shipped: whoever changes it touches cases.
pub(super) fn is_product(path: &str) -> bool {
    let tops = ["crates/", "queue/", "url/"];
    tops.iter().any(|top| path.starts_with(top))
}

/// Returns the name of the test file, unless it lies deeper.
fn of_a_test(path: &Path) -> Option<&str> {
    path.to_str()?
        .strip_suffix(".rs")
        .filter(|name| !name.contains('/'))
}

impl Plan {
    /// Returns what to give to nextest, in quotes that the shell takes away: empty for everything.
    pub(super) fn arguments(&self) -> String {
        let Self::These { packages, files } = self else {
            return String::new();
        };
        let mut parts: Vec<String> = packages
            .iter()
            .map(|name| format!("package({name})"))
            .collect();
        for (package, names) in files {
            let names: Vec<String> = names.iter().map(|name| format!("binary({name})")).collect();
            parts.push(format!("(package({package}) & ({}))", names.join(" | ")));
        }
        match parts.is_empty() {
            true => "-E 'none()' --no-tests=pass".to_owned(),
            false => format!("-E '{}'", parts.join(" | ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arguments for changes of the real workspace, decided by the real table.
    fn touched(changed: &[&str]) -> String {
        let root = crate::root();
        let workspace = Workspace::read(&root).unwrap();
        let changed = changed.iter().map(|path| (*path).to_owned()).collect();
        plan(&workspace, &AffectedRules::read(&root).unwrap(), &changed).arguments()
    }

    #[test]
    fn nothing_is_nothing_and_the_ground_is_everything() {
        assert_eq!(touched(&[]), "-E 'none()' --no-tests=pass");
        for path in ["Cargo.lock", ".config/nextest.toml", "testkit/src/lib.rs"] {
            assert_eq!(touched(&["docs/src/reference.md", path]), "", "{path}");
        }
        assert_eq!(touched(&["what/nobody/knows"]), "");
    }

    #[test]
    fn a_page_is_checked_by_the_rules_of_the_house() {
        for path in ["CHANGELOG.md", "docs/src/reference.md", "LICENSE-MIT"] {
            let reference = match path.starts_with("docs") {
                true => "package(evenkeel-pages) | ",
                false => "",
            };
            let expected = format!("-E '{reference}package(evenkeel-xtask)'");
            assert_eq!(touched(&[path]), expected, "{path}");
        }
    }

    #[test]
    fn a_crate_touches_who_needs_it_and_its_own_cases() {
        assert_eq!(
            touched(&["url/codec/src/lib.rs"]),
            "-E 'package(evenkeel-bench-urls) | package(evenkeel-cli) | package(evenkeel-pages) | \
             package(evenkeel-plugin-url) | package(evenkeel-url-install) | package(evenkeel-urlcodec) | \
             package(evenkeel-xtask) | (package(evenkeel-cases) & (binary(url_functions_agree)))'"
        );
        let logical = touched(&["crates/logical/src/load/rows.rs"]);
        assert!(logical.contains("binary(loads_resume)"), "{logical}");
        assert!(!logical.contains("backup"), "{logical}");
        // It has no package: the servers' compilers build it.
        let handler = touched(&["queue/mariadb/ha_queue.cc"]);
        assert!(handler.contains("binary(queues_are_tables)"), "{handler}");
        assert!(!handler.contains("binary(killed_"), "{handler}");
    }

    #[test]
    fn a_test_touches_itself() {
        assert_eq!(
            touched(&[
                "tests/cases/tests/loads_resume.rs",
                "tests/cases/tests/loads_obey.rs"
            ])
            .matches("package(evenkeel-cases)")
            .count(),
            1
        );
        assert_eq!(
            touched(&["tests/cases/tests/loads_resume.rs"]),
            "-E 'package(evenkeel-cli) | package(evenkeel-xtask) | \
             (package(evenkeel-cases) & (binary(loads_resume)))'"
        );
        assert_eq!(
            touched(&["crates/binlog/tests/damage_is_reported.rs"]),
            "-E 'package(evenkeel-xtask) | (package(evenkeel-binlog) & (binary(damage_is_reported)))'"
        );
        assert_eq!(
            touched(&["tests/cases/tests/gone.rs"]),
            "-E 'package(evenkeel-cli) | package(evenkeel-xtask)'"
        );
        assert_eq!(
            touched(&["crates/binlog/tests/made/mod.rs"]),
            "-E 'package(evenkeel-binlog) | package(evenkeel-xtask)'"
        );
        let all = touched(&[
            "tests/cases/src/lib.rs",
            "tests/cases/tests/loads_resume.rs",
        ]);
        assert!(
            all.contains("package(evenkeel-cases) |") && !all.contains("binary("),
            "{all}"
        );
    }
}
