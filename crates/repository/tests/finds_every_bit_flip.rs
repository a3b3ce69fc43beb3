//! Is every flipped bit of every object found by verify, and never restored in silence?

mod support;

use evenkeel_testkit::effort::{rounds, seed};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::memory::{MemoryStore, Objects};
use support::way::Way;
use support::{Model, check, small, verify};

/// Fails if damage goes unnoticed: verify must see it, reading must fail or give the right bytes.
fn must_be_found(way: Way, objects: Objects, models: &BTreeMap<u32, Model>, what: &str) {
    let Ok(repo) = way.open(MemoryStore::of(objects)) else {
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

/// Flips the bits of every object of which `wanted` says so, by number.
fn flip(way: Way, wanted: impl Fn(usize) -> bool + Sync) {
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
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
    let (objects, models, wanted) = (&objects, &models, &wanted);
    std::thread::scope(|scope| {
        for (name, bytes) in objects {
            scope.spawn(move || {
                for bit in (0..bytes.len() * 8).filter(|bit| wanted(*bit)) {
                    let mut wrong = bytes.to_vec();
                    wrong[bit / 8] ^= 1 << (bit % 8);
                    let mut all = objects.clone();
                    all.insert(name.clone(), Arc::new(wrong));
                    must_be_found(way, all, models, &format!("bit {bit} of {name}"));
                }
            });
        }
    });
}

/// In a sample, one bit of every byte, another from byte to byte.
#[test]
fn every_single_bit() {
    let turn = rounds("bits of each byte", 1, 8) as usize;
    let first = seed() as usize;
    flip(Way::Plain, |bit| (bit + bit / 8 + first) % 8 < turn);
}

/// One bit of every byte, another from byte to byte: opening keys takes its time. In a sample, of every fourth.
#[test]
fn a_bit_of_every_byte_of_an_encrypted_repository() {
    let turn = rounds("bytes of four", 1, 4) as usize;
    let first = seed() as usize;
    flip(Way::Sealed, |bit| {
        let byte = bit / 8;
        bit % 8 == byte % 8 && (byte / 8 + byte + first) % 4 < turn
    });
}
