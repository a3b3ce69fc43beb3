//! Maps one file: leaves come in any order, nodes are written as soon as they are complete.

use super::base::BaseFile;
use super::leaf::Leaf;
use super::shared::Shared;
use crate::format::record::{RecordId, RecordKind};
use crate::list::{FileMeta, FileRecord};
use crate::map::{Child, Entry, FAN_OUT, RecordRef, height, leaf, node, width};
use crate::mutex::held;
use evenkeel_op::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A leaf whose changes are more than one in this many blocks is written in full.
const CHANGES_SHARE: usize = 4;

/// One regular file of the generation being written. Threads may work on its leaves together.
pub struct FileBuilder {
    shared: Arc<Shared>,
    meta: FileMeta,
    /// Identity in map records.
    id: u64,
    blocks: u64,
    level: u8,
    base: Option<Arc<BaseFile>>,
    /// From this block on the base says nothing about this file.
    given_from: u64,
    state: Mutex<TreeDraft>,
    finished: bool,
}

/// What was given and is not in a finished node yet.
#[derive(Default)]
struct TreeDraft {
    /// Per level from 1 on, per node: the children that were given.
    drafts: Vec<BTreeMap<u64, BTreeMap<u8, Child>>>,
    root: Option<Child>,
    /// The first leaf that the base does not cover, until it is given.
    owed: Option<u64>,
}

impl FileBuilder {
    pub(crate) fn new(
        shared: Arc<Shared>,
        meta: FileMeta,
        base: Option<Arc<BaseFile>>,
    ) -> Result<Self> {
        check_block_size(&meta)?;
        let size = meta.block_size;
        // Blocks of another size have nothing in common.
        let base = base.filter(|base| base.meta().block_size == size);
        let blocks = meta.blocks();
        let level = height(blocks);
        let given_from = base
            .as_ref()
            .map_or(0, |base| given_from(base.meta(), &meta));
        // That one leaf makes all later ones owed too: their common nodes would lack children.
        let owed = (given_from < blocks).then_some(given_from / FAN_OUT);
        shared.opened();
        Ok(Self {
            id: base
                .as_ref()
                .map_or_else(|| shared.next_file(), |base| base.id()),
            state: Mutex::new(TreeDraft {
                drafts: vec![BTreeMap::new(); usize::from(level)],
                root: None,
                owed,
            }),
            shared,
            meta,
            blocks,
            level,
            base,
            given_from,
            finished: false,
        })
    }

    /// Returns how many leaves of 256 blocks the file has.
    #[must_use]
    pub fn leaf_count(&self) -> u64 {
        self.blocks.div_ceil(FAN_OUT)
    }

    /// Returns the blocks that must be given whatever the candidates are: those that the base
    /// does not have, or has with another length.
    #[must_use]
    pub fn required_blocks(&self) -> Range<u64> {
        self.given_from.min(self.blocks)..self.blocks
    }

    /// Returns whether blocks are compared with a base.
    #[must_use]
    pub fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Begins a leaf: as in the base, where there is one.
    pub fn leaf(&self, index: u64) -> Result<Leaf> {
        let count = width(0, index, self.blocks);
        if count == 0 {
            let name = &self.meta.name;
            return Err(Error::failed(format!("'{name}' has no leaf {index}")));
        }
        let base = match &self.base {
            Some(base) => Some(self.shared.watch(base.tree().leaf(index))?),
            None => None,
        };
        let sizes = (self.meta.block_size, self.meta.size);
        Ok(Leaf::new(index, count, base, self.given_from, sizes))
    }

    /// Takes a leaf whose blocks are all given or kept. Each leaf may be set once.
    pub fn set_leaf(&self, leaf: Leaf) -> Result<()> {
        let result = self.take_leaf(&leaf);
        self.shared.watch(result)
    }

