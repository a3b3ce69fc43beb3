//! Is the base one whole snapshot or none, and is nothing left over, after a run was killed with
//! SIGKILL at any of its steps?

mod ground;

use evenkeel_snapshot::{Changed, Layout, Method, Settings, heal, open};
use evenkeel_testkit::LoopFs;
use ground::{FILES, content, files, holding, layout, names, settings, write_version};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The steps of a first run, of a later one, and who takes them.
const FIRST: [&str; 3] = [
    "snapshot::holding::directory_made",
    "snapshot::holding::marker_written",
    "snapshot::holding::run_made",
];
const FIRST_REFLINK: [&str; 3] = [
    "snapshot::reflink::preparing",
    "snapshot::reflink::moving",
    "snapshot::reflink::cloning",
];
const FIRST_BTRFS: [&str; 2] = [
    "snapshot::btrfs::snapped",
    "snapshot::holding::facts_written",
];
/// While clones are moved they are of no generation; afterwards the next run can go on from them.
const LATER_REFLINK: [&str; 6] = [
    "snapshot::reflink::moving",
    "snapshot::reflink::cloning",
    "snapshot::reflink::changes_written",
    "snapshot::reflink::settled",
    "snapshot::reflink::committed",
    "snapshot::reflink::store_committed",
];
const LATER_BTRFS: [&str; 6] = [
    "snapshot::holding::run_made",
    "snapshot::btrfs::snapped",
    "snapshot::holding::facts_written",
    "snapshot::holding::base_replaced",
    "snapshot::holding::deleting",
    "snapshot::holding::snapshot_deleted",
];

fn run(method: Method, layout: &Layout, token: &str) {
    let files = files(&layout.datadir);
    let mut run = open(method, layout, &settings(), None).unwrap();
    run.prepare(&files);
    run.take(&files).unwrap();
    let made = run.instant().unwrap();
    let run = run.seal(made).unwrap();
    run.check().unwrap().commit(token).unwrap();
}

/// What the killed process does; nothing unless another test started it.
#[test]
fn victim() {
    let Ok(step) = std::env::var("VICTIM_STEP") else {
        return;
    };
    let get = |name| std::env::var(name).unwrap();
    let method = Method::named(&get("VICTIM_METHOD")).unwrap();
    let layout = layout(Path::new(&get("VICTIM_DATADIR")));
    if step.is_empty() {
        for number in 0.. {
            run(method, &layout, &number.to_string());
        }
    }
    fail::cfg_callback(&step, || {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    })
    .unwrap();
    run(method, &layout, "two");
}

