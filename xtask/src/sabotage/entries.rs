//! The list of what is broken, and whether it is true.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where the list is.
pub const LIST: &str = "xtask/sabotage.toml";

/// The page that tells of each entry.
const PAGE: &str = "docs/src/design/sabotage.md";

/// The faults that every release withstands; [`PAGE`] says what each is. One
/// without an entry is a rule broken.
pub const FAULTS: [&str; 17] = [
    "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13", "F18", "F19",
    "F20", "F21",
];

/// What an entry may stand for besides; docs/src/design/sabotage.md says what each is.
const BEYOND: [&str; 20] = [
    "image", "page", "tool", "key", "trust", "schema", "dump", "error", "import", "figure", "load",
    "url", "queue", "told", "install", "book", "path", "house", "traffic", "health",
];

/// One place to break, and the test that is to notice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// The fault it stands for, `image` for the crash-consistency loop, `page` for corrupt pages,
    /// `tool` for the server's own hot-copy tool, `key` for encryption, or `schema` for the objects of
    /// a dump, or `dump` for its rows and what it costs.
    pub fault: String,
    /// What is broken, and what would come of it: half a sentence.
    pub why: String,
    /// The file to change, below the top of the checkout.
    pub file: String,
    /// Text that stands in it exactly once.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
    /// The package whose test is run.
    pub package: String,
    /// The file of the test without `.rs`; `lib` for tests beside the code.
    pub test: String,
    /// Which tests of it: part of a name. All, when left out.
    #[serde(default)]
    pub only: Option<String>,
    /// Environment variables for the test.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List {
    sabotage: Vec<Entry>,
}

impl Entry {
    /// Whether the guarding test needs a kernel of its own.
    #[must_use]
    pub fn is_in_machine(&self) -> bool {
        self.package == "evenkeel-vm" && self.test != "lib"
    }

    /// Returns the guarding test: `package/test only`.
    #[must_use]
    pub fn guard(&self) -> String {
        let package = self.package.trim_start_matches("evenkeel-");
        let only = self.only.as_deref().unwrap_or_default();
        format!("{package}/{} {only}", self.test).trim_end().into()
    }

    /// Returns the text of the entry's file with the sabotage in it.
    pub fn apply(&self, text: &str) -> Result<String> {
        let times = text.matches(&self.find).count();
        anyhow::ensure!(times == 1, "{times} times in {}", self.file);
        Ok(text.replacen(&self.find, &self.replace, 1))
    }
}

/// Reads the list.
pub fn read(root: &Path) -> Result<Vec<Entry>> {
    let text =
        fs::read_to_string(root.join(LIST)).with_context(|| format!("failed to read {LIST}"))?;
    let list: List =
        toml::from_str(&text).with_context(|| format!("{LIST} is not as it should be"))?;
    Ok(list.sabotage)
}

/// Returns what is wrong with the list: a text that is not there exactly once, a test that is gone,
/// a name given twice, a fault that nothing stands for.
#[must_use]
pub fn check(root: &Path) -> Vec<String> {
    let read = read(root).and_then(|entries| Ok((entries, Workspace::read(root)?)));
    match read {
        Ok((entries, workspace)) => judge(root, &entries, &workspace),
        Err(error) => vec![format!("{error:#}")],
    }
}

fn judge(root: &Path, entries: &[Entry], workspace: &Workspace) -> Vec<String> {
    let page = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for entry in entries {
        let mut wrong = |what: String| found.push(format!("{LIST}: {}: {what}", entry.name));
        if !names.insert(&entry.name) {
            wrong("there are two of that name".into());
        }
        if !page.contains(&format!("| `{}` |", entry.name)) {
            wrong(format!("{PAGE} does not tell of it"));
        }
        if !BEYOND.contains(&entry.fault.as_str()) && !FAULTS.contains(&entry.fault.as_str()) {
            wrong(format!("there is no fault {}", entry.fault));
        }
        let text = fs::read_to_string(root.join(&entry.file)).unwrap_or_default();
        if let Err(error) = entry.apply(&text) {
            wrong(format!("what is to be broken stands {error}"));
        }
        let test = format!("tests/{}.rs", entry.test);
        let package = workspace.package(&entry.package);
        if !package.is_some_and(|one| entry.test == "lib" || one.directory().join(&test).exists()) {
            wrong(format!("{} has no {test}", entry.package));
        }
    }
    for fault in FAULTS {
        if !entries.iter().any(|entry| entry.fault == fault) {
            found.push(format!("{LIST}: nothing stands for {fault}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made;

    fn entry(find: &str) -> Entry {
        let text = format!(
            "name = 'n'\nfault = 'F1'\nwhy = 'w'\nfile = 'f'\nfind = '{find}'\nreplace = 'x'\n\
             package = 'evenkeel-op'\ntest = 't'\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn only_what_stands_once_is_broken() {
        assert_eq!(entry("b").apply("abc").unwrap(), "axc");
        for text in ["ac", "abcb"] {
            let error = entry("b").apply(text).unwrap_err().to_string();
            assert!(error.contains("times in f"), "{error}");
        }
    }

    #[test]
    fn a_list_that_is_not_true_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join(LIST);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        let one = "[[sabotage]]\nname = 'n'\nfault = 'F99'\nwhy = 'w'\nfile = 'f'\nfind = 'b'\n\
                   replace = ''\npackage = 'evenkeel-op'\ntest = 't'\n";
        fs::write(&list, format!("{one}{one}")).unwrap();
        let entries = read(dir.path()).unwrap();
        let reported = judge(dir.path(), &entries, &made(&[])).join("\n");
        for part in [
            "two of that name",
            "no fault F99",
            "0 times in f",
            "no tests/t.rs",
            "nothing stands for F21",
        ] {
            assert!(reported.contains(part), "'{part}' in: {reported}");
        }
    }
}
