//! Do backups by LVM snapshots restore, read only what changed where they can, and leave nothing behind
//! and nobody else's snapshot harmed?

use evenkeel_cases::Site;
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Lvm, Scratch};
use evenkeel_vm::evenkeel;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const MIB: u64 = 1 << 20;
const CHUNK: u64 = 64 << 10;
const FILESYSTEMS: [&str; 2] = ["ext4", "xfs"];

/// A volume group, and a repository beside it.
struct Fixture {
    lvm: Lvm,
    scratch: Scratch,
}

impl Fixture {
    fn new() -> Self {
        // A hyphen, which device-mapper doubles.
        let lvm = Lvm::new("evk-1");
        let scratch = Scratch::new();
        Self { lvm, scratch }
    }

    fn thin(&self, bytes: u64) -> PathBuf {
        self.lvm
            .pool("the-pool", bytes + 64 * MIB, &["--chunksize=64k"]);
        self.lvm.thin("the-pool", "vm-1", bytes)
    }

    fn repository(&self) -> PathBuf {
        self.scratch.join("repository")
    }

    fn command(&self, volume: &Path, more: &[&str]) -> Command {
        let mut command = evenkeel().command(&["backup", "--no-defaults", "--volume"]);
        command.arg(volume).arg(self.repository()).args(more);
        command
    }

    fn backup(&self, volume: &Path, more: &[&str]) -> Ended {
        run(self.command(volume, more))
    }

    /// Restores a generation and returns what it holds.
    fn restored(&self, generation: u32, name: &str) -> Vec<u8> {
        let target = self.scratch.join("restored");
        let mut command = evenkeel().command(&["restore", "--target"]);
        command.arg(&target).arg(self.repository());
        command.arg(format!("--generation={generation}"));
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let bytes = fs::read(target.join(name)).expect("the volume");
        fs::remove_dir_all(target).expect("it can go");
        bytes
    }

    /// Returns the names of snapshots that look like ours.
    fn ours(&self) -> Vec<String> {
        let mut names = self.lvm.volumes();
        names.retain(|name| name.starts_with("evenkeel-"));
        names
    }

    /// Whether a metadata snapshot is reserved in the pool.
    fn is_reserved(&self) -> bool {
        let output = Command::new("dmsetup")
            .args(["status", "evk--1-the--pool-tpool"])
            .output()
            .expect("dmsetup runs");
        let text = String::from_utf8(output.stdout).expect("text");
        text.split_whitespace().nth(6).expect("a held root") != "-"
    }
}

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).expect("it opens")
}

fn scribble(file: &File, offset: u64, length: u64, round: u8) {
    let bytes: Vec<u8> = (0..length)
        .map(|i| ((offset + i) / 512 % 251) as u8 ^ round)
        .collect();
    file.write_all_at(&bytes, offset).expect("it takes it");
    file.sync_all().expect("it arrives");
}

fn read(ended: &Ended) -> u64 {
    ended.answer["bytes_read"].as_u64().expect("a number")
}

#[test]
fn a_thin_volume_costs_what_thin_delta_names() {
    let fixture = Fixture::new();
    let device = fixture.thin(48 * MIB);
    // Open all the time, as a virtual machine has it.
    let file = open(&device);
    scribble(&file, 0, 8 * MIB, 0);
    let full = fixture.backup(&device, &[]);
    assert_eq!(full.generation(), 1, "{full:?}");
    assert_eq!(full.answer["snapshot"], "lvm");
    assert_eq!(full.answer["bytes_logical"], 48 * MIB);
    assert_eq!(fixture.ours().len(), 1, "the base is kept");
    let first = fs::read(&device).unwrap();

    scribble(&file, 5 * MIB, 512, 1);
    scribble(&file, 40 * MIB, CHUNK + 1, 1);
    let second = fs::read(&device).unwrap();
    let more = fixture.backup(&device, &["--snapshot=lvm"]);
    assert_eq!(more.generation(), 2, "{more:?}");
    assert!(read(&more) <= 3 * CHUNK, "{more:?}");
    assert_eq!(fixture.ours().len(), 1, "{:?}", fixture.lvm.volumes());
    assert!(!fixture.is_reserved());
    let audited = fixture.backup(&device, &["--snapshot=lvm", "--audit"]);
    assert_eq!(audited.answer["bytes_changed"], 0, "{audited:?}");
    assert!(fixture.restored(1, "vm-1") == first);
    assert!(fixture.restored(2, "vm-1") == second);
}

