//! A server on a logical volume, its backups, and what they leave in the volume group.

use crate::{MIB, evenkeel};
use evenkeel_backup::restore::{self, RestoreRequest};
use evenkeel_cases::leftovers::{assert_no_unfinished, assert_unharmed};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::{Site, quiet};
use evenkeel_op::Cancel;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{BankTraffic, LoopFs, Lvm, Marks, Scratch};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The volume group of every case. A hyphen in it is doubled in the names of the device mapper.
const GROUP: &str = "evk-test";
/// The server's volume.
const VOLUME: &str = "mysql";
/// The size of the server's volume: what mkfs.xfs takes, and little to read.
const VOLUME_BYTES: u64 = 400 * MIB;

/// How long a snapshot may take to be there. Only hangs take that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What kind of volume a server is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeKind {
    /// An ordinary one; half of the group is free for snapshots.
    Thick,
    /// One in a thin pool of this size in bytes.
    Thin(u64),
}

/// MariaDB with a bank on a logical volume, and a repository elsewhere.
pub struct Case {
    // In the order in which they go: the server, its filesystem, the volumes below it.
    /// The server.
    pub site: Site,
    /// The volume group.
    pub lvm: Lvm,
    /// The program.
    pub evenkeel: Evenkeel,
    scratch: Scratch,
}

impl Case {
    /// Starts a server on a `filesystem` (`ext4`, `xfs`) on a volume.
    #[must_use]
    pub fn start(kind: VolumeKind, filesystem: &'static str) -> Self {
        Self::start_as(kind, &[], filesystem, &[])
    }

    /// The same with more options of the server.
    #[must_use]
    pub fn start_with(kind: VolumeKind, filesystem: &'static str, server: &[&str]) -> Self {
        Self::start_as(kind, &[], filesystem, server)
    }

    /// The same with more options of lvcreate for the pool.
    #[must_use]
    pub fn start_in(kind: VolumeKind, pool: &[&str], filesystem: &'static str) -> Self {
        Self::start_as(kind, pool, filesystem, &[])
    }

    fn start_as(
        kind: VolumeKind,
        pool: &[&str],
        filesystem: &'static str,
        server: &[&str],
    ) -> Self {
        let lvm = Lvm::new(GROUP);
        let device = match kind {
            VolumeKind::Thick => lvm.thick(VOLUME, VOLUME_BYTES),
            VolumeKind::Thin(bytes) => {
                lvm.pool("pool", bytes, &[&["--chunksize=64k"], pool].concat());
                lvm.thin("pool", VOLUME, VOLUME_BYTES)
            }
        };
        let fs = LoopFs::on(&device, filesystem);
        Self {
            site: Site::start(mariadb_10_11(), fs, 200, server),
            lvm,
            evenkeel: evenkeel(),
            scratch: Scratch::new(),
        }
    }

    /// Starts the bank's clients.
    #[must_use]
    pub fn traffic(&self) -> BankTraffic {
        self.site.traffic(2)
    }

