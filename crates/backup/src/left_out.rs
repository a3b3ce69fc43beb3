//! What a backup left out, and by which rule.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What one rule left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The rule: what it is.
    pub why: String,
    /// Files, those in directories too.
    pub files: u64,
    /// Directories that were not looked into for the backup.
    pub directories: u64,
    /// Sum of the files' lengths.
    pub bytes: u64,
    /// The first few of them, as they were on the host.
    pub first: Vec<String>,
}

/// How many are named.
const NAMED: usize = 3;

impl LeftOut {
    /// Looks at what was left out, rule by rule. What is gone meanwhile counts without its bytes.
    pub(crate) fn of(excluded: &[(PathBuf, &'static str)]) -> Vec<Self> {
        let mut rules: BTreeMap<&str, Self> = BTreeMap::new();
        for (path, why) in excluded {
            let rule = rules.entry(why).or_insert_with(|| Self::rule(why));
            rule.name(path);
            let found = fs::symlink_metadata(path).ok();
            match found {
                Some(found) if found.is_dir() => rule.directory(path),
                found => {
                    rule.files += 1;
                    rule.bytes += found
                        .filter(fs::Metadata::is_file)
                        .map_or(0, |found| found.len());
                }
            }
        }
        rules.into_values().collect()
    }

    /// Files that a rule left out, with their lengths.
    pub(crate) fn of_files<'f>(
        why: &str,
        files: impl Iterator<Item = (&'f Path, u64)>,
    ) -> Option<Self> {
        let mut rule = Self::rule(why);
        for (path, bytes) in files {
            rule.name(path);
            rule.files += 1;
            rule.bytes += bytes;
        }
        (rule.files > 0).then_some(rule)
    }

    fn rule(why: &str) -> Self {
        Self {
            why: why.to_owned(),
            files: 0,
            directories: 0,
            bytes: 0,
            first: Vec::new(),
        }
    }

    fn name(&mut self, path: &Path) {
        if self.first.len() < NAMED {
            self.first.push(path.display().to_string());
        }
    }

    /// Counts what is in a directory; not in one of evenkeel's, whose clones are the server's own bytes.
    fn directory(&mut self, path: &Path) {
        self.directories += 1;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut waiting = match name.starts_with(".evenkeel-") {
            true => Vec::new(),
            false => vec![path.to_owned()],
        };
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => waiting.push(entry.path()),
                    Ok(found) => {
                        self.files += 1;
                        self.bytes += found.len();
                    }
                    Err(_) => self.files += 1,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("tmp/deeper")).unwrap();
        fs::write(at("tmp/deeper/a"), [0; 10]).unwrap();
        fs::write(at("tmp/b"), [0; 5]).unwrap();
        fs::create_dir(at(".evenkeel-0")).unwrap();
        fs::write(at(".evenkeel-0/clone"), [0; 99]).unwrap();
        fs::write(at("x.pid"), [0; 3]).unwrap();
        let found = LeftOut::of(&[
            (at("x.pid"), "a pid file"),
            (at("gone.pid"), "a pid file"),
            (at("tmp"), "temporary files"),
            (at(".evenkeel-0"), "our own"),
        ]);
        let reported = found
            .iter()
            .map(|one| (one.why.as_str(), one.files, one.directories, one.bytes));
        assert_eq!(
            reported.collect::<Vec<_>>(),
            [
                ("a pid file", 2, 0, 3),
                ("our own", 0, 1, 0),
                ("temporary files", 2, 1, 15)
            ]
        );
        assert_eq!(found[2].first, [at("tmp").display().to_string()]);
    }
}
