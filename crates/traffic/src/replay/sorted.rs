//! Statements in the order in which they took effect.
//!
//! They come when their answer was seen. A commit takes effect before that: others get the locks that it gives back,
//! and are answered, while its own answer is still on its way. So a commit belongs where it was sent, and whatever
//! comes is kept until no commit can be missing before it.

use super::known::Known;
use crate::{Command, Statement};
use evenkeel_wire::Checksum;
use foldhash::fast::RandomState;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// How long the answer to a commit may take.
const LONGEST_NS: i64 = 2_000_000_000;
/// How many statements are kept at most, and how many bytes of their texts.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 64 << 20;

/// A statement that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// When it took effect.
    pub(super) effect_ns: i64,
    number: u64,
    at_ns: i64,
    connection: u64,
    user: Option<Arc<str>>,
    host: Option<Arc<str>>,
    schema: Option<Arc<str>>,
    command: Command,
    sql: Vec<u8>,
    sql_bytes: u64,
    is_unseen: bool,
    total_ns: Option<u64>,
    rows_sent: Option<u64>,
    rows_affected: Option<u64>,
    error: Option<u16>,
    checksum: Option<Checksum>,
    prepared: Option<u32>,
    values: Option<Vec<u8>>,
    /// What it does, if it is a statement.
    pub(super) known: Option<Arc<Known>>,
}

/// What is kept of a session.
#[derive(Debug)]
struct Session {
    /// When its last statement took effect: none takes effect before the one before it.
    last_ns: i64,
    /// Of its last statement: the next one's are the same ones, nearly always.
    user: Option<Arc<str>>,
    host: Option<Arc<str>>,
    schema: Option<Arc<str>>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            last_ns: i64::MIN,
            user: None,
            host: None,
            schema: None,
        }
    }
}

/// Returns a text of one's own: the one that is there if it is the same.
fn owned(there: &mut Option<Arc<str>>, text: Option<&str>) -> Option<Arc<str>> {
    if there.as_deref() != text {
        *there = text.map(Arc::from);
    }
    there.clone()
}

impl Kept {
    /// Returns the statement. What replays have no use for is not there.
    pub(super) fn statement(&self) -> Statement<'_> {
        Statement {
            at_ns: self.at_ns,
            connection: self.connection,
            session: None,
            user: self.user.as_deref(),
            host: self.host.as_deref(),
            schema: self.schema.as_deref(),
            command: self.command,
            sql: &self.sql,
            sql_bytes: self.sql_bytes,
            is_unseen: self.is_unseen,
            first_ns: None,
            total_ns: self.total_ns,
            lock_ns: None,
            rows_sent: self.rows_sent,
            rows_examined: None,
            rows_affected: self.rows_affected,
            bytes_in: None,
            bytes_out: None,
            warnings: None,
            error: self.error,
            checksum: self.checksum,
            statement: self.prepared,
            values: self.values.as_deref(),
        }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    /// The earliest is the greatest: it comes out first.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |kept: &Self| (kept.effect_ns, kept.number);
        key(other).cmp(&key(self))
    }
}

/// Sorts statements.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    waiting: BinaryHeap<Box<Kept>>,
    bytes: usize,
    count: u64,
    newest_ns: i64,
    sessions: HashMap<u64, Session, RandomState>,
    /// When the last one that was handed out took effect.
    passed_ns: i64,
}

impl Sorted {
    /// Takes a statement that took effect at a time, with what it does.
    pub(super) fn push(&mut self, one: &Statement<'_>, known: Option<Arc<Known>>, effect_ns: i64) {
        let session = self.sessions.entry(one.connection).or_default();
        // One that comes too late takes its place behind those that are gone.
        let effect_ns = effect_ns.max(session.last_ns).max(self.passed_ns);
        session.last_ns = effect_ns;
        let user = owned(&mut session.user, one.user);
        let host = owned(&mut session.host, one.host);
        let schema = owned(&mut session.schema, one.schema);
        if one.command == Command::Quit {
            self.sessions.remove(&one.connection);
        }
        self.newest_ns = self.newest_ns.max(effect_ns);
        self.bytes += one.sql.len() + one.values.map_or(0, <[u8]>::len);
        self.count += 1;
        self.waiting.push(Box::new(Kept {
            effect_ns,
            number: self.count,
            at_ns: one.at_ns,
            connection: one.connection,
            user,
            host,
            schema,
            command: one.command,
            sql: one.sql.to_vec(),
            sql_bytes: one.sql_bytes,
            is_unseen: one.is_unseen,
            total_ns: one.total_ns,
            rows_sent: one.rows_sent,
            rows_affected: one.rows_affected,
            error: one.error,
            checksum: one.checksum,
            prepared: one.statement,
            values: one.values.map(<[u8]>::to_vec),
            known,
        }));
    }

    /// Returns the next one before which nothing can be missing; at the end, the next one.
    pub(super) fn pop(&mut self, is_end: bool) -> Option<Box<Kept>> {
        let first = self.waiting.peek()?;
        let is_old = self.newest_ns.saturating_sub(first.effect_ns) > LONGEST_NS;
        let is_full = self.waiting.len() > MOST || self.bytes > MOST_BYTES;
        if !(is_end || is_old || is_full) {
            return None;
        }
        let kept = self.waiting.pop()?;
        self.bytes -= kept.sql.len() + kept.values.as_ref().map_or(0, Vec::len);
        self.passed_ns = kept.effect_ns;
        Some(kept)
    }
}