    /// Returns the repository, which is on another disk.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        self.scratch.join("repository")
    }

    /// Plans a backup by a snapshot of the volume.
    #[must_use]
    pub fn backup(&self, flags: &[&str]) -> Command {
        let mut command = self.evenkeel.command(&["backup", "--snapshot=lvm"]);
        command.args(["--no-defaults", "-u", "root", "--max-impact=100"]);
        command.arg("-S").arg(self.site.running().socket());
        command.args(flags).arg(self.repository());
        command
    }

    /// Backs up and returns what is said of it.
    #[track_caller]
    pub fn back_up(&self, flags: &[&str]) -> Ended {
        let ended = run(self.backup(flags));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// Begins a backup that takes until it is stopped, and waits until its snapshot is there.
    #[track_caller]
    pub fn begin_slow(&self, flags: &[&str]) -> Slow {
        let before = self.snapshots();
        let mut command = self.backup(flags);
        command.args(["--rate=8K", "--full"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        until_within(PATIENCE, "the snapshot is there", || {
            let ended = child.try_wait().expect("a state");
            ended.is_some() || self.snapshots().iter().any(|name| !before.contains(name))
        });
        Slow(Some(child))
    }

    /// Restores a generation and returns the data directory.
    #[track_caller]
    pub fn restore(&self, generation: Option<u32>) -> PathBuf {
        let target = self.scratch.join("restored");
        let _ = fs::remove_dir_all(&target);
        let request = RestoreRequest::new(self.repository(), generation, &target);
        let report = restore::restore(&request, quiet(&Cancel::new()));
        report.unwrap_or_else(|e| panic!("{}", e.chain())).target
    }

    /// Restores a generation, starts a server on it, and checks that it is the bank of an instant
    /// between two.
    #[track_caller]
    pub fn check(&self, generation: Option<u32>, before: &Marks, after: &Marks) {
        let target = self.restore(generation);
        self.site.check_bank_at(&target, before, after);
        fs::remove_dir_all(target).expect("the copy goes");
    }

    /// Returns the names of the volumes that are called as evenkeel calls its snapshots.
    #[must_use]
    pub fn snapshots(&self) -> Vec<String> {
        let mut names = self.lvm.volumes();
        names.retain(|name| name.starts_with("evenkeel"));
        names
    }

    /// Asserts that a run failed with these words, and left the server, the repository and the volume
    /// group as they were, with `snapshots`.
    #[track_caller]
    pub fn assert_failed(&self, ended: &Ended, code: i32, words: &str, snapshots: &[String]) {
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.message().contains(words), "{ended:?}");
        assert_eq!(self.snapshots(), snapshots, "{ended:?}");
        assert_unharmed(self.site.running(), words);
        assert_no_unfinished(&self.repository(), words);
    }

    /// Returns how many generations there are.
    #[must_use]
    pub fn generations(&self) -> usize {
        evenkeel_cases::leftovers::names_in(&self.repository().join("generations")).len()
    }

    /// Writes into the server's filesystem, one MiB after the other, each on disk before the next,
    /// until `enough`; at most `most` of them.
    #[track_caller]
    pub fn write_until(&self, most: u64, mut enough: impl FnMut() -> bool) {
        let path = self.site.fs.join("filling");
        let mut file = File::options();
        let mut file = file.create(true).append(true).open(&path).expect("a file");
        for number in 0..most {
            // Asking takes longer than writing.
            if number % 2 == 0 && enough() {
                return;
            }
            file.write_all(&vec![(number % 255) as u8 + 1; MIB as usize])
                .expect("the server's own filesystem takes writes");
            file.sync_data().expect("they arrive");
        }
        assert!(enough(), "{most} MiB were not enough");
    }

    /// Returns a percentage that lvs tells of a volume: `data_percent`, `metadata_percent`.
    #[must_use]
    pub fn percent(&self, volume: &str, field: &str) -> f64 {
        let text = self.lvm.field(volume, field);
        text.parse().unwrap_or_else(|_| panic!("{volume}: {text}"))
    }

    /// Returns the path of the server's volume.
    #[must_use]
    pub fn device(&self) -> PathBuf {
        self.lvm.device(VOLUME)
    }

    /// Returns the name of the server's volume.
    #[must_use]
    pub fn volume(&self) -> &'static str {
        VOLUME
    }

    /// Returns a path outside of the server's volume.
    #[must_use]
    pub fn outside(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.join(name)
    }
}

/// A backup that is going on; killed when dropped.
pub struct Slow(Option<Child>);

impl Slow {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("it runs");
        child.try_wait().expect("a state").is_some()
    }

    /// Waits for its end.
    #[must_use]
    pub fn end(mut self) -> Ended {
        let child = self.0.take().expect("it runs");
        Ended::of(&child.wait_with_output().expect("an end"))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
