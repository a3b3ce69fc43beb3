//! Does what a killed `verify --boot` left go with the next one, and nothing else?

use evenkeel_cases::Site;
use evenkeel_cases::failpoints::PROOF;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_op::living::Living;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;
use std::path::Path;

/// Directories of private servers of one process.
fn run_dirs(pid: &str) -> Vec<String> {
    let mut names = names_in(Path::new("/tmp"));
    names.retain(|name| name.starts_with(&format!("evenkeel-{pid}-")));
    names
}

#[test]
fn on_mariadb_10_11() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let verify = |more: &[&str]| {
        let mut verify = evenkeel.command(&["verify", "--boot"]);
        verify.args(more).arg(site.repository());
        verify
    };
    let left = || {
        let mut names = names_in(site.fs.path());
        names.retain(|name| name.starts_with("repository.boot-"));
        names
    };
    let in_use = Living::make(&site.fs.join("repository.boot-1"))
        .unwrap()
        .unwrap();
    fs::write(in_use.anchor().join(".evenkeel-scratch"), "").unwrap();
    for more in [&[][..], &["--mount"]] {
        let killed = run(killed_at(verify(more), PROOF[0]));
        assert_eq!(killed.signal, Some(9), "{killed:?}");
        let dead: Vec<String> = left()
            .into_iter()
            .filter(|name| !name.ends_with("-1"))
            .collect();
        let [dead] = dead.as_slice() else {
            panic!("{dead:?}");
        };
        let pid = dead.rsplit_once('-').unwrap().1;
        assert_eq!(run_dirs(pid).len(), 1, "{pid}");
        let ended = run(verify(&[]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(left(), ["repository.boot-1"]);
        assert!(run_dirs(pid).is_empty(), "{pid}");
    }
    assert!(in_use.path().join(".evenkeel-scratch").exists());
}
