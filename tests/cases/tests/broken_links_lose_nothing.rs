//! Does a backup over ssh go on where it was when the connection is cut at any byte or falls silent,
//! without sending again what had arrived?

use evenkeel_cases::Site;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::all_files;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{LoopFs, until};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
/// What may be on its way when a connection breaks.
const WINDOW: u64 = 10 << 20;

/// Numbers from a seed.
fn below(state: &mut u64, end: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % end
}

#[test]
fn a_cut_costs_a_connection_and_nothing_else() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 200_000, &[]);
    // The program is there: what crosses is data from the first byte on.
    let far = FarHost::having(PROGRAM, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    println!("seed {seed}");
    let mut state = seed;
    let cuts: Vec<u64> = (0..4)
        .map(|_| 100_000 + below(&mut state, 2 << 20))
        .collect();
    far.proxy.cut_after(&cuts);
    let ended = run(far.over(evenkeel.backup(&site, &["--level=1"]), 60));
    assert_eq!(ended.generation(), 1, "{ended:?}");
    let cut = far.proxy.connections() - 1;
    assert!(cut > 0, "nothing was cut: {cuts:?} {}", ended.said);
    let stored: u64 = all_files(&site.repository()).values().sum();
    let crossed = far.proxy.bytes();
    assert!(
        crossed < stored * 11 / 10 + cut * WINDOW,
        "{crossed} bytes crossed for {stored}, cut {cut} times"
    );
    far.assert_clean("after cuts");
    let ended = run({
        let mut verify = evenkeel.command(&["verify", "--all"]);
        verify.arg(site.repository());
        verify
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_silent_connection_is_replaced() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 2_000, &[]);
    let far = FarHost::having(PROGRAM, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let mut command = far.over(evenkeel.backup(&site, &["--rate=5M"]), 30);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    until("the session works", || !far.sessions().is_empty());
    let at_work = far.proxy.bytes();
    until("data flows", || far.proxy.bytes() > at_work + 100_000);
    far.proxy.freeze(true);
    // A third of the patience, and the connection is given up; the next one is not silent. On a busy host a
    // login alone takes seconds, which are the patience's too.
    let limit = Duration::from_secs(90);
    until_within(limit, "the connection is given up", || {
        far.proxy.connections() > 1
    });
    far.proxy.freeze(false);
    let ended = evenkeel_cases::program::Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.generation(), 1);
    far.assert_clean("after silence");
}
