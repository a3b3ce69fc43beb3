//! The server's answers: packet by packet, only as far as it takes to know where they end and what they say.

use super::command;
use super::framing::Packet;
use super::login::can;
use super::session::{Session, text};
use crate::decode::{Bytes, Malformed, ServerError};
use evenkeel_sql::{Mode, TokenKind, code, unquoted};

/// The final packet is not as long as a row can be that begins with the same byte.
const LONGEST: u64 = 0xFF_FFFF;
/// The error number of MariaDB's progress reports.
const PROGRESS: u16 = 0xFFFF;

mod status {
    pub(super) const MORE_RESULTS: u16 = 0x0008;
    pub(super) const CURSOR: u16 = 0x0040;
    pub(super) const NO_BACKSLASH: u16 = 0x0200;
    pub(super) const STATE_CHANGED: u16 = 0x4000;
}

/// What the next packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    First,
    /// The client sends a file.
    WantsFile,
    /// Definitions of a result's columns.
    Columns(u64),
    /// What ends definitions, or a row already.
    BeforeRows,
    Rows,
    /// Definitions of a prepared statement's parameters, then of its columns.
    Parameters(u16, u16),
    /// What ends those of the parameters, or the first of the columns already.
    BetweenParts(u16),
    Prepared(u16),
    /// What ends those of the columns.
    PreparedEnd,
    /// Definitions until the end.
    Fields,
}

/// What a packet did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
    /// No server sends this here.
    Nonsense,
}

/// What an OK or an EOF says.
#[derive(Debug, Clone, Copy, Default)]
struct Ending<'a> {
    affected: u64,
    warnings: u16,
    status: u16,
    changes: &'a [u8],
}

impl<'a> Ending<'a> {
    fn of(packet: &'a [u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        let first = bytes.byte()?;
        if first == 0xFE && packet.len() < 6 {
            return Ok(Self {
                warnings: bytes.short().unwrap_or(0),
                status: bytes.short().unwrap_or(0),
                ..Self::default()
            });
        }
        let affected = bytes.length()?.ok_or(Malformed)?;
        bytes.length()?.ok_or(Malformed)?;
        let status = bytes.short()?;
        let warnings = bytes.short()?;
        let mut changes = &[][..];
        if status & status::STATE_CHANGED != 0 {
            let _info = bytes.string();
            changes = bytes.string().ok().flatten().unwrap_or(&[]);
        }
        Ok(Self {
            affected,
            warnings,
            status,
            changes,
        })
    }
}

impl Session {
    /// Takes a packet of the answer to the oldest command.
    pub(super) fn step(&mut self, packet: Packet<'_>) -> Progress {
        let head = packet.head;
        let Some(&first) = head.first() else {
            return Progress::Nonsense;
        };
        let is_end = first == 0xFE && packet.length < LONGEST;
        match self.reply {
            _ if first == 0xFF => self.failed(head),
            Reply::First => self.first(packet),
            // The client has to send it first.
            Reply::WantsFile => Progress::Nonsense,
            Reply::Columns(left) => {
                self.column(head);
                self.now(match left {
                    0 | 1 => Reply::BeforeRows,
                    _ => Reply::Columns(left - 1),
                })
            }
            Reply::BeforeRows if is_end && packet.length < 6 => {
                self.has_no_eof = Some(false);
                let ending = Ending::of(head).unwrap_or_default();
                if ending.status & status::CURSOR != 0 {
                    // Rows come when they are fetched, one by one.
                    self.give_up_sums();
                    return self.ends(head);
                }
                self.now(Reply::Rows)
            }
            Reply::BeforeRows | Reply::Rows if is_end => self.ends(head),
            Reply::BeforeRows | Reply::Rows => {
                if let Some(front) = self.pending.front_mut() {
                    front.rows += 1;
                }
                self.row(packet);
                self.now(Reply::Rows)
            }
            Reply::Parameters(left, columns) => match (left, columns) {
                (0 | 1, 0) => self.after_definitions(),
                (0 | 1, columns) => self.now(Reply::BetweenParts(columns)),
                _ => self.now(Reply::Parameters(left - 1, columns)),
            },
            Reply::BetweenParts(columns) if is_end && packet.length < 6 => {
                self.has_no_eof = Some(false);
                self.now(Reply::Prepared(columns))
            }
            Reply::BetweenParts(left) | Reply::Prepared(left) => {
                self.prepared_column(head);
                match left {
                    0 | 1 => self.after_definitions(),
                    _ => self.now(Reply::Prepared(left - 1)),
                }
            }
            Reply::PreparedEnd if is_end => Progress::Done,
            Reply::PreparedEnd => Progress::Nonsense,
            Reply::Fields if is_end => self.ends(head),
            Reply::Fields => Progress::More,
        }
    }

