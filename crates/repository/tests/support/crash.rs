//! Records what a store does to its directory, and makes the images that a crash may leave.

use super::memory::Objects;
use evenkeel_repository::store::{Step, Tap};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub enum Recorded {
    MakeFolder(String),
    RemoveFolder(String),
    CreateFile(String),
    Write(String, Vec<u8>),
    SyncFile(String),
    Rename(String, String),
    SyncFolder(String),
    Remove(String),
}

#[derive(Debug, Default)]
pub struct Recorder {
    pub steps: Mutex<Vec<Recorded>>,
}

impl Tap for Recorder {
    fn step(&self, step: Step<'_>) -> io::Result<()> {
        let owned = str::to_owned;
        self.steps.lock().unwrap().push(match step {
            Step::MakeFolder(name) => Recorded::MakeFolder(owned(name)),
            Step::RemoveFolder(name) => Recorded::RemoveFolder(owned(name)),
            Step::CreateFile(name) => Recorded::CreateFile(owned(name)),
            Step::Write(name, bytes) => Recorded::Write(owned(name), bytes.to_vec()),
            Step::SyncFile(name) => Recorded::SyncFile(owned(name)),
            Step::Rename(from, to) => Recorded::Rename(owned(from), owned(to)),
            Step::SyncFolder(name) => Recorded::SyncFolder(owned(name)),
            Step::Remove(name) => Recorded::Remove(owned(name)),
        });
        Ok(())
    }
}

/// What happens to changes that were not synced when the power went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    Lost,
    /// Half of the bytes; names by folder, every other one.
    Torn,
    Kept,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
}

type Names = BTreeMap<String, Option<usize>>;

/// A directory as the kernel sees it, and as the disk has it.
#[derive(Debug, Default)]
pub struct Disk {
    inodes: Vec<Inode>,
    /// Per folder: its names (a file's inode, or a folder), now and when last synced.
    now: BTreeMap<String, Names>,
    synced: BTreeMap<String, Names>,
}

fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

impl Disk {
    fn names(&mut self, folder: &str) -> &mut Names {
        self.now.entry(folder.to_owned()).or_default()
    }

    fn inode(&mut self, name: &str) -> &mut Inode {
        let (folder, last) = split(name);
        let at = self.names(folder)[last].expect("a file");
        &mut self.inodes[at]
    }

    pub fn apply(&mut self, step: &Recorded) {
        match step {
            Recorded::MakeFolder(name) if name.is_empty() => {}
            Recorded::MakeFolder(name) => {
                let (folder, last) = split(name);
                self.names(folder).insert(last.to_owned(), None);
                // A folder re-created under an old name is empty on the disk, too.
                if self.now.get(name).is_none_or(Names::is_empty) {
                    self.synced.remove(name);
                }
            }
            Recorded::RemoveFolder(name) | Recorded::Remove(name) => {
                let (folder, last) = split(name);
                self.names(folder).remove(last);
            }
            Recorded::CreateFile(name) => {
                let (folder, last) = split(name);
                let at = self.inodes.len();
                self.inodes.push(Inode::default());
                self.names(folder).insert(last.to_owned(), Some(at));
            }
            Recorded::Write(name, bytes) => self.inode(name).bytes.extend_from_slice(bytes),
            Recorded::SyncFile(name) => {
                let inode = self.inode(name);
                inode.synced = inode.bytes.clone();
            }
            Recorded::Rename(from, to) => {
                let (folder, last) = split(from);
                let moved = self.names(folder).remove(last).expect("a file");
                let (folder, last) = split(to);
                self.names(folder).insert(last.to_owned(), moved);
            }
            Recorded::SyncFolder(name) => {
                let names = self.names(name).clone();
                self.synced.insert(name.clone(), names);
            }
        }
    }

    /// What is there after a crash: objects, and folders.
    pub fn image(&self, names: Unsynced, data: Unsynced) -> (Objects, BTreeSet<String>) {
        let mut objects = Objects::new();
        let mut folders = BTreeSet::new();
        let mut todo = vec![String::new()];
        while let Some(folder) = todo.pop() {
            let empty = Names::new();
            let now = self.now.get(&folder).unwrap_or(&empty);
            let synced = self.synced.get(&folder).unwrap_or(&empty);
            let all: BTreeSet<&String> = now.keys().chain(synced.keys()).collect();
            for (i, last) in all.into_iter().enumerate() {
                let entry = match names {
                    Unsynced::Kept => now.get(last),
                    Unsynced::Lost => synced.get(last),
                    Unsynced::Torn if i % 2 == 0 => now.get(last),
                    Unsynced::Torn => synced.get(last),
                };
                let name = format!("{folder}{}{last}", if folder.is_empty() { "" } else { "/" });
                match entry {
                    None => {}
                    Some(None) => todo.push(name),
                    Some(Some(at)) => {
                        let inode = &self.inodes[*at];
                        let bytes = match data {
                            Unsynced::Kept => inode.bytes.clone(),
                            Unsynced::Lost => inode.synced.clone(),
                            Unsynced::Torn => {
                                let half = (inode.synced.len() + inode.bytes.len()) / 2;
                                inode.bytes[..half].to_vec()
                            }
                        };
                        objects.insert(name, Arc::new(bytes));
                    }
                }
            }
            folders.insert(folder);
        }
        (objects, folders)
    }
}
