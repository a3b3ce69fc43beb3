//! The directory on the other host that is ours alone: the program, and a directory for each
//! session.
//!
//! ```text
//! /var/tmp/evenkeel-0/            made by the bootstrap: ours, closed to others
//!   program-<hash>                the program, removed by the last session; not here if it is kept
//!   program-<hash>.<pid>          one that is being pushed
//!   run-<session>/link            the socket of a session
//! ```

use crate::link::SessionId;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const RUN: &str = "run-";
const PROGRAM: &str = "program-";

/// A session's directory.
pub(super) struct Directory {
    here: PathBuf,
    path: PathBuf,
}

impl Directory {
    pub(super) fn of(here: &Path, session: SessionId) -> Self {
        let session: String = session.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            here: here.to_owned(),
            path: here.join(format!("{RUN}{session}")),
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("link")
    }

    /// Makes it, and removes what sessions that were killed left.
    pub(super) fn make(&self) -> io::Result<()> {
        self.heal();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
    }

    /// Removes it, and the program with the last of them.
    pub(super) fn remove(&self) {
        // What cannot be removed now is removed by the next session.
        let _ = fs::remove_dir_all(&self.path);
        if self.names().iter().any(|name| name.starts_with(RUN)) {
            return;
        }
        for name in self.names() {
            if name.starts_with(PROGRAM) && !is_being_pushed(&name) {
                let _ = fs::remove_file(self.here.join(name));
            }
        }
        let _ = fs::remove_dir(&self.here);
    }

    fn heal(&self) {
        for name in self.names() {
            let path = self.here.join(&name);
            if name.starts_with(RUN) && path != self.path {
                let socket = UnixStream::connect(path.join("link"));
                // One without a socket is being made just now, or was left before it had one.
                if socket.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                    let _ = fs::remove_dir_all(&path);
                }
            } else if name.starts_with(PROGRAM) && name.contains('.') && !is_being_pushed(&name) {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.here).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }
}

/// Whether the shell that a pushed program is named after is still there.
fn is_being_pushed(name: &str) -> bool {
    let pid = name.rsplit_once('.').map(|(_, pid)| pid);
    pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_last_session_takes_the_program_along() {
        let parent = tempfile::tempdir().unwrap();
        let here = parent.path().join("evenkeel-0");
        let (one, two) = (Directory::of(&here, [1; 16]), Directory::of(&here, [2; 16]));
        one.make().unwrap();
        two.make().unwrap();
        fs::write(here.join("program-ab"), "x").unwrap();
        one.remove();
        assert!(here.join("program-ab").exists());
        two.remove();
        assert!(!here.exists());
    }

    #[test]
    fn a_dead_session_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let here = parent.path().join("evenkeel-0");
        let dead = Directory::of(&here, [1; 16]);
        dead.make().unwrap();
        drop(UnixListener::bind(dead.socket()).unwrap());
        let alive = Directory::of(&here, [2; 16]);
        alive.make().unwrap();
        let _listening = UnixListener::bind(alive.socket()).unwrap();
        fs::write(here.join("program-ab.999999999"), "half").unwrap();
        Directory::of(&here, [3; 16]).make().unwrap();
        assert!(!dead.path.exists());
        assert!(alive.path.exists());
        assert!(!here.join("program-ab.999999999").exists());
    }
}