/// A disk image in a filesystem on a thin volume: candidate ranges are mapped by extents.
fn image(kind: &'static str) {
    let fixture = Fixture::new();
    let fs = LoopFs::on(&fixture.thin(700 * MIB), kind);
    let path = fs.join("images/vm.img");
    fs::create_dir(fs.join("images")).unwrap();
    let file = open(&path);
    scribble(&file, 0, 24 * MIB, 0);
    file.set_len(40 * MIB).unwrap();
    let flags = ["--snapshot=lvm"];
    assert_eq!(fixture.backup(&path, &flags).generation(), 1);
    let mut states = vec![fs::read(&path).unwrap()];
    for round in 1u8..4 {
        let at = u64::from(round) * 3 * MIB;
        scribble(&file, at, 4096, round);
        scribble(&file, 30 * MIB + at, 4096, round);
        // Something else is written to in the same filesystem, and where it grows.
        scribble(&open(&fs.join("other")), at, MIB, round);
        file.set_len((40 + u64::from(round)) * MIB).unwrap();
        let ended = fixture.backup(&path, &flags);
        assert_eq!(ended.generation(), u32::from(round) + 1, "{ended:?}");
        assert!(read(&ended) <= 2 * MIB, "{ended:?}");
        states.push(fs::read(&path).unwrap());
    }
    let audited = fixture.backup(&path, &["--snapshot=lvm", "--audit"]);
    assert_eq!(audited.generation(), 5, "{audited:?}");
    for (generation, state) in (1..).zip(states) {
        assert!(
            fixture.restored(generation, "vm.img") == state,
            "{generation}"
        );
    }
    assert_eq!(fixture.ours().len(), 1);
}

#[test]
fn images_cost_what_changed() {
    for kind in draw("filesystems of images", &FILESYSTEMS, 1) {
        image(kind);
    }
}

#[test]
fn a_thick_volume_is_read_whole_and_its_snapshot_goes() {
    let fixture = Fixture::new();
    let device = fixture.lvm.thick("vm-1", 64 * MIB);
    scribble(&open(&device), 0, 8 * MIB, 0);
    let full = fixture.backup(&device, &["--snapshot=lvm"]);
    assert_eq!(full.generation(), 1, "{full:?}");
    assert_eq!(fixture.lvm.volumes(), ["vm-1"]);
    scribble(&open(&device), MIB, 512, 1);
    let more = fixture.backup(&device, &["--snapshot=lvm"]);
    assert_eq!(
        (read(&more), &more.answer["bytes_changed"]),
        (64 * MIB, &(16384.into()))
    );
    assert!(fixture.restored(2, "vm-1") == fs::read(&device).unwrap());
    let refused = fixture.backup(&device, &["--snapshot=lvm", "--snapshot-size=100G"]);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains("does not fit"), "{refused:?}");
    assert_eq!(fixture.lvm.volumes(), ["vm-1"]);
}

#[test]
fn a_thick_snapshot_that_fills_up_ends_the_run() {
    let fixture = Fixture::new();
    let device = fixture.lvm.thick("vm-1", 256 * MIB);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = open(&device);
            // As far as it takes, and not until it overflows.
            for at in 0..60 {
                while fixture.ours().is_empty() && !stop.load(Ordering::Relaxed) {}
                scribble(&file, at * MIB, MIB, 7);
            }
        });
        // It would take minutes.
        let flags = ["--snapshot=lvm", "--snapshot-size=64M", "--rate=1M"];
        let ended = fixture.backup(&device, &flags);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.message().contains("before it overflows"), "{ended:?}");
    });
    assert_eq!(fixture.lvm.volumes(), ["vm-1"]);
}

/// Where a run may be killed: what it leaves of a snapshot, and of the list of what changed.
const KILLS: [&str; 8] = [
    "snapshot::lvm::making",
    "snapshot::lvm::delta_tagged",
    "snapshot::lvm::made",
    "snapshot::lvm::metadata_reserved",
    "snapshot::lvm::snapped",
    "backup::committed",
    "backup::stored",
    "snapshot::lvm::kept",
];

