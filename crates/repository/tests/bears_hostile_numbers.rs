//! Whatever length, size or offset a pack, a map or a list of files claims, with every checksum recomputed:
//! is it an error or does it no harm, without a panic and in bounded memory?

mod support;

use evenkeel_repository::Repository;
use evenkeel_repository::store::LocalStore;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use support::bears::{bears, ground, some, use_it};
use support::forge;
use support::hostile::{self, HEADER, Lies, put};

#[test]
fn every_length_of_a_list() {
    let (objects, model) = ground();
    let name = "generations/3/files";
    let records = hostile::listed(&objects[name]);
    for value in [0, 1, 1 << 26, 1 << 31, u32::MAX] {
        let long = u64::from(value) << 20;
        let lies = [
            Lies {
                raw_length: Some(value),
                ..Lies::default()
            },
            Lies {
                records: Some(value),
                ..Lies::default()
            },
            Lies {
                index_raw_length: Some(value),
                ..Lies::default()
            },
            Lies {
                chunks: Some(value),
                ..Lies::default()
            },
            Lies {
                index_at: Some(long),
                ..Lies::default()
            },
            Lies {
                total: Some(long),
                ..Lies::default()
            },
        ];
        for lies in lies {
            let mut objects = objects.clone();
            let list = hostile::list(&objects[name], &records, lies);
            objects.insert(name.to_owned(), Arc::new(list));
            hostile::anchor(&mut objects);
            let errors = bears(&format!("{lies:?}"), objects, &model);
            let harmless = lies.chunks == Some(1);
            assert!(
                harmless || errors.iter().any(|one| one.contains(name)),
                "{lies:?}: {errors:?}"
            );
        }
    }
}

#[test]
fn blocks_of_a_size_that_there_is_not() {
    let (objects, model) = ground();
    let name = "generations/3/files";
    for size in [0u32, 1, 511, 513, 1 << 21, 1 << 31, u32::MAX] {
        let mut records = hostile::listed(&objects[name]);
        let file = records
            .iter_mut()
            .find(|one| one["kind"] == "file")
            .unwrap();
        file["block_size"] = json!(size);
        let mut objects = objects.clone();
        let list = hostile::list(&objects[name], &records, Lies::default());
        objects.insert(name.to_owned(), Arc::new(list));
        hostile::anchor(&mut objects);
        let errors = bears(&format!("blocks of {size}"), objects, &model);
        let named = format!("in blocks of {size}");
        assert!(
            errors.iter().any(|one| one.contains(&named)),
            "{size}: {errors:?}"
        );
    }
}

#[test]
fn every_number_of_a_pack() {
    let (objects, model) = ground();
    let name = objects
        .keys()
        .find(|name| name.starts_with("generations/3/pack-"))
        .unwrap()
        .clone();
    let pack = objects[&name].to_vec();
    let (table_at, frames) = hostile::table(&pack);
    assert!(frames > 0);
    let trailer = pack.len() - 32;
    let mut places: Vec<(usize, usize)> =
        vec![(trailer + 8, 8), (trailer + 16, 4), (trailer + 20, 8)];
    for frame in 0..frames {
        let at = table_at + frame * 24;
        places.extend([
            (at, 8),
            (at + 8, 4),
            (at + 12, 4),
            (at + 16, 4),
            (at + 20, 4),
        ]);
    }
    // The header of the first frame, and of the object.
    places.extend([
        (HEADER, 4),
        (HEADER + 4, 4),
        (HEADER + 8, 4),
        (HEADER + 12, 4),
        (HEADER + 16, 2),
    ]);
    places.extend([(8, 1), (9, 1), (10, 2), (12, 4), (32, 4), (36, 4), (40, 4)]);
    let values = [
        0u64,
        1,
        4096,
        4097,
        1 << 20,
        (1 << 20) + 1,
        1 << 31,
        u64::from(u32::MAX),
        u64::MAX,
    ];
    for (at, length) in places {
        for value in values {
            let mut forged = pack.clone();
            put(&mut forged, at, &value.to_le_bytes()[..length]);
            if at < 60 {
                hostile::mend_header(&mut forged);
            }
            hostile::mend_pack(&mut forged, table_at);
            let mut objects = objects.clone();
            objects.insert(name.clone(), Arc::new(forged));
            hostile::anchor(&mut objects);
            bears(&format!("{name}: {value} at {at}"), objects, &model);
        }
    }
}

#[test]
fn every_byte_of_a_map() {
    let (objects, model) = ground();
    let name = "generations/3/maps";
    let maps = objects[name].to_vec();
    let mut cases = Vec::new();
    for (at, length) in hostile::records(&maps) {
        for byte in (at..at + 24).chain(at + 28..at + length) {
            cases.extend([0, 1, 2, 3, 0x7f, 0x80, 0xff].map(|value| (at, length, byte, value)));
        }
    }
    for (at, length, byte, value) in some(cases, "maps") {
        let mut forged = maps.clone();
        forged[byte] = value;
        hostile::mend_record(&mut forged, at, length);
        let mut objects = objects.clone();
        objects.insert(name.to_owned(), Arc::new(forged));
        hostile::anchor(&mut objects);
        bears(&format!("{name}: {value} at {byte}"), objects, &model);
    }
}

/// Nothing but a trailer at the end of a hole that is as long as it says.
#[test]
fn a_sparse_pack_as_long_as_its_table_says() {
    let (objects, model) = ground();
    let dir = tempfile::tempdir().unwrap();
    let name = objects
        .keys()
        .find(|name| name.starts_with("generations/3/pack-"))
        .unwrap()
        .clone();
    let frames = 200_000_000u32;
    let size = HEADER as u64 + u64::from(frames) * 24 + 32;
    let mut objects = objects;
    forge::change(&mut objects, "generations/3/manifest", |manifest| {
        for one in manifest["objects"].as_array_mut().unwrap() {
            if name.ends_with(one["name"].as_str().unwrap()) {
                one["size"] = json!(size);
            }
        }
    });
    let digest = blake3::hash(&objects["generations/3/manifest"])
        .to_hex()
        .to_string();
    forge::change(&mut objects, "head", |head| {
        for one in head["live"].as_array_mut().unwrap() {
            if one["generation"] == 3 {
                one["manifest"] = json!(digest);
            }
        }
    });
    for (name, bytes) in &objects {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes.as_slice()).unwrap();
    }
    let path = dir.path().join(&name);
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(size - 32)
        .unwrap();
    let mut trailer = b"packtail".to_vec();
    trailer.extend((HEADER as u64).to_le_bytes());
    trailer.extend(frames.to_le_bytes());
    trailer.extend([0; 12]);
    let mut end = OpenOptions::new().append(true).open(&path).unwrap();
    end.write_all(&trailer).unwrap();
    let repo = Repository::open_on(Arc::new(LocalStore::new(dir.path()))).unwrap();
    let errors = use_it(&repo, &model);
    assert!(errors.iter().any(|one| one.contains(&name)), "{errors:?}");
}
