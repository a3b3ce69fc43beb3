//! Statements of one table that go to a connection together.

use super::classify::Head;
use super::places::At;

/// How many bytes are gathered into one statement or transaction.
pub(super) const BATCH: usize = 1 << 20;

/// One statement of the file within a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins in the file.
    pub(super) at: At,
    /// Its bytes in the batch's text, or those behind its head where the batch is one statement.
    start: usize,
    end: usize,
    pub(super) rows: u64,
}

/// How statements are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// One INSERT with the rows of all.
    Rows,
    /// One transaction.
    Transaction,
    /// Not at all: each stands for itself.
    Apart,
}

/// Statements with equal heads.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// The table, by its number.
    pub(super) table: usize,
    pub(super) joined: Joined,
    /// Whether it waits for what comes before it of its table, and what comes after for it.
    pub(super) ordered: bool,
    /// How many of the file's settings a connection has to have repeated for it, and no more.
    pub(super) settings: usize,
    head: Vec<u8>,
    text: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

impl Batch {
    /// Starts a batch.
    pub(super) fn new(
        table: usize,
        head: &Head,
        joined: Joined,
        ordered: bool,
        settings: usize,
    ) -> Self {
        Self {
            table,
            joined,
            ordered,
            settings,
            head: head.bytes.clone(),
            text: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Adds a statement, unless it is of another kind or would make the batch too long.
    pub(super) fn takes(&self, like: &Self, bytes: usize, limit: usize) -> bool {
        (self.joined, self.ordered, self.settings) == (like.joined, like.ordered, like.settings)
            && self.head == like.head
            && self.text.len() + bytes + self.head.len() < limit
    }

    /// Adds a statement with the batch's head.
    pub(super) fn add(&mut self, statement: &[u8], at: At, rows: u64) {
        let values = match self.joined {
            Joined::Rows => {
                let first = self.text.is_empty();
                self.text
                    .extend_from_slice(if first { &self.head } else { b"," });
                &statement[self.head.len()..]
            }
            Joined::Transaction | Joined::Apart => statement,
        };
        let start = self.text.len();
        self.text.extend_from_slice(values);
        self.pieces.push(Piece {
            at,
            start,
            end: self.text.len(),
            rows,
        });
    }

    /// Returns the whole as one statement, where it is one.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        (self.joined == Joined::Rows).then_some(&self.text)
    }

    /// Returns a statement as it stands in the file.
    pub(super) fn single(&self, piece: &Piece) -> Vec<u8> {
        let text = &self.text[piece.start..piece.end];
        match self.joined {
            Joined::Rows => [&self.head, text].concat(),
            Joined::Transaction | Joined::Apart => text.to_vec(),
        }
    }

    /// Returns where its first statement begins.
    pub(super) fn at(&self) -> At {
        self.pieces.first().map_or(At::default(), |piece| piece.at)
    }

    /// Returns how many rows it has.
    pub(super) fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }

    /// Returns how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.pieces.len() * size_of::<Piece>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::{StatementKind, classify};
    use super::*;
    use evenkeel_sql::Mode;

    #[test]
    fn rows_are_joined_and_found_again() {
        let all = ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2),(3)"];
        let StatementKind::Rows(head) = classify(all[0].as_bytes(), Mode::default()) else {
            panic!();
        };
        let mut batch = Batch::new(0, &head, Joined::Rows, false, 0);
        let at = |line| At { line, column: 1 };
        batch.add(all[0].as_bytes(), at(7), 1);
        batch.add(all[1].as_bytes(), at(9), 2);
        let whole = batch.whole().unwrap();
        assert_eq!(whole, b"INSERT INTO t VALUES (1), (2),(3)");
        assert_eq!((batch.at(), batch.rows()), (at(7), 3));
        for (piece, text) in batch.pieces.iter().zip(all) {
            assert_eq!(batch.single(piece), text.as_bytes());
        }
        assert!(!batch.takes(&batch.clone(), 10, 20));
        assert!(batch.takes(&batch.clone(), 10, 200));
    }
}
