//! Rounds of the crash-consistency loop over tables that are not InnoDB's.

use super::look::{Headers, check, check_tables};
use super::taken::Taken;
use super::{Bounds, EngineTraffic, make};
use crate::Site;
use crate::leftovers::{assert_at_most_the_base, is_stopped};
use crate::rounds::{boot_with, logged};
use evenkeel_backup::backup::{BackupRequest, SnapshotChoice};
use evenkeel_op::ErrorKind;
use evenkeel_server::connect::Session;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where commits wait, and the files that recovery does not bring forward are about to be cloned.
const MOMENT: &str = "backup::freeze::moment";
/// Where they are cloned.
const TAKEN: &str = "backup::freeze::taken";
/// Before each file is cloned.
const NEXT_FILE: &str = "snapshot::reflink::next_file";

/// A table that is not sound must not be repaired in secret.
const UNREPAIRED: [&str; 2] = [
    "--loose-aria-recover-options=OFF",
    "--myisam-recover-options=OFF",
];

/// Takes an image. On a slow machine, a statement of the clients may run for longer than a lock is waited for.
fn take(request: &BackupRequest, reported: &str) -> Taken {
    let mut tries = 3;
    loop {
        tries -= 1;
        match Taken::take(request) {
            Ok(taken) => return taken,
            Err(error) if error.kind() == ErrorKind::LockTimeout && tries > 0 => {
                println!("{reported} once more: {}", error.chain());
            }
            Err(error) => panic!("{reported}: {}", error.chain()),
        }
    }
}

/// Puts a site through rounds; `request` says how to freeze, `copy` where there is room for an image that a
/// server is started on. Panics at the first image in which a table is not sound, or not of one turn. Without
/// `aria` no table of a user is Aria's.
pub fn go_round(site: &Site, request: &BackupRequest, copy: &Path, rounds: u32, aria: bool) {
    let options = site.running().connect_options();
    let mut session = site.running().session().expect("a session");
    let subjects = make(&mut session, aria).unwrap_or_else(|e| panic!("{}", e.chain()));
    let mut traffic =
        EngineTraffic::prepare(&subjects, &options).unwrap_or_else(|e| panic!("{}", e.chain()));
    let now = traffic.acknowledged();
    let live = Headers::OfTheServer;
    let turns = check(&mut session, &subjects, &between(&now, &now), live).expect("sound tables");
    let headers = headers_of(request);
    let others = logged(&mut session) - turns;
    let mut unprepared = 0;
    let mut round = 0;
    while round < rounds {
        round += 1;
        let reported = format!("{}, round {round}", site.server.name);
        traffic.start().expect("clients");
        traffic.wait_for(1 + i64::from(round) * 3 % 5);
        let before = traffic.acknowledged();
        let taken = take(request, &reported);
        let after = traffic.started();
        // What reads the live files instead of the frozen ones finds these.
        traffic.wait_for(1);
        traffic.stop();
        let in_its_notes = match taken.lay_out(site, copy, round == 1) {
            Ok(notes) => notes,
            Err(error) if aria && is_of_preparing(&error) => {
                println!("{reported} once more: {}", error.chain());
                assert!(
                    !copy.join("data").exists(),
                    "{reported}: what failed is there"
                );
                fs::remove_dir_all(copy).expect("the copy goes");
                (round, unprepared) = (round - 1, unprepared + 1);
                assert!(
                    unprepared <= 1 + rounds / 20,
                    "{reported}: the tool fails too often"
                );
                continue;
            }
            Err(error) => panic!("{reported}: {}", error.chain()),
        };
        let bounds = between(&before, &after);
        let running = boot_with(site, copy, &UNREPAIRED);
        let mut image = running.session().expect("a session");
        let in_log = in_its_notes.unwrap_or_else(|| logged(&mut image)) - others;
        let turns = check(&mut image, &subjects, &bounds, headers).unwrap_or_else(|e| {
            let live = check_tables(&mut session, live).map_err(|e| e.chain());
            panic!("{reported}: {}; of the live server: {live:?}", e.chain())
        });
        assert_eq!(
            in_log, turns,
            "{reported}: binary log and tables do not tell of the same turns"
        );
        drop(image);
        running.kill();
        fs::remove_dir_all(copy).expect("the copy goes");
    }
    assert_at_most_the_base(site.fs.path(), "after the rounds");
    println!(
        "{}: {rounds} rounds, and {unprepared} that the tool could not prepare",
        site.server.name
    );
}

/// What each subject's turn must be between, in their order.
fn between(acknowledged: &[i64], started: &[i64]) -> Vec<Bounds> {
    let both = acknowledged.iter().zip(started);
    let bounds = both.map(|(acknowledged, started)| Bounds {
        acknowledged: *acknowledged,
        started: *started,
    });
    bounds.collect()
}

/// mariadb-backup cannot recover each copy of tables of Aria that it makes, by itself as well: 2 of 120. A restore says so
/// and leaves nothing, which is all that can be asked of it.
fn is_of_preparing(error: &evenkeel_op::Error) -> bool {
    error.chain().contains("failed to prepare ")
}

/// A snapshot of a whole filesystem, or all files of a process that stands, is what a crash leaves.
fn headers_of(request: &BackupRequest) -> Headers {
    match request.snapshot {
        SnapshotChoice::Btrfs | SnapshotChoice::Lvm | SnapshotChoice::Hook { .. } => {
            Headers::OfAnybody
        }
        SnapshotChoice::Engine => Headers::CopiedByATool,
        _ if request.stop_server => Headers::OfAnybody,
        _ => Headers::OfTheServer,
    }
}

/// Has a server of MariaDB bring Aria's pages and its place in the log to disk before each file that is
/// cloned while commits wait and the process does not stand: what is cloned in a wrong order is then of two
/// moments, which otherwise is left to chance. `stands`: demands that it does.
pub fn write_to_aria_while_it_is_cloned(site: &Site, stands: bool) {
    let pid = site.running().pid();
    let options = site.running().connect_options();
    let is_moment = Arc::new(AtomicBool::new(false));
    for (point, begins) in [(MOMENT, true), (TAKEN, false)] {
        let is_moment = Arc::clone(&is_moment);
        let mark = move || is_moment.store(begins, Ordering::SeqCst);
        fail::cfg_callback(point, mark).expect("a fail point");
    }
    fail::cfg_callback(NEXT_FILE, move || {
        if is_moment.load(Ordering::SeqCst) && !is_stopped(pid) {
            assert!(!stands, "tables of Aria are cloned while the server runs");
            let mut session = Session::open(&options).expect("a session");
            // A new value of it begins with a checkpoint.
            let sql = "SET GLOBAL aria_checkpoint_interval = 30";
            session.run(sql).expect("a checkpoint");
        }
    })
    .expect("a fail point");
}