fn start(method: Method, datadir: &Path, step: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim"])
        .env("VICTIM_METHOD", method.name())
        .env("VICTIM_DATADIR", datadir)
        .env("VICTIM_STEP", step)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs the victim until it kills itself at `step`.
fn kill_at(method: Method, datadir: &Path, step: &str) {
    let status = start(method, datadir, step).wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{step} was never reached");
}

/// Asserts that nothing but the base is left, and that it is of one of these versions, by token, if
/// it is there. Returns whether it is.
fn assert_healed(fs: &LoopFs, method: Method, versions: &[(&str, u8)], reported: &str) -> bool {
    let left = names(&holding(fs));
    let base = holding(fs).join("base");
    if !base.exists() {
        assert_eq!(left, ["EVENKEEL-HOLDING", "lock"], "{reported}");
        return false;
    }
    assert_eq!(left, ["EVENKEEL-HOLDING", "base", "lock"], "{reported}");
    let facts: serde_json::Value =
        serde_json::from_slice(&fs::read(base.join("base.json")).unwrap()).unwrap();
    let token = facts["token"].as_str().unwrap();
    let version = versions.iter().find(|(known, _)| *known == token);
    let (_, version) = version.unwrap_or_else(|| panic!("{reported}: base of {token}"));
    let layout = layout(&fs.join("mysql"));
    let files = files(&layout.datadir);
    let mut next = open(method, &layout, &settings(), Some(token)).unwrap();
    next.take(&files).unwrap();
    let made = next.instant().unwrap();
    let next = next.seal(made).unwrap();
    for (file, name) in files.iter().zip(FILES) {
        let now = fs::read(next.frozen_path(file)).unwrap();
        assert!(now == fs::read(&file.path).unwrap(), "{reported}: {name}");
        let Changed::Ranges(ranges) = next.changed(file).unwrap() else {
            panic!("{reported}: base {token} has no {name}");
        };
        let mut base = content(name, *version);
        for range in ranges {
            let range = range.start as usize..range.end as usize;
            base[range.clone()].copy_from_slice(&now[range]);
        }
        assert!(base == now, "{reported}: a change of {name} is not told");
    }
    next.abandon().unwrap();
    true
}

fn every_step(fs: &LoopFs, method: Method, first: &[&str], later: &[&str]) {
    let datadir = ground::datadir(fs);
    let layout = layout(&datadir);
    for step in FIRST.iter().chain(first) {
        kill_at(method, &datadir, step);
        // Both ways to heal.
        heal(&layout, &settings()).unwrap();
        drop(open(method, &layout, &settings(), None).unwrap());
        assert!(!assert_healed(fs, method, &[], step), "{step}");
        fs::remove_dir_all(holding(fs)).unwrap();
    }
    for step in later {
        write_version(&datadir, 2);
        run(method, &layout, "one");
        write_version(&datadir, 3);
        kill_at(method, &datadir, step);
        write_version(&datadir, 4);
        heal(&layout, &settings()).unwrap();
        assert!(heal(&layout, &settings()).unwrap().is_empty(), "{step}");
        for _ in 0..2 {
            let kept = assert_healed(fs, method, &[("one", 2), ("two", 3)], step);
            let moving = LATER_REFLINK[..3].contains(step);
            assert_eq!(kept, !moving, "{step}");
        }
    }
}

#[test]
fn reflink_on_xfs() {
    every_step(
        &ground::xfs(),
        Method::Reflink,
        &FIRST_REFLINK,
        &LATER_REFLINK,
    );
}

#[test]
fn btrfs_on_btrfs() {
    every_step(&ground::btrfs(), Method::Btrfs, &FIRST_BTRFS, &LATER_BTRFS);
}

#[test]
fn at_any_moment() {
    for (fs, method) in [
        (ground::xfs(), Method::Reflink),
        (ground::btrfs(), Method::Btrfs),
    ] {
        let datadir = ground::datadir(&fs);
        let layout = layout(&datadir);
        run(method, &layout, "0");
        let tokens: Vec<_> = (0..10_000).map(|token| token.to_string()).collect();
        let versions: Vec<_> = tokens.iter().map(|token| (token.as_str(), 1)).collect();
        for round in 0..15u64 {
            let mut victim = start(method, &datadir, "");
            // Not for synchronisation: to hit another moment each time.
            std::thread::sleep(Duration::from_micros(4_000 + round * round * 331 % 40_000));
            victim.kill().unwrap();
            victim.wait().unwrap();
            heal(&layout, &settings()).unwrap();
            assert_healed(&fs, method, &versions, &format!("round {round}"));
        }
    }
}

#[test]
fn between_the_commits_of_two_filesystems() {
    let (one, other) = (ground::xfs(), ground::xfs());
    let datadir = ground::datadir(&one);
    fs::create_dir_all(other.join("redo")).unwrap();
    let mut layout = layout(&datadir);
    layout.dirs.push(other.join("redo"));
    let mut files = files(&datadir);
    files[1] = evenkeel_snapshot::SourceFile {
        name: "redo/ib_logfile0".into(),
        path: other.join("redo/ib_logfile0"),
    };
    fs::write(&files[1].path, "redo").unwrap();
    let freeze = |token: Option<&str>| {
        let mut run = open(Method::Reflink, &layout, &Settings::default(), token).unwrap();
        run.take(&files).unwrap();
        let made = run.instant().unwrap();
        run.seal(made).unwrap()
    };
    freeze(None).check().unwrap().commit("one").unwrap();
    // What the crash leaves: the second filesystem's base is that of the run before.
    let kept = holding(&other);
    fs::rename(&kept, other.join("aside")).unwrap();
    freeze(None).check().unwrap().commit("two").unwrap();
    fs::remove_dir_all(&kept).unwrap();
    fs::rename(other.join("aside"), &kept).unwrap();

    let run = freeze(Some("two"));
    assert_eq!(run.changed(&files[0]).unwrap(), Changed::Ranges(vec![]));
    assert_eq!(run.changed(&files[1]).unwrap(), Changed::Unknown);
}