    fn take_leaf(&self, leaf: &Leaf) -> Result<()> {
        check_given(&self.meta, leaf)?;
        let count = leaf.entries.len();
        let old = leaf
            .base
            .as_ref()
            .and_then(|base| base.entries.get(..count));
        let unchanged = old == Some(leaf.entries.as_slice());
        let child = if unchanged {
            None
        } else {
            Some(write_leaf(&self.shared, self.id, &self.meta, leaf)?)
        };
        let mut state = held(&self.state);
        if state.owed == Some(leaf.index) {
            state.owed = None;
        }
        match child {
            Some(child) => self.place(&mut state, 0, leaf.index, child),
            None => Ok(()),
        }
    }

    fn append(&self, kind: RecordKind, level: u8, index: u64, body: &[u8]) -> Result<RecordRef> {
        let id = RecordId {
            file: self.id,
            level,
            index,
        };
        self.shared.with_maps(|maps| maps.append(kind, id, body))
    }

    /// Puts a subtree where it belongs; a node that has all its children now is written.
    fn place(&self, state: &mut TreeDraft, level: u8, index: u64, child: Child) -> Result<()> {
        if self.is_placed(state, level, index) {
            let name = &self.meta.name;
            return Err(Error::failed(format!("a leaf of '{name}' was given twice")));
        }
        if level == self.level {
            state.root = Some(child);
            return Ok(());
        }
        let parent = index / FAN_OUT;
        let draft = state.drafts[usize::from(level)].entry(parent).or_default();
        draft.insert((index % FAN_OUT) as u8, child);
        if draft.len() < width(level + 1, parent, self.blocks) {
            return Ok(());
        }
        let draft = state.drafts[usize::from(level)].remove(&parent);
        self.write_node(state, level + 1, parent, &draft.unwrap_or_default())
    }

    /// Whether the subtree, or one that contains it, was placed before.
    fn is_placed(&self, state: &TreeDraft, mut level: u8, mut index: u64) -> bool {
        while level < self.level {
            let draft = state.drafts[usize::from(level)].get(&(index / FAN_OUT));
            if draft.is_some_and(|draft| draft.contains_key(&((index % FAN_OUT) as u8))) {
                return true;
            }
            level += 1;
            index /= FAN_OUT;
        }
        state.root.is_some()
    }

    fn write_node(
        &self,
        state: &mut TreeDraft,
        level: u8,
        index: u64,
        given: &BTreeMap<u8, Child>,
    ) -> Result<()> {
        let mut children = self.old_children(level, index)?;
        children.resize(width(level, index, self.blocks), Child::Absent);
        for (&at, &child) in given {
            children[usize::from(at)] = child;
        }
        if let Some(missing) = children.iter().position(|one| *one == Child::Absent) {
            let child = index * FAN_OUT + missing as u64;
            let block = child.saturating_mul(crate::map::span(level - 1));
            return Err(self.never_given(block));
        }
        let first = children[0];
        let uniform = matches!(first, Child::Hole | Child::Zero)
            && children.iter().all(|child| *child == first);
        let child = if uniform {
            first
        } else {
            Child::Record(self.append(RecordKind::Node, level, index, &node::encode(&children))?)
        };
        self.place(state, level, index, child)
    }

    /// Returns what the base has in the place of a node's children.
    fn old_children(&self, level: u8, index: u64) -> Result<Vec<Child>> {
        let Some(tree) = self.base.as_ref().map(|base| base.tree()) else {
            return Ok(Vec::new());
        };
        if level <= tree.level() {
            return Ok(tree.children(level, index)?.to_vec());
        }
        // The tree has grown higher: the old root is the first child of the first node above it.
        if level == tree.level() + 1 && index == 0 && tree.blocks() > 0 {
            return Ok(vec![tree.child(tree.level(), 0)?]);
        }
        Ok(Vec::new())
    }

    fn never_given(&self, block: u64) -> Error {
        never_given(&self.meta, block)
    }

