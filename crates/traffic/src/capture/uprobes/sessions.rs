//! Sessions of a server, from the records of what it does: commands with their beginnings and ends become statements.

use super::parameters::{Parameters, Type};
use super::record::{Record, What};
use crate::capture::connections::Each;
use crate::statement::{Command, Coverage, Statement};
use evenkeel_op::Result;
use evenkeel_wire::watch::{Inside, command};
use std::collections::HashMap;

/// Sessions that are followed, and threads that are remembered, at a time.
const MOST: usize = 65_536;
/// A change of user gives a session another account, as a login does.
const LOGINS: &[u8] = b"%s@%s ";

/// A text in pieces.
#[derive(Debug, Default)]
struct Pieces {
    bytes: Vec<u8>,
    /// Of all of it.
    length: u64,
    /// Something of what should be here was not read, or was lost.
    is_broken: bool,
}

impl Pieces {
    fn begin(&mut self, record: &Record<'_>) {
        self.bytes.clear();
        (self.length, self.is_broken) = (record.length, false);
        self.add(record);
    }

    fn add(&mut self, record: &Record<'_>) {
        self.is_broken |= record.is_unreadable || record.offset as usize != self.bytes.len();
        if !self.is_broken {
            self.bytes.extend_from_slice(record.data);
        }
    }

    /// Returns whether as much is here as is to be kept.
    fn is_sound(&self, keep: usize) -> bool {
        !self.is_broken && self.bytes.len() as u64 >= self.length.min(keep as u64)
    }
}

/// Which text the next pieces belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Filling {
    #[default]
    Packet,
    Values,
    Logged,
}

/// A command that has begun.
#[derive(Debug, Default)]
struct Open {
    is_open: bool,
    command: u8,
    at_ns: u64,
    number: u64,
    other: u64,
    has_types: bool,
    packet: Pieces,
    values: Pieces,
    begin_of_values: u64,
    logged: Pieces,
    has_logged: bool,
    filling: Filling,
    /// The number that the server gave to what is prepared.
    prepared: Option<u32>,
}

#[derive(Debug)]
struct Session {
    number: u64,
    id: Option<u32>,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    statements: Inside,
    /// Of parameters that were taken apart, by statement: an execution may have those of the one before.
    types: HashMap<u32, Vec<Type>>,
    open: Open,
}

/// How texts are kept, and what the server shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) text_bytes: usize,
    /// Bytes from one parameter to the next; 0 where they come as they were sent.
    pub(super) parameter_bytes: u64,
    /// Executions come as the protocol has them, behind the command.
    pub(super) has_packets: bool,
}

/// Follows sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    reading: Reading,
    /// By the address of the server's structure.
    all: HashMap<u64, Session>,
    count: u64,
    /// Numbers of sessions, by the thread that made them.
    numbers: HashMap<u32, u32>,
    /// What threads change the default schema to.
    schemas: HashMap<u32, (u64, Option<String>)>,
    /// From the monotonic clock to that of the day.
    pub(super) offset_ns: i64,
    /// The text of an execution was not known.
    pub(super) needs_log: bool,
    pub(super) coverage: Coverage,
    into: Vec<u8>,
    made: Vec<u8>,
}

