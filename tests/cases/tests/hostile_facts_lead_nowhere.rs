//! Does any fact that a forged manifest can hold lead a restore or a mount, run by root, to anything outside of its
//! target?

use evenkeel_cases::forged::forge;
use evenkeel_cases::leftovers::all_files;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, effort, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where each leaf is, as a JSON pointer. Long lists are cut: one place more in them is no other place.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    let step = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) if !fields.is_empty() => fields
            .iter()
            .for_each(|(key, value)| leaves(value, &step(key), found)),
        Value::Array(values) if !values.is_empty() => values
            .iter()
            .take(2)
            .enumerate()
            .for_each(|(index, value)| leaves(value, &step(&index.to_string()), found)),
        _ => found.push(at.to_owned()),
    }
}

/// What stands in a leaf's place: `outside` is somebody else's directory.
fn lies(outside: &Path) -> Vec<Value> {
    let place = outside.display();
    vec![
        json!(place.to_string()),
        json!(format!("{place}/file")),
        json!("../outside/file"),
        json!(format!("{place}/file:12M:autoextend")),
        json!("/"),
        json!(".."),
        json!(""),
        json!("\u{0}a\nb"),
        json!("x".repeat(5000)),
        json!(-1),
        json!(u64::MAX),
        json!(1.5e300),
        json!(true),
        Value::Null,
        json!([]),
        json!({ "../outside": place.to_string() }),
    ]
}

/// Every name with its size, times and owner: whatever changes in one of them is seen.
fn state(top: &Path) -> BTreeMap<PathBuf, (u64, i64, u32, u32)> {
    let mut names: Vec<PathBuf> = all_files(top).into_keys().collect();
    names.push(PathBuf::new());
    let looked = names.into_iter().map(|name| {
        let found = fs::symlink_metadata(top.join(&name)).unwrap();
        let times = found.mtime_nsec() ^ found.ctime_nsec() ^ found.ctime();
        (name, (found.size(), times, found.uid(), found.mode()))
    });
    looked.collect()
}

/// Names at the top of the filesystem.
fn names(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).unwrap();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn assert_is_no_panic(ended: &Ended, reported: &str) {
    assert!(ended.signal.is_none(), "{reported}: {ended:?}");
    assert_ne!(ended.code, Some(101), "{reported}: {ended:?}");
    assert!(
        !format!("{ended:?}").contains("panicked at"),
        "{reported}: {ended:?}"
    );
}

/// Mounts until it is there, or refused, and ends it.
fn mounted(mut command: Command, mountpoint: &Path) -> Ended {
    let device = |path: &Path| fs::symlink_metadata(path).map(|found| found.dev()).ok();
    let above = device(mountpoint.parent().unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut is_over = false;
    until("it is mounted, or refused", || {
        is_over = child.try_wait().unwrap().is_some();
        is_over || device(mountpoint) != above
    });
    if !is_over {
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }
    Ended::of(&child.wait_with_output().unwrap())
}

/// In an order that a seed decides.
fn shuffled<T>(tries: Vec<T>) -> impl Iterator<Item = T> {
    let place = |nth: usize| {
        let mut hasher = DefaultHasher::new();
        (effort::seed(), nth).hash(&mut hasher);
        hasher.finish()
    };
    let mut tries: Vec<(usize, T)> = tries.into_iter().enumerate().collect();
    tries.sort_by_key(|(nth, _)| place(*nth));
    tries.into_iter().map(|(_, one)| one)
}

#[test]
fn whatever_they_say() {
    let fs = LoopFs::xfs(3 << 30);
    let server = mariadb_10_11();
    let launch = server.prepare(&fs.join("data"), &SMALL);
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let repository = site.repository();
    let outside = site.fs.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "somebody else's").unwrap();
    let mut facts = Value::Null;
    forge(&repository, 1, |found| facts = found.clone());
    let mut paths = Vec::new();
    leaves(&facts, "", &mut paths);
    assert!(paths.len() > 30, "{paths:?}");
    let lies = lies(&outside);
    // Names of roots and settings too.
    paths.extend(["/roots".to_owned(), "/settings".to_owned()]);
    let each = paths.iter();
    let tries: Vec<(String, Value)> = each
        .flat_map(|path| lies.iter().map(|lie| (path.clone(), lie.clone())))
        .collect();
    let rounds = effort::rounds("forged facts", 10, tries.len() as u32);
    let (target, mountpoint) = (site.fs.join("restored"), site.fs.join("mounted"));
    fs::create_dir(&mountpoint).unwrap();
    let before = (
        state(&outside),
        state(&site.fs.join("data")),
        names(site.fs.path()),
    );
    for (path, lie) in shuffled(tries).take(rounds as usize) {
        let reported = format!("{path} is {lie}");
        forge(&repository, 1, |found| {
            *found = facts.clone();
            *found.pointer_mut(&path).unwrap() = lie;
        });
        let ended = run(evenkeel.restore(&repository, &target, &[]));
        assert_is_no_panic(&ended, &reported);
        // What it made lies in the target, and beside it under the target's own name.
        for made in names(site.fs.path()) {
            let name = made.file_name().unwrap().to_string_lossy().into_owned();
            if name == "restored" || name.starts_with("restored-") {
                fs::remove_dir_all(&made).unwrap();
            }
        }
        let mut mount = evenkeel.command(&["mount", "--writable-scratch"]);
        mount.arg(site.fs.join("scratch"));
        mount.arg(&repository).arg(&mountpoint);
        let ended = mounted(mount, &mountpoint);
        assert_is_no_panic(&ended, &reported);
        let _ = fs::remove_dir_all(site.fs.join("scratch"));
        let after = (
            state(&outside),
            state(&site.fs.join("data")),
            names(site.fs.path()),
        );
        assert!(after == before, "{reported}: {after:?}");
    }
}
