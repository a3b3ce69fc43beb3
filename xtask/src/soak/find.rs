//! Which tests can be run for longer: those that ask the testkit how long to go on.

use crate::workspace::{Package, Workspace};
use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::Path;

/// What stands where a test asks.
const ASKS: &str = "effort::";
/// Who has the word without asking: the testkit answers, this looks for it.
const NOT: [&str; 2] = ["evenkeel-testkit", "evenkeel-xtask"];
/// Whose tests run in a virtual machine.
const IN_A_MACHINE: &str = "evenkeel-vm";
/// Whose library is what its files of tests share: they are named, not it.
const SHARED: &str = "evenkeel-cases";

/// One file of tests, or the tests beside a package's code.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) package: String,
    /// The file of tests; nothing for those beside the code.
    pub(super) test: Option<String>,
}

impl Entry {
    /// Whether it is for `cargo xtask machine`, not for nextest.
    pub(super) fn is_in_a_machine(&self) -> bool {
        self.package == IN_A_MACHINE
    }
}

/// As nextest calls it.
impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.package)?;
        match &self.test {
            Some(test) => write!(out, "::{test}"),
            None => Ok(()),
        }
    }
}

/// Returns all of the workspace, in order of their names.
pub(super) fn entries(workspace: &Workspace) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for package in &workspace.packages {
        if !NOT.contains(&package.name.as_str()) {
            entries.extend(entries_of(package)?);
        }
    }
    entries.sort();
    Ok(entries)
}

fn entries_of(package: &Package) -> Result<Vec<Entry>> {
    let entry = |test: Option<&str>| Entry {
        package: package.name.clone(),
        test: test.map(str::to_owned),
    };
    let mut entries = Vec::new();
    for target in package.targets.iter().filter(|target| target.is_test()) {
        if asks(&target.src_path)? {
            entries.push(entry(Some(&target.name)));
        }
    }
    if package.name != SHARED && any_asks(&package.directory().join("src"))? {
        entries.push(entry(None));
    }
    Ok(entries)
}

/// Whether a file of tests asks, or a folder of modules beside it that it takes in.
fn asks(path: &Path) -> Result<bool> {
    let text = read(path)?;
    if text.contains(ASKS) {
        return Ok(true);
    }
    let beside = path.parent().unwrap_or(path);
    let modules = text.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("mod ")?.strip_suffix(';')?;
        Some(beside.join(name))
    });
    for folder in modules {
        if any_asks(&folder)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether any file of Rust below a folder asks; one that is not there does not.
fn any_asks(folder: &Path) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            any_asks(&path)?
        } else {
            path.extension().is_some_and(|end| end == "rs") && read(&path)?.contains(ASKS)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_found_wherever_the_word_stands() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[package]\nname = 'p'\nedition = '2024'\n");
        write("src/lib.rs", "");
        write("src/deep/er.rs", "effort::rounds(1);");
        write("tests/asks.rs", "effort::rounds(1);");
        write("tests/shares.rs", "mod scene;\n");
        write("tests/scene/mod.rs", "effort::rounds(1);");
        write("tests/short.rs", "mod other;\n// no effort here\n");
        write("tests/other/mod.rs", "");
        let workspace = Workspace::read(dir.path()).unwrap();
        let names: Vec<String> = entries(&workspace)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["p", "p::asks", "p::shares"]);
    }
}
