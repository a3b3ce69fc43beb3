//! Does a copy of a repository, at whatever place and however often it was interrupted, have exactly
//! the generations of the first?

use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::failpoints::{COPY, COPY_BLOCKS};
use evenkeel_cases::far::FarHost;
use evenkeel_cases::image::{BACKUP, Image};
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_testkit::HttpFault;
use evenkeel_testkit::HttpFault::{AnswerCut, AnswerLost, Refused, Status};
use evenkeel_testkit::effort::draw;
use serde_json::{Value, json};
use std::process::Command;

const MIB: usize = 1 << 20;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A repository here that grows, and a store.
struct Fixture {
    bucket: Bucket,
    image: Image,
    here: String,
    kept: Vec<Vec<u8>>,
}

impl Fixture {
    fn new() -> Self {
        let image = Image::default();
        Self {
            bucket: Bucket::start(PROGRAM),
            here: image.beside("here").display().to_string(),
            image,
            kept: Vec::new(),
        }
    }

    fn grow(&mut self, flags: &[&str]) {
        let length = self.kept.len();
        self.kept.push(match length {
            0 => self.image.write(20 * MIB, 1),
            _ => self.image.change(length * 3 * MIB, MIB / 2),
        });
        let mut command = self.bucket.command(&BACKUP);
        command.arg(self.image.path()).arg(&self.here).args(flags);
        assert_eq!(run(command).generation(), length as u32 + 1);
    }

    fn copy(&self, from: &str, to: &str, flags: &[&str]) -> Command {
        let mut command = self.bucket.command(&["repository", "copy", from, to]);
        command.args(flags);
        command
    }

    fn place(&self, name: &str) -> String {
        self.image.beside(name).display().to_string()
    }

    fn generations(&self, repository: &str, flags: &[&str]) -> Value {
        let mut command = self.bucket.command(&["generations", repository]);
        command.args(flags);
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.answer["generations"].clone()
    }

    #[track_caller]
    fn assert_same(&self, copy: &str) {
        assert_eq!(
            self.generations(copy, &[]),
            self.generations(&self.here, &[])
        );
        self.assert_held(copy, &[]);
    }

    #[track_caller]
    fn assert_held(&self, copy: &str, flags: &[&str]) {
        let command = |words: &[&str]| {
            let mut command = self.bucket.command(words);
            command.args(flags);
            command
        };
        self.image.assert_held(&command, copy, &self.kept);
    }

