//! Does a repository of format version 1, kept in the tree, stay readable, and is a newer format
//! refused by name?

mod support;

use evenkeel_repository::{Begin, Create, FileKind, FileMeta, Repository, RunKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget, give, prune};

fn fixture() -> PathBuf {
    evenkeel_testkit::checkout().join("crates/repository/tests/fixtures/format-1")
}

/// What the fixture's generations hold, by number.
fn models() -> BTreeMap<u32, Model> {
    let mut first = Model::new();
    let mut big = ModelFile::new(512, 512 * 700 + 100, 1);
    // Mostly holes, so that the fixture stays small: three leaves under a node.
    big.blocks[20..690].fill(Block::Hole);
    big.blocks[300] = Block::Bytes(31);
    first.insert("data/bank/big.ibd".into(), big);
    first.insert("data/empty".into(), ModelFile::new(16384, 0, 1));
    first.insert("data/zeros".into(), ModelFile::new(4096, 9000, 1));
    first
        .get_mut("data/zeros")
        .unwrap()
        .blocks
        .fill(Block::Bytes(0));
    let mut second = first.clone();
    let big = second.get_mut("data/bank/big.ibd").unwrap();
    big.blocks[3] = Block::Front(77, 200);
    big.blocks[400] = Block::Bytes(78);
    let mut third = second.clone();
    third
        .get_mut("data/bank/big.ibd")
        .unwrap()
        .resize(512 * 900, 5);
    third.remove("data/empty");
    [(1, first), (2, second), (3, third)].into()
}

/// Writes the fixture, where there is none: for a new version of the format, and only when asked by
/// `EVENKEEL_WRITE_FIXTURE=1`. It proves nothing by itself.
#[test]
fn write_fixture() {
    if std::env::var_os("EVENKEEL_WRITE_FIXTURE").is_none() {
        return;
    }
    let repo = Repository::create(fixture(), Create::default()).unwrap();
    for (number, model) in models() {
        let mut begin = Begin::new(RunKind::Incremental, "fixture");
        begin.created = Some("2026-11-21T12:00:00Z".parse().unwrap());
        let writer = repo.begin(begin).unwrap();
        give(&writer, &model, None).unwrap();
        let mut link = FileMeta::file("data/link", 0, 0);
        link.kind = FileKind::Symlink;
        link.target = Some("bank/big.ibd".to_owned());
        link.mtime = (-5, 7);
        link.xattrs.insert("user.note".to_owned(), vec![0, 255, 10]);
        link.extra = serde_json::json!({"class": "Other"});
        writer.add(link).unwrap();
        let facts = serde_json::json!({"number": number});
        writer
            .commit(facts, serde_json::json!({"gtid": "0-1-2"}))
            .unwrap();
    }
    forget(&repo, &[1]).unwrap();
    // The pack of the first is compacted: two of its blocks are needed no more.
    prune(&repo, 1.0).unwrap();
    for lock in ["writer.lock", "reader.lock"] {
        std::fs::remove_file(fixture().join(lock)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn every_generation_of_the_fixture_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    let names: Vec<_> = std::fs::read_dir(dir.path().join("generations/1"))
        .unwrap()
        .collect();
    let compacted = names
        .iter()
        .any(|one| one.as_ref().unwrap().file_name() == "pack-0000.1");
    assert!(compacted, "the fixture should hold a compacted pack");
    let repo = Repository::open(dir.path()).unwrap();
    assert_sound(&repo);
    let models = models();
    for generation in [2, 3] {
        let reader = repo.reader(generation).unwrap();
        let link = reader.find("data/link").unwrap().unwrap().meta;
        assert_eq!(link.target.as_deref(), Some("bank/big.ibd"));
        assert_eq!((link.mtime, link.kind), ((-5, 7), FileKind::Symlink));
        assert_eq!(link.xattrs["user.note"], [0, 255, 10]);
        assert_eq!(link.extra["class"], "Other");
        drop(reader);
        let manifest = repo.manifest(generation).unwrap();
        assert_eq!(manifest.created.to_string(), "2026-11-21T12:00:00Z");
        assert_eq!(manifest.facts["number"], generation);
        assert_eq!(manifest.coordinates["gtid"], "0-1-2");
        // The model knows files only.
        let records = repo.reader(generation).unwrap();
        assert_eq!(records.count(), models[&generation].len() as u64 + 2);
    }
    // It can be built upon, too.
    let done = back_up(&repo, RunKind::Incremental, &models[&3], Some(&models[&3])).unwrap();
    assert_eq!((done.blocks_changed, done.based_on), (0, Some(3)));
    check(&repo, done.generation, &models[&3]).unwrap();
    for (generation, model) in &models {
        if *generation != 1 {
            check(&repo, *generation, model).unwrap();
        }
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    for object in ["repository", "head", "generations/3/manifest"] {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixture(), dir.path());
        let path = dir.path().join(object);
        let text = std::fs::read_to_string(&path).unwrap();
        let (title, rest) = text.split_once('\n').unwrap();
        let newer = format!("{}3\n{rest}", title.strip_suffix('1').unwrap());
        std::fs::write(&path, newer).unwrap();
        let error = Repository::open(dir.path())
            .and_then(|repo| repo.manifest(3))
            .unwrap_err();
        assert!(
            error.chain().contains("format version 3"),
            "{}",
            error.chain()
        );
        assert!(
            error.hints()[0].contains("newer evenkeel"),
            "{:?}",
            error.hints()
        );
        // A run must not go on either: it could remove what it does not understand.
        let begun = Repository::open(dir.path())
            .and_then(|repo| repo.begin(Begin::new(RunKind::Full, "t")).map(|_| ()));
        assert!(begun.is_err() || object.ends_with("manifest"));
    }
}
