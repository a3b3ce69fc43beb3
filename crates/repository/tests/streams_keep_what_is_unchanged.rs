//! Is a file whose length is told at its end as small in the repository as any other, and is a
//! wrong length an error?

mod support;

use evenkeel_repository::{Begin, Create, FileMeta, GrowingBuilder, Repository, RunKind, Worker};
use std::sync::Arc;
use support::memory::MemoryStore;
use support::{Block, Model, ModelFile, back_up_streamed, check, content};

fn repository() -> Repository {
    Repository::create_on(Arc::new(MemoryStore::default()), Create::default()).unwrap()
}

#[test]
fn only_changed_blocks_and_their_maps_are_stored() {
    let repo = repository();
    let mut model = Model::new();
    // Three levels of maps: more than 65536 blocks.
    let mut file = ModelFile::new(512, 512 * 70_000 + 100, 3);
    file.blocks[300..66_000].fill(Block::Bytes(7));
    model.insert("data/a.ibd".to_owned(), file);
    let full = back_up_streamed(&repo, RunKind::Full, &model).unwrap();
    let same = back_up_streamed(&repo, RunKind::Incremental, &model).unwrap();
    assert_eq!((same.blocks_changed, same.bytes_changed), (0, 0));
    assert!(same.bytes_stored < 1000, "{same:?}");
    model.get_mut("data/a.ibd").unwrap().blocks[66_666] = Block::Bytes(99);
    let one = back_up_streamed(&repo, RunKind::Incremental, &model).unwrap();
    assert_eq!((one.blocks_changed, one.bytes_changed), (1, 512));
    assert!(one.bytes_stored < 30_000, "{one:?}");
    assert!(full.bytes_stored > 10 * one.bytes_stored, "{full:?}");
    check(&repo, one.generation, &model).unwrap();
}

/// Gives leaves of 256 blocks of 512 bytes, or as many bytes as are said.
fn give(builder: &GrowingBuilder, worker: &mut Worker, index: u64, bytes: u64) {
    let mut leaf = builder.leaf(index, bytes).unwrap();
    for block in leaf.blocks() {
        let range = leaf.byte_range(block);
        let bytes = content(block | 1, (range.end - range.start) as usize);
        leaf.put(worker, block, &bytes).unwrap();
    }
    builder.set_leaf(leaf).unwrap();
}

#[test]
fn a_wrong_length_or_a_missing_leaf_is_an_error() {
    const FULL: u64 = 256 * 512;
    // Leaves (index, bytes), the length that is told, whether that fits.
    type Case<'a> = (&'a [(u64, u64)], u64, bool);
    let cases: [Case<'_>; 9] = [
        (&[], 0, true),
        (&[(0, 700)], 700, true),
        (&[(1, 700), (0, FULL)], FULL + 700, true),
        (&[], 1, false),
        (&[(0, 700)], 701, false),
        (&[(0, 700)], FULL, false),
        (&[(0, FULL)], FULL + 1, false),
        (&[(0, FULL), (2, FULL)], 2 * FULL, false),
        (&[(0, 700), (1, FULL)], FULL + 700, false),
    ];
    for (leaves, size, fits) in cases {
        let repo = repository();
        let writer = repo.begin(Begin::new(RunKind::Full, "t")).unwrap();
        let mut worker = writer.worker().unwrap();
        let meta = FileMeta::file("data/a", 0, 512);
        let builder = writer.growing_builder(meta, None).unwrap();
        for (index, bytes) in leaves {
            give(&builder, &mut worker, *index, *bytes);
        }
        assert_eq!(builder.finish(size).is_ok(), fits, "{leaves:?} {size}");
        worker.finish().unwrap();
        // What failed cannot be committed either.
        assert_eq!(
            writer.commit(1.into(), 1.into()).is_ok(),
            fits,
            "{leaves:?}"
        );
    }
}
