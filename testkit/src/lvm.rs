//! LVM on the spare disks of the virtual machine that `make test-vm` starts: volume groups, thick and
//! thin volumes, and what is left of them.

use crate::loopfs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the machine calls its spare disks, in the environment of every test: paths, by spaces.
const SPARE_DISKS: &str = "EVENKEEL_SPARE_DISKS";

/// A volume group over spare disks. When dropped, everything mounted from it is unmounted, and it is
/// removed with all that it holds.
#[derive(Debug)]
pub struct Lvm {
    group: String,
}

impl Lvm {
    /// Makes the volume group `group` over the first spare disk. Panics outside the machine.
    #[must_use]
    pub fn new(group: &str) -> Self {
        Self::over(group, 1)
    }

    /// Makes the volume group `group` over the first `count` spare disks.
    #[must_use]
    pub fn over(group: &str, count: usize) -> Self {
        let disks = spare_disks();
        assert!(count <= disks.len(), "{count} spare disks of {disks:?}");
        // A test before this one may have been killed.
        for left in lines(&lvm("vgs", &["--noheadings", "-o", "vg_name"])) {
            remove(&left);
        }
        let made = Self {
            group: group.to_owned(),
        };
        let disks: Vec<&str> = disks[..count].iter().map(String::as_str).collect();
        lvm("pvcreate", &[&["-q", "-ff", "-y"], &disks[..]].concat());
        // Small extents: volumes of a MiB or two are soon full.
        lvm(
            "vgcreate",
            &[&["-q", "-s", "1M", group], &disks[..]].concat(),
        );
        made
    }

    /// Returns the volume group's name.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the device of a volume: `/dev/GROUP/NAME`.
    #[must_use]
    pub fn device(&self, volume: &str) -> PathBuf {
        Path::new("/dev").join(&self.group).join(volume)
    }

    /// Makes an ordinary volume of `bytes`, and returns its device.
    #[must_use]
    pub fn thick(&self, name: &str, bytes: u64) -> PathBuf {
        let size = format!("{bytes}b");
        lvm(
            "lvcreate",
            &["-q", "-y", "-Wy", "-n", name, "-L", &size, &self.group],
        );
        self.device(name)
    }

    /// Makes a thin pool of `bytes`, with more options of lvcreate: `--chunksize=64k`,
    /// `--poolmetadatasize=4M`.
    pub fn pool(&self, name: &str, bytes: u64, more: &[&str]) {
        let (size, pool) = (format!("{bytes}b"), self.path(name));
        let args = ["-q", "-y", "--type=thin-pool", "-L", &size];
        lvm("lvcreate", &[&args[..], more, &[&pool]].concat());
    }

    /// Makes a thin volume of `bytes` in `pool`, and returns its device.
    #[must_use]
    pub fn thin(&self, pool: &str, name: &str, bytes: u64) -> PathBuf {
        let (size, pool) = (format!("{bytes}b"), self.path(pool));
        lvm(
            "lvcreate",
            &["-q", "-y", "-n", name, "-V", &size, "--thinpool", &pool],
        );
        self.device(name)
    }

    /// Makes a snapshot of a thin volume that can be used at once, and returns its device.
    #[must_use]
    pub fn thin_snapshot(&self, origin: &str, name: &str) -> PathBuf {
        let origin = self.path(origin);
        lvm(
            "lvcreate",
            &[
                "-q",
                "-y",
                "--snapshot",
                "-n",
                name,
                "--setactivationskip",
                "n",
                &origin,
            ],
        );
        self.device(name)
    }

    /// Makes a snapshot with room for `bytes` of changes, and returns its device.
    #[must_use]
    pub fn thick_snapshot(&self, origin: &str, name: &str, bytes: u64) -> PathBuf {
        let (size, origin) = (format!("{bytes}b"), self.path(origin));
        lvm(
            "lvcreate",
            &["-q", "-y", "--snapshot", "-n", name, "-L", &size, &origin],
        );
        self.device(name)
    }

    /// Returns the names of all volumes, sorted; hidden ones are left out.
    #[must_use]
    pub fn volumes(&self) -> Vec<String> {
        let listed = lvm("lvs", &["--noheadings", "-o", "lv_name", &self.group]);
        let mut names = lines(&listed);
        names.sort();
        names
    }

    /// Returns a field of a volume as lvs says it: `data_percent`, `lv_attr`, `lv_tags`.
    #[must_use]
    pub fn field(&self, volume: &str, field: &str) -> String {
        let listed = lvm("lvs", &["--noheadings", "-o", field, &self.path(volume)]);
        listed.trim().to_owned()
    }

    /// Returns how many bytes of the group no volume has.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let args = ["--noheadings", "--nosuffix", "--units=b"];
        let reported = lvm(
            "vgs",
            &[&args[..], &["-o", "vg_free", &self.group]].concat(),
        );
        reported.trim().parse().expect("a number of bytes")
    }

    /// Removes a volume.
    pub fn remove(&self, volume: &str) {
        lvm("lvremove", &["-q", "-f", &self.path(volume)]);
    }

    fn path(&self, volume: &str) -> String {
        format!("{}/{volume}", self.group)
    }
}

impl Drop for Lvm {
    fn drop(&mut self) {
        remove(&self.group);
    }
}

/// Returns the spare disks. Panics outside the machine.
fn spare_disks() -> Vec<String> {
    let disks = std::env::var(SPARE_DISKS)
        .unwrap_or_else(|_| panic!("LVM is tested on spare disks of a machine: run make test-vm"));
    disks.split_whitespace().map(str::to_owned).collect()
}

/// Removes a volume group, whatever is mounted from it.
fn remove(group: &str) {
    // In the names of the device mapper a hyphen is doubled, and a single one stands before the
    // volume.
    let mapped = format!("/dev/mapper/{}-", group.replace('-', "--"));
    let plain = format!("/dev/{group}/");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    // The latest first: mounts may lie on mounts.
    for line in mounts.lines().rev() {
        let mut words = line.split(' ');
        let device = words.next().unwrap_or_default();
        if device.starts_with(&mapped) || device.starts_with(&plain) {
            loopfs::unmount(Path::new(words.next().unwrap_or_default()));
        }
    }
    let ended = Command::new("vgremove")
        .args(["-q", "-ff", "-y", group])
        .output();
    match ended {
        Ok(output) if output.status.success() => {}
        // Not a panic: it may run while a failed test unwinds. The next one tries again.
        ended => eprintln!("failed to remove volume group {group}: {ended:?}"),
    }
}

/// Runs a command of LVM and returns what it printed.
fn lvm(command: &str, args: &[&str]) -> String {
    loopfs::run(Command::new(command).args(args))
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).collect()
}
