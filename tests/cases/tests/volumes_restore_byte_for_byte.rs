//! Do raw volumes and single files come back byte for byte, from backups that store only what changed,
//! and is nothing overwritten that is in use or that nobody said yes to?

use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_testkit::effort::{is_full, rounds};
use evenkeel_testkit::{LoopFs, Scratch};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 16 << 10;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn call(args: &[&str]) -> Ended {
    run(evenkeel().command(args))
}

fn backup(repository: &Path, volume: &Path, more: &[&str]) -> Ended {
    let mut command = evenkeel().command(&["backup", "--no-defaults", "--volume"]);
    command.arg(volume).arg(repository).args(more);
    run(command)
}

fn restore(repository: &Path, flags: &[&str], place: &Path) -> Ended {
    let mut command = evenkeel().command(&["restore"]);
    command.arg(repository).args(flags).arg(place);
    run(command)
}

fn same(one: &Path, other: &Path) -> bool {
    let status = Command::new("cmp").arg("-s").args([one, other]).status();
    status.expect("cmp runs").success()
}

/// Fills a file with bytes that tell where they are and when they were written.
fn scribble(file: &File, offset: u64, length: u64, round: u8) {
    let bytes: Vec<u8> = (0..length)
        .map(|i| ((offset + i) / 512 % 251) as u8 ^ round)
        .collect();
    file.write_all_at(&bytes, offset)
        .expect("the file takes it");
}

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).expect("the image opens")
}

