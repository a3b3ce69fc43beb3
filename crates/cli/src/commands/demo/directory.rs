//! Where the demo's server lives: a reflink XFS in a loop file when root, else an ordinary
//! directory on what the disk offers.

use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Marks the directories of demos: a later demo removes those whose process is gone.
const PREFIX: &str = "evenkeel-demo-";
/// Size of the sparse loop file: data, clones and two restores fit several times over.
const LOOP_BYTES: u64 = 4 << 30;

/// A directory that takes everything with it when dropped.
pub(super) struct DemoDirectory {
    top: PathBuf,
    mount: Option<PathBuf>,
    /// What the file system is, in words.
    pub(super) description: String,
}

impl DemoDirectory {
    /// Prepares the ground under `parent`, after removing what killed demos left there.
    pub(super) fn prepare(parent: &Path) -> Result<Self> {
        remove_leftovers(parent);
        let top = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&top).context(|| format!("failed to create {}", top.display()))?;
        let mut directory = Self {
            top,
            mount: None,
            description: String::new(),
        };
        if rustix::process::geteuid().is_root() {
            match directory.mount_xfs() {
                Ok(()) => {
                    directory.description = "XFS with reflinks on a loop file".to_owned();
                    return Ok(directory);
                }
                Err(error) => {
                    directory.description = format!(
                        "{} (no XFS loop file: {})",
                        directory.top.display(),
                        error.chain()
                    );
                }
            }
        } else {
            directory.description = format!(
                "{} (not root, so no XFS loop file)",
                directory.top.display()
            );
        }
        Ok(directory)
    }

    /// Returns the directory to work in.
    pub(super) fn path(&self) -> &Path {
        self.mount.as_deref().unwrap_or(&self.top)
    }

    fn mount_xfs(&mut self) -> Result<()> {
        let image = self.top.join("xfs.img");
        let file = fs::File::create(&image).context(|| "failed to create the loop file")?;
        file.set_len(LOOP_BYTES)
            .context(|| "failed to size the loop file")?;
        let mount = self.top.join("xfs");
        fs::create_dir(&mount).context(|| "failed to create the mount point")?;
        run(
            "mkfs.xfs",
            &[
                "-q".as_ref(),
                "-m".as_ref(),
                "reflink=1".as_ref(),
                image.as_ref(),
            ],
        )?;
        run(
            "mount",
            &[
                "-o".as_ref(),
                "loop".as_ref(),
                image.as_ref(),
                mount.as_ref(),
            ],
        )?;
        self.mount = Some(mount);
        Ok(())
    }
}

impl Drop for DemoDirectory {
    fn drop(&mut self) {
        remove(&self.top);
    }
}

fn run(program: &str, args: &[&std::ffi::OsStr]) -> Result<()> {
    let output = Command::new(program)
        .args(args)
        .output()
        .context(|| format!("failed to run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("{program}: {}", stderr.trim())))
}

/// Unmounts and deletes one demo's directory. Errors are not shown: the next demo tries again.
fn remove(top: &Path) {
    let mount = top.join("xfs");
    if mount.exists() && run("umount", &[mount.as_ref()]).is_err() {
        // Busy or not mounted; lazily, so that nothing stays mounted once its users are gone.
        let _ = run("umount", &["-l".as_ref(), mount.as_ref()]);
    }
    let _ = fs::remove_dir_all(top);
}

fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX))
            .and_then(|n| n.parse::<u32>().ok());
        // Anybody can make such a name in /tmp, and lead what is unmounted and deleted elsewhere.
        if let Some(pid) = pid
            && !Path::new(&format!("/proc/{pid}")).exists()
            && OwnDirectory::open(&entry.path()).is_ok()
        {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    /// No process has such a number.
    fn leftover(parent: &Path, number: u32) -> PathBuf {
        parent.join(format!("{PREFIX}{number}"))
    }

    #[test]
    fn only_what_we_left_is_removed() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give a directory away"
        );
        let dir = tempfile::tempdir().unwrap();
        let [ours, others, link] =
            [4_194_305, 4_194_306, 4_194_307].map(|n| leftover(dir.path(), n));
        for path in [&ours, &others] {
            fs::create_dir_all(path.join("server")).unwrap();
        }
        chown(&others, Some(4242), None).unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        symlink(&precious, &link).unwrap();
        remove_leftovers(dir.path());
        assert!(!ours.exists());
        assert!(others.join("server").exists());
        assert!(link.is_symlink() && precious.exists());
    }
}
