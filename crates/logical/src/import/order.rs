//! Which piece of work may begin while which others are still waiting or running.
//!
//! Work of different tables is independent. Of one table, work in order waits for all that came
//! before it, and all that comes after waits for it; other work of the table runs side by side.

use std::collections::VecDeque;

/// One piece of work that waits or runs.
#[derive(Debug)]
struct Entry<J> {
    id: u64,
    table: usize,
    ordered: bool,
    bytes: usize,
    line: u64,
    /// Taken when it begins.
    job: Option<J>,
}

/// What waits and what runs.
#[derive(Debug)]
pub(super) struct Schedule<J> {
    waiting: VecDeque<Entry<J>>,
    running: Vec<Entry<J>>,
    next: u64,
}

impl<J> Default for Schedule<J> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            running: Vec::new(),
            next: 0,
        }
    }
}

impl<J> Schedule<J> {
    /// Adds work that begins on line `line` and holds so many bytes; `u64::MAX` for none.
    pub(super) fn push(&mut self, table: usize, ordered: bool, line: u64, bytes: usize, job: J) {
        self.waiting.push_back(Entry {
            id: self.next,
            table,
            ordered,
            bytes,
            line,
            job: Some(job),
        });
        self.next += 1;
    }

    /// Takes the first work that may begin, with a number to end it by.
    pub(super) fn take(&mut self) -> Option<(u64, J)> {
        let mut blocked: Vec<usize> = Vec::new();
        for at in 0..self.waiting.len() {
            let entry = &self.waiting[at];
            let table = entry.table;
            let mut rivals = self.running.iter().filter(|one| one.table == table);
            let free = match entry.ordered {
                true => rivals.next().is_none(),
                false => !rivals.any(|one| one.ordered),
            };
            if free && !blocked.contains(&table) {
                let mut entry = self.waiting.remove(at)?;
                let job = entry.job.take()?;
                let id = entry.id;
                self.running.push(entry);
                return Some((id, job));
            }
            if !blocked.contains(&table) {
                blocked.push(table);
            }
        }
        None
    }

    /// Ends what was taken.
    pub(super) fn end(&mut self, id: u64) {
        self.running.retain(|entry| entry.id != id);
    }

    /// Returns whether nothing of a table waits or runs.
    pub(super) fn is_free(&self, table: usize) -> bool {
        !self.all().any(|entry| entry.table == table)
    }

    /// Returns whether nothing waits or runs.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Returns how many bytes wait and run.
    pub(super) fn bytes(&self) -> usize {
        self.all().map(|entry| entry.bytes).sum()
    }

    /// Returns the smallest line of what waits and runs.
    pub(super) fn first_line(&self) -> Option<u64> {
        self.all().map(|entry| entry.line).min()
    }

    /// Drops what waits, and returns the tables and lines of it.
    pub(super) fn give_up(&mut self) -> Vec<(usize, u64)> {
        let waiting = self.waiting.drain(..);
        waiting.map(|entry| (entry.table, entry.line)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Entry<J>> {
        self.waiting.iter().chain(&self.running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever order workers come in, nothing begins before what it has to wait for has ended.
        #[test]
        fn order_is_kept_where_it_counts(
            work in proptest::collection::vec((0usize..3, any::<bool>()), 1..30),
            steps in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut schedule = Schedule::default();
            for (number, (table, ordered)) in work.iter().enumerate() {
                schedule.push(*table, *ordered, number as u64, 1, number);
            }
            let (mut running, mut ended): (Vec<(u64, usize)>, Vec<usize>) = (vec![], vec![]);
            // Chance at first, then whatever is left.
            let steps = steps.into_iter().chain((0..work.len() * 4).map(|step| (step % 2) as u8));
            for step in steps {
                if step % 2 == 0 && let Some((id, job)) = schedule.take() {
                    let (table, ordered) = work[job];
                    for (other, (its_table, its_order)) in work[..job].iter().enumerate() {
                        if *its_table == table && (ordered || *its_order) {
                            prop_assert!(ended.contains(&other), "{} before {}", job, other);
                        }
                    }
                    running.push((id, job));
                } else if !running.is_empty() {
                    let (id, job) = running.remove(usize::from(step) % running.len());
                    schedule.end(id);
                    ended.push(job);
                }
            }
            prop_assert!(schedule.is_idle());
            prop_assert_eq!(ended.len(), work.len());
        }
    }

    #[test]
    fn other_tables_do_not_wait() {
        let mut schedule = Schedule::default();
        for (table, ordered) in [(0, true), (0, true), (1, false), (1, false)] {
            schedule.push(table, ordered, 1, 1, (table, ordered));
        }
        assert_eq!(schedule.take().unwrap().1, (0, true));
        assert_eq!(schedule.take().unwrap().1, (1, false));
        assert_eq!(schedule.take().unwrap().1, (1, false));
        assert_eq!(schedule.take(), None);
        schedule.end(0);
        assert_eq!(schedule.take().unwrap().1, (0, true));
    }
}
