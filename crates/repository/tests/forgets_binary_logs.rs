//! Are binary logs that nobody needs forgotten, those that somebody needs never, and is a run that is
//! interrupted at any step finished by the next?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Result};
use evenkeel_repository::logs::ForgetLogs;
use evenkeel_repository::store::LocalStore;
use evenkeel_repository::{Repository, RunKind};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use support::crash::{Disk, Recorder, Unsynced};
use support::logs::{SOURCE, add, check_all, forged, place, three_files};
use support::memory::MemoryStore;
use support::way::{WAYS, Way};
use support::{Model, ModelFile, assert_sound, back_up, verify};

/// The old history goes, and of the new one the first file.
fn what() -> [ForgetLogs; 2] {
    let of = |timeline: &str, before: Option<u32>| ForgetLogs {
        source: SOURCE.to_owned(),
        timeline: timeline.to_owned(),
        before: before.map(|file| place(file, 0).file),
    };
    [of("t1", None), of("t2", Some(2))]
}

fn forget(repo: &Repository, what: &[ForgetLogs]) -> Result<u64> {
    let plan = repo.plan_forget_logs(what, repo.state()?)?;
    repo.perform_forget_logs(&plan, Duration::ZERO, &Cancel::new())
}

#[test]
fn what_is_not_needed_goes_and_the_rest_is_sound() {
    for way in WAYS {
        let store = MemoryStore::default();
        let repo = way.create(store.clone()).unwrap();
        three_files(&repo, "t1");
        three_files(&repo, "t2");
        let plan = repo
            .plan_forget_logs(&what(), repo.state().unwrap())
            .unwrap();
        let steps: Vec<_> = plan
            .steps
            .iter()
            .map(|one| (one.timeline.as_str(), one.segments, one.before.clone()))
            .collect();
        assert_eq!(steps, [("t1", 6, None), ("t2", 2, Some(place(2, 0)))]);
        // A plan alone does nothing.
        assert_eq!(check_all(&repo), 12);
        assert_eq!(forget(&repo, &what()).unwrap(), plan.bytes_freed);
        assert_eq!(check_all(&repo), 4);
        assert!(!store.objects().keys().any(|name| name.contains("/t1/")));
        assert_sound(&repo);
        // It goes on behind what is left.
        add(&repo, "t2", 3, (700, 800), Some(place(3, 700))).unwrap();
        assert_sound(&repo);
        assert!(
            forget(&repo, &what()).unwrap() == 0,
            "nothing is left to do"
        );
        // Forgetting less than was forgotten changes nothing.
        let less = ForgetLogs {
            before: Some(place(1, 0).file),
            ..what()[1].clone()
        };
        assert_eq!(forget(&repo, &[less]).unwrap(), 0);
        assert_sound(&repo);
        // What is lost behind the mark is not taken for forgotten.
        let mut objects = store.objects();
        objects.retain(|name, _| !name.contains("binlog.000002"));
        let report = verify(&way.open(MemoryStore::of(objects)).unwrap()).unwrap();
        assert!(!report.is_sound(), "{report:?}");
    }
}

/// A retention holds one history: the other goes all the same, and the rest when it may.
#[test]
fn what_the_store_keeps_is_reported_and_in_nobodys_way() {
    for way in WAYS {
        let store = MemoryStore::default();
        let repo = way.create(store.clone()).unwrap();
        three_files(&repo, "t1");
        three_files(&repo, "t2");
        store.keep(Some("/t1/binlog"));
        for _ in 0..2 {
            let refused = forget(&repo, &what()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Refused, "{}", refused.chain());
            let t1 = |name: &&String| name.contains("/t1/binlog");
            assert_eq!(store.objects().keys().filter(t1).count(), 6);
            assert_eq!(check_all(&repo), 4);
            assert_sound(&repo);
        }
        store.keep(None);
        assert!(forget(&repo, &what()).unwrap() > 0);
        assert!(!store.objects().keys().any(|name| name.contains("/t1/")));
        assert_sound(&repo);
    }
}

