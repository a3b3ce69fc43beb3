//! Does a run that is told to wait for another one begin when that has ended, and say meanwhile what it waits for?

mod wait;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use wait::Tied;

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
fn waiting(mut command: Command) -> Tied {
    command.arg("--wait=10m").stdout(Stdio::null());
    let mut child = Tied::start(command.stderr(Stdio::piped()));
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

/// A restore, a verify and what copies hold up whoever removes, and are held up by him.
#[test]
fn readers_wait_for_who_removes() {
    for (words, made) in [
        (&["restore", "--target=restored"][..], Some("restored")),
        (&["verify"], None),
        (&["repository", "copy"], Some("copied")),
    ] {
        let (scratch, lock) = held("reader.lock");
        let at = scratch.path();
        let read = || {
            let mut command = plan(words, at);
            command.current_dir(at);
            command.args(made.filter(|made| *made == "copied"));
            command
        };
        let busy = read().output().unwrap();
        assert_eq!(busy.status.code(), Some(11), "{words:?}: {busy:?}");
        let said = String::from_utf8_lossy(&busy.stderr).into_owned();
        assert!(said.contains("hint: or wait for it: --wait="), "{said}");
        let mut child = waiting(read());
        drop(lock);
        assert!(child.wait().unwrap().success(), "{words:?}");
        assert!(made.is_none_or(|made| at.join(made).exists()), "{words:?}");
    }
}

#[test]
fn a_rebuild_waits_for_readers() {
    let (scratch, lock) = held("reader.lock");
    let head = scratch.path().join("repository/head");
    fs::remove_file(&head).unwrap();
    let words = ["repository", "rebuild", "--execute"];
    let busy = plan(&words, scratch.path()).output().unwrap();
    assert_eq!(busy.status.code(), Some(11), "{busy:?}");
    let mut child = waiting(plan(&words, scratch.path()));
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert!(head.exists());
}

#[test]
fn a_mount_waits_for_who_removes() {
    let (scratch, lock) = held("reader.lock");
    let place = scratch.path().join("mnt");
    fs::create_dir(&place).unwrap();
    let mount = || {
        let mut command = plan(&["mount"], scratch.path());
        command.arg(&place);
        command
    };
    let busy = mount().output().unwrap();
    assert_eq!(busy.status.code(), Some(11), "{busy:?}");
    let mut child = waiting(mount());
    drop(lock);
    wait::until("the mount", || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}");
        fs::read_dir(&place).is_ok_and(|found| found.count() > 0)
    });
    wait::signal("TERM", child.id());
    assert!(child.wait().unwrap().success());
}

#[test]
fn who_waited_in_vain_is_reported_so() {
    let (scratch, _lock) = held("reader.lock");
    let mut restore = plan(&["restore", "--wait=50ms"], scratch.path());
    restore.arg("--target").arg(scratch.path().join("restored"));
    let vain = restore.output().unwrap();
    assert_eq!(vain.status.code(), Some(11), "{vain:?}");
    let said = String::from_utf8_lossy(&vain.stderr).into_owned();
    let own = std::process::id();
    assert!(
        said.contains("evenkeel: still busy after 50 ms: "),
        "{said}"
    );
    let hint = format!("hint: wait longer: --wait=30m, or look at process {own}\n");
    assert!(said.ends_with(&hint), "{said}");
    assert_eq!(said.matches("hint: ").count(), 1, "{said}");
}

#[test]
fn waiting_ends_with_the_signal() {
    let (scratch, _lock) = held("writer.lock");
    let mut child = waiting(backup(scratch.path()));
    wait::signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
