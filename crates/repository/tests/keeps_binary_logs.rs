//! Are archived binary logs read back, sealed where the repository is, and is what is damaged,
//! missing or in the wrong place found and named?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_repository::{Access, KeyChange, Repository, RunKind, Verify, VerifyReport};
use std::sync::Arc;
use std::time::Duration;
use support::logs::{SOURCE, add, check_all, header, place, three_files};
use support::memory::{MemoryStore, Objects};
use support::way::{Person, WAYS, Way, sealed_for};
use support::{Model, ModelFile, assert_sound, back_up, verify};

const FOLDER: &str = "binlogs/mariadb-7/t1";

fn name(file: u32, start: u64, end: u64) -> String {
    format!("{FOLDER}/binlog.{file:06}.{start:012}-{end:012}")
}

fn made(way: Way) -> (MemoryStore, Repository) {
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
    three_files(&repo, "t1");
    (store, repo)
}

fn found(way: Way, objects: Objects) -> VerifyReport {
    let repo = way.open(MemoryStore::of(objects)).unwrap();
    verify(&repo).unwrap()
}

#[test]
fn what_is_archived_is_read_back_and_sound() {
    for way in WAYS {
        let (_store, repo) = made(way);
        assert_eq!(check_all(&repo), 6);
        let report = verify(&repo).unwrap();
        assert_sound(&repo);
        assert_eq!((report.log_segments, report.log_segments_read), (6, 6));
        let timeline = &repo.logs().timelines(None).unwrap()[0];
        assert_eq!(timeline.start(), Some(place(1, 0)));
        assert_eq!(timeline.end(), Some(place(3, 700)));
        assert!(timeline.gaps.is_empty());
        // Of one generation, only names and order are looked at.
        let model: Model = [("a".to_owned(), ModelFile::new(512, 700, 1))].into();
        back_up(&repo, RunKind::Full, &model, None).unwrap();
        let how = Verify {
            generation: Some(1),
            ..Verify::default()
        };
        let report = repo.verify(&how, &Silent, &Cancel::new()).unwrap();
        assert_eq!((report.log_segments, report.log_segments_read), (6, 0));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for way in WAYS {
        let (store, _repo) = made(way);
        let objects = store.objects();
        let victim = name(2, 0, 300);
        let bytes = objects[&victim].clone();
        for bit in 0..bytes.len() * 8 {
            // Opening keys takes its time.
            if way == Way::Sealed && bit % 8 != bit / 8 % 8 {
                continue;
            }
            let mut wrong = bytes.to_vec();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let mut all = objects.clone();
            all.insert(victim.clone(), Arc::new(wrong));
            let report = found(way, all);
            let named = report.findings.iter().any(|one| one.object == victim);
            assert!(named, "bit {bit}: {:?}", report.findings);
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    for way in WAYS {
        let (store, _repo) = made(way);
        for (lost, between) in [
            (
                vec![name(2, 0, 300)],
                "binlog.000001:700 and binlog.000002:300",
            ),
            (
                vec![name(2, 300, 700)],
                "binlog.000002:300 and binlog.000003:0",
            ),
            (
                vec![name(2, 0, 300), name(2, 300, 700)],
                "binlog.000001:700 and binlog.000003:0",
            ),
            (
                vec![name(1, 0, 300), name(1, 300, 700)],
                "binlog.000001:700 and binlog.000002:0",
            ),
        ] {
            let mut objects = store.objects();
            for one in &lost {
                assert!(objects.remove(one).is_some(), "{one}");
            }
            let report = found(way, objects);
            let reported = report.findings.iter().any(|one| one.what.contains(between));
            assert!(reported, "{lost:?}: {:?}", report.findings);
        }
    }
}

#[test]
fn what_is_swapped_or_of_another_history_is_found() {
    for way in WAYS {
        let (store, repo) = made(way);
        three_files(&repo, "t2");
        let objects = store.objects();
        let other = |name: &str| name.replace("/t1/", "/t2/");
        for (victim, from) in [
            (name(1, 300, 700), name(2, 300, 700)),
            (name(2, 0, 300), other(&name(2, 0, 300))),
        ] {
            let mut all = objects.clone();
            all.insert(victim.clone(), objects[&from].clone());
            let report = found(way, all);
            let named = report.findings.iter().any(|one| one.object == victim);
            assert!(named, "{victim}: {:?}", report.findings);
        }
        // From another repository, under its own name.
        let (foreign, _repo) = made(way);
        let victim = name(2, 0, 300);
        let mut all = objects.clone();
        all.insert(victim.clone(), foreign.objects()[&victim].clone());
        let report = found(way, all);
        let named = report.findings.iter().any(|one| one.object == victim);
        assert!(named, "{:?}", report.findings);
        // Beside the others, under no name of theirs.
        for stranger in [
            "notes",
            "binlog.000001.0-300",
            "x.000001.000000000009-000000000003",
        ] {
            let mut all = objects.clone();
            let stranger = format!("{FOLDER}/{stranger}");
            all.insert(stranger.clone(), objects[&victim].clone());
            let report = found(way, all);
            let named = report.findings.iter().any(|one| one.object == stranger);
            assert!(named, "{stranger}: {:?}", report.findings);
        }
    }
}

#[test]
fn a_writer_adds_and_does_not_read() {
    let (reader, writer) = (Person::new(), Person::new());
    let store = MemoryStore::default();
    let how = sealed_for(&[&reader], &[&writer]);
    Repository::create_on(Arc::new(store.clone()), how).unwrap();
    let open = |person: &Person| {
        let opened = Repository::open_on(Arc::new(store.clone())).unwrap();
        opened.unlock(&person.credentials).unwrap()
    };
    let repo = open(&writer);
    assert_eq!(repo.access(), Access::Writer);
    three_files(&repo, "t1");
    let logs = repo.logs();
    let timeline = &logs.timelines(None).unwrap()[0];
    assert_eq!(logs.header(&timeline.segments[5]).unwrap().transactions, 1);
    let error = logs.read(&timeline.segments[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongKey, "{}", error.chain());
    let report = verify(&repo).unwrap();
    assert!(
        report.is_sound() && !report.unchecked.is_empty(),
        "{report:?}"
    );
    assert_eq!(check_all(&open(&reader)), 6);

    // Without a key: names, and checksums of what is sealed.
    let shut = Repository::open_on(Arc::new(store.clone())).unwrap();
    let error = shut.logs().timelines(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongKey, "{}", error.chain());
    assert!(shut.logs().writer().is_err());
    let report = verify(&shut).unwrap();
    assert!(
        report.is_sound() && report.log_segments_read == 6,
        "{report:?}"
    );
    let victim = name(3, 0, 300);
    let mut objects = store.objects();
    let mut wrong = objects[&victim].to_vec();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    objects.insert(victim.clone(), Arc::new(wrong));
    let shut = Repository::open_on(Arc::new(MemoryStore::of(objects))).unwrap();
    let report = verify(&shut).unwrap();
    assert_eq!(report.findings[0].object, victim, "{report:?}");
}

#[test]
fn nothing_of_a_sealed_log_stands_in_the_store() {
    let (store, _repo) = made(Way::Sealed);
    for secret in [&b"row body"[..], b"0-7-1", b"MariaDB"] {
        let has = |bytes: &Arc<Vec<u8>>| bytes.windows(secret.len()).any(|part| part == secret);
        assert!(!store.objects().values().any(has), "{secret:?}");
    }
    let (plain, _repo) = made(Way::Plain);
    let has = |bytes: &Arc<Vec<u8>>| bytes.windows(5).any(|part| part == b"0-7-1");
    assert!(
        plain.objects().values().any(has),
        "the search finds nothing"
    );
}

/// Who is removed must not read what is archived afterwards, by a run that began before either.
#[test]
fn who_is_removed_reads_no_later_segment() {
    let (stays, goes) = (Person::new(), Person::new());
    let store = MemoryStore::default();
    let how = sealed_for(&[&stays, &goes], &[]);
    Repository::create_on(Arc::new(store.clone()), how).unwrap();
    let open = |person: &Person| {
        Repository::open_on(Arc::new(store.clone()))
            .unwrap()
            .unlock(&person.credentials)
    };
    let before = open(&goes).unwrap();
    let repo = open(&stays).unwrap();
    add(&repo, "t1", 1, (0, 300), None).unwrap();
    let writer = repo.logs().writer().unwrap();
    assert!(!writer.is_outdated().unwrap());
    let plan = repo
        .plan_keys(&KeyChange::Remove(goes.recipient.clone()))
        .unwrap();
    repo.perform_keys(&plan, Duration::ZERO).unwrap();
    assert!(writer.is_outdated().unwrap());
    let repo = open(&stays).unwrap();
    add(&repo, "t1", 1, (300, 700), Some(place(1, 300))).unwrap();
    assert_eq!(check_all(&repo), 2);
    assert!(open(&goes).is_err());
    // With the keys that he kept.
    let all = before.logs().timelines_by_name().unwrap();
    before.logs().read(&all[0].segments[0]).unwrap();
    assert!(before.logs().read(&all[0].segments[1]).is_err());
}

#[test]
fn an_interrupted_run_leaves_nothing_that_stays() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Default::default()).unwrap();
    three_files(&repo, "t1");
    let left = dir.path().join(format!("{}.tmp", name(3, 700, 900)));
    std::fs::write(&left, b"half").unwrap();
    let report = verify(&repo).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(
        report.notes.iter().any(|note| note.contains(".tmp")),
        "{report:?}"
    );
    let lock = repo.logs().claim(SOURCE).unwrap();
    assert!(!left.exists());
    let busy = repo.logs().claim(SOURCE).err().unwrap();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    drop(lock);
    assert_sound(&repo);
}

/// A segment is never written over.
#[test]
fn a_segment_that_is_there_stays() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Default::default()).unwrap();
    three_files(&repo, "t1");
    let writer = repo.logs().writer().unwrap();
    let mut header = header(1, (0, 300), None);
    let new = writer
        .write((SOURCE, "t1"), &mut header, &[7; 300])
        .unwrap();
    assert!(new.finish().is_err());
    assert_eq!(check_all(&repo), 6);
    let listed = repo.logs().timelines(Some("nobody")).unwrap();
    assert!(listed.is_empty());
}
