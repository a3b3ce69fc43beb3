//! Rules about text of any kind.

/// Names of package registries: the tools know them, the project does not name them.
/// Written in halves so that this file passes its own test.
const REGISTRIES: [&str; 8] = [
    concat!("crates", ".io"),
    concat!("repo1.maven", ".org"),
    concat!("repo.maven", ".apache.org"),
    concat!("pypi", ".org"),
    concat!("npmjs", ".org"),
    concat!("deb.debian", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("static.rust-lang", ".org"),
];

/// Folders that exist on the machine somebody happened to work on.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Longest Rust file, tests included.
const FILE_LINES_MAX: usize = 700;

/// Checks one text file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Cargo writes the lock file, not we.
    if path == "Cargo.lock" {
        return found;
    }
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        for registry in REGISTRIES.iter().filter(|name| line.contains(**name)) {
            found.push(format!("{path}:{number}: names the registry {registry}"));
        }
        for machine in MACHINE_PATHS
            .iter()
            .filter(|start| is_path_start(line, start))
        {
            found.push(format!("{path}:{number}: a path of one machine: {machine}"));
        }
    }
    let lines = text.lines().count();
    if path.ends_with(".rs") && lines > FILE_LINES_MAX {
        found.push(format!(
            "{path}:1: {lines} lines: split it by phase or noun"
        ));
    }
    found.extend(check_question(path, text));
    found
}

/// Returns whether an absolute path beginning with `start` stands in the line.
fn is_path_start(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-})>*$".contains(c))
    })
}

/// An integration test opens with the question it answers.
fn check_question(path: &str, text: &str) -> Option<String> {
    let (folder, _) = path.strip_suffix(".rs")?.rsplit_once('/')?;
    if !folder.ends_with("/tests") {
        return None;
    }
    let head: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .collect();
    (!head.iter().any(|line| line.contains('?')))
        .then(|| format!("{path}:1: a test file opens with the question it answers: //! Does …?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_and_machine_paths_are_seen() {
        let line = format!(
            "see https://{}/x and {}main",
            REGISTRIES[0], MACHINE_PATHS[0]
        );
        assert_eq!(check("docs/x.md", &line).len(), 2);
        assert!(check("Cargo.lock", &line).is_empty());
        assert!(check("docs/x.md", &format!("frame{}", MACHINE_PATHS[0])).is_empty());
    }

    #[test]
    fn long_files_are_seen() {
        let long = "//\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(check("crates/op/src/a.rs", &long).len(), 1);
        assert!(check("docs/a.md", &long).is_empty());
    }

    #[test]
    fn test_files_ask_a_question() {
        assert!(check("crates/op/tests/a.rs", "//! Tests.\n").len() == 1);
        assert!(check("crates/op/tests/a.rs", "//! Does it\n//! hold?\n").is_empty());
        assert!(check("crates/op/tests/support/a.rs", "//! Bank.\n").is_empty());
    }
}
