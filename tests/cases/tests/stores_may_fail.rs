//! Is a generation in an object store there as a whole or not at all, whatever becomes of requests,
//! answers, processes and credentials?

use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::image::{BACKUP, Image};
use evenkeel_cases::program::{killed_at, run};
use evenkeel_testkit::HttpFault;
use evenkeel_testkit::HttpFault::{AnswerCut, AnswerLost, Refused, Slow, Status};
use std::fs;
use std::process::{Command, Stdio};

const MIB: usize = 1 << 20;

/// A file that is backed up into a bucket.
struct Ground {
    bucket: Bucket,
    image: Image,
    url: String,
}

impl Ground {
    fn new() -> Self {
        let bucket = Bucket::start(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        Self {
            url: bucket.repository(),
            bucket,
            image: Image::default(),
        }
    }

    fn backup(&self) -> Command {
        let mut command = self.bucket.command(&BACKUP);
        command.arg(self.image.path()).arg(&self.url);
        command
    }

    /// What can be restored is what was there, and everything that is listed can be.
    #[track_caller]
    fn assert_whole(&self, expected: &[Vec<u8>]) {
        let command = |words: &[&str]| self.bucket.command(words);
        self.image.assert_held(&command, &self.url, expected);
    }
}

#[test]
fn trouble_on_the_way_passes() {
    let ground = Ground::new();
    let faults: [HttpFault; 7] = [
        Status(500),
        Status(503),
        Status(429),
        Refused,
        AnswerLost,
        AnswerCut,
        Slow(30),
    ];
    let mut kept = Vec::new();
    // Each fault at every other request, then at each; a few in a row.
    for (round, fault) in (1..).zip(faults) {
        kept.push(ground.image.write(11 * MIB, round));
        let before = ground.bucket.way.requests();
        let often = (0..400).map(|at| (at % 3 == 0 || at % 7 == 1).then_some(fault));
        ground.bucket.way.inject(often);
        let ended = run(ground.bucket.by_the_way(ground.backup()));
        assert_eq!(ended.code, Some(0), "{fault:?}: {ended:?}");
        assert_eq!(ended.answer["generation"], round, "{fault:?}: {ended:?}");
        assert!(
            ground.bucket.way.requests() > before + 5,
            "it went that way"
        );
        ground.bucket.way.forget();
    }
    ground.assert_whole(&kept);
}

#[test]
fn a_store_that_says_no_is_believed() {
    let ground = Ground::new();
    let bytes = ground.image.write(2 * MIB, 1);
    assert_eq!(run(ground.backup()).generation(), 1);
    let _ = ground.image.write(2 * MIB, 2);
    // Somewhere in the middle, and for good: what the run did until then is not a generation.
    for after in [0, 3, 6, 9, 12] {
        ground.bucket.way.inject((0..after).map(|_| None));
        ground.bucket.way.always(Some(Status(403)));
        let ended = run(ground.bucket.by_the_way(ground.backup()));
        assert_eq!(ended.code, Some(14), "after {after}: {ended:?}");
        assert!(ended.message().len() < 1000, "{ended:?}");
        ground.bucket.way.forget();
        ground.bucket.way.always(None);
    }
    ground.assert_whole(&[bytes]);
}

#[test]
fn a_killed_run_is_healed_by_the_next() {
    let ground = Ground::new();
    let mut kept = Vec::new();
    let points = ["backup::frozen", "backup::stored", "backup::committed"];
    for (round, point) in (1..).zip(points) {
        let bytes = ground.image.write(10 * MIB, round);
        let ended = run(killed_at(ground.backup(), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        if point == "backup::committed" {
            kept.push(bytes);
        }
        kept.push(ground.image.write(10 * MIB, 100 + round));
        // Its lock, too: it does not wait for a lease to end.
        let next = run(ground.backup());
        assert_eq!(next.code, Some(0), "{point}: {next:?}");
    }
    ground.assert_whole(&kept);
}

#[test]
fn of_two_runs_one_waits() {
    let ground = Ground::new();
    let bytes = ground.image.write(MIB, 1);
    assert_eq!(run(ground.backup()).generation(), 1);
    let _ = ground.image.write(20 * MIB, 2);
    let slow = ground.bucket.by_the_way(ground.backup());
    ground.bucket.way.always(Some(Slow(300)));
    let mut first = { slow }
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let before = ground.bucket.way.requests();
    evenkeel_testkit::until("the first run has its lock", || {
        ground.bucket.way.requests() > before + 6
    });
    let second = run(ground.backup());
    assert_eq!(second.code, Some(11), "{second:?}");
    ground.bucket.way.always(None);
    assert!(first.wait().unwrap().success());
    let second = fs::read(ground.image.path()).unwrap();
    ground.assert_whole(&[bytes, second]);
}

#[test]
fn wrong_credentials_and_places_say_so() {
    let ground = Ground::new();
    let _ = ground.image.write(1000, 1);
    let mut wrong = ground.backup();
    wrong.env("AWS_SECRET_ACCESS_KEY", "wrong");
    let ended = run(wrong);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(!ended.said.contains("wrong\""), "no secrets: {ended:?}");
    let mut nowhere = ground
        .bucket
        .command(&["generations", "s3://no-such-bucket/x"]);
    nowhere.env("AWS_REGION", "us-east-1");
    assert_eq!(run(nowhere).code, Some(10));
    let unknown = run(ground.bucket.command(&["generations", "ftp://host/x"]));
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}
