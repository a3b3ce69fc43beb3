//! Uses a repository that somebody has forged, and fails where that does harm.

use super::hostile;
use super::memory::{MemoryStore, Objects};
use super::{Model, assert_sound, back_up, prune, small, verify};
use evenkeel_op::Cancel;
use evenkeel_repository::{Create, FileKind, Prune, Repository, RunKind};
use evenkeel_testkit::effort::{rounds, seed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// More than anything here takes, and less than any number in a document that can be believed to be a length.
const MEMORY: u64 = 1 << 30;

/// A sound repository, and what was backed up last.
pub fn ground() -> (Objects, Model) {
    bound_memory();
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let models = small(&repo);
    let mut objects = store.objects();
    // Made by the means of those who forge, it is as sound as before.
    hostile::anchor(&mut objects);
    let repo = Repository::open_on(Arc::new(MemoryStore::of(objects.clone()))).unwrap();
    assert_sound(&repo);
    (objects, models[&3].clone())
}

/// An allocation beyond it ends the process, and so the test.
fn bound_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let data: u64 = data
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let limit = Some((data << 10) + MEMORY);
    let limit = rustix::process::Rlimit {
        current: limit,
        maximum: limit,
    };
    rustix::process::setrlimit(rustix::process::Resource::Data, limit).unwrap();
}

/// Does to a repository all that people do. Returns the object that was complained of, if any.
pub fn use_it(repo: &Repository, model: &Model) -> Vec<String> {
    let mut errors = Vec::new();
    let mut note = |result: evenkeel_op::Result<()>| {
        if let Err(error) = result {
            errors.push(error.chain());
        }
    };
    note(repo.generations().map(drop));
    for generation in [1, 2, 3, 4, u32::MAX] {
        note(repo.reader(generation).and_then(|reader| {
            for record in reader.files() {
                let record = record?;
                if record.meta.kind != FileKind::File {
                    continue;
                }
                let file = reader.open_file(&record)?;
                for leaf in 0..file.leaf_count().min(50) {
                    file.read_leaf(leaf, |_, _| Ok(()))?;
                }
            }
            Ok(())
        }));
    }
    note(verify(repo).map(drop));
    note(repo.plan_prune(&Prune::default(), &Cancel::new()).map(drop));
    note(repo.plan_rebuild().map(drop));
    note(back_up(repo, RunKind::Incremental, model, None).map(drop));
    note(back_up(repo, RunKind::Full, model, None).map(drop));
    note(prune(repo, 1.0).map(drop));
    errors
}

pub fn bears(what: &str, objects: Objects, model: &Model) -> Vec<String> {
    let store = MemoryStore::of(objects);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let errors = match Repository::open_on(Arc::new(store.clone())) {
            Ok(repo) => use_it(&repo, model),
            Err(error) => vec![error.chain()],
        };
        for name in store.objects().keys() {
            let outside = name.starts_with('/') || name.split('/').any(|part| part == "..");
            assert!(!outside && !name.contains("escaped"), "{what}: {name}");
        }
        errors
    }));
    done.unwrap_or_else(|_| panic!("{what}: a panic"))
}

/// As many of these as the effort is for, others every time the seed is another.
pub fn some<T>(all: Vec<T>, what: &str) -> Vec<T> {
    let most = rounds(what, 400, u32::MAX) as usize;
    let step = all.len().div_ceil(most.max(1)).max(1);
    let first = (seed() as usize) % step;
    all.into_iter().skip(first).step_by(step).collect()
}
