//! Who loads what: a connection has a table for itself while there are enough of them, and takes its
//! chunks in the order of the key.

use super::source::{Chunk, SourceTable};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A table with what is left of it.
struct Left<'a> {
    table: &'a SourceTable,
    chunks: VecDeque<&'a Chunk>,
    workers: usize,
}

/// What is left of all tables, the largest first.
pub(super) struct Queue<'a> {
    tables: Mutex<Vec<Left<'a>>>,
}

/// A chunk with its table, by its place in the queue.
#[derive(Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) at: usize,
    pub(super) table: &'a SourceTable,
    pub(super) chunk: &'a Chunk,
}

impl<'a> Queue<'a> {
    /// Lines up what is not done yet.
    pub(super) fn new(tables: &'a [SourceTable], done: &BTreeSet<u64>) -> Self {
        let left = tables.iter().map(|table| Left {
            table,
            chunks: table
                .chunks
                .iter()
                .filter(|chunk| !done.contains(&chunk.number))
                .collect(),
            workers: 0,
        });
        Self {
            tables: Mutex::new(left.collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Left<'a>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out the next chunk: of the table that the worker is at; else of one that nobody is at;
    /// else of the one with the most left. A table without transactions has one worker only.
    pub(super) fn claim(&self, last: Option<usize>) -> Option<Claim<'a>> {
        let mut tables = self.lock();
        if let Some(at) = last {
            if let Some(chunk) = tables[at].chunks.pop_front() {
                let table = tables[at].table;
                return Some(Claim { at, table, chunk });
            }
            tables[at].workers -= 1;
        }
        let alone = tables
            .iter()
            .position(|one| one.workers == 0 && !one.chunks.is_empty());
        let shared = || {
            let open = tables
                .iter()
                .enumerate()
                .filter(|(_, one)| one.table.transactional && !one.chunks.is_empty());
            open.max_by_key(|(_, one)| one.chunks.len())
                .map(|(at, _)| at)
        };
        let at = alone.or_else(shared)?;
        let one = &mut tables[at];
        let chunk = one.chunks.pop_front()?;
        one.workers += 1;
        let table = one.table;
        Some(Claim { at, table, chunk })
    }

    /// Returns whether nothing of a table is left to claim.
    pub(super) fn is_drained(&self, at: usize) -> bool {
        self.lock()[at].chunks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{Packing, Shape};
    use super::*;

    fn table(name: &str, transactional: bool, numbers: &[u64]) -> SourceTable {
        let chunk = |number: &u64| Chunk {
            number: *number,
            path: name.into(),
            place: std::path::PathBuf::new().into(),
            rows: Some(1),
            bytes: Some(1),
            bytes_stored: 1,
            blake3: None,
            packing: Packing::None,
            shape: Shape::Tab,
        };
        SourceTable {
            schema: "s".to_owned(),
            name: name.to_owned(),
            transactional,
            columns: Vec::new(),
            rows: Some(numbers.len() as u64),
            chunks: numbers.iter().map(chunk).collect(),
        }
    }

    #[test]
    fn tables_have_one_worker_each_while_there_are_enough() {
        let tables = [
            table("a", true, &[1, 2, 3, 4, 5]),
            table("m", false, &[6, 7]),
            table("b", true, &[8]),
        ];
        let queue = Queue::new(&tables, &BTreeSet::from([2]));
        let number = |claim: Option<Claim<'_>>| claim.map(|one| (one.at, one.chunk.number));
        assert_eq!(number(queue.claim(None)), Some((0, 1)));
        assert_eq!(number(queue.claim(None)), Some((1, 6)));
        assert_eq!(number(queue.claim(Some(0))), Some((0, 3)));
        assert_eq!(number(queue.claim(None)), Some((2, 8)));
        // Nothing is without a worker: the one with transactions is helped with.
        assert_eq!(number(queue.claim(Some(2))), Some((0, 4)));
        assert_eq!(number(queue.claim(Some(0))), Some((0, 5)));
        assert_eq!(number(queue.claim(Some(0))), None);
        assert!(!queue.is_drained(1));
        assert_eq!(number(queue.claim(Some(1))), Some((1, 7)));
        assert!(queue.is_drained(1));
        assert_eq!(number(queue.claim(Some(1))), None);
    }
}