#[test]
fn what_dead_runs_left_goes_and_what_is_not_ours_stays() {
    after_kills_at(&draw("kills on LVM", &KILLS, 4));
}

/// Kills a run at each of these points, each followed by one that is not.
fn after_kills_at(points: &[&str]) {
    let fixture = Fixture::new();
    let device = fixture.thin(32 * MIB);
    let file = open(&device);
    scribble(&file, 0, 4 * MIB, 0);
    assert_eq!(fixture.backup(&device, &LVM).generation(), 1);
    // By name ours, by tag, by both but of another volume.
    let foreign = [
        "evenkeel-1-0123456789abcdef",
        "tagged",
        "evenkeel-2-0123456789abcdef",
    ];
    let _ = fixture.lvm.thin("the-pool", "other", 16 * MIB);
    let _ = fixture.lvm.thin_snapshot("vm-1", foreign[0]);
    let _ = fixture.lvm.thin_snapshot("vm-1", foreign[1]);
    let _ = fixture.lvm.thin_snapshot("other", foreign[2]);
    let base = fixture
        .ours()
        .into_iter()
        .find(|name| !foreign.contains(&name.as_str()));
    let tags = fixture.lvm.field(&base.expect("a base"), "lv_tags");
    for name in &foreign[1..] {
        for tag in tags.split(',').filter(|tag| !tag.contains("token")) {
            let path = format!("evk-1/{name}");
            let status = Command::new("lvchange")
                .args(["-q", "--addtag", tag, &path])
                .status();
            assert!(status.unwrap().success());
        }
    }
    for (round, point) in points.iter().enumerate() {
        scribble(&file, round as u64 * MIB, 512, 9);
        let killed = run(killed_at(fixture.command(&device, &LVM), point));
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        let ended = fixture.backup(&device, &LVM);
        assert_eq!(ended.code, Some(0), "{point}: {ended:?}");
        assert!(!fixture.is_reserved(), "{point}");
        assert_eq!(
            fixture.ours().len(),
            3,
            "{point}: {:?}",
            fixture.lvm.volumes()
        );
        let volumes = fixture.lvm.volumes();
        assert!(
            foreign
                .iter()
                .all(|name| volumes.contains(&(*name).to_owned())),
            "{volumes:?}"
        );
    }
    let last = fixture
        .backup(&device, &["--snapshot=lvm", "--audit"])
        .generation();
    assert!(fixture.restored(last, "vm-1") == fs::read(&device).unwrap());
}

const LVM: [&str; 1] = ["--snapshot=lvm"];

/// A server under traffic on a thin volume: full, incremental, restored and booted.
fn server(kind: &'static str) {
    let lvm = Lvm::new("evk-1");
    lvm.pool("the-pool", 1800 * MIB, &["--chunksize=64k"]);
    let device = lvm.thin("the-pool", "mysql", 1400 * MIB);
    let site = Site::start(mariadb_10_11(), LoopFs::on(&device, kind), 200, &[]);
    let traffic = site.traffic(2);
    traffic.wait_for(20);
    let full = run(evenkeel().backup(&site, &["--snapshot=lvm"]));
    assert_eq!(full.generation(), 1, "{full:?}");
    assert_eq!(full.answer["snapshot"], "lvm");
    traffic.wait_for(20);
    let before = traffic.marks();
    let more = run(evenkeel().backup(&site, &["--snapshot=lvm"]));
    assert_eq!(more.generation(), 2, "{more:?}");
    // How much depends on what the traffic wrote on this machine; a volume that is read whole has only grown.
    assert!(read(&more) < read(&full), "{more:?}");
    let after = traffic.marks();
    let audited = run(evenkeel().backup(&site, &["--snapshot=lvm", "--audit"]));
    assert_eq!(audited.generation(), 3, "{audited:?}");
    traffic.assert_undisturbed();
    drop(traffic.stop());
    site.restore(Some(2), "restored").expect("it restores");
    site.check_bank_at(&site.fs.join("restored"), &before, &after);
}

#[test]
fn servers_restore() {
    // Another one than that of the images.
    for kind in draw("filesystems of servers", &["xfs", "ext4"], 1) {
        server(kind);
    }
}
