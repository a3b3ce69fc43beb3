//! A file that is backed up as a volume: a repository full of it needs no server.

use crate::program::{Ended, run};
use evenkeel_testkit::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words of a backup of a volume; its path and the repository follow.
pub const BACKUP: [&str; 4] = ["backup", "--no-defaults", "--snapshot=copy", "--volume"];

/// The file, and a place for what is restored.
#[derive(Debug, Default)]
pub struct Image {
    scratch: Scratch,
}

impl Image {
    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.scratch.join("vm.img")
    }

    /// Returns a path beside it.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Writes bytes that do not pack, and returns them.
    #[must_use]
    pub fn write(&self, length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let mut bytes = words.take(length / 8 + 1).collect::<Vec<_>>().concat();
        bytes.truncate(length);
        fs::write(self.path(), &bytes).expect("an image");
        bytes
    }

    /// Changes a stretch of it, and returns all of it.
    #[must_use]
    pub fn change(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = fs::read(self.path()).expect("an image");
        bytes[at..at + length]
            .iter_mut()
            .for_each(|byte| *byte ^= 0x5a);
        fs::write(self.path(), &bytes).expect("an image");
        bytes
    }

    /// Restores a generation with `restore` and what else is to be said; returns where to.
    #[must_use]
    pub fn restore(&self, mut restore: Command, generation: u64, to: &str) -> (Ended, PathBuf) {
        let target = self.beside(to);
        restore.arg(format!("--generation={generation}"));
        restore.arg("--target").arg(&target);
        (run(restore), target)
    }

    /// Fails unless a repository is sound and its generations are these. `command` plans a command
    /// that has these words first and opens it.
    #[track_caller]
    pub fn assert_held(
        &self,
        command: &dyn Fn(&[&str]) -> Command,
        repository: &str,
        expected: &[Vec<u8>],
    ) {
        let verified = run(command(&["verify", "--all", repository]));
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let listed = run(command(&["generations", repository]));
        let all = listed.answer["generations"].as_array();
        let all = all.expect("generations");
        assert_eq!(all.len(), expected.len(), "{listed:?}");
        for (about, bytes) in all.iter().zip(expected) {
            let number = about["generation"].as_u64().expect("a number");
            let restore = command(&["restore", repository]);
            let (ended, target) = self.restore(restore, number, &format!("back-{number}"));
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(holds(&target, bytes), "generation {number}");
            fs::remove_dir_all(target).expect("it goes");
        }
    }
}

/// Whether a directory's only file, however deep, holds these bytes.
#[must_use]
pub fn holds(directory: &Path, bytes: &[u8]) -> bool {
    let mut path = directory.to_owned();
    while path.is_dir() {
        let mut inside = fs::read_dir(&path).expect("a directory");
        path = inside.next().expect("something").expect("an entry").path();
    }
    fs::read(path).expect("a file") == bytes
}
