//! Raw volumes and single files: what they are, how long, and who else is at them.
//!
//! Who has a file open is asked of `/proc`, by device and inode, so other names of it and other mount
//! namespaces count; of loop devices, the kernel. A block device that is mounted, swapped to, or part
//! of another device cannot be claimed, which the kernel knows best.

use crate::copy::User;
use crate::filesystem::stable_hash;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What may be backed up as a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeKind {
    /// A regular file: a disk image.
    File,
    /// A block device.
    Device,
}

/// Returns what a path is, links followed. `Refused` when it is neither file nor block device.
pub fn kind(path: &Path) -> Result<VolumeKind> {
    let facts = path
        .metadata()
        .map_err(|error| unreadable("device or file", path, error))?;
    let sort = facts.file_type();
    if sort.is_file() {
        Ok(VolumeKind::File)
    } else if sort.is_block_device() {
        Ok(VolumeKind::Device)
    } else {
        Err(Error::refused(format!(
            "{} is neither a file nor a block device",
            path.display()
        ))
        .hint("a volume is a block device, such as /dev/vg/vm1, or a disk image"))
    }
}

/// Returns how many bytes an open file or block device has.
pub fn size(file: &File) -> io::Result<u64> {
    let mut file = file;
    let facts = file.metadata()?;
    if facts.file_type().is_block_device() {
        file.seek(SeekFrom::End(0))
    } else {
        Ok(facts.len())
    }
}

/// Names a set of volumes, given by their sorted paths without links: must never change.
#[must_use]
pub fn id(volumes: &[PathBuf]) -> u64 {
    let mut bytes = Vec::new();
    for volume in volumes {
        bytes.extend_from_slice(volume.as_os_str().as_bytes());
        bytes.push(0);
    }
    stable_hash(&bytes)
}

/// Fails when a volume is a block device: only the filesystem of a file can freeze it.
pub(crate) fn refuse_devices(volume: &Path) -> Result<()> {
    match kind(volume)? {
        VolumeKind::File => Ok(()),
        VolumeKind::Device => Err(Error::refused(format!(
            "{} is a block device, not a file of a filesystem",
            volume.display()
        ))),
    }
}

/// Which processes count as users of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Those that may write to it.
    Writers,
    /// All that have it open.
    All,
}

/// Returns a process or device that uses a file or block device, other than this process: as far as
/// `/proc` may be read. Users inside the kernel other than loop devices are not seen, for files.
pub fn user_of(path: &Path, users: Users) -> Result<Option<String>> {
    let failed = || format!("failed to find {}", path.display());
    let wanted = Identity::of(&path.metadata().context(failed)?);
    if let Some(device) = loop_device_on(wanted, users) {
        return Ok(Some(format!("loop device {device}")));
    }
    let found = crate::copy::user_where(
        |open| fs::metadata(open).is_ok_and(|facts| Identity::of(&facts) == wanted),
        users == Users::All,
    )?;
    Ok(found.map(|user: User| user.to_string()))
}

/// What tells a file or device from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    Device(u64),
}

impl Identity {
    fn of(facts: &fs::Metadata) -> Self {
        if facts.file_type().is_block_device() {
            Self::Device(facts.rdev())
        } else {
            Self::File(facts.dev(), facts.ino())
        }
    }
}

/// Returns the loop device that shows a file as a disk.
fn loop_device_on(wanted: Identity, users: Users) -> Option<String> {
    for entry in fs::read_dir("/sys/block").ok()?.flatten() {
        let directory = entry.path();
        let Ok(backing) = fs::read_to_string(directory.join("loop/backing_file")) else {
            continue;
        };
        let read_only = fs::read_to_string(directory.join("ro"));
        if users == Users::Writers && read_only.is_ok_and(|text| text.trim() == "1") {
            continue;
        }
        let same = fs::metadata(backing.trim_end_matches('\n'))
            .is_ok_and(|facts| Identity::of(&facts) == wanted);
        if same {
            return Some(entry.file_name().to_string_lossy().into_owned());
        }
    }
    None
}

/// Opens a block device for this process alone, as far as the kernel keeps others out: no mount, no
/// swap, no other device on it, as long as the file is open. `Refused` when it is in use that way.
pub fn claim(device: &Path, writable: bool) -> Result<File> {
    let mode = match writable {
        true => OFlags::RDWR,
        false => OFlags::RDONLY,
    };
    let opened = rustix::fs::open(device, mode | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty());
    match opened {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::BUSY) => Err(Error::refused(format!(
            "{} is in use: {}",
            device.display(),
            holder(device)
        ))),
        Err(error) => Err(error).context(|| format!("failed to open {}", device.display())),
    }
}

/// Says what keeps a block device busy.
fn holder(device: &Path) -> String {
    let other = || "mounted, swapped to, or part of another device".to_owned();
    let Ok(facts) = device.metadata() else {
        return other();
    };
    let number = device_number(facts.rdev());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(2);
        if fields.next() == Some(&number)
            && let Some(place) = fields.nth(1)
        {
            return format!("it is mounted on {place}");
        }
    }
    let holders = fs::read_dir(format!("/sys/dev/block/{number}/holders"));
    let holders: Vec<String> = holders
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if holders.is_empty() {
        other()
    } else {
        format!("{} is on it", holders.join(", "))
    }
}

/// Returns `major:minor`, as `/sys` names devices.
pub(crate) fn device_number(device: u64) -> String {
    format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    )
}

/// Returns how much was ever written to or discarded on a block device, as the kernel counts it; equal
/// at two moments if nothing was written in between.
pub(crate) fn writes(file: &File) -> Result<[u64; 4]> {
    let facts = file.metadata().context(|| "failed to examine a device")?;
    let path = format!("/sys/dev/block/{}/stat", device_number(facts.rdev()));
    let text = fs::read_to_string(&path).context(|| format!("failed to read {path}"))?;
    Ok(written(&text))
}

/// Reads requests and sectors written, and requests and sectors discarded, of a `stat` file.
fn written(stat: &str) -> [u64; 4] {
    let fields: Vec<u64> = stat
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    [4, 6, 11, 13].map(|index| fields.get(index).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_from_reads() {
        let stat = "  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n";
        assert_eq!(written(stat), [5, 7, 12, 14]);
        assert_eq!(written("1 2 3 4 5 6 7 8 9 10 11"), [5, 7, 0, 0]);
    }

    #[test]
    fn directories_and_terminals_are_no_volumes() {
        assert!(kind(Path::new("/")).is_err());
        assert!(kind(Path::new("/dev/null")).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(kind(file.path()).unwrap(), VolumeKind::File);
        assert!(refuse_devices(file.path()).is_ok());
    }

    #[test]
    fn a_set_of_volumes_is_no_other_set() {
        let id = |paths: &[&str]| id(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_ne!(id(&["/a", "/b"]), id(&["/a/b"]));
        assert_ne!(id(&["/a", "/b"]), id(&["/a"]));
    }
}
