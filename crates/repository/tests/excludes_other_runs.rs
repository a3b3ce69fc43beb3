//! Does each pair of runs go on side by side, or is the second refused as busy?

mod support;

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_repository::{Begin, Create, Forget, Prune, Repository, RunKind};
use std::time::Duration;
use support::{Block, Model, ModelFile, back_up, check, compare, forget, run};

fn model() -> Model {
    [("f".to_owned(), ModelFile::new(512, 512 * 40, 3))].into()
}

/// Two handles of one directory, as two processes have them: the locks are per descriptor.
fn two(dir: &tempfile::TempDir) -> (Repository, Repository) {
    let repo = Repository::create(dir.path(), Create::default()).unwrap();
    back_up(&repo, RunKind::Full, &model(), None).unwrap();
    back_up(&repo, RunKind::Full, &model(), None).unwrap();
    (repo, Repository::open(dir.path()).unwrap())
}

fn is_busy<T>(result: evenkeel_op::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Busy)
}

#[test]
fn beside_a_backup_one_may_read_but_not_write_or_remove() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = two(&dir);
    let forgetting = other.plan_forget(&Forget::These(vec![1]), false).unwrap();
    let writer = one.begin(Begin::new(RunKind::Incremental, "t")).unwrap();
    assert!(is_busy(other.begin(Begin::new(RunKind::Full, "t"))));
    assert!(is_busy(other.perform_forget(&forgetting, Duration::ZERO)));
    let pruning = other.plan_prune(&Prune::default(), &Cancel::new()).unwrap();
    assert!(is_busy(other.perform_prune(
        &pruning,
        Duration::ZERO,
        &Cancel::new()
    )));
    check(&other, 1, &model()).unwrap();
    assert!(support::verify(&other).unwrap().is_sound());
    assert_eq!(other.generations().unwrap().len(), 2);
    run(writer, &model(), None).unwrap();
    // Both were planned for what was there before the commit.
    assert!(is_busy(other.perform_forget(&forgetting, Duration::ZERO)));
    assert!(is_busy(other.perform_prune(
        &pruning,
        Duration::ZERO,
        &Cancel::new()
    )));
    assert_eq!(other.generations().unwrap().len(), 3);
}

#[test]
fn who_is_refused_is_reported_by_whom() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = two(&dir);
    let _writer = one.begin(Begin::new(RunKind::Incremental, "t")).unwrap();
    let error = other.begin(Begin::new(RunKind::Full, "t")).err().unwrap();
    let us = format!("(process {})", std::process::id());
    assert!(error.to_string().contains(&us), "{error}");
}

#[test]
fn beside_a_restore_one_may_back_up_but_not_remove() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = two(&dir);
    let reader = one.reader(1).unwrap();
    let forgetting = other.plan_forget(&Forget::These(vec![1]), false).unwrap();
    assert!(is_busy(other.perform_forget(&forgetting, Duration::ZERO)));
    let pruning = other.plan_prune(&Prune::default(), &Cancel::new()).unwrap();
    assert!(is_busy(other.perform_prune(
        &pruning,
        Duration::ZERO,
        &Cancel::new()
    )));
    let mut changed = model();
    changed.get_mut("f").unwrap().blocks[1] = Block::Hole;
    back_up(&other, RunKind::Incremental, &changed, None).unwrap();
    compare(&reader, &model()).unwrap();
    drop(reader);
    forget(&other, &[1]).unwrap();
    assert!(one.reader(1).is_err());
    check(&one, 3, &changed).unwrap();
}

#[test]
fn a_wait_ends_when_the_other_does() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = two(&dir);
    let writer = one.begin(Begin::new(RunKind::Full, "t")).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut begin = Begin::new(RunKind::Full, "t");
            begin.wait = Duration::from_secs(60);
            run(other.begin(begin).unwrap(), &model(), None).unwrap()
        });
        let first = run(writer, &model(), None).unwrap();
        assert_eq!(waiting.join().unwrap().generation, first.generation + 1);
    });
}

#[test]
fn a_worker_that_outlives_its_writer_keeps_others_out() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = two(&dir);
    let writer = one.begin(Begin::new(RunKind::Full, "t")).unwrap();
    let worker = writer.worker().unwrap();
    writer.abort().unwrap();
    assert!(is_busy(other.begin(Begin::new(RunKind::Full, "t"))));
    drop(worker);
    assert!(other.begin(Begin::new(RunKind::Full, "t")).is_ok());
}