    fn now(&mut self, reply: Reply) -> Progress {
        self.reply = reply;
        Progress::More
    }

    /// A prepared statement's definitions are all there.
    fn after_definitions(&mut self) -> Progress {
        self.result_ends();
        match self.has_no_eof {
            Some(false) => self.now(Reply::PreparedEnd),
            // Where it is not known, one that comes is passed over.
            Some(true) | None => Progress::Done,
        }
    }

    fn first(&mut self, packet: Packet<'_>) -> Progress {
        let Some(front) = self.pending.front() else {
            return Progress::Nonsense;
        };
        let head = packet.head;
        match front.command {
            command::PREPARE => self.prepared(head),
            command::STATISTICS => Progress::Done,
            command::FIELD_LIST if head[0] == 0xFE => self.ends(head),
            command::FIELD_LIST => self.now(Reply::Fields),
            // Rows without definitions before them.
            command::FETCH => {
                self.give_up_sums();
                self.reply = Reply::Rows;
                self.step(packet)
            }
            command::CHANGE_USER => match head[0] {
                0x00 => self.ends(head),
                // Both sides continue to prove who they are.
                _ => Progress::More,
            },
            command::QUERY
            | command::EXECUTE
            | command::BULK_EXECUTE
            | command::PROCESS_INFO
            | command::UNSEEN => self.result(packet),
            _ if matches!(head[0], 0x00 | 0xFE) => self.ends(head),
            _ => Progress::Nonsense,
        }
    }

    /// Reads what begins a result.
    fn result(&mut self, packet: Packet<'_>) -> Progress {
        let head = packet.head;
        match head[0] {
            0x00 if packet.length >= 7 => return self.ends(head),
            0xFB => return self.now(Reply::WantsFile),
            // A server that says so where it should say OK.
            0xFE if packet.length < 9 => return self.ends(head),
            _ => {}
        }
        let mut bytes = Bytes(head);
        let has_flag = self.capabilities.unwrap_or(0) & can::OPTIONAL_METADATA != 0;
        let mut has_definitions = true;
        if has_flag {
            has_definitions = bytes.byte().is_ok_and(|flag| flag != 0);
        }
        let Ok(Some(count)) = bytes.length() else {
            return Progress::Nonsense;
        };
        // MariaDB's flag comes behind.
        match bytes.0 {
            [] => {}
            [flag] => has_definitions = *flag != 0,
            _ => return Progress::Nonsense,
        }
        let has_definitions = has_definitions && count > 0;
        self.result_begins(count, has_definitions);
        match has_definitions {
            true => self.now(Reply::Columns(count)),
            false => self.now(Reply::BeforeRows),
        }
    }

