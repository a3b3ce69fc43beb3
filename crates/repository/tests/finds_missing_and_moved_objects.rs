//! Is every truncation, deletion, swap, duplicate and older copy of an object found?

mod support;

use evenkeel_repository::RunKind;
use evenkeel_testkit::effort::{Part, share};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::memory::{MemoryStore, Objects};
use support::way::{WAYS, Way};
use support::{Block, Model, back_up, check, forget, prune, small, verify};

struct Sample {
    way: Way,
    objects: Objects,
    models: BTreeMap<u32, Model>,
    /// The objects as they were at earlier moments.
    earlier: Vec<Objects>,
}

fn sample(way: Way) -> Sample {
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
    let mut earlier = vec![store.objects()];
    let mut models = small(&repo);
    earlier.push(store.objects());
    let mut model = models[&3].clone();
    model.get_mut("data/a.ibd").unwrap().blocks[0] = Block::Bytes(1234);
    back_up(&repo, RunKind::Against(2), &model, None).unwrap();
    models.insert(5, model);
    earlier.push(store.objects());
    forget(&repo, &[2]).unwrap();
    models.remove(&2);
    earlier.push(store.objects());
    prune(&repo, 0.9).unwrap();
    earlier.push(store.objects());
    // One more that is forgotten, but not pruned.
    back_up(&repo, RunKind::Full, &models[&3], None).unwrap();
    forget(&repo, &[6]).unwrap();
    let objects = store.objects();
    let sample = Sample {
        way,
        objects,
        models,
        earlier,
    };
    assert!(!is_found(&sample, sample.objects.clone(), "nothing"));
    sample
}

/// Whether opening or verifying shows that something is wrong; restores must not be wrong.
fn is_found(sample: &Sample, objects: Objects, what: &str) -> bool {
    let Ok(repo) = sample.way.open(MemoryStore::of(objects)) else {
        return true;
    };
    for (generation, model) in &sample.models {
        if let Err(why) = check(&repo, *generation, model) {
            assert!(!why.starts_with("WRONG BYTES"), "{what}: {why}");
        }
    }
    verify(&repo)
        .is_ok_and(|report| report.is_sound())
        .eq(&false)
}

#[test]
fn every_truncation_and_extension() {
    every_truncation_and_extension_of(Way::Plain);
}

#[test]
fn truncations_and_extensions_of_what_is_encrypted() {
    every_truncation_and_extension_of(Way::Sealed);
}

/// Among how many objects a sample divides lengths that are not near an end.
const SHARES: usize = 3;

fn every_truncation_and_extension_of(way: Way) {
    let sample = sample(way);
    for (at, (name, bytes)) in sample.objects.iter().enumerate() {
        // Opening keys takes its time: of what is encrypted, the ends and every eleventh.
        let near_an_end = |length: &usize| *length < 70 || bytes.len() - length < 70;
        let wanted =
            |length: &usize| way == Way::Plain || near_an_end(length) || length.is_multiple_of(11);
        let lengths = (0..bytes.len()).filter(wanted);
        let (ends, middle): (Vec<usize>, Vec<usize>) = lengths.partition(near_an_end);
        let part = Part::new(at % SHARES, SHARES);
        let middle = share(&format!("lengths of {name}"), &middle, part);
        for length in ends.into_iter().chain(middle) {
            let mut all = sample.objects.clone();
            all.insert(name.clone(), Arc::new(bytes[..length].to_vec()));
            let what = format!("{name} cut to {length}");
            assert!(is_found(&sample, all, &what), "{what}");
        }
        let mut all = sample.objects.clone();
        let mut longer = bytes.to_vec();
        longer.push(0);
        all.insert(name.clone(), Arc::new(longer));
        assert!(is_found(&sample, all, name), "{name} made longer");
    }
}

#[test]
fn every_deletion() {
    WAYS.into_iter().for_each(every_deletion_of);
}

fn every_deletion_of(way: Way) {
    let sample = sample(way);
    for name in sample.objects.keys() {
        let mut all = sample.objects.clone();
        all.remove(name);
        assert!(is_found(&sample, all, name), "{name} deleted");
    }
    for generation in 1..7 {
        let folder = format!("generations/{generation}/");
        let mut all = sample.objects.clone();
        all.retain(|name, _| !name.starts_with(&folder));
        let was_there = all.len() < sample.objects.len();
        assert_eq!(is_found(&sample, all, &folder), was_there, "{folder}");
    }
}

