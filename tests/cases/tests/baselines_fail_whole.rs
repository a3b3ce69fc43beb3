//! Does a save that meets a bad sector, a closed file or a full disk leave nothing, and the baselines
//! that there are as they are?

use evenkeel_cases::Site;
use evenkeel_cases::baselines::Rolled;
use evenkeel_cases::faults::{closed, failing};
use evenkeel_cases::program::{Ended, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, TestServer, servers};
use rustix::fs::FallocateFlags;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn start(server: TestServer, fs: LoopFs) -> Rolled {
    let site = Site::start(server, fs, 1_000, &[]);
    Rolled::new(site, env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// Nothing came of it, and it says where it failed.
#[track_caller]
fn assert_nothing_was_saved(rolled: &Rolled, ended: &Ended, names: &str, baselines: usize) {
    assert!(matches!(ended.code, Some(1 | 14)), "{ended:?}");
    assert!(ended.answer.to_string().contains(names), "{ended:?}");
    let listed = rolled.list_stopped();
    let listed = listed["baselines"].as_array().expect("a list");
    assert_eq!(listed.len(), baselines, "{ended:?}");
    rolled.assert_tidy(names);
}

/// Leaves so much room on a filesystem, at most.
fn fill(top: &Path, left: u64) -> PathBuf {
    let ballast = top.join("ballast");
    let file = File::create(&ballast).expect("a file");
    let (mut end, mut size) = (0, 256 * MIB);
    while size >= 64 << 10 {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), end, size) {
            Ok(()) => end += size,
            Err(_) => size /= 2,
        }
    }
    file.set_len(end - left).expect("a length");
    ballast
}

/// By copying, and then with one baseline in the place of another.
fn copies(server: TestServer) {
    let mut rolled = start(server, LoopFs::ext4(GIB));
    rolled.work(30);
    let state = rolled.bank();
    rolled.stop();
    let table = rolled.datadir.join("bank/ledger.ibd");
    let mut baselines = 0;
    for words in [&["save"][..], &["save", "--replace"]] {
        let save = rolled.command_stopped(words);
        let bad = failing(&save, &table, "pread64", "error=EIO");
        assert_nothing_was_saved(&rolled, &bad, "bank/ledger.ibd", baselines);
        let shut = closed(&save, &table);
        assert_nothing_was_saved(&rolled, &shut, "bank/ledger.ibd", baselines);
        let ballast = fill(rolled.site.fs.path(), 2 * MIB);
        let full = run(rolled.command_stopped(words));
        assert_nothing_was_saved(&rolled, &full, "No space left", baselines);
        fs::remove_file(ballast).expect("the ballast");
        rolled.done_stopped(words);
        baselines = 1;
    }
    rolled.start();
    rolled.work(30);
    rolled.done(&["rollback", "--execute"]);
    assert_eq!(rolled.bank(), state, "{}", rolled.site.server.name);
}

#[test]
fn where_files_are_copied() {
    for server in draw("servers that are copied", &servers(), 1) {
        copies(server);
    }
}

#[test]
fn where_files_are_cloned() {
    let rolled = start(mariadb_10_11(), LoopFs::xfs(GIB));
    rolled.work(30);
    let traffic = rolled.traffic();
    let table = rolled.datadir.join("bank/ledger.ibd");
    let save = rolled.command(&["save"]);
    let kept_in = rolled.list_stopped()["kept_in"].as_str().map(PathBuf::from);
    let clone = kept_in
        .expect("a place")
        .join("work/new/files/bank/ledger.ibd");
    let full = failing(&save, &clone, "ioctl", "error=ENOSPC");
    assert_nothing_was_saved(&rolled, &full, "bank/ledger.ibd", 0);
    let shut = closed(&save, &table);
    assert_nothing_was_saved(&rolled, &shut, "bank/ledger.ibd", 0);
    // The server goes on as if nothing had been.
    traffic.wait_for(30);
    traffic.assert_undisturbed();
    drop(traffic.stop());
    rolled.done(&["save"]);
}
