//! Does a table that goes on in a copy keep its rows, their ids, owners and sources, whatever consumers do and
//! whenever the power goes?

mod scene;

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Append, Copied, Error, Queue, Session, Source, Store, Waited, Wanted};
use scene::{ANCHOR, create, rows, small, store};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = "/copy.que";

struct Scene {
    disk: Simulated,
    store: Store,
    old: Arc<Queue>,
    new: Arc<Queue>,
}

/// A table of twenty rows, and an empty one.
fn scene() -> Scene {
    let disk = Simulated::new();
    let old = create(&disk, small());
    for number in 1..=20u8 {
        // Nobody knows of the first three when they came; then two come at a time.
        disk.set_clock(u64::from(number.saturating_sub(2)) / 2 * 10);
        old.append(vec![vec![number; 100]], None).unwrap();
    }
    let store = store(&disk);
    store.create(Path::new(COPY), b"wider").unwrap();
    let (new, _) = store.open(Path::new(COPY), small()).unwrap();
    Scene {
        disk,
        store,
        old,
        new,
    }
}

impl Scene {
    /// Copies all rows; each is longer then.
    fn copy(&self) {
        let mut from = 0;
        while let Some(id) = self.old.next_row(from) {
            let mut bytes = self.old.read(id).unwrap().unwrap();
            bytes.push(77);
            let came = self.old.came(id);
            self.new.adopt(vec![Copied { id, came, bytes }]).unwrap();
            from = id + 1;
        }
    }

    fn hand_over(&self) {
        let publish = || self.store.rename(Path::new(COPY), Path::new(ANCHOR));
        self.old.hand_over(&self.new, publish).unwrap();
    }
}

fn wait(session: &mut Session, table: &Arc<Queue>, most: usize) -> Vec<u64> {
    let wanted = [Wanted {
        table: table.clone(),
        condition: None,
    }];
    let waited = session.wait(&wanted, most, Duration::ZERO, &|| false);
    match waited.unwrap() {
        Waited::Rows(0, ids) => ids,
        other => panic!("{other:?}"),
    }
}

/// When rows came that were copied, as they were inserted.
fn came(id: u64) -> u64 {
    id.saturating_sub(2) / 2 * 10
}

fn ids(table: &Queue) -> Vec<u64> {
    let rows = rows(table).unwrap();
    rows.iter().map(|(id, _)| *id).collect()
}

#[test]
fn consumers_do_not_notice() {
    let scene = scene();
    let (mut ends, mut aborts, mut goes, mut early) = (
        Session::new(),
        Session::new(),
        Session::new(),
        Session::new(),
    );
    assert_eq!(wait(&mut early, &scene.old, 2), [1, 2]);
    assert_eq!(wait(&mut ends, &scene.old, 2), [3, 4]);
    let source = Source {
        slot: 5,
        id: 9,
        is_reset: false,
    };
    scene.old.append(vec![vec![21]], Some(source)).unwrap();
    scene.copy();
    // What is taken and removed after the copy was made is so in the copy.
    early.end().unwrap();
    assert_eq!(wait(&mut aborts, &scene.old, 2), [5, 6]);
    assert_eq!(wait(&mut goes, &scene.old, 1), [7]);
    scene.hand_over();
    assert_eq!(ids(&scene.new), (8..=21).collect::<Vec<u64>>());
    assert_eq!(scene.new.owned_by(ends.owner()), [3, 4]);
    assert_eq!(scene.new.stats().owned, 5);
    // Owners go on as if nothing had happened.
    ends.consume(&[3]).unwrap();
    ends.end().unwrap();
    aborts.abort();
    drop(goes);
    assert_eq!(ids(&scene.new), (5..=21).collect::<Vec<u64>>());
    assert_eq!(scene.new.stats().owned, 0);
    assert_eq!(scene.new.read(5).unwrap().unwrap().len(), 101);
    let taken = scene.new.take(99, None, 3).unwrap();
    assert_eq!(taken, [5, 6, 7], "what came back is first");
    let again = scene.new.append(vec![vec![9]], Some(source)).unwrap();
    assert_eq!(again, Append::Repeated, "sources are known");
    let later = scene.new.append(vec![vec![9]], None).unwrap();
    assert_eq!(later, Append::First(22), "ids go on");
    let late = scene.old.append(vec![vec![1]], None);
    assert_eq!(late, Err(Error::Dropped));
    scene.new.close().unwrap();
    let (table, _) = scene.store.open(Path::new(ANCHOR), small()).unwrap();
    assert_eq!(ids(&table), (5..=22).collect::<Vec<u64>>());
}

