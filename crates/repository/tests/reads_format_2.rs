//! Does an encrypted repository of format version 2, kept in the tree with its key, stay readable,
//! and does a program that knows only version 1 refuse it?

mod support;

use evenkeel_repository::{Begin, Create, Credentials, Encrypt, NewIdentity, Repository, RunKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget, give, prune};

fn fixture(name: &str) -> PathBuf {
    evenkeel_testkit::checkout()
        .join("crates/repository/tests/fixtures")
        .join(name)
}

/// What the fixture's generations hold, by number.
fn models() -> BTreeMap<u32, Model> {
    let mut first = Model::new();
    let mut big = ModelFile::new(512, 512 * 700 + 100, 1);
    big.blocks[20..690].fill(Block::Hole);
    first.insert("data/bank/big.ibd".into(), big);
    let mut second = first.clone();
    second.get_mut("data/bank/big.ibd").unwrap().blocks[3] = Block::Front(77, 200);
    let mut third = second.clone();
    third.insert("data/more".into(), ModelFile::new(4096, 9000, 7));
    [(1, first), (2, second), (3, third)].into()
}

fn credentials() -> Credentials {
    let text = std::fs::read_to_string(fixture("format-2.key")).unwrap();
    let mut credentials = Credentials::default();
    credentials.add_identities("format-2.key", &text).unwrap();
    credentials
}

/// Writes the fixture, where there is none, and only when asked by `EVENKEEL_WRITE_FIXTURE=1`. It
/// proves nothing by itself.
#[test]
fn write_fixture() {
    if std::env::var_os("EVENKEEL_WRITE_FIXTURE").is_none() || fixture("format-2.key").exists() {
        return;
    }
    let identity = NewIdentity::generate(jiff::Timestamp::UNIX_EPOCH);
    std::fs::write(fixture("format-2.key"), identity.file.as_bytes()).unwrap();
    let how = Create {
        encrypt: Some(Encrypt {
            readers: vec![identity.recipient],
            ..Encrypt::default()
        }),
        ..Create::default()
    };
    let repo = Repository::create(fixture("format-2"), how)
        .unwrap()
        .unlock(&credentials())
        .unwrap();
    for (number, model) in models() {
        let writer = repo
            .begin(Begin::new(RunKind::Incremental, "fixture"))
            .unwrap();
        give(&writer, &model, None).unwrap();
        let facts = serde_json::json!({"number": number});
        writer
            .commit(facts, serde_json::json!({"gtid": "0-1-2"}))
            .unwrap();
    }
    forget(&repo, &[1]).unwrap();
    // The pack of the first is compacted: one of its blocks is needed no more.
    prune(&repo, 1.0).unwrap();
    for lock in ["writer.lock", "reader.lock"] {
        std::fs::remove_file(fixture("format-2").join(lock)).unwrap();
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
    copy(&fixture("format-2"), dir.path());
    assert!(dir.path().join("generations/1/pack-0000.1").exists());
    let repo = Repository::open(dir.path())
        .unwrap()
        .unlock(&credentials())
        .unwrap();
    assert_sound(&repo);
    let models = models();
    for generation in [2, 3] {
        let manifest = repo.manifest(generation).unwrap();
        assert_eq!(manifest.source, "fixture");
        assert_eq!(manifest.facts["number"], generation);
        assert_eq!(manifest.coordinates["gtid"], "0-1-2");
        check(&repo, generation, &models[&generation]).unwrap();
    }
    // It can be built upon, too.
    let done = back_up(&repo, RunKind::Incremental, &models[&3], Some(&models[&3])).unwrap();
    assert_eq!((done.blocks_changed, done.based_on), (0, Some(3)));
    check(&repo, done.generation, &models[&3]).unwrap();
}

/// The title line is what a program of version 1 looks at first, before any checksum.
#[test]
fn a_program_of_version_1_refuses_it_by_its_first_line() {
    for name in ["repository", "keys", "generations/3/manifest"] {
        let bytes = std::fs::read(fixture("format-2").join(name)).unwrap();
        let line = bytes.split(|&byte| byte == b'\n').next().unwrap();
        assert!(line.ends_with(b" 2"), "{name}");
    }
    let pack = std::fs::read(fixture("format-2").join("generations/3/pack-0000")).unwrap();
    assert_eq!((pack[9], pack[10]), (1, 2));
}
