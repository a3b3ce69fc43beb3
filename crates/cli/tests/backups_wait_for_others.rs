//! Does a run that is told to wait for another one begin when that has ended, and say meanwhile what it waits for?

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

fn plan(words: &[&str], at: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(words).arg(at.join("repository"));
    command
}

fn backup(at: &Path) -> Command {
    fs::write(at.join("disk"), vec![1; 1 << 20]).unwrap();
    let mut command = plan(&["backup", "--snapshot=copy"], at);
    command.arg("--volume").arg(at.join("disk"));
    command
}

/// A repository of one generation, and one of its locks, held.
fn held(name: &str) -> (TempDir, File) {
    let scratch = tempfile::tempdir().unwrap();
    assert!(backup(scratch.path()).output().unwrap().status.success());
    let lock = scratch.path().join("repository").join(name);
    let lock = File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    (scratch, lock)
}

/// Starts it, and returns once it says that it waits.
fn waiting(mut command: Command) -> Child {
    command.arg("--wait=10m").stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = said.any(|line| line.unwrap().contains("waiting for it"));
    assert!(waits, "it ended without a word: {:?}", child.wait());
    // Goes on reading, so that it can go on talking.
    std::thread::spawn(move || said.for_each(drop));
    child
}

#[test]
fn a_backup_waits_for_another() {
    let (scratch, lock) = held("writer.lock");
    let busy = backup(scratch.path()).output().unwrap();
    assert_eq!(busy.status.code(), Some(11), "{busy:?}");
    let mut child = waiting(backup(scratch.path()));
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert!(scratch.path().join("repository/generations/2").exists());
}

#[test]
fn prune_and_forget_wait_for_readers() {
    for words in [
        &["prune", "--execute"][..],
        &["forget", "--keep-last=1", "--execute"],
    ] {
        let (scratch, lock) = held("reader.lock");
        let busy = plan(words, scratch.path()).output().unwrap();
        let mut child = match busy.status.code() {
            Some(11) => waiting(plan(words, scratch.path())),
            other => panic!("{words:?}: {other:?}, {busy:?}"),
        };
        drop(lock);
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
}

#[test]
fn waiting_ends_with_the_signal() {
    let (scratch, _lock) = held("writer.lock");
    let mut child = waiting(backup(scratch.path()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