/// Who merely stores the repository must not make a loss look meant.
#[test]
fn a_mark_of_somebody_else_is_refused() {
    let mark = |way: Way| {
        let store = MemoryStore::default();
        let repo = way.create(store.clone()).unwrap();
        three_files(&repo, "t2");
        forget(&repo, &what()).unwrap();
        (store, repo)
    };
    for way in WAYS {
        let (store, _repo) = mark(way);
        let (foreign, _repo) = mark(way);
        let name = "binlogs/mariadb-7/t2/forgotten";
        let mut objects = store.objects();
        objects.insert(name.to_owned(), foreign.objects()[name].clone());
        let repo = way.open(MemoryStore::of(objects)).unwrap();
        let report = verify(&repo).unwrap();
        assert!(
            report.findings.iter().any(|one| one.object == name),
            "{report:?}"
        );
        let error = forget(&repo, &what()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Differs, "{}", error.chain());
    }
    // Made with all that can be seen without a key.
    let (store, _repo) = mark(Way::Sealed);
    let name = "binlogs/mariadb-7/t2/forgotten";
    let mut objects = store.objects();
    let mark = forged(&objects[name], "binlog.000002", "binlog.000003");
    objects.insert(name.to_owned(), mark);
    let report = verify(&Way::Sealed.open(MemoryStore::of(objects)).unwrap()).unwrap();
    assert!(
        report.findings.iter().any(|one| one.object == name),
        "{report:?}"
    );
}

/// Who may write, and not delete, can make a mark.
#[test]
fn a_mark_is_no_order() {
    let store = MemoryStore::default();
    let repo = Way::Plain.create(store.clone()).unwrap();
    three_files(&repo, "t1");
    three_files(&repo, "t2");
    let before = store.objects();
    // The marks that a forgetting makes, and nothing gone.
    let beyond = ForgetLogs {
        before: Some(place(3, 0).file),
        ..what()[1].clone()
    };
    store.keep(Some("binlog.0"));
    let all = [what()[0].clone(), beyond];
    assert!(forget(&repo, &all).is_err());
    store.keep(None);
    assert_eq!(store.objects().len(), before.len() + 2, "the marks");
    let there = || {
        let names = store.objects().into_keys();
        names.filter(|name| name.contains("/binlog.0")).count()
    };
    assert_eq!(there(), 12);
    // Nobody says that anything is not needed.
    assert_eq!(forget(&repo, &[]).unwrap(), 0);
    assert_eq!(there(), 12);
    let named = repo.logs().timelines_by_name().unwrap();
    assert_eq!(
        named.iter().map(|one| one.segments.len()).sum::<usize>(),
        12
    );
    // Who says what is not needed has that removed, and the mark put right.
    assert!(forget(&repo, &what()[1..]).unwrap() > 0);
    assert_eq!(there(), 10);
    assert_eq!(check_all(&repo), 4);
}

#[test]
fn a_plan_for_other_generations_is_refused() {
    let repo = Way::Plain.create(MemoryStore::default()).unwrap();
    three_files(&repo, "t2");
    let plan = repo
        .plan_forget_logs(&what(), repo.state().unwrap())
        .unwrap();
    let model: Model = [("a".to_owned(), ModelFile::new(512, 700, 1))].into();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    let error = repo
        .perform_forget_logs(&plan, Duration::ZERO, &Cancel::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(check_all(&repo), 6);
}

#[test]
fn a_crash_at_any_step_leaves_it_sound_and_the_next_run_finishes() {
    for way in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::default());
        let store = LocalStore::tapped(dir.path(), recorder.clone());
        let repo = way.create(store).unwrap();
        three_files(&repo, "t1");
        three_files(&repo, "t2");
        let begun = recorder.steps.lock().unwrap().len();
        forget(&repo, &what()).unwrap();
        let steps = recorder.steps.lock().unwrap().clone();
        assert!(steps.len() > begun + 12, "{}", steps.len() - begun);
        let mut disk = Disk::default();
        let mut seen = HashSet::new();
        for done in 0..=steps.len() {
            for names in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
                if done < begun {
                    continue;
                }
                let (objects, folders) = disk.image(names, names);
                let mut hasher = DefaultHasher::new();
                (&objects, &folders).hash(&mut hasher);
                if !seen.insert(hasher.finish()) {
                    continue;
                }
                let context = format!("{way:?}, {names:?} after {done} of {}", steps.len());
                let repo = way
                    .open(MemoryStore::with_folders(objects, folders))
                    .unwrap();
                let report = verify(&repo).unwrap();
                assert!(report.is_sound(), "{context}: {report:?}");
                assert!((4..=12).contains(&check_all(&repo)), "{context}");
                forget(&repo, &what()).unwrap_or_else(|why| panic!("{context}: {}", why.chain()));
                assert_eq!(check_all(&repo), 4, "{context}");
                let report = verify(&repo).unwrap();
                assert!(
                    report.is_sound() && report.notes.is_empty(),
                    "{context}: {report:?}"
                );
            }
            if let Some(step) = steps.get(done) {
                disk.apply(step);
            }
        }
        assert!(seen.len() > 12, "{} images", seen.len());
    }
}
