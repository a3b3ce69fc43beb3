//! Who may write to the store, and not delete there, can replace the head: does that ever make somebody who
//! may delete remove what a generation needs?

mod support;

use evenkeel_repository::store::LocalStore;
use evenkeel_repository::{Repository, RunKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::crash::{Recorded, Recorder};
use support::forge;
use support::memory::{MemoryStore, Objects};
use support::way::{WAYS, Way};
use support::{Model, back_up, check, forget, prune, small, verify};

/// A repository of which generations 2 and 3 can be restored, and all the heads that it had.
struct Fixture {
    way: Way,
    objects: Objects,
    heads: Vec<Vec<u8>>,
    models: BTreeMap<u32, Model>,
}

impl Fixture {
    fn new(way: Way) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::default());
        let repo = way
            .create(LocalStore::tapped(dir.path(), recorder.clone()))
            .unwrap();
        let models = small(&repo);
        let mut heads: Vec<Vec<u8>> = Vec::new();
        for step in recorder.steps.lock().unwrap().iter() {
            match step {
                Recorded::CreateFile(name) if name == "head.tmp" => heads.push(Vec::new()),
                Recorded::Write(name, bytes) if name == "head.tmp" => {
                    heads.last_mut().unwrap().extend(bytes);
                }
                _ => {}
            }
        }
        let mut objects = Objects::new();
        collect(dir.path(), "", &mut objects);
        Self {
            way,
            objects,
            heads,
            models,
        }
    }

    /// Lets somebody who may delete work on what an attacker has made of the store. Whatever they did,
    /// everything that could be restored can be restored; returns why nothing could be pruned.
    fn survives(&self, what: &str, objects: Objects) -> String {
        let context = format!("{what}, {:?}", self.way);
        let store = MemoryStore::of(objects);
        let open = || self.way.open(store.clone()).unwrap();
        let newest = &self.models[&3];
        let mut first = String::new();
        for live_share in [0.5, 1.0] {
            if let Err(error) = prune(&open(), live_share)
                && first.is_empty()
            {
                first = format!("{}; {}", error.chain(), error.hints().join("; "));
            }
            let _ = back_up(&open(), RunKind::Full, newest, None);
            let _ = back_up(&open(), RunKind::Incremental, newest, None);
            // As somebody would who reads the list as it is.
            let all = open().generations().unwrap_or_default();
            if let Some(last) = all
                .last()
                .filter(|one| !self.models.contains_key(&one.generation))
            {
                let _ = forget(&open(), &[last.generation]);
            }
        }
        let repo = open();
        let plan = repo.plan_rebuild().unwrap();
        let notes = plan.notes.clone();
        repo.perform_rebuild(plan, std::time::Duration::ZERO)
            .unwrap();
        for (generation, model) in &self.models {
            check(&open(), *generation, model)
                .unwrap_or_else(|why| panic!("{context}: {generation}: {why}, {notes:?}, {first}"));
        }
        first
    }

    fn forged(&self, change: impl FnOnce(&mut Value)) -> Objects {
        let mut objects = self.objects.clone();
        forge::change(&mut objects, "head", change);
        objects
    }

    fn mark(&self, objects: &mut Objects, generation: u32, marker: &str) {
        let body = match marker {
            "pending" => {
                json!({"generation": generation, "created": "2026-01-01T00:00:00Z", "process": 1})
            }
            _ => json!(generation),
        };
        let bytes = forge::sealed(&format!("evenkeel {marker} 1"), &body);
        objects.insert(
            format!("generations/{generation}/{marker}"),
            Arc::new(bytes),
        );
    }
}

fn collect(dir: &std::path::Path, folder: &str, objects: &mut Objects) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), objects);
        } else {
            objects.insert(name, Arc::new(std::fs::read(entry.path()).unwrap()));
        }
    }
}

fn grounds() -> impl Iterator<Item = Fixture> {
    WAYS.into_iter().map(Fixture::new)
}

#[test]
fn that_calls_objects_dropped() {
    for fixture in grounds() {
        let names: Vec<String> = fixture.objects.keys().cloned().collect();
        let mut all = Vec::new();
        for name in names {
            let mut parts = name.split('/').skip(1);
            let (Some(generation), Some(object)) = (parts.next(), parts.next()) else {
                continue;
            };
            let object = object.split('.').next().unwrap().to_owned();
            let generation: u32 = generation.parse().unwrap();
            let change = json!({"generation": generation, "object": object, "now": null});
            let objects = fixture.forged(|head| head["changes"] = json!([change]));
            fixture.survives(&format!("{name} dropped"), objects);
            all.push(change);
        }
        let objects = fixture.forged(|head| head["changes"] = json!(all));
        assert_ne!(fixture.survives("all dropped", objects), "");
    }
}

