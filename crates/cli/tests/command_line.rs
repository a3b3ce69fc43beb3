//! Are help, wrong usage and closed pipes answered as the book says?

use std::process::{Command, Output, Stdio};

fn evenkeel(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(words)
        .output()
        .unwrap()
}

#[test]
fn help_is_question_mark_and_h_is_the_host_where_one_follows() {
    for words in [
        &["--help"][..],
        &["--help-all"],
        &["-?"],
        &["backup", "--help"],
        &["backup", "--help-all"],
        &["help", "restore"],
        &["-h"],
        &["backup", "-h"],
        &["bench", "tpcc", "run", "-h"],
    ] {
        let output = evenkeel(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("Examples"),
            "{words:?}"
        );
    }
    // Of a script whose variable is empty.
    let output = evenkeel(&["backup", "/r", "-h"]);
    assert_eq!(output.status.code(), Some(2));
    // Nothing answers there: it was taken for a host.
    let output = evenkeel(&["doctor", "--no-defaults", "-h", "127.0.0.1", "-P1"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("Examples"));
}

#[test]
fn other_programs_words_are_answered_with_ours() {
    for (word, verb) in [
        ("version", "--version"),
        ("list", "generations"),
        ("status", "doctor"),
        ("rm", "forget"),
    ] {
        let output = evenkeel(&[word, "/backup"]);
        assert_eq!(output.status.code(), Some(2), "{word}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let tip = format!("did you mean 'evenkeel {verb}'?");
        assert!(said.contains(&tip), "{word}: {said}");
        let output = evenkeel(&[word, "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let hints = json["hints"].as_array().unwrap();
        assert!(hints.iter().any(|hint| *hint == *tip), "{word}: {json:#}");
    }
    // A verb's own verb is not one of ours.
    let output = evenkeel(&["keys", "status"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("did you mean"), "{said}");
}

#[test]
fn backup_and_lock_offer_the_locks_that_they_take() {
    let offered = |verb: &str| {
        let output = evenkeel(&[verb, "--help-all"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let from = text.find("--lock <KIND>").unwrap();
        let until = text.find("--lock-deadline").unwrap();
        let about = text[from..until].to_owned();
        let kinds = ["auto", "stage", "instance", "ftwrl", "none"];
        kinds.map(|kind| about.contains(&format!("- {kind}:")))
    };
    assert_eq!(offered("backup"), [true, false, false, true, true]);
    assert_eq!(offered("lock"), [true; 5]);
}

#[test]
fn wrong_usage_is_2_on_standard_error() {
    for words in [
        &[][..],
        &["bakcup"],
        &["backup"],
        &["prune", "/x", "--min-live", "101"],
        &["backup", "/x", "--lock", "stage"],
        &["backup", "/x", "--lock", "instance"],
    ] {
        let output = evenkeel(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{words:?}"
        );
    }
}

#[test]
fn wrong_usage_is_a_document_when_json_was_asked_for() {
    let output = evenkeel(&["backup", "/x", "--json", "--no-such-option"]);
    assert_eq!(output.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "evenkeel/error/1");
    assert_eq!(
        (&json["kind"], &json["exit_code"]),
        (&"usage".into(), &2.into())
    );
    assert!(
        json["message"]
            .as_str()
            .unwrap()
            .contains("--no-such-option")
    );
}

#[test]
fn a_failure_is_a_document_when_json_was_asked_for() {
    let output = evenkeel(&["cron", "--json", "--", "/nonexistent/program"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["kind"], "failed");
    assert!(output.stderr.is_empty());
}

#[test]
fn json_after_the_dashes_is_the_commands_own() {
    let output = evenkeel(&["cron", "--", "/nonexistent/program", "--json"]);
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args([
            "cron",
            "--print-always",
            "--",
            "head",
            "-c",
            "10000000",
            "/dev/zero",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
