//! Are the commands that a user wants run before and after a run, and when it fails, run then and no other time, and
//! told of what?

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A disk to back up, and where commands note that they were run.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("disk"), vec![1; 1 << 20]).unwrap();
    place
}

/// A command that notes this word and what it was told.
fn note(word: &str) -> String {
    format!(
        "echo said by {word}; echo \"{word} $EVENKEEL_VERB $EVENKEEL_REPOSITORY $EVENKEEL_EXIT_CODE \
         $EVENKEEL_GENERATION $EVENKEEL_MESSAGE\" >>notes"
    )
}

/// Runs a verb on the repository `r` in a directory, with a command of each kind.
fn run(here: &Path, verb: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(["--json", verb, "r"]).args(flags);
    for word in ["before", "after", "failed"] {
        command.arg(format!("--run-{word}")).arg(note(word));
    }
    command.env("EVENKEEL_EXIT_CODE", "99").current_dir(here);
    command.output().unwrap()
}

const BACKUP: [&str; 2] = ["--volume=disk", "--snapshot=copy"];

fn notes(here: &Path) -> Vec<String> {
    let text = fs::read_to_string(here.join("notes")).unwrap_or_default();
    let _ = fs::remove_file(here.join("notes"));
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn before_and_after_a_run_that_goes_well() {
    let place = place();
    let here = place.path();
    let done = run(here, "backup", &BACKUP);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(notes(here), ["before backup r", "after backup r 0 1"]);
    // What they print is no part of the answer.
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["generation"], 1);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        said.contains("said by before") && said.contains("said by after"),
        "{said}"
    );
    for (verb, flags) in [
        ("verify", &[][..]),
        ("forget", &["--keep-last=1"]),
        ("prune", &[]),
        ("restore", &["--target=out"]),
    ] {
        let done = run(here, verb, flags);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let reported = notes(here);
        assert_eq!(reported.len(), 2, "{verb}: {reported:?}");
        assert!(
            reported[1].starts_with(&format!("after {verb} r 0")),
            "{reported:?}"
        );
    }
}

#[test]
fn after_one_that_fails_another() {
    let place = place();
    let here = place.path();
    let failed = run(here, "backup", &["--volume=gone", "--snapshot=copy"]);
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    let reported = notes(here);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[1].starts_with("failed backup r 2  ") && reported[1].contains("gone"),
        "{reported:?}"
    );
    // Before the option files were read, too.
    let failed = run(here, "backup", &["--defaults-file=/nonexistent"]);
    assert_ne!(failed.status.code(), Some(0));
    let reported = notes(here);
    assert!(
        reported.len() == 1 && reported[0].starts_with("failed backup r "),
        "{reported:?}"
    );
    // What is found to be damaged is no success either.
    assert_eq!(run(here, "backup", &BACKUP).status.code(), Some(0));
    let _ = notes(here);
    fs::remove_file(here.join("r/generations/1/manifest")).unwrap();
    let damaged = run(here, "verify", &[]);
    let code = damaged.status.code().unwrap();
    assert_ne!(code, 0);
    let reported = notes(here);
    assert!(
        reported[1].starts_with(&format!("failed verify r {code}")),
        "{reported:?}"
    );
}

#[test]
fn one_that_fails_counts() {
    let place = place();
    let here = place.path();
    let with = |option: &str| {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["--json", "backup", "r"])
            .args(BACKUP)
            .args([option, "exit 7", "--run-failed", "echo failed >>notes"])
            .current_dir(here)
            .output()
            .unwrap()
    };
    let never = with("--run-before");
    assert_eq!(never.status.code(), Some(1), "{never:?}");
    let answer: serde_json::Value = serde_json::from_slice(&never.stdout).unwrap();
    let why = answer["message"].as_str().unwrap();
    assert_eq!(why, "the command of --run-before ended with exit code 7");
    assert!(!here.join("r").exists(), "nothing was done");
    assert_eq!(notes(here), ["failed"]);
    let done = with("--run-after");
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    assert!(here.join("r/generations/1").exists());
    assert_eq!(notes(here), ["failed"], "what ends with 3 is told of");
    // Also where nothing else is said, and in the file of metrics.
    let quiet = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args([
            "--quiet",
            "backup",
            "r",
            "--run-after",
            "exit 7",
            "--metrics",
            "m.prom",
        ])
        .args(BACKUP)
        .current_dir(here)
        .output()
        .unwrap();
    assert_eq!(quiet.status.code(), Some(3));
    let said = String::from_utf8_lossy(&quiet.stderr);
    assert!(
        said.contains("the command of --run-after ended with exit code 7"),
        "{said}"
    );
    let reported = fs::read_to_string(here.join("m.prom")).unwrap();
    assert!(
        reported.contains("evenkeel_backup_last_run_exit_code{repository=\"r\"} 3\n"),
        "{reported}"
    );
}

/// Whoever is told of failures is told of runs that somebody stopped, with a message however long.
#[test]
fn one_that_is_stopped_is_reported_of() {
    let place = place();
    let here = place.path();
    fs::write(here.join("large"), vec![1; 16 << 20]).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args([
            "backup",
            "r",
            "--volume=large",
            "--snapshot=copy",
            "--rate=1",
        ])
        .args([
            "--run-before",
            "touch begun",
            "--run-failed",
            "echo $EVENKEEL_EXIT_CODE >>notes",
        ])
        .current_dir(here)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !here.join("r/generations/1").exists() {
        assert!(std::time::Instant::now() < deadline, "it never began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(here.join("begun").exists());
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(143));
    assert_eq!(notes(here), ["143"]);
    let long = "x".repeat(200_000);
    let failed = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args([
            "backup",
            "r",
            "--snapshot=copy",
            "--run-failed",
            "echo ${#EVENKEEL_MESSAGE} >>notes",
        ])
        .arg(format!("--volume={}", &long[..100_000]))
        .current_dir(here)
        .output()
        .unwrap();
    assert_ne!(failed.status.code(), Some(0));
    assert_eq!(notes(here).len(), 1, "{failed:?}");
}
