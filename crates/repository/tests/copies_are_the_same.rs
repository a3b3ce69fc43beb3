//! Is a copy the same repository at another place, whatever either side forgets, and does it cost no
//! more than what is new?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Result, Silent};
use evenkeel_repository::logs::ForgetLogs;
use evenkeel_repository::store::Location;
use evenkeel_repository::{Chosen, CopyReport, CopyTo, Repository, RunKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::logs::{SOURCE, add, check_all, place, three_files};
use support::memory::{MemoryStore, Objects};
use support::way::{WAYS, Way};
use support::{
    Block, Model, ModelFile, assert_sound, back_up, check, forget, prune, small, verify,
};

fn copy(from: &Repository, to: &MemoryStore, chosen: Chosen) -> Result<CopyReport> {
    let how = CopyTo {
        chosen,
        ..CopyTo::default()
    };
    from.copy_to(
        &Location::on(Arc::new(to.clone())),
        &how,
        &Silent,
        &Cancel::new(),
    )
}

fn numbers(report: &CopyReport) -> Vec<u32> {
    let each = report.copied.iter();
    each.map(|one| {
        assert_eq!(one.generation, one.becomes);
        one.generation
    })
    .collect()
}

fn listed(repo: &Repository) -> Vec<u32> {
    let all = repo.generations().unwrap();
    all.iter().map(|one| one.generation).collect()
}

/// Objects but for the head, which counts its own replacements.
fn but_the_head(store: &MemoryStore) -> Objects {
    let mut objects = store.objects();
    objects.remove("head");
    objects
}

/// A file of some leaves, changed a little for each generation.
fn model(changes: u64) -> Model {
    let mut file = ModelFile::new(512, 512 * 700, 7);
    for change in 0..changes {
        file.blocks[(change * 131 % 700) as usize] = Block::Bytes(1_000 + change);
    }
    [("data/a.ibd".to_owned(), file)].into()
}

fn grown(repo: &Repository, generations: std::ops::RangeInclusive<u64>) -> BTreeMap<u32, Model> {
    let each = generations.map(|number| {
        let model = model(number * 3);
        let done = back_up(repo, RunKind::Incremental, &model, None).unwrap();
        (done.generation, model)
    });
    each.collect()
}

#[test]
fn every_byte_is_copied_once() {
    for way in WAYS {
        let (here, there) = (MemoryStore::default(), MemoryStore::default());
        let repo = way.create(here.clone()).unwrap();
        let models = small(&repo);
        // Whoever copies needs no key.
        let locked = Repository::open_on(Arc::new(here.clone())).unwrap();
        let report = copy(&locked, &there, Chosen::New).unwrap();
        assert_eq!(numbers(&report), [2, 3]);
        let copied = way.open(there.clone()).unwrap();
        assert_sound(&copied);
        assert_eq!(copied.generations().unwrap(), repo.generations().unwrap());
        for (generation, model) in &models {
            check(&copied, *generation, model).unwrap();
        }
        // Byte by byte; what nobody needs is not there.
        let (ours, theirs) = (but_the_head(&here), but_the_head(&there));
        for (name, bytes) in &theirs {
            assert_eq!(Some(bytes), ours.get(name), "{name}");
        }
        assert!(ours.len() > theirs.len());
        // Again: nothing. After a backup: what it added.
        let report = copy(&locked, &there, Chosen::New).unwrap();
        assert_eq!((numbers(&report), report.objects), (vec![], 0));
        assert_eq!(report.present, [2, 3]);
        let before = there.objects().len();
        let done = back_up(&repo, RunKind::Incremental, &models[&2], None).unwrap();
        let report = copy(&locked, &there, Chosen::New).unwrap();
        assert_eq!(numbers(&report), [done.generation]);
        assert_eq!(report.bytes_copied, done.bytes_stored);
        let added = there.objects().len() - before;
        assert_eq!(added as u64, report.objects + 1, "and a manifest");
        assert_sound(&way.open(there).unwrap());
    }
}

#[test]
fn each_side_forgets_as_it_likes() {
    for way in WAYS {
        let (here, there) = (MemoryStore::default(), MemoryStore::default());
        let repo = way.create(here.clone()).unwrap();
        let mut models = grown(&repo, 1..=4);
        copy(&repo, &there, Chosen::New).unwrap();
        let copied = way.open(there.clone()).unwrap();
        forget(&copied, &[1, 3, 4]).unwrap();
        prune(&copied, 1.0).unwrap();
        forget(&repo, &[1]).unwrap();
        prune(&repo, 1.0).unwrap();
        models.extend(grown(&repo, 5..=6));
        assert_eq!(
            numbers(&copy(&repo, &there, Chosen::New).unwrap()),
            [3, 4, 5, 6]
        );
        assert_sound(&copied);
        // What is old does not come back by itself; nor is it put on packs that lack what it needs.
        forget(&copied, &[2, 3, 4, 5]).unwrap();
        prune(&copied, 1.0).unwrap();
        let report = copy(&repo, &there, Chosen::New).unwrap();
        assert_eq!(
            (numbers(&report), report.left_out),
            (vec![], vec![2, 3, 4, 5])
        );
        let error = copy(&repo, &there, Chosen::These(vec![2])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
        assert_sound(&copied);
        // With its base there, a generation needs its own objects only.
        models.extend(grown(&repo, 7..=7));
        forget(&repo, &[2, 3, 4, 5, 6]).unwrap();
        prune(&repo, 1.0).unwrap();
        assert_eq!(numbers(&copy(&repo, &there, Chosen::New).unwrap()), [7]);
        // Without, it needs what was rewritten over there, and is still in that.
        models.extend(grown(&repo, 8..=9));
        forget(&repo, &[7, 8]).unwrap();
        prune(&repo, 1.0).unwrap();
        assert_eq!(numbers(&copy(&repo, &there, Chosen::New).unwrap()), [9]);
        assert_eq!(listed(&copied), [6, 7, 9]);
        assert_sound(&copied);
        for generation in [6, 7, 9] {
            check(&copied, generation, &models[&generation]).unwrap();
        }
    }
}

#[test]
fn the_newest_alone_brings_what_it_rests_on() {
    for way in WAYS {
        let (here, there) = (MemoryStore::default(), MemoryStore::default());
        let repo = way.create(here.clone()).unwrap();
        let models = grown(&repo, 1..=5);
        let mut full = model(15);
        full.insert("data/b.ibd".into(), ModelFile::new(512, 512 * 300, 9));
        back_up(&repo, RunKind::Full, &full, None).unwrap();
        let report = copy(&repo, &there, Chosen::These(vec![4])).unwrap();
        assert_eq!(numbers(&report), [4]);
        let copied = way.open(there.clone()).unwrap();
        assert_sound(&copied);
        assert_eq!(listed(&copied), [4]);
        check(&copied, 4, &models[&4]).unwrap();
        assert!(
            !there
                .objects()
                .keys()
                .any(|name| name.contains("/5/") || name.contains("/6/"))
        );
        // What the next one needs of those that were left out comes with it; again and again,
        // while this side rewrites what it needs less and less of.
        assert_eq!(
            numbers(&copy(&repo, &there, Chosen::Latest(1)).unwrap()),
            [6]
        );
        check(&copied, 6, &full).unwrap();
        forget(&repo, &[1, 2, 3]).unwrap();
        prune(&repo, 1.0).unwrap();
        let there = MemoryStore::default();
        copy(&repo, &there, Chosen::These(vec![4])).unwrap();
        forget(&repo, &[4]).unwrap();
        prune(&repo, 1.0).unwrap();
        let gone = way.open(there.clone()).unwrap();
        forget(&gone, &[4]).unwrap();
        assert_eq!(
            numbers(&copy(&repo, &there, Chosen::These(vec![5])).unwrap()),
            [5]
        );
        let copied = way.open(there).unwrap();
        assert_sound(&copied);
        check(&copied, 5, &models[&5]).unwrap();
    }
}

#[test]
fn one_that_was_backed_up_into_is_no_copy_any_more() {
    let there = MemoryStore::default();
    let repo = Way::Plain.create(MemoryStore::default()).unwrap();
    grown(&repo, 1..=2);
    copy(&repo, &there, Chosen::New).unwrap();
    let copied = Way::Plain.open(there.clone()).unwrap();
    grown(&copied, 3..=3);
    grown(&repo, 4..=4);
    let before = there.objects();
    let error = copy(&repo, &there, Chosen::New).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Differs, "{}", error.chain());
    assert!(error.chain().contains("generation 3"), "{}", error.chain());
    assert_eq!(there.objects(), before);
}

#[test]
fn damage_is_not_copied() {
    for way in WAYS {
        let here = MemoryStore::default();
        let repo = way.create(here.clone()).unwrap();
        grown(&repo, 1..=2);
        let sound = here.objects();
        for (name, bytes) in &sound {
            if !name.contains("/pack-") && !name.ends_with("maps") && !name.ends_with("files") {
                continue;
            }
            for at in [70, bytes.len() / 2, bytes.len() - 40] {
                let mut wrong = bytes.to_vec();
                wrong[at] ^= 1;
                let mut objects = sound.clone();
                objects.insert(name.clone(), Arc::new(wrong));
                let there = MemoryStore::default();
                let repo = way.open(MemoryStore::of(objects)).unwrap();
                let error = copy(&repo, &there, Chosen::New).unwrap_err();
                assert_eq!(
                    error.kind(),
                    ErrorKind::Differs,
                    "{name}: {}",
                    error.chain()
                );
                let copied = way.open(there).unwrap();
                assert!(verify(&copied).unwrap().is_sound(), "{name}");
            }
        }
    }
}

#[test]
fn archived_logs_come_along() {
    let (here, there) = (MemoryStore::default(), MemoryStore::default());
    let repo = Way::Plain.create(here.clone()).unwrap();
    grown(&repo, 1..=1);
    let mut objects = here.objects();
    let add = |objects: &mut Objects, name: &str, text: &str| {
        objects.insert(name.to_owned(), Arc::new(text.as_bytes().to_vec()));
    };
    add(&mut objects, "binlogs/s/t/binlog.000001.4-9", "events");
    add(&mut objects, "binlogs/s/archive.lock", "");
    let folders = [
        "",
        "generations",
        "generations/1",
        "binlogs",
        "binlogs/s",
        "binlogs/s/t",
    ];
    let folders = folders.map(str::to_owned).into();
    let repo = Way::Plain
        .open(MemoryStore::with_folders(objects, folders))
        .unwrap();
    let report = copy(&repo, &there, Chosen::New).unwrap();
    assert_eq!(report.archive_objects, 1);
    assert_eq!(
        **there.objects()["binlogs/s/t/binlog.000001.4-9"],
        *b"events"
    );
    assert!(!there.objects().contains_key("binlogs/s/archive.lock"));
    assert_eq!(copy(&repo, &there, Chosen::New).unwrap().archive_objects, 0);
}

/// What was forgotten here is still there; a copy that lacks it does not seem damaged.
#[test]
fn each_side_forgets_logs_for_itself() {
    for way in WAYS {
        let store = MemoryStore::default();
        let repo = way.create(store.clone()).unwrap();
        grown(&repo, 1..=1);
        three_files(&repo, "t");
        let (early, behind) = (MemoryStore::default(), MemoryStore::default());
        copy(&repo, &early, Chosen::New).unwrap();
        copy(&repo, &behind, Chosen::New).unwrap();
        let forget_before = |file| {
            let what = [ForgetLogs {
                source: SOURCE.to_owned(),
                timeline: "t".to_owned(),
                before: Some(place(file, 0).file),
            }];
            let plan = repo.plan_forget_logs(&what, repo.state().unwrap()).unwrap();
            repo.perform_forget_logs(&plan, Duration::ZERO, &Cancel::new())
                .unwrap();
        };
        let segments_of = |there: &MemoryStore| {
            let there = way.open(there.clone()).unwrap();
            assert_sound(&there);
            check_all(&there)
        };
        forget_before(2);
        add(&repo, "t", 4, (0, 300), Some(place(3, 700))).unwrap();
        copy(&repo, &early, Chosen::New).unwrap();
        assert_eq!(segments_of(&early), 7, "nothing went over there");
        let new = MemoryStore::default();
        copy(&repo, &new, Chosen::New).unwrap();
        assert_eq!(segments_of(&new), 5);
        // What comes now does not go on from what is there.
        forget_before(4);
        add(&repo, "t", 4, (300, 700), Some(place(4, 300))).unwrap();
        copy(&repo, &behind, Chosen::New).unwrap();
        assert_eq!(segments_of(&behind), 2);
    }
}
