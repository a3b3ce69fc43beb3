//! What the target remembers of the batch that was sent last.

use crate::name::QueueName;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Row, Session, quote, quote_name};
use std::time::{SystemTime, UNIX_EPOCH};

/// The table of it, in the database of the table that gets the rows.
const TABLE: &str = "evenkeel_forwarded";

/// Rows that were claimed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    /// The source's id of the first of them.
    pub(super) first: u64,
    /// How many.
    pub(super) rows: u64,
    /// What tells them from others.
    pub(super) digest: String,
}

impl Sent {
    /// Ids from here on are of other rows: there are at least so many numbers between the first and the last.
    pub(super) fn bound(&self) -> u64 {
        self.first + self.rows - 1
    }
}

/// The line of one table and slot.
#[derive(Debug)]
pub(super) struct Ledger {
    database: String,
    key: String,
    /// What is added to row ids, so that they are larger than all that the slot has seen.
    base: u64,
    /// The batch that was sent last, or is about to be sent.
    pub(super) last: Option<Sent>,
}

impl Ledger {
    /// Reads the line, or begins one. Errors: those of the session; `Refused` where the slot is another source's.
    pub(super) fn open(
        session: &mut Session,
        to: &QueueName,
        slot: u8,
        source: &str,
        reset: bool,
    ) -> Result<Self> {
        let table = format!("{}.{TABLE}", quote_name(&to.database));
        session.run(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (target VARCHAR(64) NOT NULL, slot TINYINT UNSIGNED NOT NULL, \
             source VARCHAR(512) NOT NULL, base BIGINT UNSIGNED NOT NULL, first_id BIGINT UNSIGNED NOT NULL, \
             row_count BIGINT UNSIGNED NOT NULL, digest CHAR(64) NOT NULL, PRIMARY KEY (target, slot)) \
             ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        ))?;
        let key = format!("target = {} AND slot = {slot}", quote(&to.table));
        let found = session.one(&format!(
            "SELECT source, base, first_id, row_count, digest FROM {table} WHERE {key}"
        ))?;
        let number = |row: &Row, at| {
            row.at(at)
                .and_then(|cell| cell.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let mut ledger = Self {
            database: to.database.clone(),
            key,
            base: now_us(),
            last: None,
        };
        if let Some(row) = &found {
            let (base, first, rows) = (number(row, 1), number(row, 2), number(row, 3));
            if !reset {
                let of = row.at(0).unwrap_or_default();
                if of != source {
                    return Err(Error::refused(format!(
                        "slot {slot} of {to} belongs to the source {of}, not to {source}"
                    ))
                    .hint(
                        "use another --slot, or --reset if nothing is forwarded from there any more",
                    ));
                }
                ledger.base = base;
                ledger.last = (rows > 0).then(|| Sent {
                    first,
                    rows,
                    digest: row.at(4).unwrap_or_default().to_owned(),
                });
                return Ok(ledger);
            }
            ledger.base = ledger.base.max(base + first + rows + 1);
        }
        session.run(&format!(
            "REPLACE INTO {table} VALUES ({}, {slot}, {}, {}, 0, 0, '')",
            quote(&to.table),
            quote(source),
            ledger.base
        ))?;
        Ok(ledger)
    }

    /// The statement that remembers a batch.
    pub(super) fn remember(&self, sent: &Sent) -> String {
        format!(
            "UPDATE {}.{TABLE} SET first_id = {}, row_count = {}, digest = {} WHERE {}",
            quote_name(&self.database),
            sent.first,
            sent.rows,
            quote(&sent.digest),
            self.key
        )
    }

    /// The source id of a batch: larger than that of any batch before it.
    pub(super) fn source_id(&self, sent: &Sent) -> u64 {
        self.base + sent.bound()
    }
}

/// Microseconds since 1970: what used the slot before, with row ids, is far below.
fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(0)
}
