//! Is every flipped bit of every object found by verify, and never restored in silence?

mod support;

use evenkeel_repository::{Create, Repository};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::memory::{MemoryStore, Objects};
use support::{Model, check, small, verify};

/// Fails if damage goes unnoticed: verify must see it, reading must fail or give the right bytes.
fn must_be_found(objects: Objects, models: &BTreeMap<u32, Model>, what: &str) {
    let store = Arc::new(MemoryStore::of(objects));
    let Ok(repo) = Repository::open_on(store) else {
        return;
    };
    let found = match verify(&repo) {
        Ok(report) => !report.is_sound(),
        Err(_) => true,
    };
    assert!(found, "{what} is not found by verify");
    for (generation, model) in models {
        if let Err(why) = check(&repo, *generation, model) {
            assert!(!why.starts_with("WRONG BYTES"), "{what}: {why}");
        }
    }
}

#[test]
fn every_single_bit() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let models = small(&repo);
    let objects = store.objects();
    assert!(
        objects.keys().any(|name| name.ends_with("pack-0000.1")),
        "{:?}",
        objects.keys()
    );
    for (generation, model) in &models {
        check(&repo, *generation, model).unwrap();
    }
    let (objects, models) = (&objects, &models);
    std::thread::scope(|scope| {
        for (name, bytes) in objects {
            scope.spawn(move || {
                for bit in 0..bytes.len() * 8 {
                    let mut wrong = bytes.to_vec();
                    wrong[bit / 8] ^= 1 << (bit % 8);
                    let mut all = objects.clone();
                    all.insert(name.clone(), Arc::new(wrong));
                    must_be_found(all, models, &format!("bit {bit} of {name}"));
                }
            });
        }
    });
}