#[test]
fn that_calls_generations_forgotten() {
    for fixture in grounds() {
        let retire =
            |head: &mut Value, which: &[u64]| {
                let live = head["live"].as_array_mut().unwrap();
                let (gone, left): (Vec<Value>, Vec<Value>) = live
                    .drain(..)
                    .partition(|one| which.contains(&one["generation"].as_u64().unwrap()));
                *live = left;
                let retired = head["retired"].as_array_mut().unwrap();
                retired.extend(gone.iter().map(
                    |one| json!({"generation": one["generation"], "manifest": one["manifest"]}),
                ));
                retired.sort_by_key(|one| one["generation"].as_u64());
            };
        for which in [&[2][..], &[3], &[2, 3]] {
            let objects = fixture.forged(|head| retire(head, which));
            fixture.survives(&format!("{which:?} retired"), objects.clone());
            // It is found out by the next run, which keeps them, and not called damage.
            let repo = fixture.way.open(MemoryStore::of(objects)).unwrap();
            let done = back_up(&repo, RunKind::Full, &fixture.models[&3], None).unwrap();
            let there = repo.generations().unwrap();
            let there: Vec<u32> = there.iter().map(|one| one.generation).collect();
            assert_eq!(there, [2, 3, done.generation]);
            assert!(verify(&repo).unwrap().is_sound());
        }
        // Under another digest: damage then, and nothing is removed beside damage.
        let objects = fixture.forged(|head| {
            retire(head, &[2, 3]);
            for one in head["retired"].as_array_mut().unwrap() {
                one["manifest"] = json!("0".repeat(64));
            }
        });
        assert_ne!(fixture.survives("retired with wrong digests", objects), "");
    }
}

#[test]
fn that_does_not_know_generations() {
    for fixture in grounds() {
        for marker in ["", "pending", "removing"] {
            for gone in [&[1][..], &[2], &[3], &[1, 2], &[1, 2, 3, 4]] {
                let mut objects = fixture.forged(|head| {
                    for list in ["live", "retired", "changes"] {
                        head[list].as_array_mut().unwrap().retain(|one| {
                            !gone.contains(&(one["generation"].as_u64().unwrap() as u32))
                        });
                    }
                });
                if !marker.is_empty() {
                    gone.iter()
                        .for_each(|one| fixture.mark(&mut objects, *one, marker));
                }
                let what = format!("{gone:?} unknown, marked {marker:?}");
                let why = fixture.survives(&what, objects);
                if marker.is_empty() {
                    let named = format!("generation {}", gone[0]);
                    assert!(why.contains(&named), "{what}: {why}");
                    assert!(why.contains("repository rebuild"), "{what}: {why}");
                }
            }
        }
    }
}

#[test]
fn that_was_one_before() {
    for fixture in grounds() {
        assert!(fixture.heads.len() > 6, "{}", fixture.heads.len());
        for (number, head) in fixture.heads.iter().enumerate() {
            let mut objects = fixture.objects.clone();
            objects.insert("head".to_owned(), Arc::new(head.clone()));
            for marker in ["", "pending", "removing"] {
                let mut objects = objects.clone();
                if !marker.is_empty() {
                    (1..5).for_each(|one| fixture.mark(&mut objects, one, marker));
                }
                fixture.survives(&format!("head {number} again, marked {marker:?}"), objects);
            }
        }
    }
}

#[test]
fn that_is_gone_or_another_repositorys() {
    for fixture in grounds() {
        let other = Fixture::new(fixture.way);
        for head in [None, Some(other.objects["head"].clone())] {
            let mut objects = fixture.objects.clone();
            objects.remove("head");
            objects.extend(head.map(|head| ("head".to_owned(), head)));
            let why = fixture.survives("no head of its own", objects);
            assert!(why.contains("repository rebuild"), "{why}");
        }
    }
}

/// Whoever makes a folder of the highest number takes none from the others.
#[test]
fn that_leaves_numbers() {
    for fixture in grounds() {
        for object in ["pending", "manifest", "pack-0000"] {
            let mut objects = fixture.objects.clone();
            let name = format!("generations/{}/{object}", u32::MAX);
            objects.insert(name, Arc::new(b"anything".to_vec()));
            let repo = fixture.way.open(MemoryStore::of(objects)).unwrap();
            for number in [5, 6] {
                let done = back_up(&repo, RunKind::Incremental, &fixture.models[&3], None).unwrap();
                assert_eq!(done.generation, number, "{object}");
            }
        }
    }
}

/// A sound pack without the blocks that are needed, such as a prune of other generations makes it.
#[test]
fn that_names_a_pack_rewritten_without_what_is_needed() {
    for fixture in grounds() {
        for left in [2, 3] {
            let store = MemoryStore::of(fixture.objects.clone());
            let repo: Repository = fixture.way.open(store.clone()).unwrap();
            forget(&repo, &[5 - left]).unwrap();
            prune(&repo, 1.0).unwrap();
            let mut objects = fixture.objects.clone();
            for (name, bytes) in store.objects() {
                if name == "head" || !objects.contains_key(&name) {
                    objects.insert(name, bytes);
                }
            }
            fixture.survives(&format!("pruned for {left} alone"), objects.clone());
            // Calling all that was there before live again.
            let (_, live) = forge::opened(&fixture.objects["head"]);
            forge::change(&mut objects, "head", |head| {
                head["live"] = live["live"].clone();
                head["retired"] = live["retired"].clone();
            });
            fixture.survives(&format!("rewritten for {left} alone"), objects);
        }
    }
}
