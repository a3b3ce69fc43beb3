//! Does a sampled verify look at all that describes the content, say how much of that it read, and do
//! its parts find together whatever is damaged?

mod support;

use evenkeel_op::{Cancel, Silent};
use evenkeel_repository::{Repository, RunKind, Sample, Verify, VerifyReport};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::memory::{MemoryStore, Objects};
use support::way::{WAYS, Way};
use support::{Model, ModelFile, back_up, forget};

const MIB: u64 = 1 << 20;
const FRAMES: u64 = 24;

fn verify(repo: &Repository, sample: Sample) -> VerifyReport {
    let how = Verify {
        sample: Some(sample),
        ..Verify::default()
    };
    repo.verify(&how, &Silent, &Cancel::new()).unwrap()
}

/// A generation of many packs, and a forgotten one that is not pruned.
fn made(way: Way) -> Objects {
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
    let of = |seed| -> Model {
        let file = ModelFile::new(MIB as u32, FRAMES * MIB, seed);
        [("a".to_owned(), file)].into()
    };
    back_up(&repo, RunKind::Full, &of(1), None).unwrap();
    back_up(&repo, RunKind::Full, &of(1_000), None).unwrap();
    forget(&repo, &[1]).unwrap();
    store.objects()
}

fn damaged(objects: &Objects, name: &str) -> MemoryStore {
    let mut objects = objects.clone();
    let mut bytes = objects[name].to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    objects.insert(name.to_owned(), Arc::new(bytes));
    MemoryStore::of(objects)
}

#[test]
fn each_damaged_frame_is_in_one_part() {
    for way in WAYS {
        let objects = made(way);
        let packs: Vec<&String> = objects
            .keys()
            .filter(|name| name.contains("/pack-"))
            .collect();
        assert_eq!(packs.len() as u64, 2 * FRAMES);
        let of = 3;
        let mut found_by = BTreeSet::new();
        for name in packs.iter().step_by(5) {
            let repo = way.open(damaged(&objects, name)).unwrap();
            let parts =
                (1..=of).filter(|&part| !verify(&repo, Sample::Part { part, of }).is_sound());
            let parts: Vec<u32> = parts.collect();
            assert_eq!(parts.len(), 1, "{name}: {parts:?}");
            found_by.extend(parts);
        }
        assert!(found_by.len() > 1, "{found_by:?}");
    }
}

#[test]
fn what_describes_the_content_is_always_read() {
    for way in WAYS {
        let objects = made(way);
        for name in [
            "generations/2/maps",
            "generations/2/files",
            "generations/1/maps",
            "head",
        ] {
            let store = damaged(&objects, name);
            let repo = way.open(store).unwrap();
            let report = verify(
                &repo,
                Sample::Share {
                    share: 0.0,
                    seed: 1,
                },
            );
            assert!(!report.is_sound(), "{name}");
        }
    }
}

#[test]
fn it_says_how_much_was_read() {
    for way in WAYS {
        let repo = way.open(MemoryStore::of(made(way))).unwrap();
        let parts: Vec<VerifyReport> = (1..=4)
            .map(|part| verify(&repo, Sample::Part { part, of: 4 }))
            .collect();
        let said = |report: &VerifyReport| report.sample.clone().unwrap();
        let total = said(&parts[0]).bytes_total;
        assert!(total > FRAMES * MIB);
        let checked: u64 = parts.iter().map(|report| said(report).bytes_checked).sum();
        assert_eq!(checked, total);
        assert!(
            parts
                .iter()
                .all(|report| report.is_sound() && said(report).bytes_total == total)
        );
        let blocks: u64 = parts.iter().map(|report| report.blocks).sum();
        assert_eq!(blocks, FRAMES);
        // A seed repeats, another chooses others; an amount is a share of what is stored.
        let share = |seed| verify(&repo, Sample::Share { share: 0.5, seed });
        let (once, again) = (share(1), share(1));
        assert_eq!((once.blocks, &once.sample), (again.blocks, &again.sample));
        assert!((1..FRAMES).contains(&once.blocks), "{once:?}");
        assert!((2..9).any(|seed| share(seed).blocks != once.blocks));
        let bytes = |bytes| said(&verify(&repo, Sample::Bytes { bytes, seed: 1 }));
        assert_eq!(bytes(u64::MAX).bytes_checked, total);
        assert!(bytes(total / 4).bytes_checked < total);
        assert_eq!(bytes(0).bytes_checked, 0);
    }
}
