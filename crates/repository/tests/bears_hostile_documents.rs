//! Whatever somebody who may write puts into a field, with every checksum recomputed: is it an error or does it
//! no harm, without a panic, without an object outside of the repository, and in bounded memory?

mod support;

use evenkeel_testkit::effort::{rounds, seed};
use serde_json::json;
use std::sync::Arc;
use support::Model;
use support::bears::{bears, ground, some};
use support::forge;
use support::hostile::{self, Lies};
use support::memory::Objects;

fn fields_of(name: &str) {
    let (objects, model) = ground();
    let (title, body) = forge::opened(&objects[name]);
    let mut paths = Vec::new();
    hostile::leaves(&body, &mut Vec::new(), &mut paths);
    let mut cases = Vec::new();
    for path in paths {
        let old = body.pointer(&path).unwrap();
        cases.extend(
            hostile::edges(old)
                .into_iter()
                .map(|new| (path.clone(), new)),
        );
    }
    for (path, new) in some(cases, name) {
        let mut forged = body.clone();
        *forged.pointer_mut(&path).unwrap() = new.clone();
        let mut objects = objects.clone();
        objects.insert(name.to_owned(), Arc::new(forge::sealed(&title, &forged)));
        if name.ends_with("manifest") {
            // The head then names the manifest that was forged.
            let digest = blake3::hash(&objects[name]).to_hex().to_string();
            forge::change(&mut objects, "head", |head| {
                for one in head["live"].as_array_mut().unwrap() {
                    if name.contains(&format!("/{}/", one["generation"])) {
                        one["manifest"] = json!(digest);
                    }
                }
            });
        }
        let mut new = new.to_string();
        new.truncate(60);
        bears(&format!("{name}: {path} is {new}"), objects, &model);
    }
}

#[test]
fn every_field_of_the_head() {
    fields_of("head");
}

#[test]
fn every_field_of_a_manifest() {
    fields_of("generations/3/manifest");
}

#[test]
fn every_field_of_the_identity() {
    fields_of("repository");
}

#[test]
fn every_field_of_a_list() {
    let (objects, model) = ground();
    let name = "generations/3/files";
    let records = hostile::listed(&objects[name]);
    let mut again = objects.clone();
    let same = hostile::list(&objects[name], &records, Lies::default());
    again.insert(name.to_owned(), Arc::new(same));
    hostile::anchor(&mut again);
    assert_eq!(
        bears("as it was", again, &model),
        unforged(&objects, &model)
    );
    let all = json!(records);
    let mut paths = Vec::new();
    hostile::leaves(&all, &mut Vec::new(), &mut paths);
    let mut cases = Vec::new();
    for path in paths.iter().filter(|path| !path.is_empty()) {
        let old = all.pointer(path).unwrap();
        cases.extend(
            hostile::edges(old)
                .into_iter()
                .map(|new| (path.clone(), new)),
        );
    }
    for (path, new) in some(cases, "list") {
        let mut forged = all.clone();
        *forged.pointer_mut(&path).unwrap() = new;
        let forged = forged.as_array().unwrap();
        let mut objects = objects.clone();
        let list = hostile::list(&objects[name], forged, Lies::default());
        objects.insert(name.to_owned(), Arc::new(list));
        hostile::anchor(&mut objects);
        bears(&format!("{name}: {path}"), objects, &model);
    }
}

fn unforged(objects: &Objects, model: &Model) -> Vec<String> {
    bears("unforged", objects.clone(), model)
}

#[test]
fn bytes_drawn_at_random() {
    let (objects, model) = ground();
    let mut state = seed() | 1;
    eprintln!("seed {state}");
    let mut draw = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below.max(1)
    };
    let names: Vec<String> = objects.keys().cloned().collect();
    for round in 0..rounds("random", 300, 20_000) {
        let name = &names[draw(names.len())];
        let mut forged = objects[name].to_vec();
        match draw(3) {
            0 => forged.truncate(draw(forged.len() + 1)),
            1 => forged.extend((0..draw(5000)).map(|at| at as u8)),
            _ => {}
        }
        for _ in 0..draw(8) {
            let at = draw(forged.len());
            if let Some(byte) = forged.get_mut(at) {
                *byte = draw(256) as u8;
            }
        }
        let mut objects = objects.clone();
        objects.insert(name.clone(), Arc::new(forged));
        if draw(2) == 0 && name.contains('/') && !name.ends_with("manifest") {
            hostile::anchor(&mut objects);
        }
        bears(&format!("round {round}, {name}"), objects, &model);
    }
}
