//! Is it kept from which history another goes on, sealed where the repository is, and is a link that is
//! damaged, forged or another history's found?

mod support;

use evenkeel_op::Cancel;
use evenkeel_repository::Repository;
use evenkeel_repository::logs::{ForgetLogs, Link};
use std::sync::Arc;
use std::time::Duration;
use support::logs::{SOURCE, forged, place, three_files};
use support::memory::{MemoryStore, Objects};
use support::way::{WAYS, Way};
use support::{assert_sound, verify};

const LINK: &str = "binlogs/mariadb-7/t2/follows-1";

fn link(number: u32) -> Link {
    Link {
        source: "mariadb-6".to_owned(),
        timeline: "t0".to_owned(),
        after: place(number, 500),
        gtids: "0-6-4711".to_owned(),
        file: place(2, 0).file,
    }
}

fn made(way: Way) -> (MemoryStore, Repository) {
    let store = MemoryStore::default();
    let repo = way.create(store.clone()).unwrap();
    for timeline in ["t1", "t2"] {
        three_files(&repo, timeline);
    }
    let writer = repo.logs().writer().unwrap();
    for number in [4, 5, 4] {
        writer.follow((SOURCE, "t2"), &link(number)).unwrap();
    }
    (store, repo)
}

fn damaged(way: Way, objects: Objects) -> bool {
    let repo = way.open(MemoryStore::of(objects)).unwrap();
    // One that seems to be of a newer program.
    let Ok(report) = verify(&repo) else {
        return true;
    };
    let named = report.findings.iter().any(|one| one.object == LINK);
    named && repo.logs().timelines(None).is_err()
}

#[test]
fn what_is_noted_is_read_back_once() {
    for way in WAYS {
        let (_store, repo) = made(way);
        let timelines = repo.logs().timelines(None).unwrap();
        assert_eq!(timelines[0].follows, []);
        assert_eq!(timelines[1].follows, [link(4), link(5)]);
        assert_sound(&repo);
    }
}

#[test]
fn what_is_not_as_it_was_written_is_found() {
    for way in WAYS {
        let (store, _repo) = made(way);
        let objects = store.objects();
        for bit in (0..objects[LINK].len() * 8).step_by(7) {
            let mut wrong = objects[LINK].to_vec();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let mut all = objects.clone();
            all.insert(LINK.to_owned(), Arc::new(wrong));
            assert!(damaged(way, all), "bit {bit}");
        }
        // Of another repository of the same names.
        let (foreign, _repo) = made(way);
        let mut all = objects.clone();
        all.insert(LINK.to_owned(), foreign.objects()[LINK].clone());
        assert!(damaged(way, all));
    }
}

/// Who merely stores the repository must not lead a replay into another history.
#[test]
fn a_link_of_somebody_else_is_found() {
    let (store, _repo) = made(Way::Sealed);
    let mut objects = store.objects();
    let link = forged(&objects[LINK], "0-6-4711", "0-6-4712");
    objects.insert(LINK.to_owned(), link);
    assert!(damaged(Way::Sealed, objects));
}

#[test]
fn it_goes_with_its_history() {
    for way in WAYS {
        let (store, repo) = made(way);
        let what = ForgetLogs {
            source: SOURCE.to_owned(),
            timeline: "t2".to_owned(),
            before: None,
        };
        let plan = repo
            .plan_forget_logs(&[what], repo.state().unwrap())
            .unwrap();
        repo.perform_forget_logs(&plan, Duration::ZERO, &Cancel::new())
            .unwrap();
        assert!(!store.objects().keys().any(|name| name.contains("/t2/")));
        assert_sound(&repo);
    }
}
