//! After a crash at any step, with what was not synced lost, torn or kept: is every committed
//! generation whole, and does the next run succeed by itself?

mod support;

use evenkeel_op::ErrorKind;
use evenkeel_repository::store::LocalStore;
use evenkeel_repository::{Begin, RunKind};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use support::crash::{Disk, Recorded, Recorder, Unsynced};
use support::memory::{MemoryStore, Objects};
use support::way::Way;
use support::{Block, Model, ModelFile, back_up, check, forget, give, prune, verify};

/// Something that ended at a step: from then on it must have lasted.
#[derive(Debug, Clone, Copy)]
enum Ended {
    Created,
    Committed(u32),
    ForgetBegan(u32),
    Forgot(u32),
}

struct History {
    way: Way,
    steps: Vec<Recorded>,
    ended: Vec<(usize, Ended)>,
    models: BTreeMap<u32, Model>,
}

/// Makes a repository and does everything to it that there is to do.
fn history(way: Way) -> History {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Arc::new(Recorder::default());
    let store = LocalStore::tapped(dir.path(), recorder.clone());
    let mut ended = Vec::new();
    let mut models = BTreeMap::new();
    let now = || recorder.steps.lock().unwrap().len();
    let repo = way.create(store).unwrap();
    ended.push((now(), Ended::Created));
    let mut model: Model = [("a".to_owned(), ModelFile::new(512, 512 * 300, 3))].into();
    for (kind, at) in [
        (RunKind::Full, 0),
        (RunKind::Incremental, 5),
        (RunKind::Against(1), 299),
    ] {
        model.get_mut("a").unwrap().blocks[at] = Block::Bytes(1000 + at as u64);
        model.insert(format!("b{at}"), ModelFile::new(512, 700, at as u64));
        let done = back_up(&repo, kind, &model, None).unwrap();
        models.insert(done.generation, model.clone());
        ended.push((now(), Ended::Committed(done.generation)));
    }
    // A run that gives up.
    let writer = repo.begin(Begin::new(RunKind::Full, "t")).unwrap();
    give(&writer, &model, None).unwrap();
    writer.abort().unwrap();
    for gone in [1, 2] {
        ended.push((now(), Ended::ForgetBegan(gone)));
        forget(&repo, &[gone]).unwrap();
        ended.push((now(), Ended::Forgot(gone)));
        prune(&repo, 1.0).unwrap();
    }
    let done = back_up(&repo, RunKind::Full, &model, None).unwrap();
    models.insert(done.generation, model.clone());
    ended.push((now(), Ended::Committed(done.generation)));
    ended.push((now(), Ended::ForgetBegan(3)));
    forget(&repo, &[3]).unwrap();
    prune(&repo, 0.0).unwrap();
    let steps = recorder.steps.lock().unwrap().clone();
    History {
        way,
        steps,
        ended,
        models,
    }
}

/// Opens a crash image and checks that it is what it must be.
fn survives(history: &History, done: usize, store: MemoryStore, context: &str) {
    let way = history.way;
    let before: Vec<Ended> = history
        .ended
        .iter()
        .filter(|(step, _)| *step <= done)
        .map(|(_, ended)| *ended)
        .collect();
    let repo = match way.open(store.clone()) {
        Ok(repo) => repo,
        Err(error) if before.is_empty() => {
            assert_eq!(
                error.kind(),
                ErrorKind::NoRepository,
                "{context}: {}",
                error.chain()
            );
            way.create(store)
                .unwrap_or_else(|error| panic!("{context}: {}", error.chain()))
        }
        Err(error) => panic!("{context}: {}", error.chain()),
    };
    let report = verify(&repo).unwrap_or_else(|error| panic!("{context}: {}", error.chain()));
    assert!(report.is_sound(), "{context}: {:?}", report.findings);
    let there: Vec<u32> = repo
        .generations()
        .unwrap()
        .iter()
        .map(|one| one.generation)
        .collect();
    for generation in &there {
        check(&repo, *generation, &history.models[generation])
            .unwrap_or_else(|why| panic!("{context}: {why}"));
    }
    for generation in history.models.keys() {
        let has = |wanted: fn(Ended) -> Option<u32>| {
            before
                .iter()
                .any(|ended| wanted(*ended) == Some(*generation))
        };
        let committed = has(|ended| match ended {
            Ended::Committed(n) => Some(n),
            _ => None,
        });
        let going = has(|ended| match ended {
            Ended::ForgetBegan(n) => Some(n),
            _ => None,
        });
        let gone = has(|ended| match ended {
            Ended::Forgot(n) => Some(n),
            _ => None,
        });
        if committed && !going {
            assert!(
                there.contains(generation),
                "{context}: {generation} is lost: {there:?}"
            );
        }
        assert!(
            !gone || !there.contains(generation),
            "{context}: {generation} is back"
        );
    }
    // Whatever was left: the next run works, and leaves nothing to be healed.
    let model = &history.models[&3];
    let next = back_up(&repo, RunKind::Incremental, model, None);
    let next = next.unwrap_or_else(|error| panic!("{context}: next run: {}", error.chain()));
    check(&repo, next.generation, model).unwrap();
    prune(&repo, 0.5).unwrap_or_else(|error| panic!("{context}: prune: {}", error.chain()));
    let report = verify(&repo).unwrap();
    assert!(
        report.is_sound() && report.notes.is_empty(),
        "{context}: {report:?}"
    );
}

#[test]
fn at_every_step() {
    survives_everywhere(Way::Plain);
}

#[test]
fn at_every_step_of_an_encrypted_repository() {
    survives_everywhere(Way::Sealed);
}

fn survives_everywhere(way: Way) {
    let history = history(way);
    let kinds = [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept];
    let mut disk = Disk::default();
    let mut seen = HashSet::new();
    for done in 0..=history.steps.len() {
        for names in kinds {
            for data in kinds {
                let (objects, folders) = disk.image(names, data);
                // Most images are as one before: only what was not synced tells them apart.
                let ended = history
                    .ended
                    .iter()
                    .filter(|(step, _)| *step <= done)
                    .count();
                if !seen.insert(fingerprint(&objects, &folders, ended)) {
                    continue;
                }
                let context = format!(
                    "names {names:?}, data {data:?} after {done} steps, then {:?}",
                    history.steps.get(done).map(short)
                );
                let store = MemoryStore::with_folders(objects, folders);
                survives(&history, done, store, &context);
            }
        }
        if let Some(step) = history.steps.get(done) {
            disk.apply(step);
        }
    }
    assert!(seen.len() > 200, "{} images", seen.len());
    assert!(history.steps.len() > 100, "{}", history.steps.len());
}

fn fingerprint(objects: &Objects, folders: &BTreeSet<String>, ended: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (objects, folders, ended).hash(&mut hasher);
    hasher.finish()
}

fn short(step: &Recorded) -> String {
    match step {
        Recorded::Write(name, bytes) => format!("Write({name}, {} bytes)", bytes.len()),
        other => format!("{other:?}"),
    }
}