#[test]
fn every_swap_and_every_copy() {
    WAYS.into_iter().for_each(every_swap_and_every_copy_of);
}

fn every_swap_and_every_copy_of(way: Way) {
    let sample = sample(way);
    for (one, one_bytes) in &sample.objects {
        for (other, other_bytes) in &sample.objects {
            // The two copies of the keys are the same.
            if one == other || one_bytes == other_bytes {
                continue;
            }
            let mut all = sample.objects.clone();
            all.insert(one.clone(), other_bytes.clone());
            let what = format!("{other} copied over {one}");
            assert!(is_found(&sample, all.clone(), &what), "{what}");
            all.insert(other.clone(), one_bytes.clone());
            let what = format!("{one} and {other} swapped");
            assert!(is_found(&sample, all, &what), "{what}");
        }
    }
}

#[test]
fn every_duplicate() {
    WAYS.into_iter().for_each(every_duplicate_of);
}

fn every_duplicate_of(way: Way) {
    let sample = sample(way);
    let places = [
        "",
        "generations/",
        "generations/3/",
        "generations/5/",
        "generations/9/",
    ];
    for (name, bytes) in &sample.objects {
        let last = name.rsplit('/').next().unwrap();
        for place in places {
            for copy in [
                format!("{place}{last}"),
                format!("{place}pack-0007"),
                format!("{place}{last}.bak"),
            ] {
                let mut all = sample.objects.clone();
                if all.insert(copy.clone(), bytes.clone()).is_none() {
                    let what = format!("{name} copied to {copy}");
                    assert!(is_found(&sample, all, &what), "{what}");
                }
            }
        }
    }
    for (from, to) in [(3, 9), (5, 1)] {
        let from = format!("generations/{from}/");
        let mut all = sample.objects.clone();
        for (name, bytes) in &sample.objects {
            if let Some(rest) = name.strip_prefix(&from) {
                all.insert(format!("generations/{to}/{rest}"), bytes.clone());
            }
        }
        assert!(
            is_found(&sample, all, "a copied generation"),
            "{from} copied to {to}"
        );
    }
}

#[test]
fn every_older_copy() {
    WAYS.into_iter().for_each(every_older_copy_of);
}

fn every_older_copy_of(way: Way) {
    let sample = sample(way);
    let mut tried = 0;
    for earlier in &sample.earlier {
        for (name, bytes) in earlier {
            let now = sample.objects.get(name);
            if now.is_none_or(|now| now == bytes) {
                continue;
            }
            let mut all = sample.objects.clone();
            all.insert(name.clone(), bytes.clone());
            assert!(is_found(&sample, all, name), "an older {name}");
            tried += 1;
        }
    }
    assert!(tried >= 4, "only {tried} objects had older copies");
}

#[test]
fn a_generation_written_twice_under_one_number_does_not_mix() {
    WAYS.into_iter()
        .for_each(a_generation_written_twice_under_one_number_does_not_mix_of);
}

fn a_generation_written_twice_under_one_number_does_not_mix_of(way: Way) {
    // A run is given up; its objects are copied away, and come back into the next run's place.
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
    let mut sample = Sample {
        way,
        objects: Objects::new(),
        models: small(&repo),
        earlier: Vec::new(),
    };
    let before = store.objects();
    let mut given_up = sample.models[&3].clone();
    given_up.get_mut("data/a.ibd").unwrap().blocks[0] = Block::Bytes(555);
    back_up(&repo, RunKind::Incremental, &given_up, None).unwrap();
    let strays = store.objects();
    let again = MemoryStore::of(before);
    let repo = way.open(again.clone()).unwrap();
    let mut model = given_up.clone();
    model.get_mut("data/a.ibd").unwrap().blocks[0] = Block::Bytes(556);
    back_up(&repo, RunKind::Incremental, &model, None).unwrap();
    sample.models.insert(5, model);
    sample.objects = again.objects();
    assert!(!is_found(&sample, sample.objects.clone(), "nothing"));
    for (name, bytes) in strays {
        if sample.objects.get(&name).is_some_and(|now| *now != bytes) {
            let mut all = sample.objects.clone();
            all.insert(name.clone(), bytes);
            assert!(is_found(&sample, all, &name), "{name} of the run given up");
        }
    }
}
