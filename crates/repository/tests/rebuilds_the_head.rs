//! Does a lost, damaged or rolled-back head come back from what is there?

mod support;

use evenkeel_op::Cancel;
use evenkeel_repository::{Create, Forget, Prune, Repository, RunKind};
use std::sync::Arc;
use std::time::Duration;
use support::memory::MemoryStore;
use support::{Block, Model, ModelFile, assert_sound, back_up, check, small, verify};

#[test]
fn from_manifests_and_names() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let empty = store.objects()["head"].clone();
    let models = small(&repo);
    let sound = store.objects();
    let mut flipped = sound["head"].to_vec();
    flipped[100] ^= 4;
    for (what, head) in [
        ("lost", None),
        ("damaged", Some(Arc::new(flipped))),
        ("rolled back", Some(empty)),
    ] {
        let mut objects = sound.clone();
        objects.remove("head");
        objects.extend(head.map(|head| ("head".to_owned(), head)));
        let store = MemoryStore::of(objects);
        let repo = Repository::open_on(Arc::new(store.clone())).unwrap();
        let found = verify(&repo).unwrap();
        assert!(!found.is_sound(), "{what}");
        if what != "rolled back" {
            let error = repo.generations().unwrap_err();
            let hints = error.hints().join("; ");
            assert!(hints.contains("evenkeel repository rebuild"), "{hints}");
            assert!(found.notes[0].contains("evenkeel repository rebuild"));
        }
        let plan = repo.plan_rebuild().unwrap();
        assert_eq!(
            (&plan.live[..], &plan.retired[..]),
            (&[2, 3][..], &[1, 4][..]),
            "{what}"
        );
        assert_eq!(plan.regained, [2, 3], "{what}");
        assert!(plan.needed && plan.dropped.is_empty(), "{what}");
        repo.perform_rebuild(plan, Duration::ZERO).unwrap();
        assert_sound(&repo);
        for (generation, model) in &models {
            check(&repo, *generation, model).unwrap();
        }
        // Nothing is regained from a head that was whole.
        let plan = repo.plan_rebuild().unwrap();
        assert!(plan.regained.is_empty() && !plan.needed, "{what}");
        let next = back_up(&repo, RunKind::Incremental, &models[&3], None).unwrap();
        assert_eq!((next.generation, next.blocks_changed), (5, 0), "{what}");
        support::prune(&repo, 0.5).unwrap();
        assert_sound(&repo);
        check(&repo, 5, &models[&3]).unwrap();
    }
}

#[test]
fn a_plan_is_not_performed_after_a_commit() {
    let repo = Repository::create_on(Arc::new(MemoryStore::default()), Create::default()).unwrap();
    let models = small(&repo);
    let plan = repo.plan_rebuild().unwrap();
    back_up(&repo, RunKind::Full, &models[&3], None).unwrap();
    assert!(repo.perform_rebuild(plan, Duration::ZERO).is_err());
    assert_eq!(repo.generations().unwrap().len(), 3);
}

/// A generation that an older head does not know may need any block that is there.
#[test]
fn nothing_is_removed_under_a_head_that_was_rolled_back() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    let mut model: Model = [("f".to_owned(), ModelFile::new(512, 512 * 40, 5))].into();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    back_up(&repo, RunKind::Full, &model, None).unwrap();
    let older = store.objects()["head"].clone();
    model.get_mut("f").unwrap().blocks[1] = Block::Bytes(77);
    back_up(&repo, RunKind::Against(1), &model, None).unwrap();
    let mut objects = store.objects();
    objects.insert("head".to_owned(), older);
    let store = MemoryStore::of(objects);
    let repo = Repository::open_on(Arc::new(store.clone())).unwrap();

    let before = store.objects();
    let plan = repo.plan_forget(&Forget::These(vec![1]), false).unwrap();
    let error = repo.perform_forget(&plan, Duration::ZERO).unwrap_err();
    assert!(error.chain().contains("generation 3"), "{}", error.chain());
    let never = Cancel::new();
    let pruned = repo
        .plan_prune(&Prune::default(), &never)
        .and_then(|plan| repo.perform_prune(&plan, Duration::ZERO, &never));
    assert!(pruned.is_err());
    assert!(store.objects() == before, "something was changed");

    let plan = repo.plan_rebuild().unwrap();
    repo.perform_rebuild(plan, Duration::ZERO).unwrap();
    check(&repo, 3, &model).unwrap();
}

#[test]
fn a_head_of_a_later_version_does_not_pass_for_a_lost_one() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    small(&repo);
    let mut objects = store.objects();
    let text = String::from_utf8(objects["head"].to_vec()).unwrap();
    let later = text.replacen("evenkeel head 1", "evenkeel head 99", 1);
    objects.insert("head".to_owned(), Arc::new(later.into_bytes()));
    let repo = Repository::open_on(Arc::new(MemoryStore::of(objects))).unwrap();
    let error = repo.plan_rebuild().unwrap_err();
    assert!(error.chain().contains("version 99"), "{}", error.chain());
}

#[test]
fn a_generation_that_is_damaged_itself_is_no_reason_for_another_head() {
    let store = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(store.clone()), Create::default()).unwrap();
    small(&repo);
    let mut objects = store.objects();
    let mut manifest = objects["generations/2/manifest"].to_vec();
    manifest[100] ^= 4;
    objects.insert("generations/2/manifest".to_owned(), Arc::new(manifest));
    let repo = Repository::open_on(Arc::new(MemoryStore::of(objects))).unwrap();
    let plan = repo.plan_rebuild().unwrap();
    assert_eq!((&plan.dropped[..], plan.needed), (&[2][..], false));
    assert!(
        plan.notes[0].contains("generations/2/manifest"),
        "{:?}",
        plan.notes
    );
}
