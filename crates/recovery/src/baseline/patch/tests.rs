//! What the server's account may do to its data directory while root rolls it back.

use super::*;
use crate::baseline::Method;
use crate::baseline::store::Baseline;
use evenkeel_op::{Cancel, Event, Progress};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

/// Swaps the schema's directory for a link to another one, as soon as one file was written.
struct Swaps {
    datadir: PathBuf,
    precious: PathBuf,
    done: AtomicBool,
}

impl Progress for Swaps {
    fn event(&self, event: Event) {
        if matches!(event, Event::Advanced { .. }) && !self.done.swap(true, Ordering::SeqCst) {
            let shop = self.datadir.join("shop");
            fs::rename(&shop, self.datadir.join("aside")).unwrap();
            symlink(&self.precious, &shop).unwrap();
        }
    }
}

/// Makes a data directory with a baseline `one` of two files, of which nothing is there any more.
fn rolled(dir: &Path) -> (Store, PathBuf) {
    let datadir = dir.canonicalize().unwrap().join("data");
    fs::create_dir_all(datadir.join("shop")).unwrap();
    let store = Store::open(&datadir).unwrap();
    let made = store.place.work("made");
    fs::create_dir_all(made.join(FILES).join("shop")).unwrap();
    for name in ["a.ibd", "b.ibd"] {
        fs::write(made.join(FILES).join("shop").join(name), name).unwrap();
    }
    store
        .write_facts(&made, &Baseline::now("one", Method::Copy, false))
        .unwrap();
    store.name(&made, "one").unwrap();
    (store, datadir)
}

#[test]
fn a_directory_swapped_for_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, datadir) = rolled(dir.path());
    let precious = dir.path().join("precious");
    fs::create_dir(&precious).unwrap();
    let progress = Swaps {
        datadir: datadir.clone(),
        precious: precious.clone(),
        done: AtomicBool::new(false),
    };
    let cancel = Cancel::new();
    let run = Run {
        progress: &progress,
        cancel: &cancel,
    };
    let _ = patch(&store, "one", &[], run);
    assert!(progress.done.load(Ordering::SeqCst), "nothing was swapped");
    let written: Vec<_> = tree::entries(&precious).unwrap();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn links_in_the_place_of_files_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (store, datadir) = rolled(dir.path());
    let precious = dir.path().join("precious");
    fs::write(&precious, "root's").unwrap();
    symlink(&precious, datadir.join("shop/a.ibd")).unwrap();
    fs::hard_link(&precious, datadir.join("shop/b.ibd")).unwrap();
    let cancel = Cancel::new();
    let run = Run {
        progress: &evenkeel_op::Silent,
        cancel: &cancel,
    };
    patch(&store, "one", &[], run).unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "root's");
    for name in ["a.ibd", "b.ibd"] {
        assert_eq!(
            fs::read_to_string(datadir.join("shop").join(name)).unwrap(),
            name
        );
    }
}

/// Between the look and the opening, too.
#[test]
fn what_is_opened_to_be_written_is_a_file_with_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("precious"), "root's").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    fs::hard_link(at("precious"), at("name")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for name in ["link", "name", "pipe"] {
        assert!(tree::open_to_write(&at(name)).is_err(), "{name}");
    }
    assert!(tree::open_to_write(&at("new")).is_ok());
    assert!(tree::open_to_write(&at("new")).is_ok());
}
