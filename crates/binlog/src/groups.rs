//! Which events belong together: a transaction, or a statement that stands alone.

use crate::clock::{self, Committed};
use crate::{Event, Format, Gtid, Header, body, kind};
use evenkeel_op::{Error, Result};

/// A transaction, or a statement that stands alone, that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Position of its first event.
    pub start: u64,
    /// Position after its last event.
    pub end: u64,
    /// When it was committed, as truly as it tells, in seconds since 1970. Changes of rows on MariaDB tell
    /// no more than their session did.
    pub time: u32,
    /// What the clock of the server that wrote the file said meanwhile, if that is known: no session can
    /// set it.
    pub clock: Option<u32>,
    /// The time of its last statement, which replicas keep when they log what they apply.
    pub statement: u32,
    /// Its GTID, if it has one.
    pub gtid: Option<Gtid>,
}

/// A group that has begun and is not complete: what has to be known to continue in the middle of
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Position of its first event.
    pub start: u64,
    /// When it was committed, as far as is known so far, in seconds since 1970.
    pub time: u32,
    /// The time of its last statement so far.
    pub statement: u32,
    /// Its GTID, if it has one.
    pub gtid: Option<Gtid>,
    /// Whether a commit ends it; else the next statement does, or begins a transaction.
    pub in_transaction: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupState {
    /// Behind a GTID, or behind a value for a statement; the next statement says whether a
    /// transaction begins or it stands alone.
    Announced,
    /// Inside a transaction, which a commit ends.
    Transaction,
}

#[derive(Debug, Clone)]
struct Open {
    state: GroupState,
    start: u64,
    time: u32,
    /// Whether the time is that of the commit, to which statements add nothing.
    is_reported: bool,
    clock: Option<u32>,
    statement: u32,
    gtid: Option<Gtid>,
}

impl Open {
    fn tell(&mut self, committed: Committed) {
        self.clock = Some(committed.here);
        if let Some(first) = committed.first {
            (self.time, self.is_reported) = (first, true);
        }
    }

    /// Takes note of a statement: the time that it says, and what the clock said.
    fn hear(&mut self, said: u32, clock: u32) {
        self.clock.get_or_insert(clock);
        if !self.is_reported {
            self.time = clock::corrected(self.time, said, clock);
        }
    }
}

/// Takes the events of a file in order and tells when a group is complete.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    open: Option<Open>,
}

impl Groups {
    /// Continues in the middle of a group.
    #[must_use]
    pub fn resume(unfinished: &Unfinished) -> Self {
        Self {
            open: Some(Open {
                state: match unfinished.in_transaction {
                    true => GroupState::Transaction,
                    false => GroupState::Announced,
                },
                start: unfinished.start,
                time: unfinished.time,
                is_reported: false,
                clock: None,
                statement: unfinished.statement,
                gtid: unfinished.gtid,
            }),
        }
    }

