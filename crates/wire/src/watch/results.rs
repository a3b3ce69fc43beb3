//! Checksums of what statements return, while it passes by.

use super::command;
use super::framing::{HEADER, LONGEST, Packet, length_of};
use super::reply::Reply;
use super::session::{Phase, Session};

impl Session {
    /// Takes a part of a long packet, before it is known what it is part of.
    pub(super) fn passes(&mut self, bytes: &[u8]) {
        let is_row = matches!(self.reply, Reply::Rows | Reply::BeforeRows);
        if let Some(sums) = self.sums.as_mut().filter(|_| is_row) {
            sums.piece(bytes);
        }
    }

    /// Takes the rows that lie whole at the beginning of `rest` off it: most packets of a server are rows, and all that
    /// is to be known of one is that it is there.
    pub(super) fn whole_rows(&mut self, rest: &mut &[u8], at_ns: i64) {
        if self.phase != Phase::Commands || self.reply != Reply::Rows {
            return;
        }
        let Some(front) = self.pending.front_mut() else {
            return;
        };
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let length = length_of(*header);
            // What ends them, and what may continue in another packet, is looked at closely.
            let is_row = matches!(after.first(), Some(0..=0xFD)) && length > 0 && length < LONGEST;
            if !is_row || length > after.len() {
                return;
            }
            let (row, after) = after.split_at(length);
            if let Some(sums) = &mut self.sums {
                sums.row(row);
            }
            *rest = after;
            front.rows += 1;
            front.bytes_out += (HEADER + length) as u64;
            front.last_ns = Some(at_ns);
        }
    }

    /// Takes a row.
    pub(super) fn row(&mut self, packet: Packet<'_>) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        match (packet.has_passed, packet.tail) {
            (true, _) => sums.row(&[]),
            (false, []) => sums.row(packet.head),
            (false, tail) => {
                sums.piece(packet.head);
                sums.row(tail);
            }
        }
    }

    /// A result with so many columns begins.
    pub(super) fn result_begins(&mut self, count: u64, has_definitions: bool) {
        let front = self.pending.front();
        let (Some(sums), Some(front)) = (&mut self.sums, front) else {
            return;
        };
        let is_binary = matches!(front.command, command::EXECUTE | command::BULK_EXECUTE);
        sums.result(is_binary);
        if front.command == command::UNSEEN {
            sums.give_up();
        } else if !has_definitions {
            let known = self.statements.columns(front.statement.unwrap_or(0));
            sums.columns_as_before(known, count);
        }
    }

    /// Takes the definition of a result's column.
    pub(super) fn column(&mut self, definition: &[u8]) {
        if let Some(sums) = &mut self.sums {
            sums.column(definition);
        }
    }

    /// Takes the definition of a column that a prepared statement will return.
    pub(super) fn prepared_column(&mut self, definition: &[u8]) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        if sums.first_columns().is_none() {
            sums.result(true);
        }
        sums.column(definition);
    }

    /// A result ends, or a prepared statement's definitions do.
    pub(super) fn result_ends(&mut self) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        sums.leave_row();
        let id = self.pending.front().and_then(|front| front.statement);
        if let Some((id, columns)) = id.zip(sums.first_columns()) {
            self.statements.set_columns(id, columns);
        }
    }

    /// Says that rows come of which nothing can be said.
    pub(super) fn give_up_sums(&mut self) {
        if let Some(sums) = &mut self.sums {
            sums.give_up();
        }
    }

    /// The answer to the oldest command is complete.
    pub(super) fn sum_up(&mut self) {
        if let (Some(sums), Some(front)) = (&self.sums, self.pending.front_mut()) {
            let has_result = matches!(
                front.command,
                command::QUERY | command::EXECUTE | command::BULK_EXECUTE
            );
            front.checksum = sums
                .checksum()
                .filter(|_| has_result && front.error.is_none());
        }
    }
}