    /// Writes what is left of the map and adds the file to the generation.
    pub fn finish(mut self) -> Result<FileRecord> {
        let root = self.root();
        let root = self.shared.watch(root)?;
        let record = FileRecord {
            meta: self.meta.clone(),
            id: self.id,
            level: self.level,
            map: root,
        };
        self.shared.list(&record)?;
        self.finished = true;
        Ok(record)
    }

    fn root(&self) -> Result<Option<Child>> {
        if self.blocks == 0 {
            return Ok(None);
        }
        let mut state = held(&self.state);
        if state.owed.is_some() {
            return Err(self.never_given(self.given_from));
        }
        let old_level = self
            .base
            .as_ref()
            .map_or(self.level, |base| base.tree().level());
        for level in 1..=self.level {
            // Above the old root there must be new nodes, on the way to the new root.
            if level > old_level && !self.is_placed(&state, level, 0) {
                state.drafts[usize::from(level - 1)].entry(0).or_default();
            }
            let drafts = std::mem::take(&mut state.drafts[usize::from(level - 1)]);
            for (index, given) in drafts {
                self.write_node(&mut state, level, index, &given)?;
            }
        }
        match (state.root, &self.base) {
            (Some(root), _) => Ok(Some(root)),
            (None, Some(base)) if self.level <= base.tree().level() => {
                let root = base.tree().child(self.level, 0)?;
                if root == Child::Absent {
                    return Err(self.never_given(0));
                }
                Ok(Some(root))
            }
            _ => Err(self.never_given(0)),
        }
    }
}

/// Refuses what cannot be stored in blocks.
pub(super) fn check_block_size(meta: &FileMeta) -> Result<()> {
    if !meta.has_sound_blocks() {
        return Err(Error::failed(format!(
            "'{}' cannot be stored in blocks of {} bytes",
            meta.name, meta.block_size
        )));
    }
    Ok(())
}

fn check_given(meta: &FileMeta, leaf: &Leaf) -> Result<()> {
    match leaf.entries.iter().position(|one| *one == Entry::Absent) {
        Some(missing) => Err(never_given(meta, leaf.blocks().start + missing as u64)),
        None => Ok(()),
    }
}

fn never_given(meta: &FileMeta, block: u64) -> Error {
    Error::failed(format!(
        "block {block} of '{}' was never given and is not in the base",
        meta.name
    ))
}

/// Writes a leaf of the file with this identity, as changes to the base's where that is shorter.
pub(super) fn write_leaf(
    shared: &Shared,
    file: u64,
    meta: &FileMeta,
    leaf: &Leaf,
) -> Result<Child> {
    check_given(meta, leaf)?;
    let entries = &leaf.entries;
    for (entry, child) in [(Entry::Hole, Child::Hole), (Entry::Zero, Child::Zero)] {
        if entries.iter().all(|one| *one == entry) {
            return Ok(child);
        }
    }
    let full = leaf.base.as_ref().and_then(|base| base.full.as_ref());
    let (kind, body) = match full {
        Some((at, old)) if leaf::count_changes(old, entries) * CHANGES_SHARE <= entries.len() => (
            RecordKind::LeafChanges,
            leaf::encode_changes(*at, old, entries),
        ),
        _ => (RecordKind::Leaf, leaf::encode_full(entries)),
    };
    let id = RecordId {
        file,
        level: 0,
        index: leaf.index,
    };
    let at = shared.with_maps(|maps| maps.append(kind, id, &body))?;
    Ok(Child::Record(at))
}

/// Returns the first block that the base does not have with the same length.
fn given_from(old: &FileMeta, new: &FileMeta) -> u64 {
    if old.size == new.size {
        return new.blocks();
    }
    // The last block of the shorter file, if it is not whole, has another length in the longer.
    old.size.min(new.size) / u64::from(new.block_size)
}

impl Drop for FileBuilder {
    fn drop(&mut self) {
        let unfinished = (!self.finished).then(|| format!("'{}'", self.meta.name));
        self.shared.closed(unfinished);
    }
}
