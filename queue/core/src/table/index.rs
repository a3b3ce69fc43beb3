//! Which rows are live, and where they are: four bytes and a bit for each, until their file is gone.

use super::file::DataFile;
use crate::log::times::Times;
use std::collections::VecDeque;
use std::sync::Arc;

/// The rows of one file.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) file: Arc<DataFile>,
    /// No row of this file has a smaller id; of files with none, the id that was next.
    first: u64,
    /// Where ids go on without a gap: (first id, its slot).
    runs: Vec<(u64, u32)>,
    /// Where in the file each slot's row starts.
    offsets: Vec<u32>,
    live: Vec<u64>,
    count: usize,
    /// When they came.
    times: Times,
}

impl Rows {
    pub(crate) fn new(file: Arc<DataFile>, first: u64) -> Self {
        Self {
            file,
            first,
            runs: Vec::new(),
            offsets: Vec::new(),
            live: Vec::new(),
            count: 0,
            times: Times::default(),
        }
    }

    /// Adds a row; ids only grow.
    pub(crate) fn push(&mut self, id: u64, offset: u32, is_live: bool) {
        let slot = self.offsets.len();
        if slot == 0 {
            self.first = id;
        }
        let continues = self
            .runs
            .last()
            .is_some_and(|(first, at)| first + (slot as u64 - u64::from(*at)) == id);
        if !continues {
            self.runs.push((id, slot as u32));
        }
        if slot.is_multiple_of(64) {
            self.live.push(0);
        }
        self.offsets.push(offset);
        if is_live {
            self.live[slot / 64] |= 1 << (slot % 64);
            self.count += 1;
        }
    }

    /// Gives back what growing reserved: nothing is added any more.
    pub(crate) fn seal(&mut self) {
        self.offsets.shrink_to_fit();
        self.live.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.times.seal();
    }

    /// How many are live.
    pub(crate) fn live(&self) -> usize {
        self.count
    }

    /// How many there are, dead ones too.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The bytes of memory this takes.
    pub(crate) fn memory(&self) -> usize {
        let rows = self.offsets.capacity() * 4 + self.live.capacity() * 8;
        rows + self.runs.capacity() * 16 + self.times.memory()
    }

    fn dead_bytes(&self) -> u64 {
        let bytes = self.file.len();
        let all = self.offsets.len() as u64;
        let dead = (self.offsets.len() - self.count) as u64;
        (bytes * dead).checked_div(all).unwrap_or(0)
    }

    /// The largest id, if there are rows.
    fn last(&self) -> Option<u64> {
        let (first, at) = self.runs.last()?;
        Some(first + (self.offsets.len() as u64 - 1 - u64::from(*at)))
    }

    /// The slot of the first row whose id is not smaller.
    fn slot_from(&self, id: u64) -> usize {
        let after = self.runs.partition_point(|(first, _)| *first <= id);
        let end = self
            .runs
            .get(after)
            .map_or(self.offsets.len(), |run| run.1 as usize);
        match after.checked_sub(1).map(|at| self.runs[at]) {
            Some((first, at)) => end.min(at as usize + (id - first).min(1 << 40) as usize),
            None => 0,
        }
    }

    fn id_of(&self, slot: usize) -> u64 {
        let after = self.runs.partition_point(|(_, at)| *at as usize <= slot);
        let (first, at) = self.runs[after - 1];
        first + (slot as u64 - u64::from(at))
    }

    fn is_live(&self, slot: usize) -> bool {
        self.live
            .get(slot / 64)
            .is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn slot(&self, id: u64) -> Option<usize> {
        let slot = self.slot_from(id);
        (slot < self.offsets.len() && self.id_of(slot) == id && self.is_live(slot)).then_some(slot)
    }

    fn kill(&mut self, id: u64) -> bool {
        let slot = self.slot(id);
        if let Some(slot) = slot {
            self.live[slot / 64] &= !(1 << (slot % 64));
            self.count -= 1;
        }
        slot.is_some()
    }

    /// The first live row whose id is not smaller.
    fn next_live(&self, id: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let slot = self.slot_from(id);
        let mut word = slot / 64;
        let mut bits = self.live.get(word)? & (!0 << (slot % 64));
        while bits == 0 {
            word += 1;
            bits = *self.live.get(word)?;
        }
        Some(self.id_of(word * 64 + bits.trailing_zeros() as usize))
    }
}

/// The rows of several files, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) files: VecDeque<Rows>,
    live: usize,
}

impl Index {
    pub(crate) fn push_file(&mut self, rows: Rows) {
        self.live += rows.live();
        self.files.push_back(rows);
    }

    /// Adds a row to the newest file.
    pub(crate) fn push(&mut self, id: u64, offset: u32, is_live: bool) {
        let newest = self.files.back_mut().expect("there is a file to write to");
        newest.push(id, offset, is_live);
        self.live += usize::from(is_live);
    }

