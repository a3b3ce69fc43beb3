//! Maps one file whose length is only known at its end, as a stream gives it: leaves come in any
//! order, nodes are written as soon as they are full, and the rest when the length is known.
//!
//! Every block has to be given: a stream does not say what it leaves out. What is as in the base is
//! still neither stored nor mapped again.

use super::base::BaseFile;
use super::leaf::Leaf;
use super::shared::Shared;
use crate::format::record::{RecordId, RecordKind};
use crate::list::{FileMeta, FileRecord};
use crate::map::{Child, Entry, FAN_OUT, height, node, width};
use crate::mutex::held;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// One regular file of unknown length. Threads may work on its leaves together.
pub struct GrowingBuilder {
    shared: Arc<Shared>,
    meta: FileMeta,
    /// Identity in map records.
    id: u64,
    base: Option<Arc<BaseFile>>,
    state: Mutex<GrowingDraft>,
    finished: bool,
}

/// What was given and is not in a full node yet.
#[derive(Default)]
struct GrowingDraft {
    /// Per level of the children, per node above them: the children that were given.
    drafts: Vec<BTreeMap<u64, BTreeMap<u8, Child>>>,
    /// Where the file ends, as the leaf says that is not full.
    end: Option<u64>,
    leaves: u64,
}

impl GrowingBuilder {
    pub(crate) fn new(
        shared: Arc<Shared>,
        meta: FileMeta,
        base: Option<Arc<BaseFile>>,
    ) -> Result<Self> {
        super::builder::check_block_size(&meta)?;
        let base = base.filter(|base| base.meta().block_size == meta.block_size);
        shared.opened();
        Ok(Self {
            id: base
                .as_ref()
                .map_or_else(|| shared.next_file(), |base| base.id()),
            shared,
            meta,
            base,
            state: Mutex::default(),
            finished: false,
        })
    }

    /// Returns how many bytes a leaf has that is not the last.
    #[must_use]
    pub fn leaf_bytes(&self) -> u64 {
        FAN_OUT * u64::from(self.meta.block_size)
    }

    /// Begins the leaf `index`, which has `bytes` bytes: fewer than [`Self::leaf_bytes`] only if the
    /// file ends in it. All of its blocks must be given.
    pub fn leaf(&self, index: u64, bytes: u64) -> Result<Leaf> {
        let full = self.leaf_bytes();
        if bytes == 0 || bytes > full {
            let name = &self.meta.name;
            return Err(Error::failed(format!(
                "a leaf of '{name}' was given with {bytes} bytes"
            )));
        }
        let count = bytes.div_ceil(u64::from(self.meta.block_size)) as usize;
        let base = match &self.base {
            Some(base) => Some(self.shared.watch(base.tree().leaf(index))?),
            None => None,
        };
        let end = index * full + bytes;
        Ok(Leaf::new(
            index,
            count,
            base,
            0,
            (self.meta.block_size, end),
        ))
    }

    /// Takes a leaf whose blocks are all given. Each leaf may be set once.
    pub fn set_leaf(&self, leaf: Leaf) -> Result<()> {
        let result = self.take_leaf(&leaf);
        self.shared.watch(result)
    }

    fn take_leaf(&self, leaf: &Leaf) -> Result<()> {
        let child = match self.as_in_base(leaf)? {
            Some(child) => child,
            None => super::builder::write_leaf(&self.shared, self.id, &self.meta, leaf)?,
        };
        let mut state = held(&self.state);
        state.leaves += 1;
        let end = leaf.end();
        if end < (leaf.index + 1) * self.leaf_bytes() && state.end.replace(end).is_some() {
            let name = &self.meta.name;
            return Err(Error::failed(format!("'{name}' was given two ends")));
        }
        self.place(&mut state, 0, leaf.index, child)
    }

    /// Returns what the base has in a leaf's place, if that says the same.
    fn as_in_base(&self, leaf: &Leaf) -> Result<Option<Child>> {
        let (Some(file), Some(old)) = (&self.base, &leaf.base) else {
            return Ok(None);
        };
        if old.entries.get(..leaf.entries.len()) != Some(leaf.entries.as_slice()) {
            return Ok(None);
        }
        let child = file.tree().child(0, leaf.index)?;
        let is_whole = child != Child::Absent && !leaf.entries.contains(&Entry::Absent);
        Ok(is_whole.then_some(child))
    }

