//! Does a copy into a repository of its own, with other keys or none, hold the same generations, cost
//! what is new, and never show in clear what was not to be?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Result, Silent};
use evenkeel_repository::store::Location;
use evenkeel_repository::{
    Access, Chosen, CopyReport, CopyTo, CopyWay, Encrypt, GenerationKind, KeyChange, Repository,
    Role, RunKind,
};
use std::sync::Arc;
use std::time::Duration;
use support::memory::MemoryStore;
use support::way::{Person, Way, sealed_for};
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget, prune};

fn copy(from: &Repository, to: Location, how: CopyTo) -> Result<CopyReport> {
    from.copy_to(&to, &how, &Silent, &Cancel::new())
}

fn place(store: &MemoryStore) -> Location {
    Location::on(Arc::new(store.clone()))
}

fn becomes(report: &CopyReport) -> Vec<(u32, u32)> {
    assert_eq!(report.way, CopyWay::Blocks);
    let each = report.copied.iter();
    each.map(|one| (one.generation, one.becomes)).collect()
}

fn readable_by(person: &Person) -> Encrypt {
    Encrypt {
        readers: vec![person.recipient.clone()],
        ..Encrypt::default()
    }
}

fn model(round: u64) -> Model {
    let mut model = Model::new();
    // Deep enough for nodes, with a short last block.
    let mut file = ModelFile::new(512, 512 * 600 + 100, 3);
    for change in 0..round * 2 {
        file.blocks[(change * 97 % 600) as usize] = Block::Bytes(9_000 + change);
    }
    file.blocks[300] = Block::Hole;
    file.blocks[301] = Block::Bytes(0);
    file.blocks[302] = Block::Front(5, 40);
    model.insert("data/a.ibd".into(), file);
    model.insert(
        "data/b".into(),
        ModelFile::new(1024, 100 + round * 2_000, round),
    );
    model.insert("data/empty".into(), ModelFile::new(512, 0, 1));
    model
}

#[test]
fn in_clear_and_back() {
    let (vault, other) = (Person::new(), Person::new());
    let here = Repository::create_on(Arc::<MemoryStore>::default(), sealed_for(&[&vault], &[]));
    let here = here.unwrap().unlock(&vault.credentials).unwrap();
    let (clear, again) = (MemoryStore::default(), MemoryStore::default());
    for round in 1..=3 {
        let given = model(round);
        back_up(&here, RunKind::Incremental, &given, None).unwrap();
        let number = round as u32;
        let how = CopyTo {
            decrypt: true,
            ..CopyTo::default()
        };
        let report = copy(&here, place(&clear), how).unwrap();
        assert_eq!(becomes(&report), [(number, number)]);
        let plain = Way::Plain.open(clear.clone()).unwrap();
        let to = place(&again)
            .encrypted_for(readable_by(&other))
            .opened_with(other.credentials.clone());
        let report = copy(&plain, to, CopyTo::default()).unwrap();
        assert_eq!(becomes(&report), [(number, number)]);
    }
    let plain = Way::Plain.open(clear).unwrap();
    let sealed = Repository::open_on(Arc::new(again)).unwrap();
    let sealed = sealed.unlock(&other.credentials).unwrap();
    for copied in [&plain, &sealed] {
        assert_sound(copied);
        for round in 1..=3 {
            check(copied, round as u32, &model(round)).unwrap();
        }
        let all = here.generations().unwrap().into_iter();
        for (was, is) in all.zip(copied.generations().unwrap()) {
            let (was, is) = (was.about.unwrap(), is.about.unwrap());
            assert_eq!((was.created, was.source), (is.created, is.source));
            assert_eq!((was.kind, was.bytes_logical), (is.kind, is.bytes_logical));
        }
        let manifest = copied.manifest(2).unwrap();
        assert_eq!(manifest.coordinates, here.manifest(2).unwrap().coordinates);
    }
}

#[test]
fn what_is_new_is_all_that_is_read() {
    let person = Person::new();
    let (here, there) = (MemoryStore::default(), MemoryStore::default());
    let repo = Way::Plain.create(here.clone()).unwrap();
    back_up(&repo, RunKind::Full, &model(1), None).unwrap();
    let to = || {
        place(&there)
            .encrypted_for(readable_by(&person))
            .opened_with(person.credentials.clone())
    };
    copy(&repo, to(), CopyTo::default()).unwrap();
    back_up(&repo, RunKind::Incremental, &model(2), None).unwrap();
    // The first one's blocks are gone: who reads them finds out.
    let mut objects = here.objects();
    let packs = |name: &String| name.starts_with("generations/1/pack-");
    let names: Vec<String> = objects.keys().filter(|name| packs(name)).cloned().collect();
    for name in names {
        let length = objects[&name].len();
        objects.insert(name, Arc::new(vec![0; length]));
    }
    let broken = Way::Plain.open(MemoryStore::of(objects)).unwrap();
    let report = copy(&broken, to(), CopyTo::default()).unwrap();
    assert_eq!(becomes(&report), [(2, 2)]);
    let copied = Repository::open_on(Arc::new(there)).unwrap();
    let copied = copied.unlock(&person.credentials).unwrap();
    assert_sound(&copied);
    check(&copied, 2, &model(2)).unwrap();
    assert_eq!(
        copied.manifest(2).unwrap().kind,
        GenerationKind::Incremental
    );
}

