//! Does forgetting and pruning free what no generation needs, and nothing else?

mod support;

use evenkeel_op::Cancel;
use evenkeel_repository::{Create, Prune, PruneStep, Repository, RunKind};
use std::sync::Arc;
use support::memory::MemoryStore;
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget, prune};

fn size(store: &MemoryStore) -> u64 {
    store
        .objects()
        .values()
        .map(|bytes| bytes.len() as u64)
        .sum()
}

#[test]
fn dead_packs_go_and_mostly_dead_ones_shrink() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let first: Model = [("f".to_owned(), ModelFile::new(512, 512 * 4000, 3))].into();
    back_up(&repo, RunKind::Full, &first, None).unwrap();
    let mut second = first.clone();
    let file = second.get_mut("f").unwrap();
    for (i, block) in file.blocks.iter_mut().enumerate() {
        if i % 10 != 0 && i < 3600 {
            *block = Block::Bytes(77_000 + i as u64);
        }
    }
    back_up(&repo, RunKind::Incremental, &second, None).unwrap();
    let whole = size(&store);

    let assumed = Prune {
        assume_forgotten: vec![1],
        ..Prune::default()
    };
    let assumed = repo.plan_prune(&assumed, &Cancel::new()).unwrap();
    assert!(
        repo.perform_prune(&assumed, std::time::Duration::ZERO, &Cancel::new())
            .is_err()
    );
    // While the first is live, nothing may go.
    assert!(
        repo.plan_prune(&Prune::default(), &Cancel::new())
            .unwrap()
            .is_empty()
    );
    forget(&repo, &[1]).unwrap();
    let plan = repo.plan_prune(&Prune::default(), &Cancel::new()).unwrap();
    assert!(
        plan.steps
            .iter()
            .any(|step| matches!(step, PruneStep::Compact { .. }))
    );
    let freed = prune(&repo, 0.5).unwrap();
    let saved = whole - size(&store);
    // The first list went with the forgetting; the head has grown.
    assert!(saved.abs_diff(freed) < 4000, "{saved} {freed}");
    assert!(
        freed.abs_diff(assumed.bytes_freed) * 5 < freed,
        "{freed} {}",
        assumed.bytes_freed
    );
    assert!(saved * 5 > whole, "only {saved} of {whole} were freed");
    check(&repo, 2, &second).unwrap();
    assert_sound(&repo);
    assert!(
        repo.plan_prune(&Prune::default(), &Cancel::new())
            .unwrap()
            .is_empty()
    );

    // The next run builds on what is left, and everything can go in the end.
    let mut third = second.clone();
    third.get_mut("f").unwrap().resize(512 * 900, 8);
    back_up(&repo, RunKind::Incremental, &third, Some(&second)).unwrap();
    forget(&repo, &[2]).unwrap();
    prune(&repo, 1.0).unwrap();
    check(&repo, 3, &third).unwrap();
    assert_sound(&repo);
}

#[test]
fn nothing_is_pruned_beside_damage() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let model: Model = [("f".to_owned(), ModelFile::new(512, 512 * 400, 3))].into();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    forget(&repo, &[1]).unwrap();
    let mut objects = store.objects();
    let maps = objects["generations/2/maps"].to_vec();
    let mut wrong = maps.clone();
    wrong[maps.len() / 2] ^= 1;
    objects.insert("generations/2/maps".to_owned(), Arc::new(wrong));
    let repo = Repository::open_on(Arc::new(MemoryStore::of(objects.clone()))).unwrap();
    assert!(prune(&repo, 0.5).is_err());
    // A head rolled back to before a commit knows less than there is.
    let mut rolled_back = store.objects();
    back_up(
        &Repository::open_on(Arc::new(store.clone())).unwrap(),
        RunKind::Full,
        &model,
        None,
    )
    .unwrap();
    let old_head = rolled_back.remove("head").unwrap();
    let mut objects = store.objects();
    objects.insert("head".to_owned(), old_head);
    let repo = Repository::open_on(Arc::new(MemoryStore::of(objects))).unwrap();
    assert!(prune(&repo, 0.5).is_err());
    // A backup goes on beside it, under a number of its own.
    let done = back_up(&repo, RunKind::Incremental, &model, None).unwrap();
    assert_eq!((done.generation, done.based_on), (4, Some(2)));
    check(&repo, 4, &model).unwrap();
}

#[test]
fn a_map_shared_by_a_short_and_a_long_file_keeps_the_blocks_of_the_long_one() {
    let repo = Repository::create_on(Arc::new(MemoryStore::default()), Create::default()).unwrap();
    let long: Model = [("f".to_owned(), ModelFile::new(512, 512 * 600, 3))].into();
    back_up(&repo, RunKind::Full, &long, None).unwrap();
    // Cut at a block's end, the file keeps its old root, of which it uses the first part.
    let mut short = long.clone();
    short.get_mut("f").unwrap().resize(512 * 300, 3);
    back_up(&repo, RunKind::Incremental, &short, Some(&long)).unwrap();
    let again = back_up(&repo, RunKind::Against(1), &long, Some(&long)).unwrap();
    assert_eq!(again.blocks_changed, 0);
    forget(&repo, &[1]).unwrap();
    prune(&repo, 1.0).unwrap();
    check(&repo, 2, &short).unwrap();
    check(&repo, 3, &long).unwrap();
    assert_sound(&repo);
}
