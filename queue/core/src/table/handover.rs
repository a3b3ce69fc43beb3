//! A table's rows go on in another that was copied from it: under their ids, with their owners and sources.
//! Consumers take and remove rows of the old one until the moment of the change.

use super::Queue;
use super::request::{Copied, Request};
use crate::error::{Error, Result};
use crate::log::rows::{self, ROW_ID};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Queue {
    /// When a row came, in seconds since 1970; 0 where nobody knows.
    pub fn came(&self, id: u64) -> u64 {
        self.live().index.came(id)
    }

    /// The first row from this id on, whoever owns it: for copies.
    pub fn next_row(&self, from: u64) -> Option<u64> {
        self.live().index.next_live(from)
    }

    /// Appends rows under the ids that they have in the table they are copied from. Ids only grow.
    ///
    /// # Errors
    ///
    /// As with [`append`](Self::append); [`Error::OutOfOrder`] when an id is not larger than all before.
    pub fn adopt(&self, rows: Vec<Copied>) -> Result<()> {
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            return Err(Error::OutOfOrder(pair[1].id));
        }
        let bytes = rows::size(rows.iter().map(|row| &row.bytes))?;
        let bytes = bytes + (rows.len() * ROW_ID) as u64;
        self.submit(Request::Adopt { rows, bytes }).map(|_| ())
    }

    /// Lets another table, to which all rows were copied, take this one's place. What was removed since
    /// then is removed there, its sources and its next id go there; all that is durable. Then `publish`
    /// says so where names are kept. From then on rows' owners own them there, whatever they do with them
    /// here is done there, and who waits is told that this table is gone.
    ///
    /// # Errors
    ///
    /// [`Error::NotCopied`] where this table has a row that the other one has not; the file system
    /// refuses, or `publish`: then this table is as it was.
    pub fn hand_over(&self, to: &Arc<Self>, publish: impl FnOnce() -> Result<()>) -> Result<()> {
        // Nothing is written here meanwhile, so rows neither come nor go.
        let mut tail = self.tail();
        let gone = self.gone_since(to)?;
        if !gone.is_empty() {
            to.submit(Request::Remove(gone))?;
        }
        to.submit(Request::Inherit(Box::new(tail.state.clone())))?;
        to.sync()?;
        publish()?;
        tail.poisoned = Some("its rows are in another table now".into());
        let mut live = self.live();
        let mut theirs = to.live();
        for (id, owner) in live.ready.owners() {
            theirs.ready.own(id, owner);
        }
        live.successor = Some(to.clone());
        live.is_dropped = true;
        self.is_gone.store(true, Ordering::Release);
        live.drop_waiters();
        Ok(())
    }

    /// Makes sure that another table, to which all rows were copied, has them durably: only then may it take
    /// this one's place later.
    ///
    /// # Errors
    ///
    /// [`Error::NotCopied`] where this table has a row that the other one has not; the file system refuses.
    pub fn must_be_in(&self, copy: &Self) -> Result<()> {
        self.gone_since(copy)?;
        copy.sync()
    }

    /// Rows of the copy that are not here any more.
    fn gone_since(&self, to: &Self) -> Result<Vec<u64>> {
        let mut gone = Vec::new();
        let mut from = 0;
        loop {
            match (self.next_row(from), to.next_row(from)) {
                (None, None) => return Ok(gone),
                (Some(here), Some(there)) if here == there => from = here + 1,
                (Some(here), there) if there.is_none_or(|there| here < there) => {
                    return Err(Error::NotCopied(here));
                }
                (_, there) => {
                    let there = there.expect("one of them is there");
                    gone.push(there);
                    from = there + 1;
                }
            }
        }
    }

    /// Which table has this one's rows now, if they went to another.
    pub(super) fn successor(&self) -> Option<Arc<Self>> {
        self.live().successor.clone()
    }
}
