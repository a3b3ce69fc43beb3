//! The table of what no dependency tells.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where it is.
pub(super) const TABLE: &str = "xtask/affected.toml";

/// Paths below the top of the checkout, and what a change below each touches. The longest path that is
/// in a table decides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AffectedRules {
    /// Who touches one of these touches everything.
    everything: Vec<String>,
    /// Packages that look at what lies there without depending on it.
    packages: BTreeMap<String, Vec<String>>,
    /// Test files of the cases: names, or the beginning of names with a `*` behind it.
    cases: BTreeMap<String, Vec<String>>,
}

impl AffectedRules {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(TABLE))
            .with_context(|| format!("failed to read {TABLE}"))?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).with_context(|| format!("{TABLE} is not as it should be"))
    }

    pub(super) fn is_everything(&self, path: &str) -> bool {
        self.everything.iter().any(|above| is_below(path, above))
    }

    pub(super) fn packages(&self, path: &str) -> Option<&[String]> {
        nearest(&self.packages, path)
    }

    pub(super) fn cases(&self, path: &str) -> Option<&[String]> {
        nearest(&self.cases, path)
    }
}

/// Returns those of `files` that one of the names means.
pub(super) fn meant<'a>(
    names: &'a [String],
    files: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a String> {
    let is_meant = |file: &String| names.iter().any(|name| matches(name, file));
    files.iter().filter(move |file| is_meant(file))
}

fn matches(name: &str, file: &str) -> bool {
    match name.strip_suffix('*') {
        Some(begin) => file.starts_with(begin),
        None => name == file,
    }
}

fn nearest<'a>(table: &'a BTreeMap<String, Vec<String>>, path: &str) -> Option<&'a [String]> {
    let above = table.iter().filter(|(above, _)| is_below(path, above));
    above
        .max_by_key(|(above, _)| above.len())
        .map(|(_, names)| names.as_slice())
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::super::{CASES, plan};
    use super::*;
    use crate::workspace::Workspace;

    fn real() -> (Workspace, AffectedRules) {
        let root = crate::root();
        (
            Workspace::read(&root).unwrap(),
            AffectedRules::read(&root).unwrap(),
        )
    }

    #[test]
    fn the_longest_path_decides() {
        let table = AffectedRules::parse(
            "everything = ['a.toml']\n[packages]\n[cases]\n'c' = ['x']\n'c/d' = ['y*']\n",
        )
        .unwrap();
        let cases = |path| table.cases(path).map(|names| names.join(" "));
        assert_eq!(cases("c/a.rs").as_deref(), Some("x"));
        assert_eq!(cases("c/d/a.rs").as_deref(), Some("y*"));
        assert_eq!(cases("cd/a.rs"), None);
        assert!(table.is_everything("a.toml") && !table.is_everything("a.tomlx"));
        assert!(matches("y*", "yes") && !matches("y*", "x") && !matches("y", "yes"));
    }

    #[test]
    fn every_case_is_named_and_every_name_is_a_case() {
        let (workspace, table) = real();
        let files = plan::test_files(workspace.package(CASES).unwrap());
        let names: Vec<&String> = table.cases.values().flatten().collect();
        for name in &names {
            let is_there = files.iter().any(|file| matches(name, file));
            assert!(
                is_there,
                "{TABLE}: no file in tests/cases/tests is called {name}"
            );
        }
        for file in &files {
            // What a change of the foundation touches besides everything else is not its own.
            let mut own = names.iter().filter(|name| **name != "*");
            let is_named = own.any(|name| matches(name, file));
            assert!(
                is_named,
                "{TABLE}: nothing names tests/cases/tests/{file}.rs"
            );
        }
    }

    #[test]
    fn every_path_and_package_in_the_table_is_there() {
        let (workspace, table) = real();
        let paths = table.everything.iter().chain(table.packages.keys());
        for path in paths.chain(table.cases.keys()) {
            let is_there = crate::root().join(path).exists();
            assert!(is_there, "{TABLE}: {path} does not exist");
        }
        for name in table.packages.values().flatten() {
            assert!(workspace.package(name).is_some(), "{TABLE}: no {name}");
        }
    }

    #[test]
    fn every_file_of_the_product_has_its_cases_and_every_other_its_tests() {
        let (workspace, table) = real();
        for file in crate::tidy::tracked(&crate::root()).unwrap() {
            let path = file.path;
            let is_known = workspace.owner(&path).is_some()
                || table.is_everything(&path)
                || table.packages(&path).is_some();
            assert!(
                if plan::is_product(&path) {
                    table.cases(&path).is_some()
                } else {
                    is_known
                },
                "{TABLE} does not say which tests {path} touches"
            );
        }
    }
}
