//! What a client says, in order, and what is known of its session.

use super::command::{self, UNSEEN};
use super::framing::Packet;
use super::inflate::Method;
use super::login::{self, Answer, can};
use super::pending::Pending;
use super::redact::redacted;
use super::reply::{Progress, Reply};
use super::statements::{Rendered, Statements};
use super::{Counts, Seen};
use crate::sums::Sums;
use evenkeel_sql::{Mode, Wide};
use std::collections::VecDeque;

/// Commands that may wait for answers; clients that do not wait at all send a few dozen.
const MOST_PENDING: usize = 1024;
/// Memory for them, in texts that are kept in full.
const MOST_TEXTS: usize = 8;
/// Memory kept for commands to come.
const MOST_SPARE: usize = 16;
/// The same, for the text of an execution.
const SCRATCH: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server speaks first.
    Greeting,
    /// The client says who it is.
    Login,
    /// They prove it to each other.
    Proof,
    Commands,
    /// TLS hides the rest.
    Encrypted,
    /// There are no more commands.
    Over,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) phase: Phase,
    pub(super) counts: Counts,
    /// The server's bytes make no sense until an answer begins.
    pub(super) server_is_lost: bool,
    /// Something is missing: an answer need not be that of the oldest command.
    pub(super) is_in_doubt: bool,
    /// Nothing was understood yet.
    is_unknown: bool,
    pub(super) keep: usize,
    /// What the server offers, then what both sides use; `None` where nobody saw it.
    pub(super) capabilities: Option<u64>,
    /// Whether definitions end without a packet of their own, once that was seen.
    pub(super) has_no_eof: Option<bool>,
    compression: Option<Method>,
    pub(super) user: Option<String>,
    pub(super) schema: Option<String>,
    /// Who and where the session should be, once the server agrees.
    pub(super) next: Option<(String, Option<String>)>,
    id: Option<u32>,
    pub(super) mode: Mode,
    pub(super) statements: Statements,
    pub(super) pending: VecDeque<Pending>,
    pending_bytes: usize,
    spare: Vec<Pending>,
    /// Where the text of an execution is written.
    scratch: Vec<u8>,
    pub(super) reply: Reply,
    /// Of the answer that comes, if somebody wants to know.
    pub(super) sums: Option<Box<Sums>>,
    /// Somebody wants the values of executions in binary.
    pub(super) keeps_values: bool,
}

