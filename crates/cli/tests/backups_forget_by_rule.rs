//! Does a backup apply its keep rules once it is complete, and never otherwise?

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

struct Case {
    scratch: TempDir,
}

impl Case {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        Self { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn run(&self, verb: &str, flags: &[&str]) -> (Option<i32>, Value) {
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["--json", verb])
            .arg(self.path("repository"))
            .args(flags)
            .output()
            .unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), json)
    }

    /// Changes the disk and backs it up.
    fn backup(&self, change: u8, flags: &[&str]) -> (Option<i32>, Value) {
        let disk = self.path("disk");
        fs::write(&disk, vec![change; 1 << 20]).unwrap();
        let volume = format!("--volume={}", disk.display());
        self.run("backup", &[&[&*volume, "--snapshot=copy"], flags].concat())
    }

    fn generations(&self) -> Vec<u64> {
        let (_, json) = self.run("generations", &[]);
        let all = json["generations"].as_array().unwrap().iter();
        all.map(|one| one["generation"].as_u64().unwrap()).collect()
    }
}

#[test]
fn what_no_rule_holds_goes_and_is_named() {
    let case = Case::new();
    for number in 1..=2 {
        let (code, json) = case.backup(number, &[]);
        assert_eq!(code, Some(0), "{json:#}");
        assert!(json.get("forgotten").is_none(), "{json:#}");
    }
    let (code, json) = case.backup(3, &["--keep-last=2", "--prune"]);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(json["schema"], "evenkeel/backup/1");
    assert_eq!(json["generation"], 3);
    assert_eq!(json["forgotten"]["remove"], json!([1]));
    assert_eq!(json["forgotten"]["executed"], true);
    assert!(json["pruned"]["bytes_freed"].as_u64() > Some(0), "{json:#}");
    assert_eq!(case.generations(), [2, 3]);
    let (code, json) = case.run("verify", &["--all"]);
    assert_eq!(code, Some(0), "{json:#}");
}

#[test]
fn the_generation_just_made_always_stays() {
    let case = Case::new();
    case.backup(1, &[]);
    let (code, json) = case.backup(2, &["--keep-within=0s"]);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(case.generations(), [2]);
}

#[test]
fn a_backup_that_fails_forgets_nothing() {
    let case = Case::new();
    case.backup(1, &[]);
    case.backup(2, &[]);
    let gone = format!("--volume={}", case.path("gone").display());
    let (code, json) = case.run(
        "backup",
        &[&gone, "--snapshot=copy", "--keep-last=1", "--prune"],
    );
    assert_ne!(code, Some(0), "{json:#}");
    assert_eq!(json["schema"], "evenkeel/error/1");
    assert_eq!(case.generations(), [1, 2]);
}

/// What is done is told, and what is not.
#[test]
fn a_backup_that_could_not_forget_is_done_in_part() {
    let case = Case::new();
    case.backup(1, &[]);
    case.backup(2, &[]);
    // As while somebody restores from it.
    let repository = case.path("repository");
    let lock = fs::File::create(repository.join("reader.lock")).unwrap();
    lock.lock_shared().unwrap();
    let (code, json) = case.backup(3, &["--keep-last=1"]);
    assert_eq!(code, Some(3), "{json:#}");
    assert_eq!(json["generation"], 3);
    assert_eq!(json["retention_failure"]["kind"], "busy", "{json:#}");
    assert_eq!(case.generations(), [1, 2, 3]);
}
