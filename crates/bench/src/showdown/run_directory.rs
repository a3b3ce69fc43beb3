//! The directory in which all of it happens, and what killed runs left there.
//!
//! ```text
//! lock            held while a run works here
//! baseline/       data directories to begin each round with
//! image, fs/      a filesystem of its own, a new one for each round; or fs/ is an ordinary directory
//! fs/round/       data directories of one round
//! output/         what is backed up, outside of that filesystem
//! run/            sockets and logs
//! ```

use super::request::Filesystem;
use crate::recovery::WorkLocation;
use crate::recovery::run_directory::lock;
use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result, units};
use evenkeel_snapshot::{Layout, Settings, drop_base};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take to be made, started or stopped; it may have much to recover.
pub(super) const SERVER: Duration = Duration::from_secs(600);
/// Marks directories of ours: a later run removes those that nobody works in.
const PREFIX: &str = "evenkeel-showdown-";
/// How long a filesystem may stay in use after the last process was told to end.
const BUSY: Duration = Duration::from_secs(15);
/// The number of a subvolume's top directory.
const SUBVOLUME: u64 = 256;

/// The round's data directory, in the round's directory.
pub(super) const DATA: &str = "data";

/// A directory of one run.
#[derive(Debug)]
pub(super) struct RunDirectory {
    top: PathBuf,
    is_kept: bool,
    filesystem: Filesystem,
    image_bytes: u64,
    /// Held until the directory is gone.
    _lock: File,
}

impl RunDirectory {
    /// Makes it, after removing what killed runs left.
    ///
    /// Errors: `Busy` when another run works there; `Refused` where other things are, and without root's
    /// rights for a filesystem.
    pub(super) fn prepare(
        place: &WorkLocation,
        filesystem: Filesystem,
        image_bytes: u64,
    ) -> Result<Self> {
        if filesystem != Filesystem::Here && !rustix::process::geteuid().is_root() {
            return Err(Error::refused("only root may make and mount a filesystem")
                .hint("run it as root, or with --filesystem here"));
        }
        let (top, is_kept) = match place {
            WorkLocation::Kept(top) => (top.clone(), true),
            WorkLocation::Below(parent) => {
                remove_leftovers(parent);
                (
                    parent.join(format!("{PREFIX}{}", std::process::id())),
                    false,
                )
            }
        };
        OwnDirectory::make(&top, 0o755)?;
        refuse_others(&top)?;
        let top = top
            .canonicalize()
            .context(|| format!("failed to find {}", top.display()))?;
        let lock = lock(&top)?.ok_or_else(|| {
            let reported = format!("another run works in {}", top.display());
            Error::new(ErrorKind::Busy, reported).hint("name another directory with --work")
        })?;
        let run_directory = Self {
            top,
            is_kept,
            filesystem,
            image_bytes,
            _lock: lock,
        };
        clear(&run_directory.top)?;
        for directory in [
            run_directory.run_dir(),
            run_directory.output(),
            run_directory.at("baseline"),
        ] {
            fs::create_dir_all(&directory)
                .context(|| format!("failed to create {}", directory.display()))?;
        }
        Ok(run_directory)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    /// Where sockets and logs lie.
    pub(super) fn run_dir(&self) -> PathBuf {
        self.at("run")
    }

    /// Where backups are written.
    pub(super) fn output(&self) -> PathBuf {
        self.at("output")
    }

    /// Where the data directories to begin with lie.
    pub(super) fn baseline(&self, name: &str) -> PathBuf {
        self.at("baseline").join(name)
    }

    /// A directory of the round.
    pub(super) fn round(&self, name: &str) -> PathBuf {
        self.at("fs").join("round").join(name)
    }

    /// Removes all backups.
    pub(super) fn clear_output(&self) -> Result<()> {
        remove_any(&self.output())?;
        fs::create_dir_all(self.output()).context(|| "failed to create a directory for backups")
    }

    /// Re-creates the round's directory, and the filesystem below it where that is ours: the next round
    /// begins with nothing of the last one.
    pub(super) fn renew(&self) -> Result<()> {
        clear_filesystem(&self.top)?;
        let mount = self.at("fs");
        fs::create_dir_all(&mount).context(|| format!("failed to create {}", mount.display()))?;
        if let Some((program, options)) = self.filesystem.maker() {
            let image = self.at("image");
            let file =
                File::create(&image).context(|| format!("failed to create {}", image.display()))?;
            file.set_len(self.image_bytes)
                .context(|| format!("failed to set the size of {}", image.display()))?;
            run(Command::new(program).args(options).arg(&image))?;
            run(Command::new("mount")
                .args(["-o", "loop,noatime"])
                .arg(&image)
                .arg(&mount))?;
        }
        let round = mount.join("round");
        fs::create_dir_all(&round).context(|| format!("failed to create {}", round.display()))
    }

    /// Says what the data directories lie on.
    pub(super) fn description(&self) -> String {
        let size = units::bytes(self.image_bytes);
        match self.filesystem {
            Filesystem::Here => format!("the filesystem of {}", self.top.display()),
            Filesystem::Xfs => format!("XFS with reflinks, on a loop device of {size}"),
            Filesystem::Btrfs => format!("btrfs, on a loop device of {size}"),
            Filesystem::Ext4 => format!("ext4, on a loop device of {size}"),
        }
    }

    /// Fails with `Refused` unless this much space is there.
    pub(super) fn refuse_too_small(&self, bytes: u64) -> Result<()> {
        let room = rustix::fs::statvfs(&self.top).context(|| "failed to look at the free space")?;
        let free = room.f_bavail * room.f_frsize;
        match free < bytes {
            false => Ok(()),
            true => Err(Error::refused(format!(
                "{} has too little space: about {} are needed, {} are free",
                self.top.display(),
                units::bytes(bytes),
                units::bytes(free)
            ))
            .hint("name another directory with --work, or ask for fewer --warehouses")),
        }
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Nothing useful can be done about a failure: the next run tries again.
        if clear(&self.top).is_ok() && !self.is_kept {
            let _ = fs::remove_dir_all(&self.top);
        }
    }
}

/// Fails with `Usage` where somebody keeps other things: some of them may have our names.
fn refuse_others(top: &Path) -> Result<()> {
    let entries = fs::read_dir(top).context(|| format!("failed to look into {}", top.display()))?;
    // One that was killed at its very beginning had made nothing but the lock.
    let mut others = entries.flatten().filter(|one| one.file_name() != "lock");
    let is_ours = top.join("lock").exists() && top.join("baseline").exists();
    match others.next().is_none() || is_ours {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "{} holds files that are not from a showdown",
            top.display()
        ))
        .hint("name a new or an empty directory with --work")),
    }
}

