//! Are a wrong base, a missing middle generation and two repositories mixed refused?

mod support;

use evenkeel_op::ErrorKind;
use evenkeel_repository::{Begin, Create, Repository, RunKind};
use std::path::Path;
use std::sync::Arc;
use support::memory::{MemoryStore, Objects};
use support::{Block, Model, ModelFile, back_up, check, verify};

/// Three generations, the second and third each on the one before, all needed by the third.
fn chain(seed: u64) -> (Objects, Model) {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let mut model: Model = [("f".to_owned(), ModelFile::new(512, 512 * 40, seed))].into();
    for at in 0..3 {
        model.get_mut("f").unwrap().blocks[at] = Block::Bytes(seed + 7);
        back_up(&repo, RunKind::Incremental, &model, None).unwrap();
    }
    (store.objects(), model)
}

fn open(objects: Objects) -> Repository {
    Repository::open_on(Arc::new(MemoryStore::of(objects))).unwrap()
}

fn refused(objects: Objects, model: &Model, what: &str) {
    let repo = open(objects);
    let why = check(&repo, 3, model).unwrap_err();
    assert!(!why.starts_with("WRONG"), "{what}: {why}");
    assert!(!verify(&repo).unwrap().is_sound(), "{what}");
    let run = back_up(&repo, RunKind::Incremental, model, None);
    assert!(run.is_err(), "{what}: a run on a broken base was committed");
}

#[test]
fn a_missing_middle_generation() {
    let (mut objects, model) = chain(100);
    objects.retain(|name, _| !name.starts_with("generations/2/"));
    refused(objects.clone(), &model, "generation 2 missing");
    // A full run starts afresh and does not need what is missing.
    let repo = open(objects);
    let full = back_up(&repo, RunKind::Full, &model, None).unwrap();
    check(&repo, full.generation, &model).unwrap();
}

#[test]
fn generations_of_another_repository() {
    let (one, model) = chain(100);
    let (other, _) = chain(100);
    for generation in 1..4 {
        let folder = format!("generations/{generation}/");
        let mut mixed = one.clone();
        mixed.retain(|name, _| !name.starts_with(&folder));
        let strangers = other.iter().filter(|(name, _)| name.starts_with(&folder));
        mixed.extend(strangers.map(|(name, bytes)| (name.clone(), bytes.clone())));
        refused(mixed, &model, &folder);
    }
    for name in ["repository", "head"] {
        let mut mixed = one.clone();
        mixed.insert(name.to_owned(), other[name].clone());
        let repo = open(mixed);
        assert!(repo.generations().is_err(), "{name} of another repository");
        assert!(!verify(&repo).unwrap().is_sound());
        assert!(repo.begin(Begin::new(RunKind::Full, "t")).is_err());
    }
}

#[test]
fn a_base_that_is_not_there_and_no_repository() {
    let (objects, _) = chain(1);
    let repo = open(objects);
    let error = repo
        .begin(Begin::new(RunKind::Against(9), "t"))
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(repo.reader(9).err().unwrap().kind(), ErrorKind::Usage);
    let dir = tempfile::tempdir().unwrap();
    for place in [dir.path(), Path::new("/nonexistent/x")] {
        let error = Repository::open(place).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NoRepository, "{error}");
    }
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let error = Repository::create(dir.path(), Create::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("notes.txt"), "{error}");
}

/// Replaces a text in the head and reseals it, as somebody would who "repairs" it by hand.
fn rewrite_head(objects: &mut Objects, old: &str, new: &str) {
    let head = String::from_utf8(objects["head"].to_vec()).unwrap();
    let body = &head[..head.len() - "blake3 \n".len() - 64];
    let body = body.replacen(old, new, 1);
    let digest = blake3::hash(body.as_bytes());
    objects.insert(
        "head".to_owned(),
        Arc::new(format!("{body}blake3 {digest}\n").into_bytes()),
    );
}

#[test]
fn a_generation_that_rests_on_another_one_of_that_number() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let mut model: Model = [("f".to_owned(), ModelFile::new(512, 512 * 40, 5))].into();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    // The same repository goes two ways: on each, generation 2 is another one.
    let fork = MemoryStore::of(store.objects());
    let mut other = model.clone();
    other.get_mut("f").unwrap().blocks[1] = Block::Bytes(1001);
    let forked = Repository::open_on(Arc::new(fork.clone())).unwrap();
    back_up(&forked, RunKind::Incremental, &other, None).unwrap();
    model.get_mut("f").unwrap().blocks[1] = Block::Bytes(1003);
    back_up(&repo, RunKind::Incremental, &model, None).unwrap();
    model.get_mut("f").unwrap().blocks[2] = Block::Bytes(1005);
    back_up(&repo, RunKind::Incremental, &model, None).unwrap();

    let (mut mixed, fork) = (store.objects(), fork.objects());
    let manifest = "generations/2/manifest";
    let digest = |objects: &Objects| blake3::hash(&objects[manifest]).to_string();
    let (was, is) = (digest(&mixed), digest(&fork));
    for (name, bytes) in fork
        .iter()
        .filter(|(name, _)| name.starts_with("generations/2/"))
    {
        mixed.insert(name.clone(), bytes.clone());
    }
    rewrite_head(&mut mixed, &was, &is);
    let repo = open(mixed.clone());
    check(&repo, 2, &other).unwrap();
    let why = check(&repo, 3, &model).unwrap_err();
    assert!(
        why.contains("not the one that generation 3 is based on"),
        "{why}"
    );
    refused(mixed, &model, "generation 2 of a fork");
}
