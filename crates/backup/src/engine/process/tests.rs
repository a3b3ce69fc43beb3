use super::*;
use evenkeel_op::{Cancel, Silent};
use evenkeel_server::abilities::Version;
use std::path::Path;

fn tool() -> Tool {
    Tool {
        program: "/bin/sh".into(),
        name: "mariadb-backup",
        version: Version::new(10, 11, 1),
    }
}

fn shell(script: &str, limits: &Limits, cancel: &Cancel) -> Result<Ended<String>> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let run = Run {
        progress: &Silent,
        cancel,
    };
    super::run(&tool(), command, limits, run, |mut out, _| {
        let mut text = String::new();
        out.read_to_string(&mut text).context(|| "failed to read")?;
        Ok(text)
    })
}

fn plain(script: &str) -> Result<String> {
    shell(script, &Limits::default(), &Cancel::new()).map(|ended| ended.taken)
}

#[test]
fn both_the_exit_code_and_the_last_words_count() {
    assert_eq!(
        plain("echo out; echo '[00] completed OK!' >&2").unwrap(),
        "out\n"
    );
    let silent = plain("echo out").unwrap_err().chain();
    assert!(silent.contains("did not report completion"), "{silent}");
    let failed = plain("echo 'disk is gone' >&2; echo 'completed OK!' >&2; exit 3").unwrap_err();
    assert!(
        failed.chain().contains("exit status: 3"),
        "{}",
        failed.chain()
    );
    assert!(
        failed.chain().contains("disk is gone"),
        "{}",
        failed.chain()
    );
    let killed = plain("kill -15 $$").unwrap_err().chain();
    assert!(killed.contains("signal: 15"), "{killed}");
    let long = plain("seq 1 100 >&2; exit 1").unwrap_err().chain();
    assert!(long.contains("\n100") && !long.contains("\n50\n"), "{long}");
}

#[test]
fn nothing_lives_on_after_an_error_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("pid");
    let mut command = Command::new("/bin/sh");
    let script = format!("sleep 600 & echo $! > {}; echo now; wait", note.display());
    command.args(["-c", &script]);
    let run = Run {
        progress: &Silent,
        cancel: &Cancel::new(),
    };
    let error = super::run(&tool(), command, &Limits::default(), run, |mut out, _| {
        out.read_exact(&mut [0; 4]).context(|| "failed to read")?;
        Err::<(), _>(Error::failed("the repository is full"))
    });
    assert_eq!(error.unwrap_err().chain(), "the repository is full");
    let pid = std::fs::read_to_string(note).unwrap();
    let gone = || {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
        // What nobody has waited for yet is dead all the same.
        stat.map_or(true, |stat| stat.contains(") Z "))
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !gone() && Instant::now() < until {
        std::thread::yield_now();
    }
    assert!(gone(), "the tool's own child lives");
}

#[test]
fn a_wish_to_stop_ends_the_tool() {
    let cancel = Cancel::new();
    cancel.cancel(15);
    let error = shell("sleep 600", &Limits::default(), &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Terminated);
}

#[test]
fn limits_on_locks_end_the_tool() {
    let limits = Limits {
        deadline: Duration::ZERO,
        ..Limits::default()
    };
    let script = "echo '[00] Starting BACKUP STAGE BLOCK_COMMIT' >&2; sleep 600";
    let error = shell(script, &limits, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockTimeout);
    let limits = Limits {
        hold: Duration::ZERO,
        ..Limits::default()
    };
    let script = "echo '[00] Acquired locks for BACKUP STAGE BLOCK_COMMIT' >&2; sleep 600";
    let error = shell(script, &limits, &Cancel::new()).unwrap_err();
    assert!(
        error.chain().contains("blocked writes"),
        "{}",
        error.chain()
    );
}

#[test]
fn times_under_locks_are_taken_from_what_the_tool_says() {
    let start = Instant::now();
    let mut state = ProcessState::default();
    let mut says = |second: u64, line: &str| {
        state.line(line, start + Duration::from_secs(second));
        state.hurry
    };
    assert!(!says(1, "[00] Starting BACKUP STAGE START"));
    assert!(!says(2, "[00] Acquired locks for BACKUP STAGE START"));
    assert!(says(9, "[00] Starting BACKUP STAGE FLUSH"));
    says(10, "[00] Acquired locks for BACKUP STAGE FLUSH");
    says(11, "[00] Starting BACKUP STAGE BLOCK_COMMIT");
    says(12, "[00] Acquired locks for BACKUP STAGE BLOCK_COMMIT");
    says(14, "[00] Starting BACKUP STAGE END");
    says(15, "[00] All tables unlocked");
    let seconds = (
        state.ticks.lock.as_secs(),
        state.ticks.writes_stopped.as_secs(),
    );
    assert_eq!(seconds, (13, 3));
    assert!(state.waiting.is_none() && state.stopped.is_none());
}
