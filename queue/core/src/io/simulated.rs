//! A file system in memory that remembers every call, for tests: it loses power between any two of
//! them, fails one, or runs full.

use super::{File, Io, Map};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What a disk loses or keeps of a write in one piece.
const SECTOR: usize = 512;

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`, nothing is done.
    Refused,
    /// `EIO` after half of the bytes were written.
    Half,
    /// `ENOSPC` after half of the bytes were written.
    HalfFull,
}

#[derive(Debug, Clone)]
enum Op {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    MakeDir(PathBuf),
    RemoveDir(PathBuf),
    SyncDir(PathBuf),
    Write(usize, u64, Vec<u8>),
    SetLen(usize, u64),
    Sync(usize),
}

#[derive(Debug, Default, Clone)]
struct Node {
    bytes: Vec<u8>,
    reserved: u64,
}

/// What has a name; None is a directory.
type Names = BTreeMap<PathBuf, Option<usize>>;

#[derive(Debug, Default)]
struct World {
    names: Names,
    nodes: Vec<Node>,
    ops: Vec<Op>,
    /// What there was before the first of them.
    origin: Option<Box<(Names, Vec<Node>)>>,
    /// Calls left until one fails, and how; with `true` all fail from then on.
    fault: Option<(usize, Fault, bool)>,
    capacity: Option<u64>,
    refuses_reads: bool,
    unix_s: u64,
}

/// A file system in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    world: Arc<Mutex<World>>,
}

impl Simulated {
    /// An empty one, with the directory `/`.
    #[must_use]
    pub fn new() -> Self {
        let new = Self::default();
        new.with(|world| world.names.insert(PathBuf::from("/"), None));
        new
    }

    fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.world.lock().expect("the simulated disk is whole"))
    }

    /// How many calls have changed something or made it durable.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.with(|world| world.ops.len())
    }

    /// The call after `calls` more fails; with `forever` all later ones do as well.
    pub fn fail_after(&self, calls: usize, fault: Fault, forever: bool) {
        self.with(|world| world.fault = Some((calls, fault, forever)));
    }

    /// From now on what is in files cannot be read: `EIO`.
    pub fn refuse_reads(&self) {
        self.with(|world| world.refuses_reads = true);
    }

    /// Sets the clock, which does not run: seconds since 1970.
    pub fn set_clock(&self, unix_s: u64) {
        self.with(|world| world.unix_s = unix_s);
    }

    /// From now on nothing fails any more.
    pub fn heal(&self) {
        self.with(|world| {
            world.fault = None;
            world.refuses_reads = false;
        });
    }

    /// Limits how much fits, in bytes; None is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.with(|world| world.capacity = bytes);
    }

    /// The bytes that files with a name take.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.with(|world| world.used())
    }

    /// All files and what is in them.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.with(|world| {
            let files = world.names.iter();
            files
                .filter_map(|(path, node)| {
                    Some((path.clone(), world.nodes[(*node)?].bytes.clone()))
                })
                .collect()
        })
    }

    /// Puts other bytes into a file, behind everybody's back.
    pub fn overwrite(&self, path: &Path, bytes: &[u8]) {
        self.with(|world| {
            let node = world.names[path].expect("it is a file");
            world.nodes[node].bytes = bytes.to_vec();
        });
    }

    /// A copy of what is there now.
    #[must_use]
    pub fn copy(&self) -> Self {
        let world = self.with(|world| World {
            names: world.names.clone(),
            nodes: world.nodes.clone(),
            origin: Some(Box::new((world.names.clone(), world.nodes.clone()))),
            unix_s: world.unix_s,
            ..World::default()
        });
        Self {
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// What is on the disk when power goes now: what was there at first, and then as below.
    #[must_use]
    pub fn power_cut_now(&self, random: &mut fastrand::Rng) -> Self {
        self.power_cut(self.calls(), random)
    }

    /// What is on the disk when power goes after the first `calls` calls: what was synced is there,
    /// of the rest some sectors are and some names are, in no order.
    #[must_use]
    pub fn power_cut(&self, calls: usize, random: &mut fastrand::Rng) -> Self {
        let after = Self::new();
        let ops = self.with(|world| world.ops[..calls].to_vec());
        let (nodes, unix_s) = self.with(|world| (world.nodes.len(), world.unix_s));
        after.with(|world| {
            world.unix_s = unix_s;
            if let Some(origin) = self.with(|world| world.origin.clone()) {
                (world.names, world.nodes) = *origin;
            }
            world.nodes.resize(nodes, Node::default());
            for (at, op) in ops.iter().enumerate() {
                match op {
                    Op::Write(node, offset, bytes) => {
                        if is_synced(&ops[at..], *node) {
                            world.nodes[*node].put(*offset, bytes);
                        } else {
                            world.nodes[*node].tear(*offset, bytes, random);
                        }
                    }
                    Op::SetLen(node, len) => {
                        if is_synced(&ops[at..], *node) || random.bool() {
                            world.nodes[*node].bytes.resize(*len as usize, 0);
                        }
                    }
                    Op::Sync(_) | Op::SyncDir(_) => {}
                    name => {
                        if is_named(&ops[at..], name) || random.bool() {
                            world.name(name);
                        }
                    }
                }
            }
            world.origin = Some(Box::new((world.names.clone(), world.nodes.clone())));
        });
        after
    }
}

fn is_synced(later: &[Op], node: usize) -> bool {
    later
        .iter()
        .any(|op| matches!(op, Op::Sync(synced) if *synced == node))
}

/// Whether a directory was synced after a name in it had changed.
fn is_named(later: &[Op], op: &Op) -> bool {
    let path = match op {
        Op::Create(path, _) | Op::Unlink(path) | Op::MakeDir(path) => path,
        Op::Rename(_, path) | Op::RemoveDir(path) | Op::SyncDir(path) => path,
        Op::Write(..) | Op::SetLen(..) | Op::Sync(_) => return true,
    };
    let is_synced = |op: &Op| matches!(op, Op::SyncDir(dir) if path.parent() == Some(dir));
    later.iter().any(is_synced)
}

impl Node {
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset as usize + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset as usize..end].copy_from_slice(bytes);
    }

    /// Writes those sectors that reached the disk.
    fn tear(&mut self, offset: u64, bytes: &[u8], random: &mut fastrand::Rng) {
        let kept = random.u8(0..4);
        let mut at = 0;
        while at < bytes.len() {
            let to_border = SECTOR - (offset as usize + at) % SECTOR;
            let end = (at + to_border).min(bytes.len());
            // All, none, or each sector for itself.
            if kept == 1 || kept > 1 && random.bool() {
                self.put(offset + at as u64, &bytes[at..end]);
            }
            at = end;
        }
    }
}

impl World {
    fn used(&self) -> u64 {
        let nodes = self.names.values().flatten();
        nodes
            .map(|node| (self.nodes[*node].bytes.len() as u64).max(self.nodes[*node].reserved))
            .sum()
    }

    fn fits(&self, node: usize, end: u64) -> io::Result<()> {
        let has = (self.nodes[node].bytes.len() as u64).max(self.nodes[node].reserved);
        let more = end.saturating_sub(has);
        match self.capacity {
            Some(capacity) if more > 0 && self.used() + more > capacity => Err(full()),
            _ => Ok(()),
        }
    }

    /// Whether the next call fails, and how.
    fn step(&mut self) -> Option<Fault> {
        let (left, fault, forever) = self.fault.as_mut()?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        let fault = *fault;
        if !*forever {
            self.fault = None;
        }
        Some(fault)
    }

    fn name(&mut self, op: &Op) {
        match op {
            Op::Create(path, node) => {
                self.names.insert(path.clone(), Some(*node));
            }
            Op::Rename(from, to) => {
                if let Some(node) = self.names.remove(from) {
                    self.names.insert(to.clone(), node);
                }
            }
            Op::MakeDir(path) => {
                self.names.entry(path.clone()).or_insert(None);
            }
            Op::Unlink(path) | Op::RemoveDir(path) => {
                self.names.remove(path);
            }
            _ => {}
        }
    }

    /// Does what changes names, and remembers it.
    fn rename_or_so(&mut self, op: Op) -> io::Result<()> {
        if let Some(fault) = self.step() {
            return Err(fault.error());
        }
        self.name(&op);
        self.ops.push(op);
        Ok(())
    }
}

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Self::HalfFull => full(),
            Self::Refused | Self::Half => io::Error::other("simulated input/output error"),
        }
    }
}

#[derive(Debug)]
struct Opened {
    disk: Simulated,
    node: usize,
}

impl Io for Simulated {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let node = self.with(|world| {
            if world.names.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let node = world.nodes.len();
            world.rename_or_so(Op::Create(path.to_path_buf(), node))?;
            world.nodes.push(Node::default());
            Ok::<usize, io::Error>(node)
        })?;
        Ok(Box::new(Opened {
            disk: self.clone(),
            node,
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let node = self.with(|world| world.names.get(path).copied().flatten());
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Opened {
            disk: self.clone(),
            node,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.with(|world| world.rename_or_so(Op::Rename(from.into(), to.into())))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.with(|world| match world.names.get(path) {
            Some(Some(_)) => world.rename_or_so(Op::Unlink(path.into())),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.with(|world| world.rename_or_so(Op::MakeDir(path.into())))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.with(|world| world.rename_or_so(Op::RemoveDir(path.into())))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.with(|world| world.rename_or_so(Op::SyncDir(path.into())))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.with(|world| {
            if world.names.get(path) != Some(&None) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let inside = world
                .names
                .keys()
                .filter(|name| name.parent() == Some(path));
            Ok(inside
                .filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned()))
                .collect())
        })
    }

    fn unix_s(&self) -> u64 {
        self.with(|world| world.unix_s)
    }
}

impl File for Opened {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.with(|world| {
            if world.refuses_reads {
                return Err(Fault::Refused.error());
            }
            let bytes = &world.nodes[self.node].bytes;
            let start = offset as usize;
            let part = bytes.get(start..start.saturating_add(into.len()));
            into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.with(|world| {
            let fault = match world.step() {
                Some(Fault::Refused) => return Err(Fault::Refused.error()),
                other => other,
            };
            world.fits(self.node, offset + bytes.len() as u64)?;
            let bytes = match fault {
                Some(_) => &bytes[..bytes.len() / 2],
                None => bytes,
            };
            world.nodes[self.node].put(offset, bytes);
            world.ops.push(Op::Write(self.node, offset, bytes.to_vec()));
            fault.map_or(Ok(()), |fault| Err(fault.error()))
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.with(|world| {
            if let Some(fault) = world.step() {
                return Err(fault.error());
            }
            world.nodes[self.node].bytes.resize(bytes as usize, 0);
            world.nodes[self.node].reserved = 0;
            world.ops.push(Op::SetLen(self.node, bytes));
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self
            .disk
            .with(|world| world.nodes[self.node].bytes.len() as u64))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.with(|world| {
            if let Some(fault) = world.step() {
                return Err(fault.error());
            }
            world.ops.push(Op::Sync(self.node));
            Ok(())
        })
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        self.disk.with(|world| {
            world.fits(self.node, bytes)?;
            let node = &mut world.nodes[self.node];
            node.reserved = node.reserved.max(bytes);
            Ok(())
        })
    }

    fn map(&self) -> Option<Map> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_may_be_lost_and_what_was_is_not() {
        let disk = Simulated::new();
        let path = Path::new("/a");
        let file = disk.create(path).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        file.write_at(&[1; 600], 0).unwrap();
        file.sync().unwrap();
        file.write_at(&[2; 2000], 600).unwrap();
        let (mut lost, mut kept, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let cut = disk.power_cut(disk.calls(), &mut fastrand::Rng::with_seed(seed));
            let bytes = cut.files()[0].1.clone();
            assert!(bytes[..600].iter().all(|byte| *byte == 1));
            match bytes[600..].iter().filter(|byte| **byte == 2).count() {
                0 => lost += 1,
                2000 => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(lost > 0 && kept > 0 && torn > 0, "{lost} {kept} {torn}");
    }

    #[test]
    fn a_full_disk_takes_what_was_reserved() {
        let disk = Simulated::new();
        let file = disk.create(Path::new("/a")).unwrap();
        disk.set_capacity(Some(1000));
        file.reserve(900).unwrap();
        let other = disk.create(Path::new("/b")).unwrap();
        assert!(other.write_at(&[0; 200], 0).is_err());
        file.write_at(&[0; 900], 0).unwrap();
    }
}
