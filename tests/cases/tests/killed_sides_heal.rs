//! When either side of a backup over ssh is killed at any of its steps: does the server go on, is
//! nothing of ours left on its host, and does the next backup need no help?

use evenkeel_cases::Site;
use evenkeel_cases::failpoints::{EVERY_BACKUP, REFLINK, SPLICE};
use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::{assert_no_unfinished, assert_unharmed};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_op::exit;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{BankTraffic, LoopFs, until};
use std::process::Stdio;

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
/// Both sides give a lost connection so many seconds.
const PATIENCE_S: u32 = 2;

struct Case {
    site: Site,
    traffic: BankTraffic,
    evenkeel: Evenkeel,
}

impl Case {
    fn start() -> Self {
        let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 500, &[]);
        let traffic = site.traffic(2);
        let evenkeel = Evenkeel::new(PROGRAM);
        assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
        Self {
            site,
            traffic,
            evenkeel,
        }
    }

    /// The next run needs no help, and what it stores is what was there.
    fn check(&self, reported: &str) {
        assert_unharmed(self.site.running(), reported);
        self.traffic.wait_for(5);
        let before = self.traffic.marks();
        let far = FarHost::having(PROGRAM, &[]);
        let ended = run(far.over(self.evenkeel.backup(&self.site, &[]), 60));
        let generation = ended.generation();
        let after = self.traffic.marks();
        far.assert_clean(reported);
        self.site.assert_clean(reported);
        let restored = self.site.restore(Some(generation), "next").unwrap();
        self.site.check_bank_at(&restored.target, &before, &after);
        std::fs::remove_dir_all(restored.target).unwrap();
    }
}

#[test]
fn the_far_side_killed_at_each_step() {
    let case = Case::start();
    let points = [&EVERY_BACKUP[..], &REFLINK, &SPLICE].concat();
    // Where the program is local, other tests come by each of them.
    for point in share("kill points of the far side", &points, Part::new(0, 3)) {
        println!("killed at {point}");
        // Some points are come by only with a base from a run that was not killed.
        let whole = run(case.evenkeel.backup(&case.site, &[]));
        assert_eq!(whole.code, Some(0), "{point}: {whole:?}");
        let far = FarHost::having(PROGRAM, &[("EVENKEEL_KILL_AT", point)]);
        let ended = run(far.over(case.evenkeel.backup(&case.site, &[]), PATIENCE_S));
        assert_eq!(
            ended.code,
            Some(i32::from(exit::UNREACHABLE)),
            "{point}: {ended:?}"
        );
        far.assert_no_process(point);
        assert_unharmed(case.site.running(), point);
    }
    case.check("after the last");
    assert_no_unfinished(&case.site.repository(), "after the last");
}

/// Where the far side is when the near side dies: it waits there until it was seen to be there.
#[test]
fn the_near_side_killed_while_the_far_side_works() {
    let case = Case::start();
    let far = FarHost::having(PROGRAM, &[]);
    // At the first sight of the session, and once data flows.
    for bytes in [0, 200_000, 2_000_000] {
        let program = far.proxy.bytes();
        let flags = ["--full", "--rate=10M"];
        let mut command = far.over(case.evenkeel.backup(&case.site, &flags), PATIENCE_S);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut near = command.spawn().unwrap();
        until("the session works", || !far.sessions().is_empty());
        let at_work = far.proxy.bytes().max(program);
        until("data flows", || {
            far.proxy.bytes() >= at_work + bytes || far.sessions().is_empty()
        });
        near.kill().unwrap();
        near.wait().unwrap();
        let reported = format!("after {bytes} bytes");
        // By its own timer.
        far.assert_clean(&reported);
        assert_unharmed(case.site.running(), &reported);
    }
    case.check("after the last");
}

#[test]
fn the_near_side_interrupted_stops_the_far_side() {
    let case = Case::start();
    let far = FarHost::having(PROGRAM, &[]);
    let flags = ["--full", "--rate=2M"];
    let mut command = far.over(case.evenkeel.backup(&case.site, &flags), 60);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let near = command.spawn().unwrap();
    until("the session works", || !far.sessions().is_empty());
    let pid = rustix::process::Pid::from_raw(near.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = evenkeel_cases::program::Ended::of(&near.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(i32::from(exit::TERMINATED)), "{ended:?}");
    far.assert_clean("after a signal");
    case.site.assert_clean("after a signal");
}

#[test]
fn a_link_that_stays_broken_is_given_up_on_both_sides() {
    let case = Case::start();
    let far = FarHost::having(PROGRAM, &[]);
    // Whatever else the machine does: a server that answers late would have it wait.
    let flags = ["--full", "--rate=2M", "--max-impact=100"];
    let mut command = far.over(case.evenkeel.backup(&case.site, &flags), PATIENCE_S);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let near = command.spawn().unwrap();
    until("the session works", || !far.sessions().is_empty());
    let at_work = far.proxy.bytes();
    until("data flows", || far.proxy.bytes() > at_work + 100_000);
    far.proxy.refuse(true);
    far.proxy.freeze(true);
    let ended = evenkeel_cases::program::Ended::of(&near.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(i32::from(exit::UNREACHABLE)), "{ended:?}");
    far.assert_clean("after the loss");
    far.proxy.refuse(false);
    far.proxy.freeze(false);
    case.check("after the loss");
}
