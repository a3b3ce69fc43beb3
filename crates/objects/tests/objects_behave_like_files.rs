//! Does a store of objects keep the promises that a repository relies on?

use evenkeel_objects::{ObjectsStore, StoreOptions};
use evenkeel_repository::store::{Existing, Store};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Attribute, ObjectStoreExt};
use std::io::ErrorKind;
use std::sync::Arc;

fn on(objects: &Arc<InMemory>) -> ObjectsStore {
    let place = "memory://test".to_owned();
    ObjectsStore::new(
        objects.clone(),
        Path::from("a/b"),
        place,
        StoreOptions::default(),
    )
    .unwrap()
}

fn put(store: &dyn Store, name: &str, existing: Existing, bytes: &[u8]) -> std::io::Result<()> {
    let mut object = store.create(name, existing)?;
    object.write(bytes)?;
    object.finish()
}

fn whole(store: &dyn Store, name: &str) -> Vec<u8> {
    let object = store.open(name).unwrap();
    let mut bytes = vec![0; object.size() as usize];
    object.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Bytes that tell where they are.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at / 4096) as u8).collect()
}

#[test]
fn an_object_is_made_once() {
    let store = on(&Arc::default());
    put(&store, "x/one", Existing::Refuse, b"first").unwrap();
    let error = put(&store, "x/one", Existing::Refuse, b"second").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(whole(&store, "x/one"), b"first");
    // A large one goes another way.
    put(&store, "x/two", Existing::Refuse, &bytes(20 << 20)).unwrap();
    let error = put(&store, "x/two", Existing::Refuse, &bytes(9 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(whole(&store, "x/two"), bytes(20 << 20));
}

#[test]
fn what_others_changed_is_not_replaced() {
    let objects = Arc::default();
    let (one, other) = (on(&objects), on(&objects));
    put(&one, "head", Existing::Replace, b"1").unwrap();
    assert_eq!(whole(&other, "head"), b"1");
    put(&other, "head", Existing::Replace, b"2").unwrap();
    let error = put(&one, "head", Existing::Replace, b"3").unwrap_err();
    assert!(
        error.to_string().contains("another program changed"),
        "{error}"
    );
    assert_eq!(whole(&one, "head"), b"2");
    put(&one, "head", Existing::Replace, b"4").unwrap();
    assert_eq!(whole(&other, "head"), b"4");
}

#[test]
fn any_range_can_be_read() {
    let store = on(&Arc::default());
    let all = bytes((9 << 20) + 12_345);
    put(&store, "pack", Existing::Refuse, &all).unwrap();
    let object = store.open("pack").unwrap();
    assert_eq!(object.size(), all.len() as u64);
    let mut seed = 20_261_121_u64;
    let mut at = 0;
    for step in 0..300 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = ((seed >> 33) % (1 << (step % 21))) as usize;
        // From front to back, and anywhere.
        if step % 3 == 0 {
            at = (seed >> 20) as usize % all.len();
        }
        let length = length.min(all.len() - at);
        let mut buffer = vec![0; length];
        object.read_exact_at(at as u64, &mut buffer).unwrap();
        assert!(
            buffer == all[at..at + length],
            "{length} bytes at {at}, step {step}"
        );
        at += length;
    }
    let error = object
        .read_exact_at(all.len() as u64 - 1, &mut [0; 2])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn an_empty_object_is_one() {
    let store = on(&Arc::default());
    put(&store, "empty", Existing::Refuse, b"").unwrap();
    assert_eq!(whole(&store, "empty"), b"");
}

#[test]
fn what_is_dropped_was_never_there() {
    let store = on(&Arc::default());
    for length in [10, 20 << 20] {
        let mut object = store.create("x/one", Existing::Refuse).unwrap();
        object.write(&bytes(length)).unwrap();
        drop(object);
        assert_eq!(
            store.open("x/one").err().unwrap().kind(),
            ErrorKind::NotFound
        );
    }
    assert_eq!(store.list("x").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn folders_are_what_names_say() {
    let store = on(&Arc::default());
    assert_eq!(store.list("").unwrap(), []);
    for name in ["top", "g/1/a", "g/1/b", "g/2/a"] {
        put(&store, name, Existing::Refuse, b"123").unwrap();
    }
    let names = |folder: &str| {
        let listed = store.list(folder).unwrap().into_iter();
        let mut all: Vec<_> = listed
            .map(|one| (one.name, one.size, one.is_folder))
            .collect();
        all.sort();
        all
    };
    let folder = |name: &str| (name.to_owned(), 0, true);
    let object = |name: &str| (name.to_owned(), 3, false);
    assert_eq!(names(""), [folder("g"), object("top")]);
    assert_eq!(names("g"), [folder("1"), folder("2")]);
    assert_eq!(names("g/1"), [object("a"), object("b")]);
    store.remove("g/2/a").unwrap();
    store.remove("g/2/a").unwrap();
    assert_eq!(names("g"), [folder("1")]);
}

#[test]
fn only_what_is_large_goes_into_the_cheaper_class() {
    let objects = Arc::new(InMemory::new());
    let options = StoreOptions {
        storage_class: Some("COLD".to_owned()),
        ..StoreOptions::default()
    };
    let place = "memory://test".to_owned();
    let store = ObjectsStore::new(objects.clone(), Path::from("a"), place, options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (name, length, class) in [
        ("g/1/pack-0000", 1 << 20, Some("COLD")),
        ("g/1/pack-0001", 20 << 20, Some("COLD")),
        ("g/1/pack-0002", 1000, None),
        ("g/1/maps", 1 << 20, None),
    ] {
        put(&store, name, Existing::Refuse, &bytes(length)).unwrap();
        let path = Path::from(format!("a/{name}"));
        let found = runtime.block_on(objects.get(&path)).unwrap().attributes;
        let found = found.get(&Attribute::StorageClass).map(|value| &**value);
        assert_eq!(found, class, "{name}");
    }
}