    fn prepared(&mut self, head: &[u8]) -> Progress {
        let mut bytes = Bytes(head);
        let mut read = || -> Result<_, Malformed> {
            let is_ok = bytes.byte()? == 0;
            let id = bytes.number(4)? as u32;
            let (columns, parameters) = (bytes.short()?, bytes.short()?);
            let warnings = bytes.take(1).and_then(|_| bytes.short()).unwrap_or(0);
            let has_definitions = bytes.byte() != Ok(0);
            let is_there = is_ok.then_some((id, columns, parameters, warnings, has_definitions));
            is_there.ok_or(Malformed)
        };
        let Ok((id, columns, parameters, warnings, has_definitions)) = read() else {
            return Progress::Nonsense;
        };
        if let Some(front) = self.pending.front_mut() {
            front.warnings = u64::from(warnings);
            front.statement = Some(id);
            let length = front.length.max(front.text.len() as u64);
            let text = std::mem::take(&mut front.text);
            self.statements
                .add(id, parameters, &text, length, self.mode);
            front.text = text;
        }
        let is_optional = self.capabilities.unwrap_or(0) & can::OPTIONAL_METADATA != 0;
        match (parameters, columns) {
            (0, 0) => Progress::Done,
            _ if is_optional && !has_definitions => Progress::Done,
            (0, columns) => self.now(Reply::Prepared(columns)),
            _ => self.now(Reply::Parameters(parameters, columns)),
        }
    }

    fn failed(&mut self, head: &[u8]) -> Progress {
        match self.fails(head) {
            Some(PROGRESS) => Progress::More,
            _ => Progress::Done,
        }
    }

    /// Takes note of an error, and returns its number.
    pub(super) fn fails(&mut self, head: &[u8]) -> Option<u16> {
        let code = ServerError::of(head).ok()?.code;
        let front = self.pending.front_mut();
        if let Some(front) = front.filter(|_| code != PROGRESS) {
            front.error = Some(code);
        }
        Some(code)
    }

    /// Takes note of what ends a result, and of what it says about the session.
    pub(super) fn ends(&mut self, head: &[u8]) -> Progress {
        let Ok(ending) = Ending::of(head) else {
            return Progress::Nonsense;
        };
        self.result_ends();
        self.mode.no_backslash_escapes = ending.status & status::NO_BACKSLASH != 0;
        if let Some(front) = self.pending.front_mut() {
            front.affected = front.affected.saturating_add(ending.affected);
            front.warnings = u64::from(ending.warnings);
        }
        if ending.status & status::MORE_RESULTS != 0 {
            return self.now(Reply::First);
        }
        self.moves(ending.changes);
        Progress::Done
    }

    /// Takes note of where the session is after its command was done.
    fn moves(&mut self, changes: &[u8]) {
        let Some(front) = self.pending.front() else {
            return;
        };
        match front.command {
            command::INIT_DB => self.schema = Some(text(&front.text)),
            command::QUERY => {
                if let Some(name) = used(&front.text, self.mode) {
                    self.schema = Some(name);
                }
            }
            command::CHANGE_USER => {
                self.statements.clear();
                (self.user, self.schema) = match self.next.take() {
                    Some((user, schema)) => (Some(user), schema),
                    None => (None, None),
                };
            }
            command::RESET_CONNECTION => self.statements.clear(),
            _ => {}
        }
        let mut bytes = Bytes(changes);
        while let (Ok(kind), Ok(Some(data))) = (bytes.byte(), bytes.string()) {
            // The second kind is the default schema's name.
            if kind == 1
                && let Ok(Some(name)) = Bytes(data).string()
            {
                self.schema = (!name.is_empty()).then(|| text(name));
            }
        }
    }
}

/// Returns the schema that a USE names.
fn used(sql: &[u8], mode: Mode) -> Option<String> {
    let first = sql.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(first, b'u' | b'U' | b'/' | b'-' | b'#') {
        return None;
    }
    let mut tokens = code(sql, mode).filter(|token| !token.is_gate());
    if !tokens.next()?.is_word(sql, "USE") {
        return None;
    }
    let name = tokens.next()?;
    let bytes = name.of(sql);
    match name.kind {
        TokenKind::Word => Some(text(bytes)),
        TokenKind::Name => Some(text(&unquoted(bytes, mode))),
        _ => None,
    }
}
