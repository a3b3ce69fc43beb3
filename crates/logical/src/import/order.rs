//! Which piece of work may begin while which others are still waiting or running.
//!
//! Work of different tables is independent. Of one table, work in order waits for all that came
//! before it, and all that comes after waits for it; other work of the table runs side by side. Work under
//! later settings of the file waits until all work under earlier ones has begun: who begins it cannot go back.

use std::collections::VecDeque;

/// Where work stands in the file, and what it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobOrder {
    pub(super) table: usize,
    pub(super) ordered: bool,
    /// How many settings of the file come before it; `None` where they do not matter.
    pub(super) settings: Option<usize>,
    /// The line that it begins on; `u64::MAX` for none.
    pub(super) line: u64,
    pub(super) bytes: usize,
}

/// One piece of work that waits or runs.
#[derive(Debug)]
struct Entry<J> {
    id: u64,
    place: JobOrder,
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
    /// Adds work. Its settings are not before those of any that waits.
    pub(super) fn push(&mut self, place: JobOrder, job: J) {
        self.waiting.push_back(Entry {
            id: self.next,
            place,
            job: Some(job),
        });
        self.next += 1;
    }

    /// Takes the first work that may begin, with a number to end it by.
    pub(super) fn take(&mut self) -> Option<(u64, J)> {
        let mut blocked: Vec<usize> = Vec::new();
        let mut waiting = self.waiting.iter();
        let first = waiting.find_map(|entry| entry.place.settings);
        for at in 0..self.waiting.len() {
            let JobOrder {
                table,
                ordered,
                settings,
                ..
            } = self.waiting[at].place;
            let running = self.running.iter().map(|one| one.place);
            let mut rivals = running.filter(|one| one.table == table);
            let alone = match ordered {
                true => rivals.next().is_none(),
                false => !rivals.any(|one| one.ordered),
            };
            let free = alone && (settings.is_none() || settings == first);
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
        !self.all().any(|entry| entry.place.table == table)
    }

    /// Returns whether nothing waits or runs.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Returns how many bytes wait and run.
    pub(super) fn bytes(&self) -> usize {
        self.all().map(|entry| entry.place.bytes).sum()
    }

    /// Returns the smallest line of what waits and runs.
    pub(super) fn first_line(&self) -> Option<u64> {
        self.all().map(|entry| entry.place.line).min()
    }

    /// Drops what waits, and returns the tables and lines of it.
    pub(super) fn give_up(&mut self) -> Vec<(usize, u64)> {
        let waiting = self.waiting.drain(..);
        waiting
            .map(|entry| (entry.place.table, entry.place.line))
            .collect()
    }

    fn all(&self) -> impl Iterator<Item = &Entry<J>> {
        self.waiting.iter().chain(&self.running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(table: usize, ordered: bool, settings: Option<usize>) -> JobOrder {
        JobOrder {
            table,
            ordered,
            settings,
            line: 1,
            bytes: 1,
        }
    }

    proptest! {
        /// Whatever order workers come in, nothing begins before what it has to wait for has ended, and
        /// nothing after work under later settings.
        #[test]
        fn order_is_kept_where_it_counts(
            work in proptest::collection::vec((0usize..3, any::<bool>(), 0u8..4), 1..30),
            steps in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut schedule = Schedule::default();
            let mut settings = 0;
            for (number, (table, ordered, more)) in work.iter().enumerate() {
                settings += usize::from(*more == 1);
                let needed = (*more != 3).then_some(settings);
                schedule.push(place(*table, *ordered, needed), (number, needed));
            }
            let (mut running, mut ended): (Vec<(u64, usize)>, Vec<usize>) = (vec![], vec![]);
            let mut followed = 0;
            // Chance at first, then whatever is left.
            let steps = steps.into_iter().chain((0..work.len() * 4).map(|step| (step % 2) as u8));
            for step in steps {
                if step % 2 == 0 && let Some((id, (job, needed))) = schedule.take() {
                    let needed = needed.unwrap_or(followed);
                    prop_assert!(followed <= needed, "{} needs {} after {}", job, needed, followed);
                    followed = needed;
                    let (table, ordered, _) = work[job];
                    for (other, (its_table, its_order, _)) in work[..job].iter().enumerate() {
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
            schedule.push(place(table, ordered, Some(0)), (table, ordered));
        }
        assert_eq!(schedule.take().unwrap().1, (0, true));
        assert_eq!(schedule.take().unwrap().1, (1, false));
        assert_eq!(schedule.take().unwrap().1, (1, false));
        assert_eq!(schedule.take(), None);
        schedule.end(0);
        assert_eq!(schedule.take().unwrap().1, (0, true));
    }
}
