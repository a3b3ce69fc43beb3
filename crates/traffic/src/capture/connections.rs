//! All connections of a capture: each with its order and its decoder, as many as memory is given to.

use super::frame::{End, Segment};
use super::order::{Order, Out};
use crate::statement::{Command, Coverage, Statement};
use evenkeel_op::Result;
use evenkeel_wire::watch::{Counts, Seen, Side, Watch, command};
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};

/// Connections that are followed at a time; then those go that were silent the longest.
const MOST: usize = 65_536;
/// How long a connection is remembered that is over: its last packets may come again.
const REMEMBERED_NS: i64 = 10_000_000_000;

/// What is decoded, and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The ports that servers listen on.
    pub ports: Vec<u16>,
    /// Bytes of a statement that are kept.
    pub text_bytes: usize,
    /// Checksums of results are computed.
    pub checksums: bool,
    /// Values of prepared statements are handed out in binary.
    pub values: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ports: vec![3306],
            text_bytes: 1 << 20,
            checksums: false,
            values: false,
        }
    }
}

impl Options {
    /// Returns what decodes a connection; `is_joined`: its beginning was not seen.
    pub(super) fn watch(&self, is_joined: bool) -> Watch {
        let watch = match is_joined {
            true => Watch::joined(self.text_bytes),
            false => Watch::new(self.text_bytes),
        };
        let watch = match self.checksums {
            true => watch.with_checksums(),
            false => watch,
        };
        match self.values {
            true => watch.with_values(),
            false => watch,
        }
    }
}

#[derive(Debug)]
struct Connection {
    number: u64,
    host: String,
    order: Order,
    watch: Watch,
    /// The number its client began with.
    began: Option<u32>,
    is_over: bool,
    active_ns: i64,
}

/// Follows connections.
#[derive(Debug)]
pub(super) struct Connections {
    options: Options,
    /// By client, then server. Each packet asks: hashing was a quarter of what decoding took.
    all: HashMap<(End, End), Connection, RandomState>,
    count: u64,
    /// Those that are over, with the time since when.
    over: VecDeque<(i64, u64, (End, End))>,
    pub(super) coverage: Coverage,
}

/// Whoever takes statements.
pub(super) type Each<'a> = dyn FnMut(&Statement<'_>) -> Result<()> + 'a;

impl Connections {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            all: HashMap::default(),
            count: 0,
            over: VecDeque::new(),
            coverage: Coverage::default(),
        }
    }

    /// Takes a segment; what it completes goes to `each`.
    pub(super) fn take(
        &mut self,
        at_ns: i64,
        segment: &Segment<'_>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let Some(side) = self.side(segment) else {
            return Ok(());
        };
        let key = match side {
            Side::Client => (segment.from, segment.to),
            Side::Server => (segment.to, segment.from),
        };
        if segment.is_syn {
            return self.begin(key, side, at_ns, segment, each);
        }
        let known = self.all.get(&key);
        let is_foreign = known.map(|it| it.order.is_foreign(side, segment));
        if is_foreign == Some(true) {
            self.end(key, each)?;
        }
        if is_foreign != Some(false) {
            if segment.payload.is_empty() && segment.cut == 0 {
                return Ok(());
            }
            self.add(key, at_ns, true, each)?;
        }
        let Some(connection) = self.all.get_mut(&key) else {
            return Ok(());
        };
        connection.active_ns = at_ns;
        connection.feed(&mut self.coverage, each, |order, out| {
            order.take(side, at_ns, segment, out);
        })?;
        if (segment.is_reset || connection.order.is_over()) && !connection.is_over {
            connection.is_over = true;
            connection.finish(&mut self.coverage, each)?;
            self.over.push_back((at_ns, connection.number, key));
        }
        Ok(())
    }

    /// Forgets connections that have been over for long.
    fn forget(&mut self, at_ns: i64, each: &mut Each<'_>) -> Result<()> {
        while let Some((since_ns, number, key)) = self.over.front().copied() {
            if at_ns.saturating_sub(since_ns) < REMEMBERED_NS && self.over.len() < MOST / 4 {
                break;
            }
            self.over.pop_front();
            if self.all.get(&key).is_some_and(|it| it.number == number) {
                self.end(key, each)?;
            }
        }
        Ok(())
    }

    /// Returns who sent a segment: the server is who has one of the ports.
    fn side(&self, segment: &Segment<'_>) -> Option<Side> {
        let ports = &self.options.ports;
        match (
            ports.contains(&segment.to.port),
            ports.contains(&segment.from.port),
        ) {
            (true, false) => Some(Side::Client),
            (false, true) => Some(Side::Server),
            // A client that happens to have such a port itself.
            (true, true) if segment.to.port <= segment.from.port => Some(Side::Client),
            (true, true) => Some(Side::Server),
            (false, false) => None,
        }
    }

    fn begin(
        &mut self,
        key: (End, End),
        side: Side,
        at_ns: i64,
        segment: &Segment<'_>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let is_known = self.all.get(&key).is_some_and(|known| match side {
            Side::Client => known.began == Some(segment.sequence),
            Side::Server => {
                let expected = known.began.map(|began| began.wrapping_add(1));
                expected == segment.acknowledged
            }
        });
        let is_live = self.all.get(&key).is_some_and(|known| !known.is_over);
        if is_live && !is_known && side == Side::Client {
            // Anybody can send one. If the ports are used again, the server agrees with the next packet.
            return Ok(());
        }
        if !is_known {
            self.end(key, each)?;
            self.add(key, at_ns, false, each)?;
        }
        if let Some(connection) = self.all.get_mut(&key) {
            if side == Side::Client {
                connection.began = Some(segment.sequence);
            } else if !is_known {
                connection.began = segment.acknowledged.map(|next| next.wrapping_sub(1));
            }
            // Repeated ones must not set it back.
            connection.order.begin_once(side, segment.sequence);
            if let (Side::Server, Some(next)) = (side, segment.acknowledged) {
                connection
                    .order
                    .begin_once(Side::Client, next.wrapping_sub(1));
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        key: (End, End),
        at_ns: i64,
        is_joined: bool,
        each: &mut Each<'_>,
    ) -> Result<()> {
        self.forget(at_ns, each)?;
        if self.all.len() >= MOST {
            self.make_room(each)?;
        }
        self.count += 1;
        let watch = self.options.watch(is_joined);
        let connection = Connection {
            number: self.count,
            host: key.0.address.to_string(),
            order: Order::default(),
            watch,
            began: None,
            is_over: false,
            active_ns: at_ns,
        };
        self.all.insert(key, connection);
        Ok(())
    }

    /// Ends the quarter that was silent the longest.
    fn make_room(&mut self, each: &mut Each<'_>) -> Result<()> {
        let mut silent: Vec<_> = self
            .all
            .iter()
            .map(|(key, it)| (it.active_ns, it.number, *key))
            .collect();
        silent.sort_unstable();
        for (_, _, key) in silent.into_iter().take(MOST / 4) {
            self.end(key, each)?;
        }
        Ok(())
    }

    fn end(&mut self, key: (End, End), each: &mut Each<'_>) -> Result<()> {
        let Some(mut connection) = self.all.remove(&key) else {
            return Ok(());
        };
        connection.finish(&mut self.coverage, each)
    }

    /// Ends all, in the order in which they began.
    pub(super) fn end_all(&mut self, each: &mut Each<'_>) -> Result<()> {
        let mut keys: Vec<_> = self.all.iter().map(|(key, it)| (it.number, *key)).collect();
        keys.sort_unstable();
        for (_, key) in keys {
            self.end(key, each)?;
        }
        Ok(())
    }
}

