//! Does a run that ended, however it ended, leave a file that monitoring can read?

use std::fs;
use std::path::Path;
use std::process::Command;

fn backup(here: &Path, flags: &[&str]) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("--quiet").arg("backup").arg(here.join("r"));
    command.arg("--metrics").arg(here.join("shop.prom"));
    command.args(flags).status().unwrap().code()
}

fn value(here: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(here.join("shop.prom")).unwrap();
    let repository = here.join("r");
    let begin = format!(
        "evenkeel_backup_{name}{{repository=\"{}\"}} ",
        repository.display()
    );
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
}

#[test]
fn a_good_run_and_bad_ones() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("disk"), vec![1; 1 << 20]).unwrap();
    let volume = format!("--volume={}", here.join("disk").display());
    // Before any backup: nobody to connect to, then a file of options that is not there.
    let nobody = format!("--socket={}", here.join("none").display());
    assert_eq!(backup(here, &["--no-defaults", &nobody]), Some(13));
    assert_eq!(value(here, "last_run_exit_code").unwrap(), "13");
    assert_eq!(value(here, "generation"), None);
    let code = backup(here, &["--defaults-file=/nonexistent"]).unwrap();
    assert_ne!(code, 0);
    assert_eq!(value(here, "last_run_exit_code"), Some(code.to_string()));

    assert_eq!(backup(here, &[&volume, "--snapshot=copy"]), Some(0));
    assert_eq!(value(here, "last_run_exit_code").unwrap(), "0");
    assert_eq!(value(here, "generation").unwrap(), "1");
    assert_eq!(value(here, "bytes_logical").unwrap(), "1048576");
    let success = value(here, "last_success_timestamp_seconds").unwrap();

    fs::remove_file(here.join("disk")).unwrap();
    let code = backup(here, &[&volume, "--snapshot=copy"]).unwrap();
    assert_ne!(code, 0);
    assert_eq!(value(here, "last_run_exit_code"), Some(code.to_string()));
    assert_eq!(value(here, "generation").unwrap(), "1");
    assert_eq!(value(here, "last_success_timestamp_seconds"), Some(success));
}

#[test]
fn a_place_that_cannot_be_written_is_reported_and_the_backup_is_there() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("disk"), vec![1; 1 << 20]).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args([
            "--json",
            "backup",
            "--metrics=/nonexistent/shop.prom",
            "--snapshot=copy",
        ])
        .arg(here.join("r"))
        .arg("--volume")
        .arg(here.join("disk"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/nonexistent/shop.prom"), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["generation"], 1);
    let why = answer["metrics_failure"]["message"].as_str().unwrap();
    assert!(why.contains("/nonexistent/shop.prom"), "{why}");
}

/// Runs a verb on a repository, and returns its exit code and the value of a metric of this name.
fn run(here: &Path, verb: &str, flags: &[&str]) -> (Option<i32>, impl Fn(&str) -> Option<f64>) {
    let metrics = here.join(format!("{verb}.prom"));
    let ended = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["--quiet", verb])
        .arg(here.join("r"))
        .arg("--metrics")
        .arg(&metrics)
        .args(flags)
        .status();
    let text = fs::read_to_string(metrics).unwrap_or_default();
    let begin = format!("evenkeel_{verb}_");
    let value = move |name: &str| {
        let begin = format!("{begin}{name}{{");
        let line = text.lines().find(|line| line.starts_with(&begin))?;
        line.rsplit_once(' ')?.1.parse().ok()
    };
    (ended.unwrap().code(), value)
}

#[test]
fn verify_forget_and_prune_leave_one_too() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let volume = format!("--volume={}", here.join("disk").display());
    for content in [1, 2] {
        fs::write(here.join("disk"), vec![content; 1 << 20]).unwrap();
        assert_eq!(backup(here, &[&volume, "--snapshot=copy"]), Some(0));
    }
    let (code, value) = run(here, "verify", &[]);
    assert_eq!((code, value("findings")), (Some(0), Some(0.0)));
    assert!(value("blocks") > Some(0.0));
    let success = value("last_success_timestamp_seconds");
    assert!(success > Some(0.0));

    let (code, value) = run(here, "forget", &["--keep-last=1"]);
    assert_eq!(
        (code, value("executed"), value("forgotten")),
        (Some(0), Some(0.0), Some(1.0))
    );
    let (code, value) = run(here, "forget", &["--keep-last=1", "--execute"]);
    assert_eq!(
        (code, value("executed"), value("kept")),
        (Some(0), Some(1.0), Some(1.0))
    );
    let (code, value) = run(here, "prune", &["--execute"]);
    assert_eq!((code, value("executed")), (Some(0), Some(1.0)));
    assert!(value("bytes_freed") > Some(0.0));

    // Damage: told, and no success.
    let packs = here.join("r/generations/2");
    let pack = fs::read_dir(&packs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pack = pack
        .filter(|path| path.to_string_lossy().contains("pack"))
        .max()
        .unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let (code, value) = run(here, "verify", &[]);
    assert_eq!((code, value("last_run_exit_code")), (Some(4), Some(4.0)));
    assert!(value("findings") > Some(0.0));
    assert_eq!(value("last_success_timestamp_seconds"), success);
    // What fails before anything is read keeps what was found.
    let (code, value) = run(here, "verify", &["--generation=9"]);
    assert_ne!(code, Some(0));
    assert_eq!(value("last_run_exit_code"), code.map(f64::from));
    assert!(value("findings") > Some(0.0));
}

#[test]
fn what_cannot_be_reported_is_no_whole_success() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("disk"), vec![1; 1 << 20]).unwrap();
    let volume = format!("--volume={}", here.join("disk").display());
    assert_eq!(backup(here, &[&volume, "--snapshot=copy"]), Some(0));
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("verify")
        .arg(here.join("r"))
        .arg("--metrics=/nonexistent/verify.prom")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the directory /nonexistent does not exist"),
        "{said}"
    );
}

/// Others can write where files of metrics lie, or the user names what is no place for one.
#[test]
fn what_is_no_file_of_metrics_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    fs::write(here.join("disk"), vec![1; 1 << 20]).unwrap();
    let volume = format!("--volume={}", here.join("disk").display());
    let made = |repository: &str, metrics: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command
            .current_dir(here)
            .args(["--quiet", "backup", repository, &volume]);
        command.args(["--snapshot=copy", "--metrics", metrics]);
        command.status().unwrap().code()
    };
    assert!(
        Command::new("mkfifo")
            .arg(here.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::fs::symlink("/dev/zero", here.join("zero")).unwrap();
    for metrics in ["pipe", "zero"] {
        assert_eq!(made("r", metrics), Some(2), "{metrics}");
        assert!(!here.join("r").exists());
    }
    assert!(
        fs::symlink_metadata(here.join("zero"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(made("r", "all.prom"), Some(0));
    let reported = fs::read_to_string(here.join("all.prom")).unwrap();
    assert_eq!(made("other", "all.prom"), Some(2), "of another repository");
    assert_eq!(fs::read_to_string(here.join("all.prom")).unwrap(), reported);
}
