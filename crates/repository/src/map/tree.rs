//! Reads the map of a stored file.

use super::leaf::{self, LeafBody};
use super::{Child, Entry, FAN_OUT, RecordRef, node, width};
use crate::catalog::Catalog;
use crate::fault::damaged;
use crate::format::record::{RecordId, RecordKind};
use crate::list::FileRecord;
use crate::mutex::held;
use evenkeel_op::Result;
use std::sync::{Arc, Mutex};

/// A node as read: its index and its children.
type NodeRead = (u64, Arc<Vec<Child>>);

/// The map of one file of one generation.
pub(crate) struct Tree {
    catalog: Arc<Catalog>,
    file: u64,
    name: String,
    blocks: u64,
    level: u8,
    root: Child,
    /// The node read last, per level from 1 on: neighbours share all of their path.
    path: Mutex<[Option<NodeRead>; 8]>,
}

/// A leaf as it is: every block known.
pub(crate) struct TreeLeaf {
    pub(crate) entries: Vec<Entry>,
    /// The full leaf record it rests on, and what that one says.
    pub(crate) full: Option<(RecordRef, Vec<Entry>)>,
}

impl Tree {
    pub(crate) fn new(catalog: Arc<Catalog>, record: &FileRecord) -> Result<Self> {
        let blocks = record.meta.blocks();
        let name = record.meta.name.clone();
        let root = match record.map {
            Some(root) if blocks > 0 && record.level == super::height(blocks) => root,
            None if blocks == 0 => Child::Absent,
            _ => return Err(damaged(&name, "its map does not match its length")),
        };
        Ok(Self {
            catalog,
            file: record.id,
            name,
            blocks,
            level: record.level,
            root,
            path: Mutex::default(),
        })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    fn id(&self, level: u8, index: u64) -> RecordId {
        RecordId {
            file: self.file,
            level,
            index,
        }
    }

    /// Returns the subtree at (`level`, `index`); absent beyond the end of the file.
    pub(crate) fn child(&self, level: u8, index: u64) -> Result<Child> {
        if level > self.level || width(level, index, self.blocks) == 0 {
            return Ok(Child::Absent);
        }
        if level == self.level {
            return Ok(self.root);
        }
        let siblings = self.children(level + 1, index / FAN_OUT)?;
        let child = siblings.get((index % FAN_OUT) as usize);
        Ok(child.copied().unwrap_or(Child::Absent))
    }

    /// Returns the children of the node at (`level`, `index`), as many as the file has.
    pub(crate) fn children(&self, level: u8, index: u64) -> Result<Arc<Vec<Child>>> {
        let slot = usize::from(level - 1);
        if let Some((kept, children)) = &held(&self.path)[slot]
            && *kept == index
        {
            return Ok(children.clone());
        }
        let count = width(level, index, self.blocks);
        let children = match self.child(level, index)? {
            Child::Record(at) => self.node(at, level, index, count)?,
            child => vec![child; count],
        };
        let children = Arc::new(children);
        held(&self.path)[slot] = Some((index, children.clone()));
        Ok(children)
    }

    fn node(&self, at: RecordRef, level: u8, index: u64, count: usize) -> Result<Vec<Child>> {
        let (kind, body) = self.catalog.record(at, self.id(level, index))?;
        let children = node::decode(&body).ok();
        let mut children = children
            .filter(|children| kind == RecordKind::Node && children.len() >= count)
            .ok_or_else(|| self.broken(at))?;
        // A node outlives a shrinking of its file: what it says beyond the end means nothing.
        children.truncate(count);
        Ok(children)
    }

    fn broken(&self, at: RecordRef) -> evenkeel_op::Error {
        let maps = format!("generations/{}/maps", at.generation);
        damaged(&maps, format!("a record of '{}' is not valid", self.name))
    }

    /// Reads a leaf record of this file as it stands, without what it rests on.
    pub(crate) fn leaf_record(&self, at: RecordRef, index: u64) -> Result<LeafBody> {
        let (kind, body) = self.catalog.record(at, self.id(0, index))?;
        match kind {
            RecordKind::Node => Err(self.broken(at)),
            _ => leaf::decode(&body, kind == RecordKind::LeafChanges).map_err(|_| self.broken(at)),
        }
    }

    /// Reads a leaf; no entries beyond the end of the file.
    pub(crate) fn leaf(&self, index: u64) -> Result<TreeLeaf> {
        let count = width(0, index, self.blocks);
        let at = match self.child(0, index)? {
            Child::Record(at) => at,
            child => {
                return Ok(TreeLeaf {
                    entries: vec![child.uniform(); count],
                    full: None,
                });
            }
        };
        let body = self.leaf_record(at, index)?;
        let mut entries = body.entries;
        let full = match body.full {
            None => (at, entries.clone()),
            Some(full_at) => {
                let full = self.leaf_record(full_at, index)?;
                if full.full.is_some() {
                    return Err(self.broken(at));
                }
                for (i, entry) in entries.iter_mut().enumerate() {
                    if *entry == Entry::Absent {
                        *entry = full.entries.get(i).copied().unwrap_or(Entry::Absent);
                    }
                }
                (full_at, full.entries)
            }
        };
        if entries.len() < count || entries[..count].contains(&Entry::Absent) {
            return Err(self.broken(at));
        }
        entries.truncate(count);
        Ok(TreeLeaf {
            entries,
            full: Some(full),
        })
    }
}
