//! Does a masked dump that was interrupted anywhere resume with the same masks or not at all, and has
//! nothing of the originals on the disk meanwhile?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{contents, done, dump};
use evenkeel_cases::masked::{self, MASKS, Originals, write_key};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer, until};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server with the schema, and two keys.
struct Site {
    running: Running,
    keys: [String; 2],
    dir: PathBuf,
    scratch: Scratch,
}

impl Site {
    fn start(server: &TestServer) -> Self {
        let scratch = Scratch::new();
        let args: Vec<&str> = SMALL
            .iter()
            .chain(&["--binlog-format=ROW"])
            .copied()
            .collect();
        let launch = server
            .prepare(&scratch.join("data"), &args)
            .with_networking();
        let running = server.run(&launch);
        let mut session = running.session().unwrap();
        masked::make(&mut session);
        let now = "SELECT FLOOR(UNIX_TIMESTAMP())";
        let written = session.value(now).unwrap();
        until("the next second", || session.value(now).unwrap() != written);
        let keys = ["one", "two"].map(|name| scratch.join(name));
        write_key(&keys[0], 1);
        write_key(&keys[1], 2);
        Self {
            running,
            keys: keys.map(|key| format!("--mask-key-file={}", key.display())),
            dir: scratch.join("d"),
            scratch,
        }
    }

    fn dump(&self, dir: &Path, more: &[&str]) -> Command {
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut flags: Vec<&str> = MASKS.iter().flat_map(|mask| ["--mask", *mask]).collect();
        flags.extend(["--chunk-size=64K", "--threads=3"]);
        flags.extend(more);
        dump(&program, &self.running, dir, &flags)
    }

    #[track_caller]
    fn dies_at(&self, point: &str, key: &str) {
        let ended = run(killed_at(self.dump(&self.dir, &["--resume", key]), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        assert_eq!(Originals::all().below(&self.dir), None, "{point}");
        assert!(self.dir.join(".journal").exists(), "{point}");
    }

    fn kept(ended: &Ended) -> u64 {
        ended.answer["resumed"]["chunks_kept"].as_u64().unwrap()
    }
}

fn resume(server: &TestServer) {
    let site = Site::start(server);
    let [one, two] = &site.keys;
    for point in [
        "dump.range-done#3",
        "dump.handed-out#5",
        "dump.before-manifest",
    ] {
        site.dies_at(point, one);
    }
    let ended = done(run(site.dump(&site.dir, &["--resume", one])));
    assert!(Site::kept(&ended) > 5, "{}", ended.answer);
    let fresh = site.scratch.join("fresh");
    done(run(site.dump(&fresh, &[one])));
    assert!(contents(&site.dir) == contents(&fresh), "{}", server.name);
    assert_eq!(Originals::all().below(&site.dir), None);

    // Another key: nothing of the first stays.
    std::fs::remove_dir_all(&site.dir).unwrap();
    site.dies_at("dump.before-manifest", one);
    let ended = done(run(site.dump(&site.dir, &["--resume", two])));
    assert_eq!(Site::kept(&ended), 0, "{}", ended.answer);
    let other = site.scratch.join("other");
    done(run(site.dump(&other, &[two])));
    let (ours, first) = (contents(&site.dir), contents(&fresh));
    assert!(ours == contents(&other), "{}", server.name);
    assert!(ours.iter().all(|(name, rows)| first[name] != *rows));

    // None: two runs are unlike each other.
    let without = site.scratch.join("without");
    let ended = done(run(site.dump(&without, &[])));
    assert_eq!(ended.answer["masked"]["key"], "random", "{}", ended.answer);
    assert!(
        contents(&without)
            .iter()
            .all(|(name, rows)| ours[name] != *rows)
    );

    // What a dump without masks left is cleared.
    std::fs::remove_dir_all(&site.dir).unwrap();
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let plain = dump(&program, &site.running, &site.dir, &["--chunk-size=64K"]);
    let ended = run(killed_at(plain, "dump.before-manifest"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    assert!(Originals::all().below(&site.dir).is_some());
    let ended = done(run(site.dump(&site.dir, &["--resume", two])));
    assert_eq!(Site::kept(&ended), 0, "{}", ended.answer);
    assert_eq!(Originals::all().below(&site.dir), None);
    assert!(contents(&site.dir) == contents(&other));
}

#[test]
fn on_mariadb() {
    resume(&mariadb_10_11());
}

#[test]
fn on_mysql_8() {
    resume(&mysql_8_0_15());
}
