//! Does any place of a file read as all of it does, in every generation, in any order?

mod support;

use evenkeel_repository::{Create, FileKind, Reader, Repository, RunKind};
use proptest::prelude::*;
use support::{Block, Model, ModelFile, back_up};

/// Three generations of files with holes, zeros and blocks that are cut short.
fn generations(repo: &Repository) -> Vec<Model> {
    let mut first = Model::new();
    first.insert("data/small.ibd".into(), ModelFile::new(512, 700, 3));
    first.insert("data/empty".into(), ModelFile::new(16384, 0, 3));
    let mut big = ModelFile::new(512, 512 * 1_000 + 10, 1000);
    big.blocks[300] = Block::Hole;
    big.blocks[301] = Block::Bytes(0);
    big.blocks[302] = Block::Front(77, 100);
    first.insert("data/big.ibd".into(), big);
    let mut second = first.clone();
    let big = second.get_mut("data/big.ibd").unwrap();
    big.blocks[5] = Block::Bytes(9);
    big.blocks[700] = Block::Hole;
    let mut third = second.clone();
    third.get_mut("data/big.ibd").unwrap().resize(512 * 310, 8);
    let all = vec![first, second, third];
    let mut before = None;
    for model in &all {
        back_up(repo, RunKind::Incremental, model, before).unwrap();
        before = Some(model);
    }
    all
}

fn bytes(file: &ModelFile) -> Vec<u8> {
    let mut all = Vec::new();
    for block in 0..file.blocks.len() {
        let mut one = file.bytes(block).unwrap_or_default();
        one.resize(file.length(block), 0);
        all.extend(one);
    }
    all
}

fn compare(reader: &Reader, model: &Model, from: usize, length: usize) {
    for record in reader.files() {
        let record = record.unwrap();
        if record.meta.kind != FileKind::File {
            continue;
        }
        let all = bytes(&model[&record.meta.name]);
        let mut buffer = vec![7; length];
        let open = reader.open_file(&record).unwrap();
        let found = open.read_at(from as u64, &mut buffer).unwrap();
        let start = from.min(all.len());
        let end = (start + length).min(all.len());
        assert!(
            buffer[..found] == all[start..end],
            "{} {from}+{length}",
            record.meta.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn it_does(places in prop::collection::vec((0..520_000usize, 1..200_000usize, 1..4u32), 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::create(dir.path(), Create::default()).unwrap();
        let models = generations(&repo);
        let newest = repo.reader(3).unwrap();
        for (from, length, generation) in places {
            let sibling = newest.sibling(generation).unwrap();
            compare(&sibling, &models[generation as usize - 1], from, length);
        }
    }
}

#[test]
fn a_sibling_keeps_the_lock_and_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Create::default()).unwrap();
    generations(&repo);
    let newest = repo.reader(3).unwrap();
    let sibling = newest.sibling(1).unwrap();
    assert!(newest.sibling(4).is_err());
    drop(newest);
    assert!(support::forget(&repo, &[1]).is_err(), "it is being read");
    drop(sibling);
    support::forget(&repo, &[1]).unwrap();
}
