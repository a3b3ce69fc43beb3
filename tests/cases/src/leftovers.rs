//! What a run that failed or was killed must not leave behind, and must leave as it was.

use crate::Site;
use evenkeel_server::launch::Running;
use evenkeel_testkit::until;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Asserts that nothing of ours stands in a server's way: it is not stopped, and DDL and writes get
/// through.
#[track_caller]
pub fn assert_unharmed(running: &Running, reported: &str) {
    let pid = running.pid();
    until(&format!("{reported}: the server's process runs on"), || {
        !is_stopped(pid)
    });
    let mut session = running
        .session()
        .unwrap_or_else(|e| panic!("{reported}: {}", e.chain()));
    for sql in [
        "SET SESSION lock_wait_timeout = 10",
        "CREATE DATABASE IF NOT EXISTS proof",
        "CREATE TABLE proof.made (id INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO proof.made VALUES (1)",
        "DROP TABLE proof.made",
    ] {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{reported}: {sql}: {}", e.chain()));
    }
}

/// Whether a process is stopped by a signal.
#[must_use]
pub fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server is there");
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Asserts that a filesystem holds one snapshot of ours and nothing else: the base of the next run.
#[track_caller]
pub fn assert_only_the_base(top: &Path, reported: &str) {
    assert_eq!(
        holding(top),
        ["EVENKEEL-HOLDING", "base", "lock"],
        "{reported}"
    );
}

/// Asserts that a filesystem holds no snapshot of ours but, at most, a base.
#[track_caller]
pub fn assert_at_most_the_base(top: &Path, reported: &str) {
    let names = holding(top);
    let others: Vec<_> = names.iter().filter(|name| *name != "base").collect();
    assert!(
        names.is_empty() || others == ["EVENKEEL-HOLDING", "lock"],
        "{reported}: {names:?}"
    );
}

/// Returns the holding directories under `top`.
#[must_use]
pub fn holding_directories(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"));
    let is_holding = |path: &PathBuf| path.join("lock").exists() || path.join("run").exists();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(".evenkeel-")
        })
        .map(|entry| entry.path())
        .filter(is_holding)
        .collect()
}

/// Returns the names in the holding directory under `top`, sorted; none when there is none. A base is called
/// `base` here, whichever repository it is kept for.
fn holding(top: &Path) -> Vec<String> {
    let plain = |name: String| match name.starts_with("base-") {
        true => "base".to_owned(),
        false => name,
    };
    let mut names: Vec<String> = holding_directories(top)
        .iter()
        .flat_map(|directory| names_in(directory))
        .map(plain)
        .collect();
    names.sort();
    names
}

/// Asserts that a repository holds whole generations only.
#[track_caller]
pub fn assert_no_unfinished(repository: &Path, reported: &str) {
    let unfinished: Vec<PathBuf> = all_files(repository)
        .into_keys()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == "pending" || name == "removing" || name.ends_with(".tmp")
        })
        .collect();
    assert!(unfinished.is_empty(), "{reported}: {unfinished:?}");
    for generation in names_in(&repository.join("generations")) {
        let manifest = repository
            .join("generations")
            .join(&generation)
            .join("manifest");
        assert!(
            manifest.exists(),
            "{reported}: generation {generation} has no manifest"
        );
    }
}

/// Returns every file below a directory, relative to it, with its length.
#[must_use]
pub fn all_files(top: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            // A run may be removing it just now.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if metadata.is_dir() {
                open.push(path);
            } else {
                found.insert(
                    path.strip_prefix(top).expect("below").to_owned(),
                    metadata.len(),
                );
            }
        }
    }
    found
}

/// Asserts that two directories hold the same names and bytes.
#[track_caller]
pub fn assert_same_tree(one: &Path, other: &Path, reported: &str) {
    let output = Command::new("diff")
        .arg("-rq")
        .args([one, other])
        .output()
        .expect("diff");
    assert!(
        output.status.success(),
        "{reported}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Returns the sorted names in a directory; none when it is not there.
#[must_use]
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

impl Site {
    /// Asserts that a failed or killed run left the server, its filesystem and the repository in
    /// order: no snapshot but the base, no unfinished generation.
    #[track_caller]
    pub fn assert_clean(&self, reported: &str) {
        assert_unharmed(self.running(), reported);
        assert_at_most_the_base(self.fs.path(), reported);
        assert_no_unfinished(&self.repository(), reported);
    }
}
