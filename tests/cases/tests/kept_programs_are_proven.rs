//! Is the program that stays on another host run only if it is the one that was sent, whoever else is on that host?

use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::servers::give_to_server;
use evenkeel_testkit::{LoopFs, Scratch};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
const PATIENCE_S: u32 = 60;
const MIB: u64 = 1 << 20;

/// A volume, its repository here, and another host to read it on.
struct Case {
    scratch: Scratch,
    far: FarHost,
}

impl Case {
    fn new(environment: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new();
        fs::write(scratch.join("volume"), [7; 100_000]).unwrap();
        Self {
            scratch,
            far: FarHost::start(environment),
        }
    }

    /// Backs up, which must work, and says whether the program crossed.
    #[track_caller]
    fn sends(&self, flags: &[&str]) -> (bool, Ended) {
        let before = self.far.proxy.bytes();
        let evenkeel = Evenkeel::new(PROGRAM);
        let mut command = evenkeel.command(&["backup", "--no-defaults", "--volume"]);
        command
            .arg(self.scratch.join("volume"))
            .arg(self.scratch.join("repository"))
            .args(flags);
        let ended = run(self.far.over(command, PATIENCE_S));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        self.far.assert_clean("after a backup");
        let crossed = self.far.proxy.bytes() - before;
        (crossed > fs::metadata(PROGRAM).unwrap().len() / 10, ended)
    }

    /// Returns the one kept program, which must be what was sent and of nobody else.
    #[track_caller]
    fn kept(&self) -> PathBuf {
        let directory = self.far.kept();
        let names = names_in(&directory);
        let [name] = &names[..] else {
            panic!("{names:?}");
        };
        let path = directory.join(name);
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(found.is_file());
        assert_eq!((found.uid(), found.nlink()), (0, 1));
        assert_eq!(found.mode() & 0o7777, 0o700);
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o7777, 0o700);
        assert!(fs::read(&path).unwrap() == fs::read(PROGRAM).unwrap());
        path
    }
}

/// Makes a program that leaves a mark when it is run.
fn plant(path: &Path, mark: &Path) {
    let text = format!("#!/bin/sh\necho run >>{}\n", mark.display());
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_was_sent_is_used_again() {
    let case = Case::new(&[]);
    let (sent, ended) = case.sends(&[]);
    assert!(sent);
    assert!(
        ended.said.contains("stays on root@127.0.0.1"),
        "{}",
        ended.said
    );
    let path = case.kept();
    let (sent, ended) = case.sends(&[]);
    assert!(!sent, "it is there");
    assert!(!ended.said.contains("stays on"), "{}", ended.said);
    // Of others, those used last stay, no more than one.
    for name in ["program-01", "program-02", "program-03.999999999"] {
        fs::write(path.with_file_name(name), "an older one").unwrap();
    }
    case.sends(&[]);
    let names = names_in(&case.far.kept());
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(path.exists());
    let (sent, _) = case.sends(&["--no-ssh-keep-program"]);
    assert!(sent, "it is neither used nor left");
    assert!(!case.far.kept().exists());
}

#[test]
fn what_is_not_what_was_sent_is_not_run() {
    let case = Case::new(&[]);
    let mark = case.scratch.join("mark");
    let aside = case.scratch.join("aside");
    case.sends(&[]);
    let path = case.kept();
    let mode = |bits| fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
    type Change<'a> = (&'static str, &'a dyn Fn());
    let changes: [Change<'_>; 6] = [
        ("other bytes", &|| plant(&path, &mark)),
        ("writable by its group", &|| mode(0o770)),
        ("writable by all", &|| mode(0o702)),
        ("somebody else's", &|| give_to_server(&path)),
        ("of two names", &|| fs::hard_link(&path, &aside).unwrap()),
        ("a link", &|| {
            fs::remove_file(&aside).unwrap();
            fs::rename(&path, &aside).unwrap();
            symlink(&aside, &path).unwrap();
        }),
    ];
    for (reported, change) in changes {
        change();
        let (sent, _) = case.sends(&[]);
        assert!(sent, "{reported}: it was used");
        assert_eq!(case.kept(), path, "{reported}");
        assert!(!mark.exists(), "{reported}: it was run");
    }
}

/// Somebody without rights is there first, with a file of the right name.
#[test]
fn nothing_is_run_where_others_may_write() {
    let place = Scratch::new();
    let (open, mark) = (place.join("open"), place.join("mark"));
    let cache = open.join("cache");
    let case = Case::new(&[("XDG_CACHE_HOME", cache.to_str().unwrap())]);
    fs::create_dir(&open).unwrap();
    // Anybody can compute it from the packages.
    let hash = Command::new("sha256sum")
        .arg(PROGRAM)
        .output()
        .unwrap()
        .stdout;
    let name = format!("program-{}", String::from_utf8_lossy(&hash[..64]));
    let stranger = |directory: &Path| {
        fs::create_dir_all(directory).unwrap();
        plant(&directory.join(&name), &mark);
    };
    // The directory is his; it is root's below one that all may write to; a link of his leads to one of root's.
    stranger(&cache.join("evenkeel"));
    give_to_server(&cache);
    assert_refused(&case, &mark);
    fs::remove_dir_all(&cache).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    stranger(&cache.join("evenkeel"));
    assert_refused(&case, &mark);
    fs::rename(&cache, place.join("roots")).unwrap();
    symlink(place.join("roots"), &cache).unwrap();
    give_to_server(&cache);
    assert_refused(&case, &mark);
    // Where programs lie that do not stay: a directory of his, and a link.
    let temporary = case.far.temporary().to_owned();
    fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).unwrap();
    let own = temporary.join("evenkeel-0");
    stranger(&own);
    give_to_server(&own);
    assert_elsewhere(&case, &mark);
    fs::rename(&own, place.join("his")).unwrap();
    symlink(place.join("his"), &own).unwrap();
    give_to_server(&own);
    assert_elsewhere(&case, &mark);
    fs::remove_file(&own).unwrap();
}

/// The program is sent, runs from the directory for temporary files, and the user hears why.
#[track_caller]
fn assert_refused(case: &Case, mark: &Path) {
    let (sent, ended) = case.sends(&[]);
    assert!(sent);
    assert!(ended.said.contains("cannot be kept on"), "{}", ended.said);
    assert!(!mark.exists());
}

/// The program runs from another directory for temporary files.
#[track_caller]
fn assert_elsewhere(case: &Case, mark: &Path) {
    let evenkeel = Evenkeel::new(PROGRAM);
    let mut command = evenkeel.command(&["backup", "--no-defaults", "--volume"]);
    command
        .arg(case.scratch.join("volume"))
        .arg(case.scratch.join("repository"))
        .arg("--no-ssh-keep-program");
    let ended = run(case.far.over(command, PATIENCE_S));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!mark.exists());
}

#[test]
fn a_full_or_read_only_disk_costs_the_way_over() {
    let disk = LoopFs::ext4(4 * MIB);
    let case = Case::new(&[("XDG_CACHE_HOME", disk.path().to_str().unwrap())]);
    let (sent, ended) = case.sends(&[]);
    assert!(sent);
    assert!(ended.said.contains("has no room for it"), "{}", ended.said);
    assert!(names_in(&disk.join("evenkeel")).is_empty());
    disk.set_read_only(true);
    let (sent, ended) = case.sends(&[]);
    assert!(sent);
    assert!(
        ended.said.contains("cannot be written to"),
        "{}",
        ended.said
    );
}
