//! What clients of queues know of their rows: which have to be there, which must not, and which may.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// The content of row `id`, as SQL computes it; [`length`] is its length.
#[must_use]
pub fn text(id: &str) -> String {
    let length =
        format!("IF({id} % 40 = 0, 1000 * (1 + {id} DIV 40 % 200), 10 + {id} * 7919 % 900)");
    format!("RPAD('', {length}, CONCAT({id}, '-'))")
}

/// Bytes of the text of row `id`: 10 to 200 000.
#[must_use]
pub fn length(id: u64) -> u64 {
    if id.is_multiple_of(40) {
        1000 * (1 + id / 40 % 200)
    } else {
        10 + id * 7919 % 900
    }
}

/// What to ask of a queue; [`Seen::of`] reads the answer.
pub const LOOK: &str =
    "SELECT id, producer, LENGTH(what), what = RPAD('', LENGTH(what), CONCAT(id, '-')) FROM";

/// A row as somebody saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub id: u64,
    /// Who put it in.
    pub producer: u64,
}

impl Seen {
    /// Reads a row that [`LOOK`] gave. Errors: it is not what was put in.
    pub fn of(row: &evenkeel_server::connect::Row) -> Result<Self, String> {
        let cell = |at| row.at(at).and_then(|text| text.parse::<u64>().ok());
        match [cell(0), cell(1), cell(2), cell(3)] {
            [Some(id), Some(producer), Some(bytes), Some(1)] if bytes == length(id) => {
                Ok(Self { id, producer })
            }
            cells => Err(format!("no row has this content: {cells:?}")),
        }
    }
}

/// Rows that one INSERT brings.
#[derive(Debug)]
struct Statement {
    count: u64,
    queue: usize,
    producer: u64,
    /// Its INSERT has returned, or one of its rows was seen.
    is_there: bool,
}

impl Statement {
    fn ids(&self, first: u64) -> Range<u64> {
        first..first + self.count
    }
}

/// All rows that were ever sent.
#[derive(Debug, Default)]
pub struct Ledger {
    next: u64,
    /// By their first row; those whose rows have all ended are taken out by [`Ledger::compare`].
    statements: BTreeMap<u64, Statement>,
    ended: HashSet<u64>,
    /// Rows of which nobody knows whether their end was done.
    doubtful: HashSet<u64>,
    acknowledged: u64,
    doubts: u64,
}

impl Ledger {
    /// Notes that `producer` is about to put `count` rows into `queue`. Returns their numbers.
    pub fn sends(&mut self, producer: u64, queue: usize, count: u64) -> Range<u64> {
        let first = self.next;
        self.next += count;
        let statement = Statement {
            count,
            queue,
            producer,
            is_there: false,
        };
        let ids = statement.ids(first);
        self.statements.insert(first, statement);
        ids
    }

    /// Notes that an INSERT has returned; `ids` are what [`Ledger::sends`] gave.
    pub fn acknowledges(&mut self, ids: &Range<u64>) {
        self.acknowledged += ids.end - ids.start;
        if let Some(statement) = self.statements.get_mut(&ids.start) {
            statement.is_there = true;
        }
    }

    /// Notes that an INSERT was cut short: its rows are there, all of them, or none is.
    pub fn doubts_insert(&mut self, ids: &Range<u64>) {
        self.doubts += ids.end - ids.start;
    }

    fn owner_of(&mut self, id: u64) -> Option<(u64, &mut Statement)> {
        let (first, statement) = self.statements.range_mut(..=id).next_back()?;
        statement
            .ids(*first)
            .contains(&id)
            .then_some((*first, statement))
    }

    /// Notes that a consumer was given a row of `queue`. Errors: it cannot have been.
    pub fn sees(&mut self, queue: usize, seen: Seen) -> Result<(), String> {
        if self.ended.contains(&seen.id) {
            return Err(format!("row {} has ended, and is given again", seen.id));
        }
        match self.owner_of(seen.id) {
            Some((_, sent)) if sent.queue == queue && sent.producer == seen.producer => {
                // It is seen when it is durable, and so are the others of its statement.
                sent.is_there = true;
                Ok(())
            }
            sent => Err(format!("{seen:?} in queue {queue}: it is of {sent:?}")),
        }
    }

    /// Notes that the server has ended rows. Errors: one had ended before.
    pub fn ends(&mut self, ids: &[u64]) -> Result<(), String> {
        for id in ids {
            self.doubtful.remove(id);
            if !self.ended.insert(*id) {
                return Err(format!("row {id} ended twice"));
            }
        }
        Ok(())
    }

    /// Notes that the end of rows was cut short.
    pub fn doubts_ends(&mut self, ids: &[u64]) {
        self.doubts += ids.len() as u64;
        let open = ids.iter().filter(|id| !self.ended.contains(id));
        self.doubtful.extend(open);
    }

    /// Rows that wait, roughly.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.acknowledged.saturating_sub(self.ended.len() as u64)
    }

    /// Rows that were acknowledged, that have ended, and that were ever in doubt.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        [self.acknowledged, self.ended.len() as u64, self.doubts]
    }

    /// Compares with all rows of all queues while no client is there, and settles what was in doubt. Errors: what
    /// is wrong.
    pub fn compare(&mut self, queues: &[Vec<Seen>]) -> Result<(), String> {
        let mut there = HashSet::new();
        for (queue, rows) in queues.iter().enumerate() {
            let mut last = BTreeMap::new();
            for seen in rows {
                let sent = self
                    .owner_of(seen.id)
                    .map(|(_, sent)| (sent.queue, sent.producer));
                if self.ended.contains(&seen.id) {
                    return Err(format!("row {} has ended, and is there", seen.id));
                }
                if sent != Some((queue, seen.producer)) {
                    return Err(format!("{seen:?} in queue {queue}: it is of {sent:?}"));
                }
                if !there.insert(seen.id) {
                    return Err(format!("row {} is there twice", seen.id));
                }
                let before = last.insert(seen.producer, seen.id);
                if before.is_some_and(|before| before > seen.id) {
                    return Err(format!("row {} stands behind {before:?}", seen.id));
                }
            }
        }
        for (first, statement) in &self.statements {
            self.look_at(*first, statement, &there)?;
        }
        self.settle(&there);
        Ok(())
    }

    fn look_at(
        &self,
        first: u64,
        statement: &Statement,
        there: &HashSet<u64>,
    ) -> Result<(), String> {
        let any = statement.ids(first).any(|id| there.contains(&id));
        let is_known =
            |id: &u64| there.contains(id) || self.ended.contains(id) || self.doubtful.contains(id);
        let missing = statement.ids(first).find(|id| !is_known(id));
        match missing {
            Some(id) if statement.is_there => Err(format!("row {id} is lost: {statement:?}")),
            Some(id) if any => Err(format!("half a statement, without {id}: {statement:?}")),
            _ => Ok(()),
        }
    }

    /// From now on: what is there stays until it is ended, what is gone stays gone.
    fn settle(&mut self, there: &HashSet<u64>) {
        let gone: Vec<u64> = self
            .doubtful
            .drain()
            .filter(|id| !there.contains(id))
            .collect();
        self.ended.extend(gone);
        self.statements.retain(|first, statement| {
            statement.is_there = true;
            statement.ids(*first).any(|id| there.contains(&id))
        });
        self.acknowledged = self.ended.len() as u64 + there.len() as u64;
    }
}