/// A file shown as a disk; detached when dropped.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn on(file: &Path) -> Self {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .expect("losetup runs");
        assert!(output.status.success(), "{output:?}");
        let path = String::from_utf8(output.stdout).expect("a path");
        Self(path.trim().into())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn a_disk_image_in_use_costs_what_changed_in_it() {
    // An audit reads its holes, too.
    let part = if is_full() { 1 } else { 5 };
    let fs = LoopFs::xfs(600 * MIB);
    let (image, repository) = (fs.join("vm1.img"), fs.join("repository"));
    // Open for writing all the time, as a virtual machine has it; and mostly a hole.
    let file = open(&image);
    file.set_len(2000 / part * MIB).unwrap();
    scribble(&file, 0, 20 * MIB, 0);
    scribble(&file, 1500 / part * MIB + 512, 3 * MIB, 0);
    let full = backup(&repository, &image, &[]);
    assert_eq!(full.generation(), 1, "{full:?}");
    assert_eq!(full.answer["snapshot"], "reflink");
    assert_eq!(full.answer["bytes_logical"], 2000 / part * MIB);
    assert!(full.answer["bytes_read"].as_u64().unwrap() < 24 * MIB);

    scribble(&file, 7 * MIB, BLOCK, 1);
    scribble(&file, 1000 / part * MIB, 10, 1);
    file.sync_all().unwrap();
    let then = fs.join("then");
    fs::copy(&image, &then).unwrap();
    let more = backup(&repository, &image, &[]);
    assert_eq!(more.generation(), 2, "{more:?}");
    assert_eq!(more.answer["kind"], "incremental");
    assert!(
        more.answer["bytes_read"].as_u64().unwrap() <= 2 * BLOCK,
        "{more:?}"
    );
    assert!(more.answer["bytes_changed"].as_u64().unwrap() <= 2 * BLOCK);

    // Longer, then shorter than ever.
    file.set_len(3000 / part * MIB + 100).unwrap();
    scribble(&file, 3000 / part * MIB, 100, 2);
    assert_eq!(backup(&repository, &image, &["--audit"]).generation(), 3);
    file.set_len(6 * MIB + 1).unwrap();
    assert_eq!(backup(&repository, &image, &["--audit"]).generation(), 4);

    let ended = restore(
        &repository,
        &["--generation=2", "--target"],
        &fs.join("two"),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let two = fs.join("two/vm1.img");
    assert!(same(&two, &then));
    assert!(
        two.metadata().unwrap().blocks() * 512 < 30 * MIB,
        "holes stay holes"
    );
    assert_eq!(
        restore(&repository, &["--target"], &fs.join("four")).code,
        Some(0)
    );
    assert!(same(&fs.join("four/vm1.img"), &image));
    let verified = call(&["verify", "--all", repository.to_str().unwrap()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let boot = call(&["verify", "--boot", repository.to_str().unwrap()]);
    assert_eq!(boot.code, Some(14), "{boot:?}");
    assert!(boot.message().contains("holds volumes"), "{boot:?}");
}

#[test]
fn a_disk_image_that_is_written_to_is_of_one_instant() {
    const BLOCKS: u64 = 400;
    const STEP: u64 = 128 << 10;
    let fs = LoopFs::xfs(600 * MIB);
    let (image, repository) = (fs.join("vm1.img"), fs.join("repository"));
    let file = open(&image);
    let images = rounds("images at a point in time", 3, 8);
    scribble(&file, 0, 52 * MIB, 0);
    for block in 0..BLOCKS {
        file.write_all_at(&0u64.to_le_bytes(), block * STEP)
            .unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One number after the other into all blocks in order: at any instant the blocks hold
            // one number up to some block, and its predecessor from there on.
            for number in 1u64.. {
                for block in 0..BLOCKS {
                    file.write_all_at(&number.to_le_bytes(), block * STEP)
                        .unwrap();
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let backup = |_| backup(&repository, &image, &[]);
        let ended: Vec<_> = (0..images).map(backup).collect();
        stop.store(true, Ordering::Relaxed);
        for (index, ended) in ended.iter().enumerate() {
            assert_eq!(ended.generation() as usize, index + 1);
        }
    });
    for generation in 1..=images {
        let target = fs.join(format!("r{generation}"));
        let flags = [&*format!("--generation={generation}"), "--target"];
        assert_eq!(restore(&repository, &flags, &target).code, Some(0));
        let restored = File::open(target.join("vm1.img")).unwrap();
        let numbers: Vec<u64> = (0..BLOCKS)
            .map(|block| {
                let mut bytes = [0; 8];
                restored.read_exact_at(&mut bytes, block * STEP).unwrap();
                u64::from_le_bytes(bytes)
            })
            .collect();
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        assert!(
            first.checked_sub(last).is_some_and(|behind| behind <= 1),
            "generation {generation}: {first} and {last}"
        );
        assert!(
            numbers.is_sorted_by(|one, next| one >= next),
            "generation {generation}: {numbers:?}"
        );
        fs::remove_dir_all(target).unwrap();
    }
}

#[test]
fn a_block_device_comes_back_as_an_image_and_over_a_device() {
    let scratch = Scratch::new();
    let make = |name: &str, bytes: u64| {
        let path = scratch.join(name);
        open(&path).set_len(bytes).unwrap();
        path
    };
    let source = LoopDevice::on(&make("source", 64 * MIB));
    let target = LoopDevice::on(&make("target", 64 * MIB + 4096));
    let small = LoopDevice::on(&make("small", 63 * MIB));
    let repository = scratch.join("repository");
    let device = open(&source.0);
    scribble(&device, 0, 8 * MIB, 0);
    scribble(&device, 63 * MIB, MIB, 0);
    let in_use = backup(&repository, &source.0, &["--snapshot=copy"]);
    assert_eq!(in_use.code, Some(14), "{in_use:?}");
    device.sync_all().unwrap();
    drop(device);

    let full = backup(&repository, &source.0, &[]);
    assert_eq!(full.generation(), 1, "{full:?}");
    assert_eq!(full.answer["bytes_logical"], 64 * MIB);
    let device = open(&source.0);
    scribble(&device, 5 * MIB, BLOCK, 1);
    drop(device);
    let more = backup(&repository, &source.0, &[]);
    assert_eq!(more.answer["bytes_changed"], BLOCK, "{more:?}");

    assert_eq!(
        restore(&repository, &["--target"], &scratch.join("image")).code,
        Some(0)
    );
    let name = source.0.file_name().unwrap();
    let image = scratch.join("image").join(name);
    assert!(same(&image, &source.0));
    assert!(
        image.metadata().unwrap().blocks() * 512 < 12 * MIB,
        "zeros are holes"
    );

    let refused = restore(&repository, &["--onto"], &small.0);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    let plan = restore(&repository, &["--onto"], &target.0);
    assert_eq!(plan.answer["executed"], false, "{plan:?}");
    assert!(fs::read(&target.0).unwrap().iter().all(|byte| *byte == 0));
    scribble(&open(&target.0), 30 * MIB, 10 * MIB, 7);
    let killed = {
        let mut command = evenkeel().command(&["restore", "--execute", "--threads=1", "--onto"]);
        command.arg(&target.0).arg(&repository);
        run(killed_at(command, "restore::onto::stretch"))
    };
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let done = restore(&repository, &["--execute", "--onto"], &target.0);
    assert_eq!(done.code, Some(0), "{done:?}");
    let bytes = fs::read(&target.0).unwrap();
    assert!(bytes[..64 << 20] == fs::read(&source.0).unwrap());
    let again = restore(&repository, &["--execute", "--onto"], &target.0);
    assert_eq!(again.answer["bytes_written"], 0, "{again:?}");
}

#[test]
fn what_is_mounted_or_open_is_not_overwritten() {
    let scratch = Scratch::new();
    let fs = LoopFs::ext4(64 * MIB);
    let (image, repository) = (scratch.join("vm1.img"), scratch.join("repository"));
    scribble(&open(&image), 0, 2 * MIB, 0);
    assert_eq!(
        backup(&repository, &image, &["--snapshot=copy"]).generation(),
        1
    );

    let mounted = device_of(fs.path());
    let refused = restore(&repository, &["--execute", "--onto"], &mounted);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains("mounted on"), "{refused:?}");
    let refused = backup(&repository, &mounted, &[]);
    assert_eq!(refused.code, Some(14), "{refused:?}");

    let other = scratch.join("other.img");
    scribble(&open(&other), 0, MIB, 3);
    let before = fs::read(&other).unwrap();
    let user = Holder::start(&other);
    let refused = restore(&repository, &["--execute", "--onto"], &other);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(fs::read(&other).unwrap() == before);
    drop(user);
    // Shown as a disk, it is in use as well.
    let shown = LoopDevice::on(&other);
    let refused = restore(&repository, &["--execute", "--onto"], &other);
    assert!(refused.message().contains("loop device"), "{refused:?}");
    let refused = backup(&repository, &other, &["--snapshot=copy", "--new-source"]);
    assert!(refused.message().contains("loop device"), "{refused:?}");
    drop(shown);
    let done = restore(&repository, &["--execute", "--onto"], &other);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(same(&other, &image));
}

#[test]
fn volumes_of_one_name_and_of_none_are_refused() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.join("a/disk"), scratch.join("b/disk"));
    for path in [&one, &two] {
        fs::create_dir(path.parent().unwrap()).unwrap();
        scribble(&open(path), 0, MIB, 0);
    }
    let repository = scratch.join("repository");
    let (flag, other) = ("--volume", two.to_str().unwrap());
    let refused = backup(&repository, &one, &[flag, other]);
    assert_eq!(refused.code, Some(14), "{refused:?}");
    std::os::unix::fs::symlink(&two, scratch.join("b/second")).unwrap();
    let second = scratch.join("b/second");
    let both = backup(&repository, &one, &[flag, second.to_str().unwrap()]);
    assert_eq!(both.answer["files"], 2, "{both:?}");
    let unnamed = restore(&repository, &["--execute", "--onto"], &one);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    scribble(&open(&one), 0, MIB, 9);
    let named = restore(&repository, &["--execute", "--volume=disk", "--onto"], &one);
    assert_eq!(named.code, Some(0), "{named:?}");
    assert!(same(&one, &two));
}

/// Returns the device that is mounted on a directory.
fn device_of(mount: &Path) -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines
        .find_map(|mut fields| {
            Some((fields.next()?, fields.next()?)).filter(|(_, at)| Path::new(at) == mount)
        })
        .map(|(device, _)| device.into())
        .expect("it is mounted")
}

/// A process that has a file open, killed when dropped.
struct Holder(Child);

impl Holder {
    fn start(file: &Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "exec 3<\"$1\"; echo open; exec sleep 1000", "sh"])
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut said = [0; 5];
        let mut output = child.stdout.take().expect("its output");
        std::io::Read::read_exact(&mut output, &mut said).expect("it opens the file");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