/// Removes all that only one run needs.
fn clear(top: &Path) -> Result<()> {
    clear_filesystem(top)?;
    remove_any(&top.join("output"))?;
    remove_any(&top.join("run"))
}

/// Unmounts, and removes what it was made of. The kernel gives the loop device back by itself.
fn clear_filesystem(top: &Path) -> Result<()> {
    let mount = top.join("fs");
    if !is_mounted(&mount) {
        give_up_snapshot(&mount.join("round").join(DATA))?;
    }
    let until = Instant::now() + BUSY;
    while is_mounted(&mount) {
        let unmounted = run(Command::new("umount").arg(&mount));
        match unmounted {
            Ok(()) => (),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(100)),
            // It goes when its last user goes.
            Err(_) => run(Command::new("umount").arg("--lazy").arg(&mount))?,
        }
    }
    remove_subvolumes(&mount);
    remove_any(&mount)?;
    match fs::remove_file(top.join("image")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context(|| format!("failed to remove the image in {}", top.display()))
        }
        _ => Ok(()),
    }
}

/// Gives up what a backup kept for the next one: a logical volume's snapshot lies outside of its filesystem.
fn give_up_snapshot(datadir: &Path) -> Result<()> {
    if !datadir.exists() {
        return Ok(());
    }
    let layout = Layout {
        datadir: datadir.to_owned(),
        dirs: vec![datadir.to_owned()],
        ..Layout::default()
    };
    drop_base(&layout, &Settings::default())
}

fn is_mounted(place: &Path) -> bool {
    let (Ok(here), Some(parent)) = (fs::metadata(place), place.parent()) else {
        return false;
    };
    fs::metadata(parent).is_ok_and(|above| above.dev() != here.dev())
        && fs::read_to_string("/proc/self/mountinfo").is_ok_and(|table| {
            let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
            let wanted = place.display().to_string().replace(' ', "\\040");
            let mut places = table.lines().filter_map(|line| line.split(' ').nth(4));
            places.any(|place| place == wanted)
        })
}

/// Deletes snapshots that a backup kept on a btrfs of somebody else: nobody may write into them.
fn remove_subvolumes(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        remove_subvolumes(&path);
        if entry.metadata().is_ok_and(|is| is.ino() == SUBVOLUME) {
            // Where it fails, removing it says why.
            let _ = run(Command::new("btrfs")
                .args(["subvolume", "delete"])
                .arg(&path));
        }
    }
}

fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name.strip_prefix(PREFIX);
        // One that lives may not have locked its directory yet.
        if pid.is_none_or(|pid| Path::new("/proc").join(pid).exists()) {
            continue;
        }
        let top = entry.path();
        if let Ok(Some(_lock)) = lock(&top)
            && clear(&top).is_ok()
        {
            let _ = fs::remove_dir_all(&top);
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .context(|| format!("failed to run {name}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Error::failed(format!("{name}: {}", said.trim())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_works_in_is_removed_by_the_next_run() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{PREFIX}4194305"));
        fs::create_dir_all(left.join("fs/round/data")).unwrap();
        let foreign = parent.path().join("evenkeel-other");
        fs::create_dir(&foreign).unwrap();
        let place = WorkLocation::Below(parent.path().to_owned());
        let run_directory = RunDirectory::prepare(&place, Filesystem::Here, 0).unwrap();
        run_directory.renew().unwrap();
        assert!(!left.exists() && run_directory.round("").exists());
        fs::write(run_directory.round("x"), "").unwrap();
        run_directory.renew().unwrap();
        assert!(!run_directory.round("x").exists());
        drop(run_directory);
        let names: Vec<_> = fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_kept_directory_keeps_its_baseline_and_has_one_user() {
        let top = tempfile::tempdir().unwrap();
        let place = WorkLocation::Kept(top.path().join("work"));
        let run_directory = RunDirectory::prepare(&place, Filesystem::Here, 0).unwrap();
        fs::create_dir(run_directory.baseline("one")).unwrap();
        let busy = RunDirectory::prepare(&place, Filesystem::Here, 0).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        let kept = run_directory.baseline("one");
        drop(run_directory);
        fs::create_dir(top.path().join("output")).unwrap();
        let other = WorkLocation::Kept(top.path().to_owned());
        let refused = RunDirectory::prepare(&other, Filesystem::Here, 0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(top.path().join("output").exists());
        assert!(kept.exists() && !top.path().join("work/output").exists());
    }
}
