//! What a table knows in memory: its rows, their owners, and who waits.

use super::Queue;
use super::condition::Condition;
use super::file::DataFile;
use super::index::{Index, Rows};
use super::ready::{ANY, Ready};
use super::request::Copied;
use crate::error::Result;
use crate::log::rows::{ROW_HEADER, ROW_ID};
use crate::wait::token::{Outcome, Token};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A session that waits for a row of this table.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) token: Arc<Token>,
    /// Which of the tables that it waits for this is.
    pub(crate) place: u32,
    pub(crate) condition: Option<Condition>,
}

/// What a look for a row found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Found(u64),
    /// Nothing in as many rows as one may look at; there are more.
    More,
    Nothing,
}

/// All that is behind a table's one lock.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) index: Index,
    /// What compaction has copied so far.
    pub(crate) building: Index,
    pub(crate) ready: Ready,
    pub(crate) waiters: VecDeque<Waiter>,
    pub(crate) is_dropped: bool,
    /// Where the rows are now, when they went to another table.
    pub(crate) successor: Option<Arc<Queue>>,
    pub(crate) appended: u64,
    pub(crate) removed: u64,
}

impl Live {
    pub(crate) fn start_file(&mut self, file: Arc<DataFile>, next: u64) {
        if let Some(last) = self.index.files.back_mut() {
            last.seal();
        }
        self.index.push_file(Rows::new(file, next));
    }

    /// Lets rows be seen that were written at `at`, and gives them to those who wait.
    pub(crate) fn append(&mut self, rows: &[Vec<u8>], first: u64, mut at: u64) {
        for (id, row) in (first..).zip(rows) {
            self.index.push(id, at as u32, true);
            at += (ROW_HEADER + row.len()) as u64;
            self.appended += 1;
        }
        if !self.waiters.is_empty() {
            let rows: Vec<(u64, &Vec<u8>)> = (first..).zip(rows).collect();
            self.grant(&rows);
        }
    }

    /// Lets rows be seen that were copied with their ids, and written at `at`.
    pub(crate) fn adopt(&mut self, rows: &[Copied], mut at: u64) {
        for row in rows {
            at += ROW_ID as u64;
            self.index.push(row.id, at as u32, true);
            at += (ROW_HEADER + row.bytes.len()) as u64;
        }
    }

    /// Forgets rows: (first, how many).
    pub(crate) fn remove(&mut self, (first, count): (u64, u64)) {
        let end = first.saturating_add(count);
        let mut from = first;
        while let Some(id) = self.index.next_live(from).filter(|id| *id < end) {
            self.index.kill(id);
            self.building.kill(id);
            self.ready.forget(id);
            self.removed += 1;
            from = id + 1;
        }
    }

    /// The range of all ids that are there, before `next`.
    pub(crate) fn all(&self, next: u64) -> Option<(u64, u64)> {
        let first = self.index.next_live(0)?;
        Some((first, next.saturating_sub(first)))
    }

    /// Looks for the oldest row that is nobody's and passes, among at most `looks` rows.
    pub(crate) fn look(
        &mut self,
        condition: Option<&Condition>,
        mut looks: usize,
        budget: &AtomicU64,
    ) -> Result<Look> {
        let key = condition.map_or(ANY, Condition::key);
        while looks > 0 {
            let Some(id) = self.ready.next(key, &self.index) else {
                return Ok(Look::Nothing);
            };
            let Some(condition) = condition else {
                return Ok(Look::Found(id));
            };
            let Some((file, offset)) = self.index.find(id) else {
                continue;
            };
            match file.row(id, offset, budget) {
                Ok(row) if condition.holds(&row) => return Ok(Look::Found(id)),
                Ok(_) => looks -= 1,
                Err(error) => {
                    self.ready.give_back(id);
                    return Err(error);
                }
            }
        }
        Ok(Look::More)
    }

    /// Gives rows that are nobody's to those who wait for such ones. Who came first is asked first, and
    /// has left what it wants most before what it wants less: of rows that come together it gets the
    /// best, and not the oldest.
    pub(crate) fn grant(&mut self, rows: &[(u64, impl AsRef<[u8]>)]) {
        let mut given = vec![false; rows.len()];
        let (mut at, mut free) = (0, 0);
        while let Some(waiter) = self.waiters.get(at) {
            free += given[free..].iter().take_while(|given| **given).count();
            if free == rows.len() {
                return;
            }
            if waiter.token.outcome().is_some() {
                self.waiters.remove(at);
                continue;
            }
            let wanted = waiter.condition.as_ref();
            let is_wanted =
                |row: &[u8]| wanted.is_none_or(|condition: &Condition| condition.holds(row));
            let mut left = free..rows.len();
            let found = left.find(|place| !given[*place] && is_wanted(rows[*place].1.as_ref()));
            let Some(place) = found else {
                at += 1;
                continue;
            };
            let id = rows[place].0;
            self.ready.own(id, waiter.token.owner());
            given[place] = waiter.token.settle(Outcome::Granted(waiter.place));
            self.waiters.remove(at);
            if !given[place] {
                // It went away in this moment: the row goes to the next.
                self.ready.give_back(id);
            }
        }
    }

    /// Ends all waits for this table.
    pub(crate) fn drop_waiters(&mut self) {
        for waiter in self.waiters.drain(..) {
            waiter.token.settle(Outcome::Dropped(waiter.place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::Name;

    /// The condition is asked between the look at the token and the grant: in it the wait ends.
    #[test]
    fn a_row_whose_taker_went_away_in_that_moment_goes_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = DataFile::create(&Disk, dir.path(), Name::Segment(1)).unwrap();
        let mut live = Live::default();
        live.start_file(Arc::new(file), 1);
        let tokens: Vec<Arc<Token>> = (1..=3).map(|owner| Arc::new(Token::new(owner))).collect();
        let first = tokens[0].clone();
        let leaves = Condition::new(move |_| first.settle(Outcome::TimedOut));
        for (token, condition) in tokens.iter().zip([Some(leaves), None, None]) {
            live.waiters.push_back(Waiter {
                token: token.clone(),
                place: 0,
                condition,
            });
        }
        live.append(&[b"row".to_vec()], 1, 0);
        assert_eq!(tokens[0].outcome(), Some(Outcome::TimedOut));
        assert_eq!(tokens[1].outcome(), Some(Outcome::Granted(0)));
        assert_eq!(tokens[2].outcome(), None, "one row wakes one");
        assert_eq!((live.ready.of(1), live.ready.of(2)), (vec![], vec![1]));
    }
}
