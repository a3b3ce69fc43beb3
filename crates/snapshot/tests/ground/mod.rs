//! A pretended data directory on a real filesystem.
#![allow(dead_code)] // Each test file uses a part of it.

use evenkeel_snapshot::{Layout, Settings, SourceFile};
use evenkeel_testkit::LoopFs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const FILES: [&str; 5] = [
    "ibdata1",
    "ib_logfile0",
    "bank/accounts.ibd",
    "bank/ledger.ibd",
    "empty",
];

pub(crate) fn xfs() -> LoopFs {
    LoopFs::xfs(320 << 20)
}

pub(crate) fn btrfs() -> LoopFs {
    LoopFs::btrfs(400 << 20)
}

/// Makes a data directory with content of version 1, in a subvolume where there are any.
pub(crate) fn datadir(fs: &LoopFs) -> PathBuf {
    let datadir = fs.join("mysql");
    if fs.kind() == "btrfs" {
        subvolume(&datadir);
    } else {
        fs::create_dir(&datadir).unwrap();
    }
    fs::create_dir(datadir.join("bank")).unwrap();
    write_version(&datadir, 1);
    datadir
}

pub(crate) fn subvolume(path: &Path) {
    let made = Command::new("btrfs")
        .args(["subvolume", "create"])
        .arg(path)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// The bytes of a file at a version: only the first, the last and one page in the middle change.
pub(crate) fn content(name: &str, version: u8) -> Vec<u8> {
    if name == "empty" {
        return Vec::new();
    }
    let mut bytes = vec![name.len() as u8; 40 * 16384];
    for page in [0, 17, 39] {
        bytes[page * 16384..][..16384].fill(version.wrapping_mul(16).wrapping_add(page as u8));
    }
    bytes
}

/// Writes the pages of every file that differ between versions.
pub(crate) fn write_version(datadir: &Path, version: u8) {
    use std::os::unix::fs::FileExt;
    for name in FILES {
        let bytes = content(name, version);
        let path = datadir.join(name);
        if version == 1 {
            fs::write(path, bytes).unwrap();
            continue;
        }
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        for page in [0, 17, 39].into_iter().filter(|_| !bytes.is_empty()) {
            file.write_all_at(&bytes[page * 16384..][..16384], page as u64 * 16384)
                .unwrap();
        }
    }
}

pub(crate) fn layout(datadir: &Path) -> Layout {
    Layout {
        datadir: datadir.to_owned(),
        dirs: vec![datadir.to_owned(), datadir.join("bank")],
        server_running: true,
        page_bytes: 16384,
        volumes: Vec::new(),
    }
}

pub(crate) fn files(datadir: &Path) -> Vec<SourceFile> {
    FILES
        .map(|name| SourceFile {
            name: format!("data/{name}"),
            path: datadir.join(name),
        })
        .into()
}

pub(crate) fn settings() -> Settings {
    Settings::default()
}

/// Returns the one holding directory beside a data directory.
pub(crate) fn holding(fs: &LoopFs) -> PathBuf {
    let mut found: Vec<_> = fs::read_dir(fs.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".evenkeel-")
        })
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Returns the names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