    fn identity(&self, name: &str) -> (String, String) {
        let file = self.place(name);
        let ended = run(self
            .bucket
            .command(&["keys", "generate", "--output", &file]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let recipient = ended.answer["recipient"].as_str().expect("a recipient");
        (file, recipient.to_owned())
    }
}

#[track_caller]
fn done(command: Command) -> Ended {
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

fn numbers(ended: &Ended) -> Vec<u64> {
    let copied = ended.answer["copied"].as_array().expect("copied");
    let each = copied.iter();
    each.map(|one| one["generation"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn from_place_to_place() {
    let mut fixture = Fixture::new();
    let far = FarHost::having(PROGRAM, &[]);
    fixture.grow(&[]);
    fixture.grow(&[]);
    let (url, disk, there) = (
        fixture.bucket.repository(),
        fixture.place("disk"),
        fixture.place("there"),
    );
    for expected in [vec![1, 2], vec![3]] {
        let way = |from: &str, to: &str| fixture.copy(from, to, &[]);
        let ways = [
            way(&fixture.here, &url),
            way(&url, &disk),
            far.over(way(&disk, &there), 60),
        ];
        for command in ways {
            let ended = done(command);
            assert_eq!(numbers(&ended), expected, "{ended:?}");
            assert_eq!(ended.answer["way"], "objects", "{ended:?}");
            let sent = ended.answer["bytes_copied"].as_u64().expect("bytes");
            let most = if expected.len() == 2 { 22 } else { 1 };
            assert!(sent < most * MIB as u64, "{ended:?}");
        }
        for copy in [&url, &disk, &there] {
            fixture.assert_same(copy);
        }
        far.assert_clean("after a copy");
        if fixture.kept.len() == 2 {
            fixture.grow(&[]);
        }
    }
    // For people too.
    let mut command = Command::new(PROGRAM);
    command.args(["repository", "copy", &disk, &there]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(text, "0 generations copied, 3 already there: 0 B sent\n");
}

#[test]
fn a_killed_copy_resumes() {
    let mut fixture = Fixture::new();
    fixture.grow(&[]);
    fixture.grow(&[]);
    let all = COPY
        .into_iter()
        .chain(["copy::object_sent#2", "copy::object_sent#5"]);
    for (number, point) in all.enumerate() {
        let to = fixture.place(&format!("killed-{number}"));
        let command = || fixture.copy(&fixture.here, &to, &["--threads=1"]);
        let ended = run(killed_at(command(), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        let verified = run(fixture.bucket.command(&["verify", "--all", &to]));
        assert_eq!(verified.code, Some(0), "{point}: {verified:?}");
        let ended = done(command());
        let kept = ended.answer["bytes_kept"].as_u64().expect("bytes");
        let sent = ended.answer["bytes_copied"].as_u64().expect("bytes");
        match point {
            "copy::prepared" => assert_eq!(kept, 0),
            "copy::committed" => assert_eq!(numbers(&ended), [2]),
            "copy::manifests_sent" => assert!(kept > 20 << 20 && sent < MIB as u64, "{ended:?}"),
            _ => assert!(kept > 0, "{point}: {ended:?}"),
        }
        fixture.assert_same(&to);
    }
    // Block by block, generations that were whole stay, and a backup heals what was left.
    let (key, recipient) = fixture.identity("key");
    let to = fixture.place("sealed");
    let flags = ["--encrypt-to", &recipient, "--identity", &key];
    for point in COPY_BLOCKS {
        let ended = run(killed_at(
            fixture.copy(&fixture.here, &to, &flags),
            &format!("{point}#2"),
        ));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        let verified = run(fixture
            .bucket
            .command(&["verify", "--all", &to, "--identity", &key]));
        assert_eq!(verified.code, Some(0), "{point}: {verified:?}");
        assert_eq!(
            numbers(&done(fixture.copy(&fixture.here, &to, &flags))),
            [2]
        );
        fixture.assert_held(&to, &["--identity", &key]);
    }
}

#[test]
fn trouble_on_the_way_passes() {
    let mut fixture = Fixture::new();
    // Any three have one that says no, and one whose answer does not come.
    let faults: [HttpFault; 5] = [Status(503), AnswerLost, Refused, Status(429), AnswerCut];
    let faults = draw("troubles on the way", &faults, 3);
    let url = fixture.bucket.repository();
    for (round, fault) in faults.into_iter().enumerate() {
        fixture.grow(&[]);
        let often = (0..400).map(|at| (at % 3 == 0 || at % 7 == 1).then_some(fault));
        fixture.bucket.way.inject(often);
        let command = fixture.copy(&fixture.here, &url, &[]);
        let ended = done(fixture.bucket.by_the_way(command));
        assert_eq!(numbers(&ended), [round as u64 + 1], "{fault:?}");
        let back = fixture.place(&format!("again-{round}"));
        let ended = done(
            fixture
                .bucket
                .by_the_way(fixture.copy(&url, &back, &["--last=1"])),
        );
        assert_eq!(numbers(&ended), [round as u64 + 1], "{fault:?}");
        fixture.bucket.way.forget();
        let verified = run(fixture.bucket.command(&["verify", "--all", &back]));
        assert_eq!(verified.code, Some(0), "{fault:?}: {verified:?}");
    }
    fixture.assert_same(&url);
    // A store that says no for good fails the copy, and harms nothing.
    fixture.grow(&[]);
    for after in [0, 4, 8, 12] {
        fixture.bucket.way.inject((0..after).map(|_| None));
        fixture.bucket.way.always(Some(Status(403)));
        let ended = run(fixture
            .bucket
            .by_the_way(fixture.copy(&fixture.here, &url, &[])));
        assert_eq!(ended.code, Some(14), "after {after}: {ended:?}");
        fixture.bucket.way.forget();
        fixture.bucket.way.always(None);
    }
    let last = fixture.kept.len() as u64;
    assert_eq!(
        numbers(&done(fixture.copy(&fixture.here, &url, &[]))),
        [last]
    );
    fixture.assert_same(&url);
}

#[test]
fn with_other_keys() {
    let mut fixture = Fixture::new();
    let (ours, recipient) = fixture.identity("ours");
    let (theirs, other) = fixture.identity("theirs");
    let (open, url) = (["--identity", ours.as_str()], fixture.bucket.repository());
    let clear = fixture.place("clear");
    for round in 1..=2 {
        let mut flags = open.to_vec();
        if round == 1 {
            flags.extend(["--encrypt-to", &recipient]);
        }
        fixture.grow(&flags);
        // As it is: whoever carries it needs no key.
        let disk = fixture.place("disk");
        let ended = done(fixture.copy(&fixture.here, &disk, &[]));
        assert_eq!(numbers(&ended), [round], "{ended:?}");
        fixture.assert_held(&disk, &open);
        // For others; in clear, if that is said.
        let both = ["--identity", &ours, "--identity", &theirs];
        let mut flags = both.to_vec();
        if round == 1 {
            flags.extend(["--encrypt-to", &other]);
        }
        let ended = done(fixture.copy(&fixture.here, &url, &flags));
        assert_eq!(ended.answer["way"], "blocks");
        assert_eq!(
            ended.answer["copied"],
            json!([{"generation": round, "becomes": round}])
        );
        fixture.assert_held(&url, &["--identity", &theirs]);
        let in_clear = [open[0], open[1], "--decrypt"];
        done(fixture.copy(&fixture.here, &clear, &in_clear));
        fixture.assert_held(&clear, &[]);
        let was = fixture.generations(&fixture.here, &open);
        let is = fixture.generations(&clear, &[]);
        for field in ["created", "kind", "source", "bytes_logical", "files"] {
            let of = |all: &Value| all[round as usize - 1][field].clone();
            assert_eq!(of(&was), of(&is), "{field}");
        }
    }
    let before = fixture.generations(&clear, &[]);
    fixture.grow(&open);
    let ended = run(fixture.copy(&fixture.here, &clear, &open));
    assert_eq!(ended.code, Some(12), "{ended:?}");
    assert_eq!(fixture.generations(&clear, &[]), before);
}
