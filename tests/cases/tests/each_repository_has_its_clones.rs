//! Does a server that is backed up into two repositories in turn read only what changed, for each of them?

use evenkeel_cases::Site;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::path::Path;

const GIB: u64 = 1 << 30;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn backup(site: &Site, repository: &Path, flags: &[&str]) -> Ended {
    let mut command = evenkeel().command(&["backup", "--no-defaults", "-u", "root", "-S"]);
    command
        .arg(site.running().socket())
        .args(flags)
        .arg(repository);
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

fn read(ended: &Ended) -> u64 {
    ended.answer["bytes_read"].as_u64().expect("bytes")
}

fn why(ended: &Ended) -> Option<&str> {
    let why = &ended.answer["read_everything_because"];
    assert!(why.is_null() || why.is_string(), "{ended:?}");
    why.as_str()
}

fn in_turn(fs: LoopFs) {
    let site = Site::start(mariadb_10_11(), fs, 1000, &[]);
    let (here, there) = (site.fs.join("here"), site.fs.join("there"));
    let all = read(&backup(&site, &here, &[]));
    let first = backup(&site, &there, &[]);
    assert_eq!(why(&first), None, "a first run has nothing before it");
    for _ in 0..2 {
        for repository in [&here, &there] {
            let next = backup(&site, repository, &[]);
            assert_eq!(why(&next), None, "{next:?}");
            assert!(read(&next) < all / 4, "{} of {all}: {next:?}", read(&next));
        }
    }
    // What a user removes for its space, or a command of the user's does not keep, is why all is read.
    let holding = std::fs::read_dir(site.fs.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let holding: Vec<_> = holding
        .filter(|path| path.to_string_lossy().contains("/.evenkeel-"))
        .collect();
    assert_eq!(holding.len(), 1, "{holding:?}");
    for entry in std::fs::read_dir(&holding[0]).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("base-") {
            std::fs::rename(entry.path(), holding[0].join("old-1-x")).unwrap();
            break;
        }
    }
    let both: Vec<Option<String>> = [&here, &there]
        .iter()
        .map(|repository| why(&backup(&site, repository, &[])).map(str::to_owned))
        .collect();
    let reported: Vec<&String> = both.iter().flatten().collect();
    assert_eq!(reported.len(), 1, "{both:?}");
    assert!(reported[0].contains("the previous generation"), "{both:?}");
}

#[test]
fn by_clones_on_xfs() {
    in_turn(LoopFs::xfs(2 * GIB));
}

#[test]
fn by_snapshots_on_btrfs() {
    in_turn(LoopFs::btrfs(2 * GIB));
}