#[test]
fn two_repositories_go_into_one() {
    let there = MemoryStore::default();
    let target = Way::Plain.create(there.clone()).unwrap();
    let repos = [1, 2].map(|_| Way::Plain.create(MemoryStore::default()).unwrap());
    for round in 1..=2 {
        for (repo, number) in repos.iter().zip(0..) {
            back_up(repo, RunKind::Incremental, &model(round + number), None).unwrap();
            let report = copy(repo, place(&there), CopyTo::default()).unwrap();
            let expected = (round as u32 - 1) * 2 + number as u32 + 1;
            assert_eq!(becomes(&report), [(round as u32, expected)]);
        }
    }
    assert_sound(&target);
    for (generation, round) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
        check(&target, generation, &model(round)).unwrap();
    }
    // Each is compared with the one that came from the same place.
    let bases = target.generations().unwrap().into_iter();
    let bases: Vec<_> = bases.map(|one| one.about.unwrap().based_on).collect();
    assert_eq!(bases, [None, None, Some(1), Some(2)]);
    // Forgotten here and there: the rest stays whole, and what is new is found.
    forget(&repos[0], &[1]).unwrap();
    prune(&repos[0], 1.0).unwrap();
    forget(&target, &[3]).unwrap();
    prune(&target, 1.0).unwrap();
    back_up(&repos[0], RunKind::Incremental, &model(5), None).unwrap();
    let how = CopyTo {
        chosen: Chosen::Latest(2),
        ..CopyTo::default()
    };
    assert_eq!(
        becomes(&copy(&repos[0], place(&there), how).unwrap()),
        [(2, 5), (3, 6)]
    );
    check(&target, 6, &model(5)).unwrap();
    assert_sound(&target);
}

#[test]
fn nothing_is_shown_by_mistake() {
    let person = Person::new();
    let store = MemoryStore::default();
    let made = Repository::create_on(Arc::new(store.clone()), sealed_for(&[&person], &[]));
    let repo = made.unwrap().unlock(&person.credentials).unwrap();
    back_up(&repo, RunKind::Full, &model(1), None).unwrap();
    let clear = MemoryStore::default();
    Way::Plain.create(clear.clone()).unwrap();
    let before = clear.objects();
    for to in [
        place(&clear),
        place(&clear).opened_with(person.credentials.clone()),
    ] {
        let error = copy(&repo, to, CopyTo::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongKey, "{}", error.chain());
    }
    assert_eq!(clear.objects(), before);
    // Without a reader's key there is nothing to reseal.
    let locked = Repository::open_on(Arc::new(store)).unwrap();
    let how = CopyTo {
        decrypt: true,
        ..CopyTo::default()
    };
    let error = copy(&locked, place(&clear), how).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongKey);
    assert_eq!(clear.objects(), before);
}

fn change(store: &MemoryStore, by: &Person, change: KeyChange) {
    let repo = Repository::open_on(Arc::new(store.clone())).unwrap();
    let repo = repo.unlock(&by.credentials).unwrap();
    let plan = repo.plan_keys(&change).unwrap();
    repo.perform_keys(&plan, Duration::ZERO).unwrap();
}

#[test]
fn a_copy_follows_a_change_of_keys() {
    let (first, second, third) = (Person::new(), Person::new(), Person::new());
    let there = MemoryStore::default();
    let here = MemoryStore::default();
    let made = Repository::create_on(Arc::new(here.clone()), sealed_for(&[&first], &[]));
    let open = |store: &MemoryStore, by: &Person| {
        Repository::open_on(Arc::new(store.clone()))?.unlock(&by.credentials)
    };
    drop(made.unwrap());
    back_up(
        &open(&here, &first).unwrap(),
        RunKind::Full,
        &model(1),
        None,
    )
    .unwrap();
    let bring = || {
        copy(
            &open(&here, &first).unwrap(),
            place(&there),
            CopyTo::default(),
        )
    };
    assert_eq!(bring().unwrap().way, CopyWay::Objects);
    // Who was added over there stays, who was removed here goes.
    change(
        &there,
        &first,
        KeyChange::Add(third.recipient.clone(), Role::Reader),
    );
    assert!(bring().unwrap().copied.is_empty());
    assert_eq!(open(&there, &third).unwrap().access(), Access::Reader);
    change(
        &here,
        &first,
        KeyChange::Add(second.recipient.clone(), Role::Reader),
    );
    change(&here, &second, KeyChange::Remove(second.recipient.clone()));
    back_up(
        &open(&here, &first).unwrap(),
        RunKind::Incremental,
        &model(2),
        None,
    )
    .unwrap();
    bring().unwrap();
    let copied = open(&there, &first).unwrap();
    assert_sound(&copied);
    check(&copied, 2, &model(2)).unwrap();
    assert!(open(&there, &second).is_err());
    // Changed on both sides, each with keys of its own: nothing comes that could not be opened.
    change(
        &there,
        &first,
        KeyChange::Add(second.recipient.clone(), Role::Reader),
    );
    change(&there, &first, KeyChange::Remove(second.recipient.clone()));
    change(
        &here,
        &first,
        KeyChange::Add(third.recipient.clone(), Role::Reader),
    );
    change(&here, &first, KeyChange::Remove(third.recipient.clone()));
    let error = bring().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongKey, "{}", error.chain());
}
