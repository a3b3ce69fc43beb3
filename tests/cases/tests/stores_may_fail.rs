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
struct Fixture {
    bucket: Bucket,
    image: Image,
    url: String,
}

impl Fixture {
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
    let fixture = Fixture::new();
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
        kept.push(fixture.image.write(11 * MIB, round));
        let before = fixture.bucket.way.requests();
        let often = (0..400).map(|at| (at % 3 == 0 || at % 7 == 1).then_some(fault));
        fixture.bucket.way.inject(often);
        let ended = run(fixture.bucket.by_the_way(fixture.backup()));
        assert_eq!(ended.code, Some(0), "{fault:?}: {ended:?}");
        assert_eq!(ended.answer["generation"], round, "{fault:?}: {ended:?}");
        assert!(
            fixture.bucket.way.requests() > before + 5,
            "it went that way"
        );
        fixture.bucket.way.forget();
    }
    fixture.assert_whole(&kept);
}

#[test]
fn a_store_that_says_no_is_believed() {
    let fixture = Fixture::new();
    let bytes = fixture.image.write(2 * MIB, 1);
    assert_eq!(run(fixture.backup()).generation(), 1);
    let _ = fixture.image.write(2 * MIB, 2);
    // Somewhere in the middle, and for good: what the run did until then is not a generation.
    for after in [0, 3, 6, 9, 12] {
        fixture.bucket.way.inject((0..after).map(|_| None));
        fixture.bucket.way.always(Some(Status(403)));
        let ended = run(fixture.bucket.by_the_way(fixture.backup()));
        assert_eq!(ended.code, Some(14), "after {after}: {ended:?}");
        assert!(ended.message().len() < 1000, "{ended:?}");
        fixture.bucket.way.forget();
        fixture.bucket.way.always(None);
    }
    fixture.assert_whole(&[bytes]);
}

#[test]
fn a_killed_run_is_healed_by_the_next() {
    let fixture = Fixture::new();
    let mut kept = Vec::new();
    let points = ["backup::frozen", "backup::stored", "backup::committed"];
    for (round, point) in (1..).zip(points) {
        let bytes = fixture.image.write(10 * MIB, round);
        let ended = run(killed_at(fixture.backup(), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        if point == "backup::committed" {
            kept.push(bytes);
        }
        kept.push(fixture.image.write(10 * MIB, 100 + round));
        // Its lock, too: it does not wait for a lease to end.
        let next = run(fixture.backup());
        assert_eq!(next.code, Some(0), "{point}: {next:?}");
    }
    fixture.assert_whole(&kept);
}

#[test]
fn of_two_runs_one_waits() {
    let fixture = Fixture::new();
    let bytes = fixture.image.write(MIB, 1);
    assert_eq!(run(fixture.backup()).generation(), 1);
    let _ = fixture.image.write(20 * MIB, 2);
    let slow = fixture.bucket.by_the_way(fixture.backup());
    fixture.bucket.way.always(Some(Slow(300)));
    let mut first = { slow }
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let before = fixture.bucket.way.requests();
    evenkeel_testkit::until("the first run has its lock", || {
        fixture.bucket.way.requests() > before + 6
    });
    let second = run(fixture.backup());
    assert_eq!(second.code, Some(11), "{second:?}");
    fixture.bucket.way.always(None);
    assert!(first.wait().unwrap().success());
    let second = fs::read(fixture.image.path()).unwrap();
    fixture.assert_whole(&[bytes, second]);
}

#[test]
fn wrong_credentials_and_places_say_so() {
    let fixture = Fixture::new();
    let _ = fixture.image.write(1000, 1);
    let mut wrong = fixture.backup();
    wrong.env("AWS_SECRET_ACCESS_KEY", "wrong");
    let ended = run(wrong);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(!ended.said.contains("wrong\""), "no secrets: {ended:?}");
    let mut nowhere = fixture
        .bucket
        .command(&["generations", "s3://no-such-bucket/x"]);
    nowhere.env("AWS_REGION", "us-east-1");
    assert_eq!(run(nowhere).code, Some(10));
    let unknown = run(fixture.bucket.command(&["generations", "ftp://host/x"]));
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}
