//! In which order to read: by place on disk where a head has to move, else as it comes.

use super::job::Job;
use evenkeel_snapshot::extents::{ExtentLocation, Extents};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether filesystems lie on rotating disks, asked once for each.
#[derive(Debug, Default)]
pub(super) struct Disks {
    known: HashMap<u64, bool>,
    /// Stands for `/sys/dev/block`.
    devices: PathBuf,
}

impl Disks {
    pub(super) fn of_this_host() -> Self {
        Self::at(PathBuf::from("/sys/dev/block"))
    }

    fn at(devices: PathBuf) -> Self {
        Self {
            known: HashMap::new(),
            devices,
        }
    }

    /// Whether a device has a head that moves; one that is not a disk (network, FUSE) has none.
    fn rotates(&mut self, device: u64) -> bool {
        let devices = &self.devices;
        let look = || {
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            let own = devices.join(format!("{major}:{minor}"));
            // A partition has its disk's queue.
            let queues = [
                own.join("queue/rotational"),
                own.join("../queue/rotational"),
            ];
            let said = queues
                .iter()
                .find_map(|file| std::fs::read_to_string(file).ok());
            said.is_some_and(|said| said.trim() == "1")
        };
        *self.known.entry(device).or_insert_with(look)
    }

    /// Sorts jobs by where they lie, if any of them lies on a rotating disk; returns whether.
    pub(super) fn sort(&mut self, jobs: &mut [Job]) -> bool {
        let mut keys: HashMap<(PathBuf, u64), (u64, u64)> = HashMap::new();
        // A file lies on its directory's device. Asked there: files are many, and opening them is
        // what is slow.
        let mut devices: HashMap<PathBuf, u64> = HashMap::new();
        let mut file: Option<(Arc<PathBuf>, File)> = None;
        for job in &*jobs {
            let dir = job.path.parent().unwrap_or(&job.path);
            let device = match devices.get(dir) {
                Some(device) => *device,
                None => {
                    let Ok(looked) = dir.metadata() else {
                        continue;
                    };
                    devices.insert(dir.to_owned(), looked.dev());
                    looked.dev()
                }
            };
            if !self.rotates(device) {
                continue;
            }
            if file.as_ref().is_none_or(|(path, _)| *path != job.path) {
                file = File::open(&*job.path)
                    .ok()
                    .map(|open| (Arc::clone(&job.path), open));
            }
            if let Some((_, open)) = &file {
                let address = address(open, job.start).unwrap_or(u64::MAX);
                keys.insert((job.path.to_path_buf(), job.start), (device, address));
            }
        }
        if keys.is_empty() {
            return false;
        }
        jobs.sort_by_cached_key(|job| {
            let key = keys.get(&(job.path.to_path_buf(), job.start));
            key.copied().unwrap_or((u64::MAX, u64::MAX))
        });
        true
    }
}

/// Returns the address on disk of a byte of a file; nothing in a hole.
fn address(file: &File, at: u64) -> Option<u64> {
    for segment in Extents::addresses_of(file) {
        let segment = segment.ok()?;
        if segment.end > at {
            return match segment.place {
                ExtentLocation::Shared(address) => Some(address + at.saturating_sub(segment.start)),
                ExtentLocation::Zeros | ExtentLocation::Opaque => None,
            };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prewarm::job::jobs;
    use std::io::Write;
    use std::path::Path;

    /// Makes a table of devices that says this of the device that `dir` lies on.
    fn devices(dir: &Path, rotational: &str) -> PathBuf {
        let device = std::fs::metadata(dir).unwrap().dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let table = dir.join("devices");
        let queue = table.join(format!("{major}:{minor}/queue"));
        std::fs::create_dir_all(&queue).unwrap();
        std::fs::write(queue.join("rotational"), rotational).unwrap();
        table
    }

    /// Some files, written one after the other, in another order than that of their names.
    fn files(dir: &Path) -> Vec<Arc<PathBuf>> {
        let mut made = Vec::new();
        for name in ["m", "c", "z", "a"] {
            let path = dir.join(name);
            let mut file = File::create(&path).unwrap();
            file.write_all(&[7; 256 << 10]).unwrap();
            file.sync_all().unwrap();
            made.push(Arc::new(path));
        }
        made
    }

    #[test]
    fn a_rotating_disk_is_read_in_the_order_of_its_addresses() {
        // On a disk: what is in memory has no addresses.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let made = files(dir.path());
        let mut all: Vec<Job> = made
            .iter()
            .flat_map(|path| jobs(path, 0, 64 << 10))
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        let names = all.clone();

        let mut still = Disks::at(devices(dir.path(), "0\n"));
        assert!(!still.sort(&mut all));
        assert_eq!(all, names);

        let mut disks = Disks::at(devices(dir.path(), "1\n"));
        // Opened once more here, so that this test knows the addresses from the kernel itself.
        let known = |job: &Job| address(&File::open(job.path.as_path()).unwrap(), 0);
        assert!(all.iter().all(|job| known(job).is_some()));
        all.sort_by_key(|job| std::cmp::Reverse(known(job)));
        assert!(disks.sort(&mut all));
        assert!(all.is_sorted_by_key(known), "{all:?}");
    }
}
