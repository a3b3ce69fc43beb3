//! Does a repository whose head is lost say how it is rebuilt, and is it rebuilt only when told to?

use evenkeel_repository::{Begin, Create, FileKind, FileMeta, Repository, RunKind};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn make(path: &Path) {
    let repository = Repository::create(path, Create::default()).unwrap();
    for kind in [RunKind::Full, RunKind::Incremental] {
        let writer = repository.begin(Begin::new(kind, "here")).unwrap();
        let mut meta = FileMeta::file("data", 0, 0);
        meta.kind = FileKind::Dir;
        writer.add(meta).unwrap();
        writer.commit(json!({}), json!({})).unwrap();
    }
}

fn evenkeel(words: &[&str], repository: &Path) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("--json")
        .args(words)
        .arg(repository)
        .output()
        .unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), json)
}

const PLAN: [&str; 2] = ["repository", "rebuild"];
const EXECUTE: [&str; 3] = ["repository", "rebuild", "--execute"];

fn assert_sound(repository: &Path) {
    let (code, json) = evenkeel(&["verify", "--all"], repository);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(json["generations"], json!([1, 2]));
}

#[test]
fn the_plan_first_then_the_head() {
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("r");
    make(&repository);
    fs::remove_file(repository.join("head")).unwrap();
    let (code, json) = evenkeel(&["generations"], &repository);
    assert_eq!(code, Some(4), "{json:#}");
    let command = format!("evenkeel repository rebuild {}", repository.display());
    assert!(json["hints"].to_string().contains(&command), "{json:#}");

    let (code, json) = evenkeel(&PLAN, &repository);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(json["schema"], "evenkeel/repository-rebuild/1");
    assert_eq!(
        (&json["needed"], &json["executed"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(json["regained"], json!([1, 2]));
    assert!(!repository.join("head").exists(), "only a plan");

    let (code, json) = evenkeel(&EXECUTE, &repository);
    assert_eq!(
        (code, &json["executed"]),
        (Some(0), &json!(true)),
        "{json:#}"
    );
    assert_sound(&repository);
}

#[test]
fn a_whole_head_is_left_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    make(scratch.path());
    let head = fs::read(scratch.path().join("head")).unwrap();
    let (code, json) = evenkeel(&EXECUTE, scratch.path());
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(
        (&json["needed"], &json["executed"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(fs::read(scratch.path().join("head")).unwrap(), head);
}

#[test]
fn what_cannot_be_read_is_left_out_and_said() {
    let scratch = tempfile::tempdir().unwrap();
    make(scratch.path());
    fs::write(scratch.path().join("head"), "rubbish").unwrap();
    fs::write(scratch.path().join("generations/2/manifest"), "rubbish").unwrap();
    let (code, json) = evenkeel(&EXECUTE, scratch.path());
    assert_eq!(code, Some(3), "{json:#}");
    assert_eq!(json["live"], json!([1]));
    assert!(
        json["notes"].to_string().contains("generations/2"),
        "{json:#}"
    );
}

#[test]
fn without_a_repository_or_beside_a_backup_nothing_happens() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(evenkeel(&EXECUTE, &scratch.path().join("none")).0, Some(10));
    make(scratch.path());
    let repository = Repository::open(scratch.path()).unwrap();
    let begin = Begin::new(RunKind::Full, "here");
    let _running = repository.begin(begin).unwrap();
    fs::remove_file(scratch.path().join("head")).unwrap();
    let (code, json) = evenkeel(&EXECUTE, scratch.path());
    assert_eq!(code, Some(11), "{json:#}");
    assert!(!scratch.path().join("head").exists());
}