    /// Returns the group that has begun and is not complete.
    #[must_use]
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.open.as_ref().map(|open| Unfinished {
            start: open.start,
            time: open.time,
            statement: open.statement,
            gtid: open.gtid,
            in_transaction: open.state == GroupState::Transaction,
        })
    }

    /// Takes one event; returns the group that it completes.
    pub fn step(&mut self, event: &Event, format: &Format) -> Result<Option<Group>> {
        let body = body(&event.bytes, Some(format));
        let ends = self
            .take(event, body)
            .ok_or_else(|| Error::failed(format!("the event at {} is damaged", event.position)))?;
        if let (Some(open), Some(clock)) =
            (&mut self.open, clock::of_statement(event, body, format))
        {
            open.hear(event.header.time, clock);
        }
        // A commit has the time of a statement of its own, which replicas do not keep.
        let commits = matches!(event.header.kind, kind::XID | kind::XA_PREPARE)
            || event.header.kind == kind::QUERY && statement(body).is_some_and(is_commit);
        if !commits && let Some(open) = &mut self.open {
            open.statement = event.header.time;
        }
        if !ends {
            return Ok(None);
        }
        Ok(self.open.take().map(|open| Group {
            start: open.start,
            end: event.end(),
            time: open.time,
            clock: open.clock,
            statement: open.statement,
            gtid: open.gtid,
        }))
    }

    /// Returns whether the event completes a group; `None` for one that is damaged.
    fn take(&mut self, event: &Event, body: &[u8]) -> Option<bool> {
        let header = &event.header;
        let ends = match header.kind {
            kind::GTID | kind::GTID_TAGGED | kind::ANONYMOUS_GTID => {
                self.begin(event, GroupState::Announced, mysql(header, body)?);
                let committed = clock::committed(body);
                // One with a tag is written in another way.
                if let (Some(open), Some(committed), true) =
                    (&mut self.open, committed, header.kind != kind::GTID_TAGGED)
                {
                    open.tell(committed);
                }
                false
            }
            kind::MARIADB_GTID => {
                let (gtid, alone) = mariadb(header, body)?;
                let state = if alone {
                    GroupState::Announced
                } else {
                    GroupState::Transaction
                };
                self.begin(event, state, Some(gtid));
                false
            }
            kind::XID | kind::XA_PREPARE => self.open.is_some(),
            kind::TRANSACTION_PAYLOAD => {
                self.begin_if_outside(event);
                true
            }
            kind::QUERY => self.query(event, statement(body)?),
            // Too short to be compressed, a commit never comes so.
            kind::MARIADB_QUERY_COMPRESSED | kind::EXECUTE_LOAD_QUERY => {
                self.begin_if_outside(event);
                self.state() == Some(GroupState::Announced)
            }
            kind::INTVAR | kind::RAND | kind::USER_VAR | kind::BEGIN_LOAD_QUERY => {
                self.begin_if_outside(event);
                false
            }
            _ => false,
        };
        Some(ends)
    }

    fn query(&mut self, event: &Event, text: &[u8]) -> bool {
        self.begin_if_outside(event);
        match self.state() {
            Some(GroupState::Transaction) => is_commit(text),
            _ if is(text, b"BEGIN") || starts(text, b"XA START") => {
                if let Some(open) = &mut self.open {
                    open.state = GroupState::Transaction;
                }
                false
            }
            _ => true,
        }
    }

    fn state(&self) -> Option<GroupState> {
        self.open.as_ref().map(|open| open.state)
    }

    fn begin(&mut self, event: &Event, state: GroupState, gtid: Option<Gtid>) {
        self.open = Some(Open {
            state,
            start: event.position,
            time: event.header.time,
            is_reported: false,
            clock: None,
            statement: event.header.time,
            gtid,
        });
    }

    fn begin_if_outside(&mut self, event: &Event) {
        if self.open.is_none() {
            self.begin(event, GroupState::Announced, None);
        }
    }
}

/// Body: `u8 flags, 16 bytes server, u64 number`. A tagged one is written in another way, an
/// anonymous one has none: both are transactions all the same.
fn mysql(header: &Header, body: &[u8]) -> Option<Option<Gtid>> {
    if header.kind != kind::GTID {
        return Some(None);
    }
    Some(Some(Gtid::MySql {
        server: *body.get(1..)?.first_chunk()?,
        number: u64::from_le_bytes(*body.get(17..)?.first_chunk()?),
    }))
}

/// Body: `u64 sequence, u32 domain, u8 flags`; flag 1: a statement stands alone.
fn mariadb(header: &Header, body: &[u8]) -> Option<(Gtid, bool)> {
    let gtid = Gtid::MariaDb {
        domain: u32::from_le_bytes(*body.get(8..)?.first_chunk()?),
        server: header.server,
        sequence: u64::from_le_bytes(*body.first_chunk()?),
    };
    Some((gtid, body.get(12)? & 1 != 0))
}

/// Returns the text of a statement's event, of its body.
///
/// Body: `u32 thread, u32 seconds, u8 schema length, u16 error, u16 status length`, then status,
/// schema, NUL, text.
#[must_use]
pub fn statement(body: &[u8]) -> Option<&[u8]> {
    let schema = usize::from(*body.get(8)?);
    let status = usize::from(u16::from_le_bytes(*body.get(11..)?.first_chunk()?));
    body.get(13 + status + schema + 1..)
}

fn is_commit(text: &[u8]) -> bool {
    is(text, b"COMMIT") || is(text, b"ROLLBACK")
}

fn is(text: &[u8], word: &[u8]) -> bool {
    text.eq_ignore_ascii_case(word)
}

fn starts(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| is(start, word))
}
