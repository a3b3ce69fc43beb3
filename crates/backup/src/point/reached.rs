//! A place in the log, and what was counted up to there.

use super::transaction::Transaction;
use super::unmade::{Unmade, Why};
use crate::archive::LogPosition;

/// So many statements that read files are listed: a longer list would say nothing more.
const TOLD: usize = 50;

/// How far is applied, and what is on the way there.
#[derive(Clone)]
pub(super) struct Reached {
    /// The place.
    pub(super) to: LogPosition,
    /// How many transactions are before it.
    pub(super) transactions: u64,
    /// The last transaction before it.
    pub(super) last: Option<Transaction>,
    /// The one behind it.
    pub(super) next: Option<Transaction>,
    /// Whether some of them have GTIDs, and some have none.
    pub(super) gtids: (bool, bool),
    /// Statements among them of which a private server does not make what they made.
    pub(super) unmade: Vec<Unmade>,
    /// In which leg the last one is.
    pub(super) leg: usize,
}

impl Reached {
    /// Begins at a place.
    pub(super) fn at(place: LogPosition) -> Self {
        Self {
            to: place,
            transactions: 0,
            last: None,
            next: None,
            gtids: (false, false),
            unmade: Vec::new(),
            leg: 0,
        }
    }

    /// Continues behind a transaction of this leg.
    pub(super) fn add(&mut self, transaction: Transaction, unmade: Vec<Unmade>, leg: usize) {
        for one in unmade {
            // Each of those that are left out is listed: someone must run them.
            if one.why == Why::Library || self.unmade.len() < TOLD {
                self.unmade.push(one);
            }
        }
        self.transactions += 1;
        self.leg = leg;
        match transaction.gtid {
            Some(_) => self.gtids.0 = true,
            None => self.gtids.1 = true,
        }
        self.to = LogPosition {
            file: transaction.at.file.clone(),
            position: transaction.end,
        };
        self.last = Some(transaction);
    }
}
