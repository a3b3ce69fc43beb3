//! Walks the maps of generations, each record once however many generations share it.

use crate::catalog::Catalog;
use crate::fault::damaged;
use crate::format::header::ObjectKind;
use crate::list::{FileKind, FileMeta, FileRecord, Files, ListReader};
use crate::map::tree::Tree;
use crate::map::{Child, Entry, FAN_OUT, RecordRef, span, width};
use evenkeel_op::{Cancel, Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// What is reported about the maps. Each may end the walk by an error.
pub(crate) trait Visit {
    /// A record that is used.
    fn record(&mut self, at: RecordRef) -> Result<()>;
    /// Blocks of a file, by number, none of them reported before by the same record.
    fn entries(&mut self, meta: &FileMeta, entries: Vec<(u64, Entry)>) -> Result<()>;
    /// A part of a map that cannot be read, of the file named.
    fn broken(&mut self, file: &str, error: Error) -> Result<()>;
}

pub(crate) struct Walker {
    catalog: Arc<Catalog>,
    /// Per record: how many blocks, from its first on, were reported.
    seen: HashMap<(u32, u64), u64>,
    cancel: Cancel,
}

impl Walker {
    pub(crate) fn new(catalog: Arc<Catalog>, cancel: Cancel) -> Self {
        Self {
            catalog,
            seen: HashMap::new(),
            cancel,
        }
    }

    /// Walks all files of a live generation; returns how many entries it has. A list that cannot be
    /// read is an error, a map that cannot is reported to `visit`.
    pub(crate) fn generation(&mut self, generation: u32, visit: &mut dyn Visit) -> Result<u64> {
        self.catalog.check_references(generation)?;
        let list = self.catalog.object(generation, ObjectKind::Files, 0)?;
        let list = Arc::new(ListReader::open(list)?);
        let mut count = 0;
        for record in Files::new(list) {
            let record = record?;
            count += 1;
            if record.meta.kind == FileKind::File {
                self.file(&record, visit)?;
            }
        }
        Ok(count)
    }

    fn file(&mut self, record: &FileRecord, visit: &mut dyn Visit) -> Result<()> {
        self.cancel.check()?;
        match Tree::new(self.catalog.clone(), record) {
            Ok(tree) if tree.blocks() == 0 => Ok(()),
            Ok(tree) => self.subtree(&tree, &record.meta, tree.level(), 0, visit),
            Err(error) => visit.broken(&record.meta.name, error),
        }
    }

    fn subtree(
        &mut self,
        tree: &Tree,
        meta: &FileMeta,
        level: u8,
        index: u64,
        visit: &mut dyn Visit,
    ) -> Result<()> {
        self.cancel.check()?;
        let at = match tree.child(level, index) {
            Ok(Child::Record(at)) => at,
            Ok(Child::Hole | Child::Zero) => return Ok(()),
            Ok(Child::Absent) => {
                let error = damaged(&meta.name, "its map has a gap");
                return visit.broken(&meta.name, error);
            }
            Err(error) => return visit.broken(&meta.name, error),
        };
        let first = index.saturating_mul(span(level));
        let covered = (tree.blocks() - first).min(span(level));
        let key = (at.generation, at.offset);
        if self.seen.get(&key).is_some_and(|seen| *seen >= covered) {
            return Ok(());
        }
        visit.record(at)?;
        if level == 0 {
            self.leaf(tree, meta, at, index, visit)?;
        } else {
            match tree.children(level, index) {
                Ok(children) => {
                    for i in 0..children.len() as u64 {
                        self.subtree(tree, meta, level - 1, index * FAN_OUT + i, visit)?;
                    }
                }
                Err(error) => visit.broken(&meta.name, error)?,
            }
        }
        self.seen.insert(key, covered);
        Ok(())
    }

    fn leaf(
        &mut self,
        tree: &Tree,
        meta: &FileMeta,
        at: RecordRef,
        index: u64,
        visit: &mut dyn Visit,
    ) -> Result<()> {
        let count = width(0, index, tree.blocks());
        let first = index * FAN_OUT;
        let numbered = |entries: &[Entry], wanted: &dyn Fn(usize) -> bool| {
            let known = entries.iter().enumerate().take(count);
            known
                .filter(|(i, entry)| **entry != Entry::Absent && wanted(*i))
                .map(|(i, entry)| (first + i as u64, *entry))
                .collect::<Vec<_>>()
        };
        let body = match tree.leaf_record(at, index) {
            Ok(body) => body,
            Err(error) => return visit.broken(&meta.name, error),
        };
        visit.entries(meta, numbered(&body.entries, &|_| true))?;
        if let Some(full_at) = body.full {
            visit.record(full_at)?;
            let seen = self.seen.get(&(full_at.generation, full_at.offset));
            if seen.is_none_or(|seen| *seen < count as u64) {
                match tree.leaf_record(full_at, index) {
                    Ok(full) => {
                        let changed = |i: usize| {
                            let change = body.entries.get(i);
                            change.is_none_or(|entry| *entry == Entry::Absent)
                        };
                        visit.entries(meta, numbered(&full.entries, &changed))?;
                    }
                    Err(error) => return visit.broken(&meta.name, error),
                }
            }
        }
        // The whole as a restore puts it together: also finds blocks that neither record knows.
        match tree.leaf(index) {
            Ok(_) => Ok(()),
            Err(error) => visit.broken(&meta.name, error),
        }
    }
}
