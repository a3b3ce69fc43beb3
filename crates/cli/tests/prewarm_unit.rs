//! Does the unit that warms the page cache hold for systemd, and does its command do no harm?

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn unit() -> PathBuf {
    evenkeel_testkit::checkout().join("dist/systemd/evenkeel-prewarm.service")
}

fn text() -> String {
    std::fs::read_to_string(unit()).unwrap()
}

fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let begin = format!("{key}=");
    let found = text.lines().find_map(|line| line.strip_prefix(&begin));
    found.unwrap_or_else(|| panic!("no {key}"))
}

/// Runs the unit's own command with these options on the program of this build.
fn run_as_the_unit_has_it(options: &[&str]) -> Output {
    let text = text();
    let command = value(&text, "ExecStart").strip_prefix('-').unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words, ["/usr/bin/evenkeel", "prewarm", "$OPTIONS"]);
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg(words[1])
        .args(options)
        .output()
        .unwrap()
}

#[test]
fn systemd_takes_the_unit() {
    let scratch = tempfile::tempdir().unwrap();
    // The program is looked for: that of this build stands where the unit wants it.
    let program = env!("CARGO_BIN_EXE_evenkeel");
    let own = scratch.path().join("evenkeel-prewarm.service");
    std::fs::write(&own, text().replace("/usr/bin/evenkeel", program)).unwrap();
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&own)
        .output()
        .expect("systemd-analyze");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("evenkeel-prewarm"), "{said}");
}

#[test]
fn the_server_waits_for_it_and_starts_without_it() {
    let text = text();
    let before = value(&text, "Before");
    for server in ["mariadb.service", "mysql.service", "mysqld.service"] {
        assert!(before.contains(server));
        assert!(value(&text, "WantedBy").contains(server));
    }
    assert!(
        !text.contains("RequiredBy="),
        "a failure would be the server's"
    );
    assert!(value(&text, "ExecStart").starts_with('-'));
    assert!(
        text.contains("TimeoutStartSec="),
        "a server would wait for ever"
    );
}

#[test]
fn a_wrong_data_directory_is_reported_and_nothing_else_happens() {
    let scratch = tempfile::tempdir().unwrap();
    let missing = scratch.path().join("missing");
    for (dir, word) in [
        (missing.as_path(), "does not exist"),
        (scratch.path(), "not a data directory"),
    ] {
        let output = run_as_the_unit_has_it(&["--no-defaults", "--datadir", name(dir)]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}