impl Connection {
    /// Has the order do something, and decodes what comes out.
    fn feed(
        &mut self,
        coverage: &mut Coverage,
        each: &mut Each<'_>,
        work: impl FnOnce(&mut Order, &mut dyn FnMut(Out<'_>)),
    ) -> Result<()> {
        let mut result = Ok(());
        let (number, host, watch) = (self.number, &self.host, &mut self.watch);
        let was_encrypted = watch.is_encrypted();
        let before = watch.counts();
        let mut tell = |seen: &Seen<'_>| {
            if result.is_ok() {
                result = each(&statement(seen, number, host));
            }
        };
        let missing = &mut coverage.bytes_missing;
        work(&mut self.order, &mut |out| match out {
            Out::Bytes(side, at_ns, bytes) => watch.bytes(side, at_ns, bytes, &mut tell),
            Out::Gap(side, bytes) => {
                *missing += u64::from(bytes);
                watch.gap(side, &mut tell);
            }
        });
        let is_newly_encrypted = !was_encrypted && watch.is_encrypted();
        coverage.connections_encrypted += u64::from(is_newly_encrypted);
        add(coverage, before, watch.counts());
        result
    }

    /// Hands out what waits for more.
    fn finish(&mut self, coverage: &mut Coverage, each: &mut Each<'_>) -> Result<()> {
        self.feed(coverage, each, |order, out| order.end(out))?;
        self.close(coverage, each)
    }

    fn close(&mut self, coverage: &mut Coverage, each: &mut Each<'_>) -> Result<()> {
        let mut result = Ok(());
        let before = self.watch.counts();
        let (number, host) = (self.number, &self.host);
        self.watch.end(&mut |seen| {
            if result.is_ok() {
                result = each(&statement(seen, number, host));
            }
        });
        add(coverage, before, self.watch.counts());
        result
    }
}

pub(super) fn add(coverage: &mut Coverage, before: Counts, now: Counts) {
    coverage.statements += now.commands - before.commands;
    coverage.unseen += now.unseen - before.unseen;
    coverage.undecodable += now.undecodable - before.undecodable;
}

pub(super) fn statement<'a>(seen: &Seen<'a>, connection: u64, host: &'a str) -> Statement<'a> {
    let after = |at: Option<i64>| at.map(|at| at.saturating_sub(seen.at_ns).max(0) as u64);
    let is_answered = seen.last_ns.is_some();
    Statement {
        at_ns: seen.at_ns,
        connection,
        session: seen.session,
        user: seen.user,
        host: Some(host),
        schema: seen.schema,
        command: match seen.command {
            command::QUERY => Command::Query,
            command::PREPARE => Command::Prepare,
            command::EXECUTE | command::BULK_EXECUTE => Command::Execute,
            command::CONNECT => Command::Connect,
            command::QUIT => Command::Quit,
            other => Command::Other(other),
        },
        sql: seen.sql,
        sql_bytes: seen.sql_bytes,
        is_unseen: seen.is_unseen,
        first_ns: after(seen.first_ns),
        total_ns: after(seen.last_ns),
        lock_ns: None,
        rows_sent: is_answered.then_some(seen.rows),
        rows_examined: None,
        rows_affected: is_answered.then_some(seen.affected),
        bytes_in: Some(seen.bytes_in),
        bytes_out: Some(seen.bytes_out),
        warnings: is_answered.then_some(seen.warnings),
        error: seen.error,
        checksum: seen.checksum,
        statement: seen.statement,
        values: seen.values,
    }
}