    /// Puts a subtree where it belongs; a full node is written.
    fn place(&self, state: &mut GrowingDraft, level: u8, index: u64, child: Child) -> Result<()> {
        let (at, parent) = (usize::from(level), index / FAN_OUT);
        if state.drafts.len() <= at {
            state.drafts.resize_with(at + 1, BTreeMap::new);
        }
        let draft = state.drafts[at].entry(parent).or_default();
        if draft.insert((index % FAN_OUT) as u8, child).is_some() {
            let name = &self.meta.name;
            return Err(Error::failed(format!("a leaf of '{name}' was given twice")));
        }
        if draft.len() < FAN_OUT as usize {
            return Ok(());
        }
        let full = state.drafts[at].remove(&parent).unwrap_or_default();
        let children: Vec<Child> = full.into_values().collect();
        let node = self.write_node(level + 1, parent, &children)?;
        self.place(state, level + 1, parent, node)
    }

    /// Writes a node, unless the base has the same or one word is enough for all of it.
    fn write_node(&self, level: u8, index: u64, children: &[Child]) -> Result<Child> {
        if let Some(tree) = self.base.as_ref().map(|base| base.tree())
            && level <= tree.level()
        {
            let old = tree.children(level, index)?;
            let child = tree.child(level, index)?;
            if child != Child::Absent && old.get(..children.len()) == Some(children) {
                return Ok(child);
            }
        }
        let first = children[0];
        if matches!(first, Child::Hole | Child::Zero) && children.iter().all(|one| *one == first) {
            return Ok(first);
        }
        let id = RecordId {
            file: self.id,
            level,
            index,
        };
        let body = node::encode(children);
        let at = self
            .shared
            .with_maps(|maps| maps.append(RecordKind::Node, id, &body))?;
        Ok(Child::Record(at))
    }

    /// Says how long the file is, writes what is left of the map and adds the file to the
    /// generation. Fails if its leaves are not exactly that long.
    pub fn finish(mut self, size: u64) -> Result<FileRecord> {
        self.meta.size = size;
        let root = self.root();
        let root = self.shared.watch(root)?;
        let record = FileRecord {
            level: height(self.meta.blocks()),
            meta: self.meta.clone(),
            id: self.id,
            map: root,
        };
        self.shared.list(&record)?;
        self.finished = true;
        Ok(record)
    }

    fn root(&self) -> Result<Option<Child>> {
        let (blocks, name) = (self.meta.blocks(), &self.meta.name);
        let mut state = held(&self.state);
        let given = state.end.unwrap_or(state.leaves * self.leaf_bytes());
        if given != self.meta.size || state.leaves != blocks.div_ceil(FAN_OUT) {
            return Err(Error::failed(format!(
                "'{name}' was given up to byte {given}, in {} leaves, and should have {} bytes",
                state.leaves, self.meta.size
            )));
        }
        if blocks == 0 {
            return Ok(None);
        }
        let top = height(blocks);
        for level in 0..top {
            let drafts = state.drafts.get_mut(usize::from(level));
            for (index, draft) in drafts.map(std::mem::take).unwrap_or_default() {
                // As many as there are, and none of them missing: else a later one is too much.
                let whole = draft.len() == width(level + 1, index, blocks)
                    && draft.keys().copied().eq((0..=u8::MAX).take(draft.len()));
                if !whole {
                    return Err(Error::failed(format!("leaves of '{name}' are missing")));
                }
                let children: Vec<Child> = draft.into_values().collect();
                let node = self.write_node(level + 1, index, &children)?;
                self.place(&mut state, level + 1, index, node)?;
            }
        }
        let root = state
            .drafts
            .get(usize::from(top))
            .and_then(|drafts| drafts.get(&0)?.get(&0));
        match root {
            Some(root) => Ok(Some(*root)),
            None => Err(Error::failed(format!("leaves of '{name}' are missing"))),
        }
    }
}

impl Drop for GrowingBuilder {
    fn drop(&mut self) {
        let unfinished = (!self.finished).then(|| format!("'{}'", self.meta.name));
        self.shared.closed(unfinished);
    }
}