impl Session {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            phase: Phase::Greeting,
            counts: Counts::default(),
            server_is_lost: false,
            is_in_doubt: false,
            is_unknown: false,
            keep,
            capabilities: None,
            has_no_eof: None,
            compression: None,
            user: None,
            schema: None,
            next: None,
            id: None,
            mode: Mode::default(),
            statements: Statements::default(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            spare: Vec::new(),
            scratch: Vec::new(),
            reply: Reply::First,
            sums: None,
            keeps_values: false,
        }
    }

    /// The session began before it was seen.
    pub(super) fn join(&mut self) {
        self.phase = Phase::Commands;
        (self.server_is_lost, self.is_in_doubt) = (true, true);
        self.is_unknown = true;
    }

    /// Returns whether there is nothing to be understood any more.
    pub(super) fn is_opaque(&self) -> bool {
        matches!(self.phase, Phase::Encrypted | Phase::Over)
    }

    /// Returns whether TLS may have begun before anybody looked.
    pub(super) fn may_be_encrypted(&self) -> bool {
        self.is_unknown
    }

    pub(super) fn encrypt(&mut self) {
        self.phase = Phase::Encrypted;
        self.drop_pending();
    }

    /// Returns how both sides compress, once, when they begin to.
    pub(super) fn begins_compression(&mut self) -> Option<Method> {
        match self.phase {
            Phase::Commands => self.compression.take(),
            _ => None,
        }
    }

    /// The client's bytes are understood again.
    pub(super) fn rejoin(&mut self) {
        self.is_unknown = false;
        self.phase = Phase::Commands;
    }

    pub(super) fn lose_client(&mut self) {
        self.is_in_doubt = true;
        if self.phase != Phase::Commands {
            // Whoever logs in: it was not seen.
            self.phase = Phase::Commands;
            self.is_unknown = true;
            self.server_is_lost = true;
            self.drop_pending();
        }
    }

    pub(super) fn lose_server(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        if self.phase != Phase::Commands {
            self.lose_client();
            return;
        }
        self.flush(each);
        (self.server_is_lost, self.is_in_doubt) = (true, true);
    }

    fn drop_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
        self.reply = Reply::First;
    }

    /// Hands out all that waits for answers, without them.
    pub(super) fn flush(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        while !self.pending.is_empty() {
            self.finish(each);
        }
    }

    pub(super) fn client_says(
        &mut self,
        packet: Packet<'_>,
        at_ns: i64,
        each: &mut dyn FnMut(&Seen<'_>),
    ) {
        match self.phase {
            Phase::Login => self.login(packet, at_ns),
            Phase::Commands if self.reply == Reply::WantsFile => {
                if let Some(front) = self.pending.front_mut() {
                    front.bytes_in += packet.bytes;
                }
                if packet.length == 0 {
                    self.reply = Reply::First;
                }
            }
            Phase::Commands if packet.sequence == 0 && packet.length > 0 => {
                self.command(packet, at_ns, each);
            }
            // Proofs of passwords, and files whose request was not seen.
            _ => {}
        }
    }

    fn login(&mut self, packet: Packet<'_>, at_ns: i64) {
        match login::answer(packet.head, packet.length) {
            Ok(Answer::Tls) => self.phase = Phase::Encrypted,
            Ok(Answer::Login(login)) => {
                self.phase = Phase::Proof;
                let both = self.capabilities.unwrap_or(0) & login.capabilities;
                self.capabilities = Some(both);
                self.has_no_eof = Some(both & can::DEPRECATE_EOF != 0);
                self.compression = match both {
                    both if both & can::COMPRESS != 0 => Some(Method::Zlib),
                    both if both & can::ZSTD != 0 => Some(Method::Zstd),
                    _ => None,
                };
                self.mode.wide = Wide::of_collation(login.collation);
                self.user = Some(String::from_utf8_lossy(login.user).into_owned());
                self.schema = login.schema.map(text);
                let mut connect = self.fresh(command::CONNECT, at_ns);
                connect.bytes_in = packet.bytes;
                self.push(connect);
            }
            Err(_) => {
                self.counts.undecodable += 1;
                self.phase = Phase::Over;
            }
        }
    }

    fn fresh(&mut self, command: u8, at_ns: i64) -> Pending {
        let mut pending = self.spare.pop().unwrap_or_default();
        pending.reuse(command, at_ns);
        pending
    }

    fn push(&mut self, pending: Pending) {
        self.pending_bytes += pending.text.len();
        self.pending.push_back(pending);
    }

    fn command(&mut self, packet: Packet<'_>, at_ns: i64, each: &mut dyn FnMut(&Seen<'_>)) {
        if self.is_in_doubt {
            self.flush(each);
            self.reply = Reply::First;
            self.server_is_lost = true;
        }
        let Some((&number, rest)) = packet.head.split_first() else {
            return;
        };
        let mut pending = self.fresh(number, at_ns);
        pending.bytes_in = packet.bytes;
        pending.length = packet.length;
        if number == command::CHANGE_USER {
            // Its proof of a password is not kept.
            self.next = login::change(rest)
                .ok()
                .map(|(user, schema)| (text(user), (!schema.is_empty()).then(|| text(schema))));
        } else if self.pending_bytes + rest.len() <= self.keep * MOST_TEXTS {
            pending.text.extend_from_slice(rest);
        }
        self.push(pending);
        if self.pending.len() == 1 {
            self.promote(each);
        } else if self.pending.len() > MOST_PENDING {
            // Nobody answers.
            self.flush(each);
        }
    }

    /// Prepares for the answer to the oldest command, once it is its turn.
    fn promote(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        self.reply = Reply::First;
        if let Some(sums) = &mut self.sums {
            sums.begin();
        }
        let Some(front) = self.pending.front_mut() else {
            return;
        };
        let mut raw = std::mem::take(&mut front.text);
        self.pending_bytes = self.pending_bytes.saturating_sub(raw.len());
        let number = front.command;
        let cut = (front.length.saturating_sub(1)).saturating_sub(raw.len() as u64);
        match number {
            command::QUERY => {
                let attributes = self.attributes(&raw);
                raw.drain(..attributes);
            }
            command::EXECUTE | command::BULK_EXECUTE => self.execute(number, &mut raw, cut),
            command::SEND_LONG_DATA => {
                let sent = self.statements.send_ahead(&raw);
                self.of_statement(sent.ok(), &mut raw);
            }
            command::CLOSE | command::RESET_STATEMENT | command::FETCH => {
                let id = raw.first_chunk::<4>().map(|id| u32::from_le_bytes(*id));
                let id = id.map(|id| self.statements.meant(id));
                self.of_statement(id, &mut raw);
                match (id, number) {
                    (Some(id), command::CLOSE) => self.statements.remove(id),
                    (Some(id), command::RESET_STATEMENT) => self.statements.reset(id),
                    _ => {}
                }
            }
            command::INIT_DB | command::PREPARE => {}
            // Numbers, and what nobody reads.
            _ => raw.clear(),
        }
        let Some(front) = self.pending.front_mut() else {
            return;
        };
        if matches!(number, command::QUERY | command::INIT_DB | command::PREPARE) {
            front.length = raw.len() as u64 + cut;
        }
        front.text = raw;
        if command::is_mute(number) {
            self.finish(each);
        }
    }

    /// Puts the text of an execution in the place of what was sent.
    fn execute(&mut self, number: u8, raw: &mut Vec<u8>, cut: u64) {
        let id = raw.first_chunk::<4>().map(|id| u32::from_le_bytes(*id));
        let id = id.map(|id| self.statements.meant(id));
        let mut into = std::mem::take(&mut self.scratch);
        let mut sent = self
            .pending
            .front_mut()
            .map(|front| std::mem::take(&mut front.sent))
            .unwrap_or_default();
        let kept = self.keeps_values.then_some(&mut sent);
        let rendered = match number {
            command::EXECUTE => {
                let has_names = self
                    .capabilities
                    .map(|can| can & can::QUERY_ATTRIBUTES != 0);
                let (mode, keep) = (self.mode, self.keep);
                self.statements
                    .execute(raw, has_names, mode, keep, &mut into, kept)
            }
            _ => self.statements.text(id.unwrap_or(0), self.keep, &mut into),
        };
        let is_bulk = number == command::BULK_EXECUTE;
        let (length, is_unseen) = match rendered {
            Rendered::Whole(length) => (length, false),
            // Values of many rows are not written out.
            Rendered::Part(length) => (length + cut, !is_bulk),
            Rendered::Unknown => {
                into.clear();
                into.extend_from_slice(format!("stmt#{}", id.unwrap_or(0)).as_bytes());
                (into.len() as u64, true)
            }
        };
        // Its memory is that of another statement, and goes when it is large, as that of all.
        self.scratch = std::mem::replace(raw, into);
        if self.scratch.capacity() > SCRATCH {
            self.scratch = Vec::new();
        }
        if let Some(front) = self.pending.front_mut() {
            (front.length, front.is_unseen, front.statement) = (length, is_unseen, id);
            let is_whole = matches!(rendered, Rendered::Whole(_));
            (front.sent, front.has_sent) = (sent, self.keeps_values && is_whole);
        }
    }

    /// Names the statement that a command is about.
    fn of_statement(&mut self, id: Option<u32>, raw: &mut Vec<u8>) {
        raw.clear();
        if let Some(front) = self.pending.front_mut() {
            front.statement = id;
            front.length = 0;
        }
    }

    /// Returns how many bytes before a statement are attributes.
    fn attributes(&self, raw: &[u8]) -> usize {
        let has_them = self
            .capabilities
            .map(|can| can & can::QUERY_ATTRIBUTES != 0);
        // No text begins so.
        let seems_so = matches!(raw, [0..=0x1f, 1, ..]);
        match has_them {
            Some(false) => 0,
            None if !seems_so => 0,
            _ => super::statements::attributes(raw).unwrap_or(0),
        }
    }

    /// Hands out the oldest command and turns to the next.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        self.finish_front(each);
        self.promote(each);
    }

    fn finish_front(&mut self, each: &mut dyn FnMut(&Seen<'_>)) {
        let Some(done) = self.pending.pop_front() else {
            return;
        };
        let hidden = redacted(&done.text, self.mode);
        let sql = hidden.as_deref().unwrap_or(&done.text);
        // Beside the text that was kept and changed, what was cut of it.
        let cut = done.length.saturating_sub(done.text.len() as u64);
        let has_text = matches!(
            done.command,
            command::QUERY
                | command::PREPARE
                | command::EXECUTE
                | command::BULK_EXECUTE
                | command::INIT_DB
        );
        self.counts.commands += 1;
        let is_unseen = done.is_unseen || done.command == UNSEEN;
        self.counts.unseen += u64::from(is_unseen);
        each(&Seen {
            command: done.command,
            at_ns: done.at_ns,
            sql: if has_text { sql } else { &[] },
            sql_bytes: if has_text { sql.len() as u64 + cut } else { 0 },
            is_unseen,
            user: self.user.as_deref(),
            schema: self.schema.as_deref(),
            session: self.id,
            first_ns: done.first_ns,
            last_ns: done.last_ns,
            rows: done.rows,
            affected: done.affected,
            warnings: done.warnings,
            error: done.error,
            bytes_in: done.bytes_in,
            bytes_out: done.bytes_out,
            checksum: done.checksum,
            statement: done.statement,
            values: (done.has_sent && hidden.is_none()).then_some(&done.sent),
        });
        if self.spare.len() < MOST_SPARE {
            self.spare.push(done);
        }
    }

    pub(super) fn server_says(
        &mut self,
        packet: Packet<'_>,
        at_ns: i64,
        each: &mut dyn FnMut(&Seen<'_>),
    ) {
        match self.phase {
            Phase::Greeting => self.greeting(packet, at_ns, each),
            Phase::Proof => self.proof(packet, at_ns, each),
            Phase::Commands => self.answer(packet, at_ns, each),
            _ => {}
        }
    }

    fn greeting(&mut self, packet: Packet<'_>, at_ns: i64, each: &mut dyn FnMut(&Seen<'_>)) {
        if let Ok(greeted) = login::greeting(packet.head) {
            self.id = Some(greeted.session);
            self.capabilities = Some(greeted.capabilities);
            self.phase = Phase::Login;
        } else if packet.head.first() == Some(&0xFF) {
            // Too many connections, a host that is blocked.
            let refused = self.fresh(command::CONNECT, packet.begun_ns);
            self.push(refused);
            self.phase = Phase::Proof;
            self.proof(packet, at_ns, each);
        } else {
            self.counts.undecodable += 1;
            self.phase = Phase::Over;
        }
    }

    fn proof(&mut self, packet: Packet<'_>, at_ns: i64, each: &mut dyn FnMut(&Seen<'_>)) {
        self.count(packet, at_ns);
        match packet.head.first() {
            Some(0x00) => {
                self.phase = Phase::Commands;
                self.ends(packet.head);
                self.finish(each);
            }
            Some(0xFF) => {
                self.fails(packet.head);
                self.finish(each);
                self.phase = Phase::Over;
            }
            _ => {}
        }
    }

    /// Notes that a packet belongs to the answer to the oldest command.
    fn count(&mut self, packet: Packet<'_>, at_ns: i64) {
        if let Some(front) = self.pending.front_mut() {
            front.first_ns.get_or_insert(packet.begun_ns);
            front.last_ns = Some(at_ns);
            front.bytes_out += packet.bytes;
        }
    }

    /// Returns whether the server's bytes may be the beginning of an answer.
    pub(super) fn looks_like_answer(&self, bytes: &[u8]) -> bool {
        let is_first = matches!(bytes, [_, _, _, 1, ..]) && bytes.len() > 4;
        let is_known = bytes.get(4).is_some_and(|first| match bytes[..3] {
            // A count of columns alone, with or without a flag.
            [1 | 2, 0, 0] => *first > 0,
            _ => matches!(first, 0x00 | 0x03 | 0xFB..=0xFF) || self.is_odd_answer(),
        });
        is_first && is_known
    }

    /// Returns whether the oldest command is answered in a form of its own.
    fn is_odd_answer(&self) -> bool {
        let front = self.pending.front();
        front.is_some_and(|front| front.command == command::STATISTICS)
    }

    fn answer(&mut self, packet: Packet<'_>, at_ns: i64, each: &mut dyn FnMut(&Seen<'_>)) {
        if self.pending.is_empty() {
            if !self.is_in_doubt || packet.sequence != 1 {
                self.stray(packet.head);
                return;
            }
            // The answer to a command that was missed.
            let mut unseen = self.fresh(UNSEEN, packet.begun_ns);
            unseen.is_unseen = true;
            self.push(unseen);
            self.reply = Reply::First;
            if let Some(sums) = &mut self.sums {
                sums.begin();
            }
        }
        let front = self.pending.front().map(|front| front.command);
        let is_stream = matches!(
            front,
            Some(command::BINLOG_DUMP | command::BINLOG_DUMP_GTID)
        );
        // Events from now on; a client that is refused them continues as before.
        if is_stream && packet.head.first() != Some(&0xFF) {
            self.finish_front(each);
            self.phase = Phase::Over;
            return;
        }
        self.count(packet, at_ns);
        match self.step(packet) {
            Progress::More => {}
            Progress::Done => {
                let was_seen = self.pending.front().is_some_and(|f| f.command != UNSEEN);
                // One answer in its place: the next ones are in theirs.
                self.is_in_doubt &= !was_seen;
                self.sum_up();
                self.finish(each);
            }
            Progress::Nonsense => {
                self.counts.undecodable += 1;
                self.lose_server(each);
            }
        }
    }

    /// Takes note of a packet that nothing asked for: the end of definitions whose number was not known, or
    /// what a server says when it ends a session.
    fn stray(&mut self, head: &[u8]) {
        match head {
            [0xFE, _, _, _, _] if self.capabilities.is_none() => self.has_no_eof = Some(false),
            [0xFF, ..] => {}
            _ => self.counts.undecodable += 1,
        }
    }
}

/// Returns a name as text.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