#[test]
fn a_copy_that_lacks_a_row_or_is_not_published_takes_no_place() {
    let scene = scene();
    let mut owner = Session::new();
    wait(&mut owner, &scene.old, 1);
    scene.copy();
    let refused = || Err(Error::Full);
    let done = scene.old.hand_over(&scene.new, refused);
    assert_eq!(done, Err(Error::Full));
    scene.old.append(vec![vec![1]], None).unwrap();
    let done = scene.old.hand_over(&scene.new, || Ok(()));
    assert_eq!(done, Err(Error::NotCopied(21)));
    owner.end().unwrap();
    assert_eq!(ids(&scene.old), (2..=21).collect::<Vec<u64>>());
    let early = scene.new.adopt(vec![Copied {
        id: 3,
        came: 0,
        bytes: vec![1],
    }]);
    assert_eq!(early, Err(Error::OutOfOrder(3)));
}

#[test]
fn a_power_cut_leaves_the_one_or_the_other_whole() {
    let scene = scene();
    let mut owner = Session::new();
    wait(&mut owner, &scene.old, 3);
    let begun = scene.disk.calls();
    scene.copy();
    owner.end().unwrap();
    let removed = scene.disk.calls();
    scene.hand_over();
    let handed = scene.disk.calls();
    let mut seen = [0, 0];
    for cut in begun..=handed {
        for seed in 0..5 {
            let context = format!("cut after {cut} of {begun} to {handed} calls, seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed << 32 | cut as u64);
            let disk = scene.disk.power_cut(cut, &mut random);
            let opened = store(&disk).open(Path::new(ANCHOR), small());
            let (table, _) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
            let rows = rows(&table).unwrap();
            let is_new = rows[0].1.len() == 101;
            seen[usize::from(is_new)] += 1;
            assert!(is_new || cut < handed, "{context}");
            assert!(rows.iter().all(|(_, row)| (row.len() == 101) == is_new));
            let ids: Vec<u64> = rows.iter().map(|(id, _)| *id).collect();
            for id in &ids {
                assert_eq!(table.came(*id), came(*id), "{context}: row {id}");
            }
            let left: Vec<u64> = (4..=20).collect();
            if cut >= removed {
                assert_eq!(ids, left, "{context}");
            } else {
                assert!(ids.ends_with(&left), "{context}: {ids:?}");
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn names_layouts_and_what_nobody_names() {
    let scene = scene();
    let Scene { store, old, .. } = &scene;
    let (anchor, other) = (Path::new(ANCHOR), Path::new("/other.que"));
    store.set_layout(anchor, b"another").unwrap();
    store.rename(anchor, other).unwrap();
    assert!(store.anchor(anchor).is_err());
    assert_eq!(store.anchor(other).unwrap().layout, b"another");
    let known = store.anchor(other).unwrap().id;
    old.close().unwrap();
    assert_eq!(store.sweep(&[known]).unwrap(), 1, "the copy's rows");
    assert!(store.open(Path::new(COPY), small()).is_err());
    let (table, _) = store.open(other, small()).unwrap();
    assert_eq!(ids(&table).len(), 20);
    // All that is durable.
    let cut = scene.disk.power_cut_now(&mut fastrand::Rng::with_seed(3));
    let (table, _) = Store::new(Arc::new(cut), Path::new("/queue"))
        .and_then(|store| store.open(other, small()))
        .unwrap();
    assert_eq!(ids(&table).len(), 20);
}