impl Sessions {
    pub(super) fn new(reading: Reading) -> Self {
        Self {
            reading,
            all: HashMap::new(),
            count: 0,
            numbers: HashMap::new(),
            schemas: HashMap::new(),
            offset_ns: 0,
            needs_log: false,
            coverage: Coverage::default(),
            into: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Returns how many sessions were seen.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Takes a record; what it completes goes to `each`.
    pub(super) fn take(&mut self, record: &Record<'_>, each: &mut Each<'_>) -> Result<()> {
        match record.what {
            What::Begin => {
                self.finish(record.session, None, each)?;
                let open = &mut self.session(record.session).open;
                open.begin(record);
            }
            What::More | What::Values | What::Logged => {
                if let Some(session) = self.all.get_mut(&record.session) {
                    session.open.add(record);
                }
            }
            What::End => self.finish(record.session, Some(record), each)?,
            What::Login => self.log_in(record, each)?,
            What::Number => {
                self.room();
                self.numbers.insert(record.thread, record.number as u32);
            }
            What::Prepared => {
                if let Some(session) = self.all.get_mut(&record.session) {
                    session.open.prepared.get_or_insert(record.number as u32);
                }
            }
            What::Schema => {
                self.room();
                let name =
                    (!record.data.is_empty() && !record.is_unreadable).then(|| text(record.data));
                self.schemas.insert(record.thread, (record.session, name));
            }
            What::SchemaSet => {
                if let Some((session, name)) = self.schemas.remove(&record.thread)
                    && record.number == 0
                {
                    self.session(session).schema = name;
                }
            }
            What::Gone => {
                self.finish(record.session, None, each)?;
                self.all.remove(&record.session);
            }
        }
        Ok(())
    }

    /// Ends all: what has not ended is handed out without a time.
    pub(super) fn end_all(&mut self, each: &mut Each<'_>) -> Result<()> {
        let mut open: Vec<(u64, u64)> = self.all.iter().map(|(at, it)| (it.number, *at)).collect();
        open.sort_unstable();
        for (_, session) in open {
            self.finish(session, None, each)?;
        }
        Ok(())
    }

    /// Forgets what threads said long ago; threads that do not follow up are rare.
    fn room(&mut self) {
        if self.numbers.len() >= MOST || self.schemas.len() >= MOST {
            self.numbers.clear();
            self.schemas.clear();
        }
    }

    fn session(&mut self, at: u64) -> &mut Session {
        if self.all.len() >= MOST && !self.all.contains_key(&at) {
            // Their ends were lost.
            self.all.retain(|_, session| session.open.is_open);
        }
        let (count, keep) = (&mut self.count, self.reading.text_bytes);
        self.all.entry(at).or_insert_with(|| {
            *count += 1;
            Session::new(*count, keep)
        })
    }

    fn log_in(&mut self, record: &Record<'_>, each: &mut Each<'_>) -> Result<()> {
        let is_new = record.command == command::CONNECT;
        let number = self.numbers.remove(&record.thread);
        let Some([form, user, host, third, fourth]) = record.names() else {
            return Ok(());
        };
        // Others are refused.
        if !form.starts_with(LOGINS) {
            return Ok(());
        }
        let schema = match form.starts_with(b"%s@%s as ") {
            true => fourth,
            false => third,
        };
        if is_new {
            self.finish(record.session, None, each)?;
            self.all.remove(&record.session);
        }
        let at_ns = record.at_ns as i64 + self.offset_ns;
        self.coverage.statements += u64::from(is_new);
        let session = self.session(record.session);
        session.id = if is_new { number } else { session.id };
        session.user = Some(text(user));
        session.host = Some(text(host));
        session.schema = (!schema.is_empty()).then(|| text(schema));
        session.clear();
        if is_new {
            let mut statement = session.statement(Command::Connect);
            statement.at_ns = at_ns;
            each(&statement)?;
        }
        Ok(())
    }

    /// Hands out the command that a session works on, if there is one: with `end`, this one, and it has a time.
    fn finish(
        &mut self,
        session: u64,
        end: Option<&Record<'_>>,
        each: &mut Each<'_>,
    ) -> Result<()> {
        let Some(it) = self.all.get_mut(&session) else {
            return Ok(());
        };
        let is_this = end.is_none_or(|end| it.open.at_ns == end.number);
        if !it.open.is_open || !is_this {
            return Ok(());
        }
        it.open.is_open = false;
        let shown = it.text(self.reading, &mut self.into, &mut self.made);
        self.needs_log |= shown.needs_log;
        let hidden = it.statements.redacted(&self.into);
        let sql = hidden.as_deref().unwrap_or(&self.into);
        let cut = shown.sql_bytes.saturating_sub(self.into.len() as u64);
        let mut statement = it.statement(named(it.open.command));
        statement.at_ns = it.open.at_ns as i64 + self.offset_ns;
        statement.sql = sql;
        statement.sql_bytes = sql.len() as u64 + cut;
        statement.is_unseen = shown.is_unseen;
        statement.statement = shown.statement;
        statement.total_ns = end.map(|end| end.at_ns.saturating_sub(it.open.at_ns));
        self.coverage.statements += 1;
        self.coverage.unseen += u64::from(shown.is_unseen);
        each(&statement)?;
        if it.open.command == command::QUIT {
            self.all.remove(&session);
        }
        Ok(())
    }
}

impl Open {
    fn begin(&mut self, record: &Record<'_>) {
        (self.is_open, self.command) = (true, record.command);
        (self.at_ns, self.number, self.other) = (record.at_ns, record.number, record.other);
        self.has_types = record.has_types;
        self.packet.begin(record);
        self.values.bytes.clear();
        self.values.is_broken = true;
        (self.has_logged, self.prepared) = (false, None);
        self.filling = Filling::Packet;
    }

    fn add(&mut self, record: &Record<'_>) {
        match record.what {
            What::Values => {
                self.filling = Filling::Values;
                self.begin_of_values = record.number;
                self.values.begin(record);
            }
            What::Logged => {
                self.filling = Filling::Logged;
                self.has_logged = true;
                self.logged.begin(record);
            }
            _ => match self.filling {
                Filling::Packet => self.packet.add(record),
                Filling::Values => self.values.add(record),
                Filling::Logged => self.logged.add(record),
            },
        }
    }
}

/// What a command's text came to.
#[derive(Debug, Default)]
struct Shown {
    sql_bytes: u64,
    is_unseen: bool,
    statement: Option<u32>,
    needs_log: bool,
}

impl Session {
    fn new(number: u64, keep: usize) -> Self {
        Self {
            number,
            id: None,
            user: None,
            host: None,
            schema: None,
            statements: Inside::new(keep),
            types: HashMap::new(),
            open: Open::default(),
        }
    }

    fn clear(&mut self) {
        self.statements.clear();
        self.types.clear();
    }

    /// Puts the text of the command that ends into `into`.
    fn text(&mut self, reading: Reading, into: &mut Vec<u8>, made: &mut Vec<u8>) -> Shown {
        into.clear();
        let is_sound = self.open.packet.is_sound(reading.text_bytes);
        let packet = &self.open.packet;
        let mut shown = Shown::default();
        let number = match reading.has_packets {
            true => packet
                .bytes
                .first_chunk::<4>()
                .map(|it| u32::from_le_bytes(*it)),
            false => Some(self.open.other as u32),
        };
        let number = number.map(|number| self.statements.meant(number));
        match self.open.command {
            command::QUERY | command::INIT_DB | command::PREPARE => {
                into.extend_from_slice(&packet.bytes);
                (shown.sql_bytes, shown.is_unseen) = (packet.length, !is_sound);
                if let (command::PREPARE, true, Some(number)) =
                    (self.open.command, is_sound, self.open.prepared)
                {
                    self.statements
                        .prepare(number, &packet.bytes, packet.length);
                    shown.statement = Some(number);
                }
            }
            command::EXECUTE | command::BULK_EXECUTE => {
                shown = self.execution(number.unwrap_or(0), reading, into, made);
            }
            command::SEND_LONG_DATA if reading.has_packets => {
                self.statements.send_ahead(&packet.bytes);
                shown.statement = number;
            }
            command::SEND_LONG_DATA => {
                made.clear();
                made.extend_from_slice(&(self.open.other as u32).to_le_bytes());
                made.extend_from_slice(&(self.open.number as u16).to_le_bytes());
                made.extend_from_slice(&packet.bytes);
                self.statements.send_ahead(made);
                shown.statement = number;
            }
            command::CLOSE => {
                self.statements.close(number.unwrap_or(0));
                self.types.remove(&number.unwrap_or(0));
                shown.statement = number;
            }
            RESET_STATEMENT => {
                self.statements.reset(number.unwrap_or(0));
                shown.statement = number;
            }
            command::FETCH => shown.statement = number,
            command::RESET_CONNECTION | command::CHANGE_USER => self.clear(),
            _ => {}
        }
        shown
    }

    fn execution(
        &mut self,
        number: u32,
        reading: Reading,
        into: &mut Vec<u8>,
        made: &mut Vec<u8>,
    ) -> Shown {
        let mut shown = Shown {
            statement: Some(number),
            ..Shown::default()
        };
        let logged = &self.open.logged;
        let has_logged = self.open.has_logged && logged.is_sound(reading.text_bytes);
        if !self.statements.knows(number) && has_logged {
            // A server that keeps a log puts the values in by itself.
            if !self.statements.has_placeholders(&logged.bytes) {
                into.extend_from_slice(&logged.bytes);
                shown.sql_bytes = logged.length;
                return shown;
            }
            self.statements
                .prepare(number, &logged.bytes, logged.length);
        }
        shown.needs_log = !self.statements.knows(number);
        let packet = &self.open.packet;
        let mut is_sound = packet.is_sound(reading.text_bytes);
        let packet = if reading.has_packets {
            &packet.bytes
        } else if reading.parameter_bytes == 0 {
            made.clear();
            made.extend_from_slice(&number.to_le_bytes());
            made.extend_from_slice(&[0, 1, 0, 0, 0]);
            made.extend_from_slice(&packet.bytes);
            &*made
        } else {
            let values = &self.open.values;
            let parameters = Parameters {
                statement: number,
                count: self.open.number,
                stride: reading.parameter_bytes,
                parameters: &packet.bytes,
                begin: self.open.begin_of_values,
                values: if values.is_broken { &[] } else { &values.bytes },
            };
            if self.open.has_types {
                self.types.insert(number, parameters.types());
            }
            let types = self.types.get(&number).map_or(&[][..], Vec::as_slice);
            is_sound &= parameters.packet(types, made);
            &*made
        };
        let execution = match self.open.command {
            command::BULK_EXECUTE => self.statements.execute_bulk(packet, into),
            _ => self.statements.execute(packet, into),
        };
        shown.sql_bytes = execution.sql_bytes;
        shown.is_unseen = execution.is_unseen || !is_sound;
        shown
    }

    /// Returns a statement of which nothing is known yet but whose it is.
    fn statement(&self, command: Command) -> Statement<'_> {
        Statement {
            at_ns: 0,
            connection: self.number,
            session: self.id,
            user: self.user.as_deref(),
            host: self.host.as_deref(),
            schema: self.schema.as_deref(),
            command,
            sql: &[],
            sql_bytes: 0,
            is_unseen: false,
            first_ns: None,
            total_ns: None,
            lock_ns: None,
            rows_sent: None,
            rows_examined: None,
            rows_affected: None,
            bytes_in: None,
            bytes_out: None,
            warnings: None,
            error: None,
            checksum: None,
            statement: None,
            values: None,
        }
    }
}

/// Values that were sent ahead are forgotten.
const RESET_STATEMENT: u8 = 0x1a;

fn named(number: u8) -> Command {
    match number {
        command::QUERY => Command::Query,
        command::PREPARE => Command::Prepare,
        command::EXECUTE | command::BULK_EXECUTE => Command::Execute,
        command::QUIT => Command::Quit,
        other => Command::Other(other),
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
