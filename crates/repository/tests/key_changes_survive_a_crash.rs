//! A change of keys that the power ended at any step: do the old keys open the repository or the new
//! ones, never none, and does the next run that writes finish it?

mod support;

use evenkeel_repository::store::LocalStore;
use evenkeel_repository::{KeyChange, Repository, Role, RunKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use support::crash::{Disk, Recorded, Recorder, Unsynced};
use support::memory::MemoryStore;
use support::way::{Person, sealed_for};
use support::{Model, ModelFile, assert_sound, back_up, check, verify};

fn change(repo: &Repository, change: KeyChange) {
    let plan = repo.plan_keys(&change).unwrap();
    repo.perform_keys(&plan, Duration::ZERO).unwrap();
}

#[test]
fn at_every_step() {
    let (stays, comes, goes) = (Person::new(), Person::new(), Person::new());
    let dir = tempfile::tempdir().unwrap();
    let recorder = Arc::new(Recorder::default());
    let store = || Arc::new(LocalStore::tapped(dir.path(), recorder.clone()));
    let open = || {
        let repo = Repository::open_on(store()).unwrap();
        repo.unlock(&stays.credentials).unwrap()
    };
    let model: Model = [("a".to_owned(), ModelFile::new(512, 5_000, 3))].into();
    Repository::create_on(store(), sealed_for(&[&stays, &goes], &[])).unwrap();
    back_up(&open(), RunKind::Full, &model, None).unwrap();
    let begun = recorder.steps.lock().unwrap().len();
    change(
        &open(),
        KeyChange::Add(comes.recipient.clone(), Role::Reader),
    );
    let added = recorder.steps.lock().unwrap().len();
    change(&open(), KeyChange::Remove(goes.recipient.clone()));
    let steps: Vec<Recorded> = recorder.steps.lock().unwrap().clone();
    let kinds = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept];
    let (mut disk, mut seen) = (Disk::default(), BTreeSet::new());
    for done in 0..=steps.len() {
        let images = kinds
            .iter()
            .flat_map(|names| kinds.map(|data| (*names, data)));
        for (names, data) in images.filter(|_| done >= begun) {
            let (objects, folders) = disk.image(names, data);
            let store = MemoryStore::with_folders(objects, folders);
            let opens = |who: &Person| {
                let repo = Repository::open_on(Arc::new(store.clone()))?;
                repo.unlock(&who.credentials)
            };
            let (new, old) = (opens(&comes).is_ok(), opens(&goes).is_ok());
            // Old keys, or new ones; and none that was not to open it yet, or any more.
            assert!(done >= added || old, "after {done} steps");
            assert!(done < added || new, "after {done} steps");
            assert!(done < steps.len() || !old, "after all");
            let repo = opens(&stays).unwrap();
            check(&repo, 1, &model).unwrap();
            assert_sound(&repo);
            seen.insert((new, old));
            let next = back_up(&repo, RunKind::Incremental, &model, None).unwrap();
            let report = verify(&repo).unwrap();
            assert!(report.is_sound() && report.notes.is_empty(), "{report:?}");
            let who = if new { &comes } else { &goes };
            check(&opens(who).unwrap(), next.generation, &model).unwrap();
            assert_eq!((opens(&comes).is_ok(), opens(&goes).is_ok()), (new, old));
        }
        if let Some(step) = steps.get(done) {
            disk.apply(step);
        }
    }
    // Neither change is at once all or nothing by chance: every state was seen.
    assert_eq!(seen, [(false, true), (true, true), (true, false)].into());
}
