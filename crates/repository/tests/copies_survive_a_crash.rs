//! Copied until the power goes, at any step: is what is there a repository whose generations are
//! whole, and does the next copy finish, with what was sent before?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_repository::store::{LocalStore, Location, Store};
use evenkeel_repository::{CopyReport, CopyTo, Repository};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use support::crash::{Disk, Recorded, Recorder, Unsynced};
use support::memory::MemoryStore;
use support::way::{WAYS, Way};
use support::{Model, check, small, verify};

fn copy(from: &Repository, to: impl Store + 'static) -> CopyReport {
    let how = CopyTo {
        workers: 1,
        ..CopyTo::default()
    };
    let to = Location::on(Arc::new(to));
    let copied = from.copy_to(&to, &how, &Silent, &Cancel::new());
    copied.unwrap_or_else(|error| panic!("{}", error.chain()))
}

fn survives(way: Way, from: &Repository, models: &BTreeMap<u32, Model>, store: MemoryStore) -> u64 {
    match way.open(store.clone()) {
        Ok(repo) => {
            let report = verify(&repo).unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            for one in repo.generations().unwrap() {
                check(&repo, one.generation, &models[&one.generation]).unwrap();
            }
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NoRepository, "{}", error.chain()),
    }
    let report = copy(from, store.clone());
    let repo = way.open(store).unwrap();
    assert_eq!(repo.generations().unwrap(), from.generations().unwrap());
    let found = verify(&repo).unwrap();
    assert!(found.is_sound() && found.notes.is_empty(), "{found:?}");
    for (generation, model) in models {
        check(&repo, *generation, model).unwrap();
    }
    report.bytes_kept
}

#[test]
fn at_every_step() {
    for way in WAYS {
        let from = way.create(MemoryStore::default()).unwrap();
        let models = small(&from);
        let dir = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::default());
        copy(&from, LocalStore::tapped(dir.path(), recorder.clone()));
        let steps: Vec<Recorded> = recorder.steps.lock().unwrap().clone();
        let kinds = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept];
        let (mut disk, mut seen, mut kept) = (Disk::default(), HashSet::new(), 0);
        for done in 0..=steps.len() {
            for names in kinds {
                for data in kinds {
                    let (objects, folders) = disk.image(names, data);
                    let image = format!("{objects:?}{folders:?}");
                    if seen.insert(fingerprint(&image)) {
                        let store = MemoryStore::with_folders(objects, folders);
                        kept = survives(way, &from, &models, store).max(kept);
                    }
                }
            }
            if let Some(step) = steps.get(done) {
                disk.apply(step);
            }
        }
        assert!(seen.len() > 50, "{} images", seen.len());
        assert!(kept > 1000, "what was whole is not sent again");
    }
}

fn fingerprint(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
