//! Redo log files that come and go by themselves: MySQL 8.0.30 and later begins a new file when one
//! is full, and removes the oldest after a checkpoint, whatever locks are held.
//!
//! A list that was made before the snapshot may lack the newest file, and with it what was
//! committed last. So which files there are is asked of the image itself.

use super::class::FileClass;
use super::found::{Access, FoundFile, ServerFiles};
use super::redo_names::{DIRECTORY, is_redo, is_spare};
use evenkeel_op::{Context, Error, Result};
use std::path::{Path, PathBuf};

/// The permissions that servers give to redo log files.
const REDO_MODE: u32 = 0o640;

impl FoundFile {
    /// Returns whether it is a redo log file that comes and goes by itself.
    #[must_use]
    pub fn is_moving_redo(&self) -> bool {
        let dir = self.path.parent();
        self.class == FileClass::InnodbRedo && dir.is_some_and(|dir| dir.ends_with(DIRECTORY))
    }
}

impl ServerFiles {
    /// Leaves out the redo log files that come and go by themselves.
    #[must_use]
    pub fn without_moving_redo(mut self) -> Self {
        self.files.retain(|file| !file.is_moving_redo());
        self
    }

    /// Adds them as they are in an image; `image` says where a directory lies in it.
    pub fn with_moving_redo(mut self, image: impl Fn(&Path) -> Result<PathBuf>) -> Result<Self> {
        let directories = self.dirs.iter().filter(|(_, dir)| dir.ends_with(DIRECTORY));
        for (name, dir) in directories {
            let found = redo_in(&image(dir)?, name, dir)?;
            if found.is_empty() {
                return Err(Error::failed(format!(
                    "the snapshot has no redo log file of {}",
                    dir.display()
                )));
            }
            self.files.extend(found);
        }
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(self)
    }
}

/// Lists the redo log files in `image`, a frozen copy of the directory `dir` that is called `name`.
fn redo_in(image: &Path, name: &str, dir: &Path) -> Result<Vec<FoundFile>> {
    let failed = || format!("failed to list {}", image.display());
    // A clone is ours: only the original knows its owner, and that may have gone.
    let directory = std::fs::metadata(dir)
        .context(|| format!("failed to look at {}", dir.display()))
        .map(|meta| Access::of(&meta))?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(image).context(failed)? {
        let entry = entry.context(failed)?;
        let leaf = entry.file_name();
        let Some(leaf) = leaf.to_str() else {
            continue;
        };
        if !is_redo(leaf) || is_spare(leaf) {
            continue;
        }
        found.push(FoundFile {
            access: Some(Access {
                mode: REDO_MODE,
                ..directory
            }),
            name: format!("{name}/{leaf}"),
            path: dir.join(leaf),
            class: FileClass::InnodbRedo,
            size: entry.metadata().context(failed)?.len(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::discover_stopped;
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    fn redo(files: &ServerFiles) -> Vec<&str> {
        let redo = files
            .files
            .iter()
            .filter(|f| f.class == FileClass::InnodbRedo);
        redo.map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn the_image_says_which_redo_log_files_there_are() {
        let data = tempfile::tempdir().unwrap();
        let image = tempfile::tempdir().unwrap();
        let log = data.path().join(DIRECTORY);
        fs::create_dir(&log).unwrap();
        for name in ["#ib_redo7", "#ib_redo8", "#ib_redo9_tmp"] {
            fs::write(log.join(name), "old").unwrap();
        }
        fs::write(data.path().join("ib_logfile101"), "stays").unwrap();
        for name in ["#ib_redo8", "#ib_redo9", "#ib_redo10_tmp", "notes"] {
            fs::write(image.path().join(name), "newer").unwrap();
        }
        let files = discover_stopped(data.path(), &BTreeMap::new()).unwrap();
        let listed = [
            "data/#innodb_redo/#ib_redo7",
            "data/#innodb_redo/#ib_redo8",
            "data/ib_logfile101",
        ];
        assert_eq!(redo(&files), listed);
        let files = files.without_moving_redo();
        assert_eq!(redo(&files), ["data/ib_logfile101"]);
        let files = files
            .with_moving_redo(|dir| {
                assert_eq!(dir, log.canonicalize().unwrap());
                Ok(image.path().to_owned())
            })
            .unwrap();
        let listed = [
            "data/#innodb_redo/#ib_redo8",
            "data/#innodb_redo/#ib_redo9",
            "data/ib_logfile101",
        ];
        assert_eq!(redo(&files), listed);
        assert_eq!(files.files[0].size, 5);
        let empty = tempfile::tempdir().unwrap();
        let lost = |_: &Path| Ok(empty.path().to_owned());
        assert!(files.without_moving_redo().with_moving_redo(lost).is_err());
    }
}