    /// Says when the rows of the newest file came, from certain ids on.
    pub(crate) fn say(&mut self, times: &[(u64, u64)]) {
        let newest = self.files.back_mut().expect("there is a file to write to");
        times.iter().for_each(|pair| newest.times.say(*pair));
    }

    /// The time of rows that are added to the newest file, where nothing else is said of them.
    pub(crate) fn said(&self) -> u64 {
        self.files.back().map_or(0, |rows| rows.times.last())
    }

    /// How many rows are live, and [`said`](Self::said).
    pub(crate) fn rows_and_said(&self) -> (usize, u64) {
        (self.live, self.said())
    }

    /// When a row came, in seconds since 1970; 0 where nobody knows.
    pub(crate) fn came(&self, id: u64) -> u64 {
        let rows = self.files.get(self.file_of(id));
        rows.map_or(0, |rows| rows.times.of(id))
    }

    /// How many rows are live.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The bytes of memory this takes.
    pub(crate) fn memory(&self) -> usize {
        self.files.iter().map(Rows::memory).sum()
    }

    /// The bytes of the files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|rows| rows.file.len()).sum()
    }

    /// Of those, the bytes of dead rows, as if all were of one size.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.files.iter().map(Rows::dead_bytes).sum()
    }

    fn file_of(&self, id: u64) -> usize {
        let after = self.files.partition_point(|rows| rows.first <= id);
        after.saturating_sub(1)
    }

    /// Where a live row is.
    pub(crate) fn find(&self, id: u64) -> Option<(Arc<DataFile>, u32)> {
        let rows = self.files.get(self.file_of(id))?;
        let slot = rows.slot(id)?;
        Some((rows.file.clone(), rows.offsets[slot]))
    }

    /// Whether a row is live.
    pub(crate) fn is_live(&self, id: u64) -> bool {
        let rows = self.files.get(self.file_of(id));
        rows.is_some_and(|rows| rows.slot(id).is_some())
    }

    /// Makes a row dead. False if it was not live.
    pub(crate) fn kill(&mut self, id: u64) -> bool {
        let at = self.file_of(id);
        let killed = self.files.get_mut(at).is_some_and(|rows| rows.kill(id));
        self.live -= usize::from(killed);
        killed
    }

    /// The first live row whose id is not smaller.
    pub(crate) fn next_live(&self, id: u64) -> Option<u64> {
        let from = self.file_of(id);
        self.files
            .range(from.min(self.files.len())..)
            .find_map(|rows| rows.next_live(id))
    }

    /// Puts others in the place of the oldest `count` files and returns those. Both hold the same
    /// live rows.
    pub(crate) fn replace(&mut self, count: usize, others: Vec<Rows>) -> Vec<Rows> {
        let new: usize = others.iter().map(Rows::live).sum();
        let old: Vec<Rows> = self.files.drain(..count).collect();
        self.live = self.live + new - old.iter().map(Rows::live).sum::<usize>();
        for rows in others.into_iter().rev() {
            self.files.push_front(rows);
        }
        old
    }

    /// The largest id of the oldest `count` files.
    pub(crate) fn last_of(&self, count: usize) -> u64 {
        let files = self.files.range(..count).rev();
        files.filter_map(Rows::last).next().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::Name;

    fn rows(dir: &tempfile::TempDir, number: u64) -> Rows {
        let file = DataFile::create(&Disk, dir.path(), Name::Segment(number)).unwrap();
        Rows::new(Arc::new(file), 1)
    }

    #[test]
    fn rows_are_found_across_gaps_and_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = Index::default();
        let ids: Vec<u64> = (1..500)
            .filter(|id| id % 7 != 0 && !(200..300).contains(id))
            .collect();
        for (number, part) in ids.chunks(150).enumerate() {
            index.push_file(rows(&dir, number as u64));
            for id in part {
                index.push(*id, *id as u32 * 10, true);
            }
        }
        let mut model: std::collections::BTreeSet<u64> = ids.into_iter().collect();
        for id in (0..510).filter(|id| id % 3 == 0) {
            assert_eq!(index.kill(id), model.remove(&id), "{id}");
        }
        for id in 0..520 {
            assert_eq!(index.is_live(id), model.contains(&id), "{id}");
            assert_eq!(
                index.next_live(id),
                model.range(id..).next().copied(),
                "{id}"
            );
            let place = index.find(id).map(|(_, offset)| offset);
            assert_eq!(place, model.contains(&id).then_some(id as u32 * 10));
        }
        assert_eq!(index.live(), model.len());
    }

    #[test]
    fn a_row_costs_about_four_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let mut rows = rows(&dir, 1);
        for id in 0..100_000 {
            rows.push(id, id as u32, true);
        }
        rows.seal();
        assert!(rows.memory() < 420_000, "{}", rows.memory());
    }
}
