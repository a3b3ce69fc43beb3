//! Does the order of generations hold when the clock stops or goes backward?

mod support;

use evenkeel_repository::{Begin, Create, Forget, KeepRules, Repository, RunKind};
use std::sync::Arc;
use support::memory::MemoryStore;
use support::{Block, Model, ModelFile, check, run};

#[test]
fn numbers_order_what_times_do_not() {
    let repo = Repository::create_on(Arc::new(MemoryStore::default()), Create::default()).unwrap();
    let mut model: Model = [("f".to_owned(), ModelFile::new(512, 512 * 9, 3))].into();
    let mut models = Vec::new();
    let times = [
        "2026-03-29T01:30:00Z",
        "2026-03-29T01:30:00Z",
        "1999-01-01T00:00:00Z",
        "2038-01-19T03:14:08Z",
    ];
    for (i, time) in times.iter().enumerate() {
        model.get_mut("f").unwrap().blocks[i] = Block::Bytes(900 + i as u64);
        let mut begin = Begin::new(RunKind::Incremental, "t");
        begin.created = Some(time.parse().unwrap());
        let done = run(repo.begin(begin).unwrap(), &model, None).unwrap();
        assert_eq!(done.generation as usize, i + 1);
        assert_eq!(done.based_on, (i > 0).then_some(i as u32));
        models.push(model.clone());
    }
    for (i, model) in models.iter().enumerate() {
        check(&repo, i as u32 + 1, model).unwrap();
    }
    let rules = KeepRules {
        last: 2,
        ..KeepRules::default()
    };
    let plan = repo.plan_forget(&Forget::Except(rules), false).unwrap();
    let gone: Vec<u32> = plan.remove.iter().map(|one| one.generation).collect();
    assert_eq!(gone, [1, 2]);
    let nothing = KeepRules::default();
    assert!(
        repo.plan_forget(&Forget::Except(nothing.clone()), false)
            .is_err()
    );
    assert!(repo.plan_forget(&Forget::Except(nothing), true).is_ok());
}
