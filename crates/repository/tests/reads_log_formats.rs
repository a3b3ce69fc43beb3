//! Do archived binary logs of the first format, made by the first program that wrote them, and sealed
//! ones, kept in the tree with their key, stay readable, and can they be continued?

mod support;

use evenkeel_repository::{Create, Credentials, Encrypt, NewIdentity, Repository};
use std::fs;
use std::path::{Path, PathBuf};
use support::assert_sound;
use support::logs::{add, check_all, place, three_files};

fn fixture(name: &str) -> PathBuf {
    evenkeel_testkit::checkout()
        .join("crates/repository/tests/fixtures")
        .join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn credentials() -> Credentials {
    let text = fs::read_to_string(fixture("logs-2.key")).unwrap();
    let mut credentials = Credentials::default();
    credentials.add_identities("logs-2.key", &text).unwrap();
    credentials
}

/// Writes the sealed fixture, where there is none, and only when asked by
/// `EVENKEEL_WRITE_FIXTURE=1`. It proves nothing by itself.
#[test]
fn write_fixture() {
    if std::env::var_os("EVENKEEL_WRITE_FIXTURE").is_none() || fixture("logs-2.key").exists() {
        return;
    }
    let identity = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
    fs::write(fixture("logs-2.key"), identity.file.as_bytes()).unwrap();
    let how = Create {
        encrypt: Some(Encrypt {
            readers: vec![identity.recipient],
            ..Encrypt::default()
        }),
        ..Create::default()
    };
    let repo = Repository::create(fixture("logs-2"), how).unwrap();
    let repo = repo.unlock(&credentials()).unwrap();
    three_files(&repo, "t1");
    let what = evenkeel_repository::logs::ForgetLogs {
        source: support::logs::SOURCE.to_owned(),
        timeline: "t1".to_owned(),
        before: Some(place(2, 0).file),
    };
    let plan = repo
        .plan_forget_logs(&[what], repo.state().unwrap())
        .unwrap();
    let cancel = evenkeel_op::Cancel::new();
    repo.perform_forget_logs(&plan, std::time::Duration::ZERO, &cancel)
        .unwrap();
    for lock in [
        "writer.lock",
        "reader.lock",
        "binlogs/mariadb-7/archive.lock",
    ] {
        fs::remove_file(fixture("logs-2").join(lock)).unwrap();
    }
}

/// A server's log, archived in four segments, with the files that the server had.
#[test]
fn the_first_format_reads_back_and_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture("logs-1"), dir.path());
    let repo = Repository::open(dir.path()).unwrap();
    assert_sound(&repo);
    let logs = repo.logs();
    let timelines = logs.timelines(None).unwrap();
    assert_eq!(timelines.len(), 1);
    let timeline = &timelines[0];
    assert!(timeline.gaps.is_empty() && timeline.segments.len() == 4);
    for segment in &timeline.segments {
        let theirs = fs::read(fixture("logs-1.files").join(&segment.file)).unwrap();
        let range = segment.start as usize..segment.end as usize;
        assert_eq!(
            logs.read(segment).unwrap(),
            theirs[range],
            "{}",
            segment.object
        );
        let header = logs.header(segment).unwrap();
        assert!(header.of.is_none() && header.last_event_hash.is_none());
    }
    let end = timeline.end().unwrap();
    let (from, to) = (end.position, end.position + 100);
    add(&repo, &timeline.id, 2, (from, to), Some(end)).unwrap();
    assert_sound(&repo);
}

#[test]
fn the_sealed_format_reads_back_and_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture("logs-2"), dir.path());
    let repo = Repository::open(dir.path()).unwrap();
    let repo = repo.unlock(&credentials()).unwrap();
    assert_sound(&repo);
    assert_eq!(check_all(&repo), 4);
    add(&repo, "t1", 3, (700, 900), Some(place(3, 700))).unwrap();
    assert_sound(&repo);
    assert_eq!(check_all(&repo), 5);
}
