//! Does every generation read back as what was given, whatever was given?

mod support;

use evenkeel_repository::{Begin, Create, FileMeta, Repository, RunKind};
use support::{Block, Model, ModelFile, back_up, check};

fn sample() -> Model {
    let mut model = Model::new();
    model.insert("data/small.ibd".into(), ModelFile::new(512, 700, 3));
    model.insert("data/empty".into(), ModelFile::new(16384, 0, 3));
    let mut big = ModelFile::new(512, 512 * 70_000 + 10, 1000);
    big.blocks[300] = Block::Hole;
    big.blocks[301] = Block::Bytes(0);
    big.blocks[302] = Block::Front(77, 100);
    model.insert("data/big.ibd".into(), big);
    model
}

#[test]
fn full_and_incremental_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Create::default()).unwrap();
    let first = sample();
    let full = back_up(&repo, RunKind::Incremental, &first, None).unwrap();
    assert_eq!((full.generation, full.kind.name()), (1, "full"));

    let mut second = first.clone();
    let big = second.get_mut("data/big.ibd").unwrap();
    big.blocks[5] = Block::Bytes(9);
    big.blocks[66_000] = Block::Hole;
    let incremental = back_up(&repo, RunKind::Incremental, &second, Some(&first)).unwrap();
    assert_eq!(
        (incremental.based_on, incremental.blocks_changed),
        (Some(1), 2)
    );
    assert!(incremental.bytes_stored < 12_000, "{incremental:?}");

    let mut third = second.clone();
    let big = third.get_mut("data/big.ibd").unwrap();
    big.resize(512 * 100, 8);
    third.remove("data/empty");
    back_up(&repo, RunKind::Incremental, &third, None).unwrap();
    let mut fourth = third.clone();
    let big = fourth.get_mut("data/big.ibd").unwrap();
    big.resize(512 * 200_000 + 5, 8);
    back_up(&repo, RunKind::Incremental, &fourth, Some(&third)).unwrap();
    back_up(&repo, RunKind::Against(1), &fourth, None).unwrap();

    let repo = Repository::open(dir.path()).unwrap();
    for (generation, model) in [
        (1, &first),
        (2, &second),
        (3, &third),
        (4, &fourth),
        (5, &fourth),
    ] {
        check(&repo, generation, model).unwrap();
    }
    assert_eq!(repo.generations().unwrap().len(), 5);
    assert_eq!(repo.manifest(5).unwrap().kind.name(), "differential");
}

#[test]
fn blocks_that_are_never_given_are_an_error_and_nothing_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Create::default()).unwrap();
    let first: Model = [(
        "f".to_owned(),
        ModelFile::new(512, 512 * 65_536 + 512 * 512, 7),
    )]
    .into();
    back_up(&repo, RunKind::Full, &first, None).unwrap();
    for size in [
        512 * 66_049,
        512 * 66_048 + 1,
        512 * 1_000_000,
        512 * 65_536 - 7,
    ] {
        let writer = repo.begin(Begin::new(RunKind::Incremental, "t")).unwrap();
        let base = writer.base_file("f").unwrap();
        let builder = writer
            .file_builder(FileMeta::file("f", size, 512), base)
            .unwrap();
        let error = builder.finish().unwrap_err();
        assert!(error.to_string().contains("never given"), "{size}: {error}");
        assert!(writer.commit(1.into(), 2.into()).is_err());
        assert_eq!(repo.generations().unwrap().len(), 1);
        assert_eq!(
            std::fs::read_dir(dir.path().join("generations"))
                .unwrap()
                .count(),
            1
        );
    }
}

#[test]
fn a_short_block_and_an_unfinished_worker_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let repo = Repository::create(dir.path(), Create::default()).unwrap();
    let writer = repo.begin(Begin::new(RunKind::Full, "t")).unwrap();
    let mut worker = writer.worker().unwrap();
    let builder = writer
        .file_builder(FileMeta::file("f", 1024, 512), None)
        .unwrap();
    let mut leaf = builder.leaf(0).unwrap();
    assert!(leaf.put(&mut worker, 0, &[1; 511]).is_err());
    leaf.put(&mut worker, 0, &[1; 512]).unwrap();
    leaf.put(&mut worker, 1, &[2; 512]).unwrap();
    builder.set_leaf(leaf).unwrap();
    builder.finish().unwrap();
    drop(worker);
    let error = writer.commit(1.into(), 2.into()).unwrap_err();
    assert!(error.to_string().contains("unfinished"), "{error}");
}
