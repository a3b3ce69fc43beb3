//! Sorts a list of any length in bounded memory: sorted runs, then one merge.

use super::writer::render;
use super::{FileRecord, Files, ListReader, ListWriter};
use crate::catalog::{Expected, Opened};
use crate::crypt::{Key, Master};
use crate::fault::store_failed;
use crate::format::header::{ObjectId, ObjectKind};
use crate::manifest::ObjectInfo;
use crate::store::Store;
use evenkeel_op::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Bytes of names and records held in memory before they are written as a run.
const HELD_MAX: usize = 8 << 20;

pub(crate) struct Sorter {
    store: Arc<dyn Store>,
    /// The list to be; runs are numbered beside it.
    target: ObjectId,
    metadata: Option<Key>,
    held: Vec<(String, Vec<u8>)>,
    held_bytes: usize,
    held_max: usize,
    runs: Vec<(ObjectId, ObjectInfo)>,
}

impl Sorter {
    /// Sorts into `target`, sealed with what is derived from `metadata`.
    pub(crate) fn new(store: Arc<dyn Store>, target: ObjectId, metadata: Option<Key>) -> Self {
        Self {
            store,
            target,
            metadata,
            held: Vec::new(),
            held_bytes: 0,
            held_max: HELD_MAX,
            runs: Vec::new(),
        }
    }

    /// Takes a record, in any order.
    pub(crate) fn push(&mut self, record: &FileRecord) -> Result<()> {
        let json = render(record)?;
        self.held_bytes += record.meta.name.len() + json.len() + 64;
        self.held.push((record.meta.name.clone(), json));
        if self.held_bytes > self.held_max {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let id = ObjectId {
            kind: ObjectKind::Run,
            number: self.runs.len() as u32,
            ..self.target
        };
        let info = self.write_held(id)?;
        self.runs.push((id, info));
        Ok(())
    }

    fn write_held(&mut self, id: ObjectId) -> Result<ObjectInfo> {
        self.held.sort();
        let mut list = ListWriter::create(&*self.store, id, self.metadata.as_ref())?;
        for (name, json) in self.held.drain(..) {
            list.push(&name, &json)?;
        }
        self.held_bytes = 0;
        list.finish()
    }

    /// Writes the list and removes the runs.
    pub(crate) fn finish(mut self) -> Result<ObjectInfo> {
        if self.runs.is_empty() {
            return self.write_held(self.target);
        }
        if !self.held.is_empty() {
            self.spill()?;
        }
        let master = self.metadata.clone().map_or(Master::Plain, Master::Key);
        let mut sources = Vec::new();
        for (id, info) in &self.runs {
            let expected = Expected {
                id: *id,
                info: info.clone(),
            };
            let opened = Arc::new(Opened::open(&*self.store, expected, &master)?);
            sources.push(Files::new(Arc::new(ListReader::open(opened)?)));
        }
        let info = merge(
            sources,
            ListWriter::create(&*self.store, self.target, self.metadata.as_ref())?,
        )?;
        for (id, _) in &self.runs {
            let name = id.name();
            self.store
                .remove(&name)
                .map_err(|error| store_failed("remove", &name, error))?;
        }
        Ok(info)
    }
}

fn merge(mut sources: Vec<Files>, mut list: ListWriter) -> Result<ObjectInfo> {
    let mut fronts = BinaryHeap::new();
    for source in 0..sources.len() {
        pull(&mut sources, source, &mut fronts)?;
    }
    while let Some(Reverse((name, source, json))) = fronts.pop() {
        list.push(&name, &json)?;
        pull(&mut sources, source, &mut fronts)?;
    }
    list.finish()
}

/// Name, source, JSON: the smallest name comes out first.
type Front = Reverse<(String, usize, Vec<u8>)>;

fn pull(sources: &mut [Files], source: usize, fronts: &mut BinaryHeap<Front>) -> Result<()> {
    if let Some(record) = sources[source].next().transpose()? {
        let json = render(&record)?;
        fronts.push(Reverse((record.meta.name, source, json)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RepositoryId;
    use crate::list::FileMeta;
    use crate::store::LocalStore;

    fn sorter(dir: &std::path::Path, metadata: Option<Key>) -> Sorter {
        let store = Arc::new(LocalStore::new(dir));
        store.make_folder("generations").unwrap();
        store.make_folder("generations/1").unwrap();
        let target = ObjectId {
            repository: RepositoryId([1; 16]),
            generation: 1,
            kind: ObjectKind::Files,
            number: 0,
            revision: 0,
        };
        Sorter::new(store, target, metadata)
    }

    fn record(number: u32) -> FileRecord {
        FileRecord {
            meta: FileMeta::file(format!("data/{number:06}.ibd"), 5, 4096),
            id: u64::from(number),
            level: 0,
            map: None,
        }
    }

    #[test]
    fn any_order_comes_out_sorted_with_and_without_runs() {
        for (held_max, key) in [(2000, None), (HELD_MAX, None), (2000, Key::of(&[4; 32]))] {
            let dir = tempfile::tempdir().unwrap();
            let master = key.clone().map_or(Master::Plain, Master::Key);
            let mut sorter = sorter(dir.path(), key);
            sorter.held_max = held_max;
            let (store, id) = (sorter.store.clone(), sorter.target);
            // 7919 and 2000 have no common factor: every number comes once.
            for i in 0..2000 {
                sorter.push(&record(i * 7919 % 2000)).unwrap();
            }
            let info = sorter.finish().unwrap();
            let opened = Opened::open(&*store, Expected { id, info }, &master).unwrap();
            let list = Arc::new(ListReader::open(Arc::new(opened)).unwrap());
            assert_eq!(list.records(), 2000);
            assert_eq!(list.find("data/001234.ibd").unwrap(), Some(record(1234)));
            assert_eq!(list.find("data/0012345.ibd").unwrap(), None);
            assert_eq!(list.find("a").unwrap(), None);
            let all: Vec<FileRecord> = Files::new(list).map(Result::unwrap).collect();
            assert_eq!(all, (0..2000).map(record).collect::<Vec<_>>());
            assert_eq!(store.list("generations/1").unwrap().len(), 1);
        }
    }

    #[test]
    fn a_name_given_twice_is_an_error() {
        for held_max in [1, HELD_MAX] {
            let dir = tempfile::tempdir().unwrap();
            let mut sorter = sorter(dir.path(), None);
            sorter.held_max = held_max;
            sorter.push(&record(1)).unwrap();
            sorter.push(&record(1)).unwrap();
            let error = sorter.finish().unwrap_err();
            assert!(error.to_string().contains("twice"), "{error}");
        }
    }
}
