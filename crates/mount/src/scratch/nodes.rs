//! The names of a scratch, and the numbers that the kernel knows them by.

use super::content::Content;
use super::map::Map;
use crate::attributes::kind_of;
use crate::tree::ROOT;
use fuser::FileType;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Node {
    parent: u64,
    name: OsString,
    /// Whether it still has its name.
    linked: bool,
    /// How often its number was given to the kernel.
    lookups: u64,
    pub(super) kind: FileType,
    pub(super) names: BTreeMap<OsString, u64>,
    /// Of a regular file.
    pub(super) content: Option<Arc<Content>>,
}

/// Every name that there is: whatever makes, moves or removes one goes through here.
#[derive(Debug)]
pub(super) struct Nodes {
    top: PathBuf,
    by_number: HashMap<u64, Node>,
    next: u64,
}

fn missing() -> io::Error {
    rustix::io::Errno::NOENT.into()
}

impl Nodes {
    /// Reads the names below `top`, and which parts of the files are missing if a table of maps
    /// tells.
    pub(super) fn load(top: &Path, table: Option<&Arc<File>>) -> io::Result<Self> {
        let mut nodes = Self {
            top: top.to_owned(),
            by_number: HashMap::new(),
            next: ROOT + 1,
        };
        nodes.by_number.insert(
            ROOT,
            Node {
                parent: ROOT,
                name: OsString::new(),
                linked: true,
                lookups: 1,
                kind: FileType::Directory,
                names: BTreeMap::new(),
                content: None,
            },
        );
        let mut waiting = vec![(ROOT, top.to_owned())];
        while let Some((number, dir)) = waiting.pop() {
            for entry in std::fs::read_dir(&dir)? {
                let entry = entry?;
                let (path, metadata) = (entry.path(), entry.metadata()?);
                let kind = kind_of(&metadata);
                let content = match kind {
                    FileType::RegularFile => {
                        let map = table.map(|table| Map::load(table, &path, metadata.len()));
                        Some(Content::new(map.transpose()?.flatten()))
                    }
                    _ => None,
                };
                let child = nodes.add(number, &entry.file_name(), kind, content);
                if kind == FileType::Directory {
                    waiting.push((child, path));
                }
            }
        }
        Ok(nodes)
    }

    /// Notes something new, which the kernel does not know yet.
    pub(super) fn add(
        &mut self,
        parent: u64,
        name: &OsStr,
        kind: FileType,
        content: Option<Content>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(
            number,
            Node {
                parent,
                name: name.to_owned(),
                linked: true,
                lookups: 0,
                kind,
                names: BTreeMap::new(),
                content: content.map(Arc::new),
            },
        );
        if let Some(parent) = self.by_number.get_mut(&parent) {
            parent.names.insert(name.to_owned(), number);
        }
        number
    }

    pub(super) fn get(&self, number: u64) -> io::Result<&Node> {
        self.by_number.get(&number).ok_or_else(missing)
    }

    pub(super) fn find(&self, parent: u64, name: &OsStr) -> io::Result<u64> {
        let found = self.get(parent)?.names.get(name);
        found.copied().ok_or_else(missing)
    }

    /// Returns all numbers, in the order of their making.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.by_number.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the contents that anybody can still see: of what has a name, or is open.
    pub(super) fn contents(&self) -> impl Iterator<Item = &Arc<Content>> {
        self.by_number.values().filter_map(|node| {
            let content = node.content.as_ref()?;
            (node.linked || content.file().is_some()).then_some(content)
        })
    }

    /// Returns where something is; an error when it has no name any more.
    pub(super) fn path(&self, number: u64) -> io::Result<PathBuf> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            let node = self.get(at)?;
            if !node.linked {
                return Err(missing());
            }
            names.push(node.name.as_os_str());
            at = node.parent;
        }
        let mut path = self.top.clone();
        path.extend(names.iter().rev());
        Ok(path)
    }

    /// Returns where a name in a directory is or would be.
    pub(super) fn path_in(&self, parent: u64, name: &OsStr) -> io::Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    /// Notes that a number was given to the kernel.
    pub(super) fn reported(&mut self, number: u64) {
        if let Some(node) = self.by_number.get_mut(&number) {
            node.lookups += 1;
        }
    }

    /// Notes that the kernel has forgotten a number so many times.
    pub(super) fn forget(&mut self, number: u64, times: u64) {
        if let Some(node) = self.by_number.get_mut(&number) {
            node.lookups = node.lookups.saturating_sub(times);
            if !node.linked && node.lookups == 0 {
                self.by_number.remove(&number);
            }
        }
    }

    /// Takes a name away. What it named lives on while somebody has it open.
    pub(super) fn unlink(&mut self, parent: u64, name: &OsStr) {
        let number = self
            .by_number
            .get_mut(&parent)
            .and_then(|parent| parent.names.remove(name));
        if let Some(number) = number {
            if let Some(node) = self.by_number.get_mut(&number) {
                node.linked = false;
            }
            self.forget(number, 0);
        }
    }

    /// Gives something another name; what had that one loses it.
    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        if from == to {
            return;
        }
        self.unlink(to.0, to.1);
        let number = self
            .by_number
            .get_mut(&from.0)
            .and_then(|parent| parent.names.remove(from.1));
        let Some(number) = number else { return };
        if let Some(node) = self.by_number.get_mut(&number) {
            node.parent = to.0;
            node.name = to.1.to_owned();
        }
        if let Some(parent) = self.by_number.get_mut(&to.0) {
            parent.names.insert(to.1.to_owned(), number);
        }
    }
}
