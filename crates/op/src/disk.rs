//! What happens to names on disk.

use crate::own_directory::shown;
use crate::{Context, Result};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Brings the names in a directory to disk. An empty path is the working directory.
///
/// Errors: those of the system.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    let is_here = directory.as_os_str().is_empty();
    let directory = if is_here { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Removes whatever is at a path, if anything is: a file, a link, a directory with all that is in it.
///
/// Errors: `Failed`, with the path.
pub fn remove_any(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.context(|| format!("failed to remove {}", shown(path).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_go_and_what_they_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("kept")).unwrap();
        fs::write(at("kept/file"), "x").unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link")).unwrap();
        fs::create_dir_all(at("tree/below")).unwrap();
        for name in ["link", "tree", "absent"] {
            remove_any(&at(name)).unwrap();
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(at("kept/file").is_file());
    }

    #[test]
    fn the_working_directory_has_an_empty_path() {
        sync_directory(Path::new("")).unwrap();
        assert!(sync_directory(Path::new("/nonexistent/directory")).is_err());
    }
}
