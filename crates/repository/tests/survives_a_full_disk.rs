//! When any single write, sync or rename fails, is a generation absent or whole, and does the
//! next run succeed by itself?

mod support;

use evenkeel_op::Result;
use evenkeel_repository::store::{LocalStore, Step, Tap};
use evenkeel_repository::{Create, Repository, RunKind};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget, prune, verify};

/// Fails the step that brings `left` to zero; with `stays` all later ones that need space, too.
#[derive(Debug)]
struct Faults {
    left: AtomicI64,
    stays: bool,
}

impl Tap for Faults {
    fn step(&self, step: Step<'_>) -> io::Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        // A full disk still lets files go.
        let frees = matches!(
            step,
            Step::Remove(_) | Step::RemoveFolder(_) | Step::SyncFolder(_)
        );
        if left == 1 || (left < 1 && self.stays && !frees) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

fn first() -> Model {
    [
        ("a".to_owned(), ModelFile::new(512, 512 * 300, 3)),
        ("b".to_owned(), ModelFile::new(512, 40, 4)),
    ]
    .into()
}

fn second() -> Model {
    let mut model = first();
    model.get_mut("a").unwrap().blocks[17] = Block::Bytes(0);
    model.get_mut("a").unwrap().blocks[270] = Block::Bytes(8);
    model
}

/// Memory where there is some: thousands of fsyncs are not what is tested here.
fn directory() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        tempfile::tempdir_in(shm).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// What a scenario does under faults, and the models that may be there afterwards.
struct Scenario {
    prepare: fn(&Repository),
    act: fn(&Repository) -> Result<()>,
    /// Generation and model of those that must, and of those that may be there.
    must: BTreeMap<u32, Model>,
    may: BTreeMap<u32, Model>,
}

fn try_all(scenario: &Scenario) {
    for stays in [false, true] {
        let mut k = 1;
        loop {
            let dir = directory();
            let plain = Repository::create(dir.path(), Create::default()).unwrap();
            (scenario.prepare)(&plain);
            let faults = Arc::new(Faults {
                left: AtomicI64::new(k),
                stays,
            });
            let store = LocalStore::tapped(dir.path(), faults.clone());
            let repo = Repository::open_on(Arc::new(store)).unwrap();
            let outcome = (scenario.act)(&repo);
            let was_hit = faults.left.load(Ordering::SeqCst) < 1;
            let context = format!("step {k}, stays {stays}: {outcome:?}");
            if let Err(error) = &outcome {
                assert!(!error.hints().is_empty(), "{context}");
            }
            settle(scenario, &plain, outcome.is_ok(), &context);
            if !was_hit {
                assert!(outcome.is_ok(), "{context}");
                assert!(k > 10, "only {k} steps were tried");
                break;
            }
            k += 1;
        }
    }
}

fn settle(scenario: &Scenario, repo: &Repository, succeeded: bool, context: &str) {
    let report = verify(repo).unwrap();
    assert!(report.is_sound(), "{context}: {:?}", report.findings);
    let there: Vec<u32> = repo
        .generations()
        .unwrap()
        .iter()
        .map(|one| one.generation)
        .collect();
    for generation in scenario.must.keys() {
        assert!(there.contains(generation), "{context}: {there:?}");
    }
    for generation in &there {
        let model = scenario
            .must
            .get(generation)
            .or_else(|| scenario.may.get(generation));
        let model = model.unwrap_or_else(|| panic!("{context}: {there:?}"));
        check(repo, *generation, model).unwrap_or_else(|why| panic!("{context}: {why}"));
    }
    if succeeded && scenario.must.len() == 1 {
        assert!(there.len() <= 2, "{context}");
    }
    let next = back_up(repo, RunKind::Incremental, &second(), None);
    let next = next.unwrap_or_else(|error| panic!("{context}: next run: {}", error.chain()));
    check(repo, next.generation, &second()).unwrap();
    // What a prune left is for a prune: it looks who needs it.
    prune(repo, 0.5).unwrap_or_else(|error| panic!("{context}: prune: {}", error.chain()));
    check(repo, next.generation, &second()).unwrap();
    let report = verify(repo).unwrap();
    assert!(
        report.is_sound() && report.notes.is_empty(),
        "{context}: {report:?}"
    );
}

#[test]
fn while_backing_up() {
    try_all(&Scenario {
        prepare: |repo| {
            back_up(repo, RunKind::Full, &first(), None).unwrap();
        },
        act: |repo| back_up(repo, RunKind::Incremental, &second(), None).map(|_| ()),
        must: [(1, first())].into(),
        may: [(2, second())].into(),
    });
}

#[test]
fn while_forgetting_and_pruning() {
    try_all(&Scenario {
        prepare: |repo| {
            back_up(repo, RunKind::Full, &first(), None).unwrap();
            back_up(repo, RunKind::Incremental, &second(), None).unwrap();
            back_up(repo, RunKind::Full, &first(), None).unwrap();
            forget(repo, &[3]).unwrap();
        },
        act: |repo| {
            forget(repo, &[1])?;
            prune(repo, 1.0).map(|_| ())
        },
        must: [(2, second())].into(),
        may: [(1, first())].into(),
    });
}

#[test]
fn while_a_repository_is_made() {
    for k in 1.. {
        let dir = directory();
        let faults = Arc::new(Faults {
            left: AtomicI64::new(k),
            stays: false,
        });
        let store = LocalStore::tapped(dir.path(), faults.clone());
        let made = Repository::create_on(Arc::new(store), Create::default());
        if faults.left.load(Ordering::SeqCst) >= 1 {
            made.unwrap();
            assert!(k > 6, "only {k} steps were tried");
            return;
        }
        // Whatever was left: it is a repository, or becomes one.
        let repo = Repository::open(dir.path())
            .or_else(|_| Repository::create(dir.path(), Create::default()))
            .unwrap_or_else(|error| panic!("step {k}: {}", error.chain()));
        back_up(&repo, RunKind::Full, &first(), None).unwrap();
        assert_sound(&repo);
    }
}
