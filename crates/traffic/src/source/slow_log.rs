//! The slow query log of MySQL and MariaDB.
//!
//! An entry is lines that begin with `#`, then `use …;` and `SET …timestamp=…;`, then the statement, ended by `;`.
//! MySQL says when each ended. MariaDB says when it began, in whole seconds, and by the session's own clock, also in
//! `# Time:`, which it writes only where it differs from that of the entry before.

use super::lines::{Lines, Text};
use super::session_clocks::{Claim, SessionClocks, Timed};
use super::{Input, Unread, Untimed, command, is_banner, keep, opens_log, times};
use crate::{Command, Coverage, Source, Statement};
use evenkeel_op::{Cancel, Error, Result};
use jiff::tz::TimeZone;

const TIME: &[u8] = b"# Time: ";
const WHO: &[u8] = b"# User@Host: ";
/// Who runs what a replica applies on MariaDB: by the clock of the source, when that ran it.
const APPLIER: &str = "SQL_SLAVE";
const ADMINISTRATOR: &[u8] = b"# administrator command: ";
/// How many lines are read between two looks at whether to stop.
const LOOK_EVERY: u64 = 4096;

/// Whether an entry begins with this line.
pub(super) fn begins_entry(line: &[u8]) -> bool {
    line.starts_with(WHO) && memchr::memmem::find(line, b"] @ ").is_some() || is_time(line)
}

fn is_time(line: &[u8]) -> bool {
    let time = line.strip_prefix(TIME).map(<[u8]>::trim_ascii_end);
    time.is_some_and(|time| {
        times::iso(time)
            .or(times::short(time, &TimeZone::UTC))
            .is_some()
    })
}

/// A slow query log.
pub struct SlowLog {
    lines: Lines,
    zone: TimeZone,
    entry: Entry,
    place: EntryPart,
    /// What may be a line of a statement, or begin the next entry.
    held: Option<Vec<u8>>,
    clocks: SessionClocks<Entry>,
    untimed: Untimed,
    /// When the last entry was, for those that say nothing.
    time_ns: Option<i64>,
    schema: Option<String>,
    coverage: Coverage,
    unread: Vec<Unread>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryPart {
    Between,
    Header,
    /// In a statement; whether it may end with the line before.
    Text(bool),
}

#[derive(Default)]
struct Entry {
    line: u64,
    /// The line with a time that cannot be read.
    untimed: Option<u64>,
    has_who: bool,
    /// Whether its time was set: the statement follows, whatever it looks like.
    is_set: bool,
    /// When it ended, where the log says that.
    ended_ns: Option<i64>,
    /// When it began, where the log says that.
    began_ns: Option<i64>,
    session: Option<u32>,
    schema: Option<String>,
    user: Option<String>,
    host: Option<String>,
    total_ns: Option<u64>,
    lock_ns: Option<u64>,
    rows_sent: Option<u64>,
    rows_examined: Option<u64>,
    rows_affected: Option<u64>,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    error: Option<u16>,
    text: Text,
}

impl SlowLog {
    /// Reads a log; `zone` is that of the server, for times that come without one.
    #[must_use]
    pub fn new(input: Input, zone: TimeZone) -> Self {
        Self {
            lines: Lines::new(&input.name, input.bytes),
            zone,
            entry: Entry::default(),
            place: EntryPart::Between,
            held: None,
            clocks: SessionClocks::default(),
            untimed: Untimed::default(),
            time_ns: None,
            schema: None,
            coverage: Coverage::default(),
            unread: Vec::new(),
        }
    }

    /// Returns why the rest could not be read.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.lines.damage.as_ref()
    }

    /// Returns the first places that could not be read.
    #[must_use]
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Returns how many entries have a time that cannot be read, or is not the server's.
    #[must_use]
    pub fn untimed(&self) -> Untimed {
        self.untimed
    }

    fn line(&mut self, each: &mut dyn FnMut(&Statement<'_>) -> Result<()>) -> Result<()> {
        let is_header = begins_entry(self.lines.trimmed());
        if let Some(time) = self.held.take() {
            // A time in a statement that continues: an entry begins there if the next line says who.
            if is_header {
                self.end(each)?;
                self.header(&time, self.lines.number - 1);
            } else {
                let bytes = time.len() as u64;
                self.entry.text.add(b"\n", 1);
                self.entry.text.add(&time, bytes);
                self.place = EntryPart::Text(time.ends_with(b";"));
            }
        }
        match self.place {
            EntryPart::Text(may_end) if is_header && may_end => self.end(each)?,
            EntryPart::Text(_) if is_header && is_time(self.lines.trimmed()) => {
                self.held = Some(self.lines.trimmed().to_vec());
                return Ok(());
            }
            // The file ends where the next entry begins.
            EntryPart::Text(true) if !self.lines.is_ended && self.lines.text.starts_with(b"#") => {
                self.end(each)?;
                self.place = EntryPart::Header;
                self.entry.line = self.lines.number;
                return Ok(());
            }
            // A time that cannot be read, if the next line says who.
            EntryPart::Text(true) if self.lines.trimmed().starts_with(TIME) => {
                self.held = Some(self.lines.trimmed().to_vec());
                return Ok(());
            }
            // The one before has no statement.
            EntryPart::Header if is_header && self.entry.has_who => self.end(each)?,
            _ => {}
        }
        let is_between = self.place == EntryPart::Between;
        if opens_log(self.lines.trimmed()) {
            self.clocks.restart();
        }
        if opens_log(self.lines.trimmed()) || is_between && is_banner(self.lines.trimmed()) {
            return self.end(each);
        }
        let line = self.lines.trimmed().to_vec();
        let is_fact = line.starts_with(b"#") && !line.starts_with(ADMINISTRATOR);
        match self.place {
            EntryPart::Text(_) => self.text(),
            EntryPart::Header if self.entry.is_set => self.text(),
            EntryPart::Between | EntryPart::Header if is_fact => {
                self.header(&line, self.lines.number);
            }
            EntryPart::Between if line.is_empty() => {}
            EntryPart::Between => self.skip("a line that belongs to no entry"),
            EntryPart::Header => {
                if !self.is_setting(&line) {
                    self.text();
                }
            }
        }
        Ok(())
    }

    /// Counts what belongs to nothing, lines that follow each other once.
    fn skip(&mut self, why: &'static str) {
        let line = self.lines.number;
        if self.entry.line + 1 != line || self.coverage.undecodable == 0 {
            self.coverage.undecodable += 1;
            keep(&mut self.unread, line, why);
        }
        self.entry.line = line;
    }

    fn text(&mut self) {
        if matches!(self.place, EntryPart::Text(_)) {
            self.entry.text.add(b"\n", 1);
        }
        self.entry.text.add(&self.lines.text, self.lines.bytes);
        self.place = EntryPart::Text(self.lines.last == b';' && self.lines.is_ended);
        if self.place == EntryPart::Text(true) && self.lines.text.ends_with(b"\r") {
            self.entry.text.cut(1);
        }
    }

    /// Takes a line that begins with `#`.
    fn header(&mut self, line: &[u8], number: u64) {
        if self.place == EntryPart::Between {
            self.entry = Entry {
                line: number,
                text: std::mem::take(&mut self.entry.text),
                ..Entry::default()
            };
            self.entry.text.clear();
            self.place = EntryPart::Header;
        }
        if let Some(time) = line.strip_prefix(TIME) {
            let time = time.trim_ascii();
            self.entry.ended_ns = times::iso(time);
            let read = self.entry.ended_ns;
            let read = read.or_else(|| times::short(time, &self.zone));
            match read {
                Some(_) => self.time_ns = read,
                None => self.entry.untimed = Some(number),
            }
        } else if let Some(who) = line.strip_prefix(WHO) {
            self.entry.who(who);
        } else {
            self.entry.facts(line.get(1..).unwrap_or_default());
            if let Some(schema) = schema_in(line) {
                self.schema = Some(schema).filter(|schema| !schema.is_empty());
            }
        }
    }

    /// Takes the lines between header and statement; false for the statement's first line.
    fn is_setting(&mut self, line: &[u8]) -> bool {
        let Some(line) = line.strip_suffix(b";") else {
            return false;
        };
        if let Some(name) = line.strip_prefix(b"use ") {
            let name = name
                .strip_prefix(b"`")
                .and_then(|name| name.strip_suffix(b"`"))
                .unwrap_or(name);
            self.schema = Some(String::from_utf8_lossy(name).replace("``", "`"));
            return true;
        }
        let settings = line.strip_prefix(b"SET ").unwrap_or_default();
        let mut last = settings.rsplit(|byte| *byte == b',');
        let time = last
            .next()
            .and_then(|last| last.strip_prefix(b"timestamp="));
        let Some(time) = time.filter(|time| time.first().is_some_and(u8::is_ascii_digit)) else {
            return false;
        };
        self.entry.is_set = true;
        let Some(time) = times::seconds(time) else {
            self.entry.untimed = Some(self.lines.number);
            return true;
        };
        if self.entry.began_ns.is_none() {
            self.entry.began_ns = Some(time);
        }
        true
    }

    /// Hands out the entry that ended with the line before.
    fn end(&mut self, each: &mut dyn FnMut(&Statement<'_>) -> Result<()>) -> Result<()> {
        let place = std::mem::replace(&mut self.place, EntryPart::Between);
        match place {
            EntryPart::Between => return Ok(()),
            EntryPart::Text(true) => {}
            EntryPart::Header | EntryPart::Text(false) => {
                self.coverage.undecodable += 1;
                keep(
                    &mut self.unread,
                    self.entry.line,
                    "an entry that is not complete",
                );
                return Ok(());
            }
        }
        self.entry.text.cut(1);
        self.coverage.statements += 1;
        if let Some(line) = self.entry.untimed {
            self.untimed.unreadable += 1;
            self.untimed.first_line.get_or_insert(line);
        }
        let claim = self.claim();
        // Of the server's own times, it does not matter what sessions do to theirs.
        let is_own = !claim.is_servers && {
            let (command, sql) = self.entry.asked();
            let is_quit = command == Command::Quit;
            self.clocks.learn(self.entry.session, sql, is_quit)
        };
        if let Some((at_ns, is_doubted)) = self.clocks.at_once(&claim, is_own) {
            self.untimed.own_clocks += u64::from(is_doubted && claim.began_ns.is_some());
            return self.entry.hand_out(at_ns, self.schema.as_deref(), each);
        }
        let mut entry = std::mem::take(&mut self.entry);
        entry.schema.clone_from(&self.schema);
        let bytes = entry.text.head.len();
        let settled = self.clocks.wait((entry, bytes), claim, is_own);
        self.settle(settled, each)
    }

    fn settle(
        &mut self,
        settled: Vec<Timed<Entry>>,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
    ) -> Result<()> {
        for (entry, at_ns, is_doubted) in settled {
            let is_read = entry.began_ns.or(entry.ended_ns).is_some();
            self.untimed.own_clocks += u64::from(is_doubted && is_read);
            entry.hand_out(at_ns, entry.schema.as_deref(), each)?;
        }
        Ok(())
    }

    /// Returns what the entry says of its time.
    fn claim(&self) -> Claim {
        let entry = &self.entry;
        let total_ns = i64::try_from(entry.total_ns.unwrap_or(0)).unwrap_or(i64::MAX);
        let began = entry.ended_ns.map(|ended| ended.saturating_sub(total_ns));
        // Without a time of its own, an entry was written in the same second as the one before.
        let before = self.time_ns.filter(|_| entry.untimed.is_none());
        Claim {
            began_ns: began.or(entry.began_ns).or(before),
            total_ns,
            session: entry.session,
            is_servers: began.is_some(),
            is_applied: entry.user.as_deref() == Some(APPLIER),
        }
    }
}

impl Source for SlowLog {
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        while self.lines.next() {
            self.line(each)?;
            if self.lines.number.is_multiple_of(LOOK_EVERY) && cancel.is_cancelled() {
                break;
            }
        }
        if cancel.is_cancelled() {
            let rest = self.clocks.end();
            self.settle(rest, each)?;
            return Ok(self.coverage);
        }
        if self.held.take().is_some() {
            self.place = EntryPart::Text(false);
        }
        self.end(each)?;
        let rest = self.clocks.end();
        self.settle(rest, each)?;
        Ok(self.coverage)
    }
}

impl Entry {
    /// Returns what was asked for, and its text.
    fn asked(&self) -> (Command, &[u8]) {
        let sql = &self.text.head[..];
        // Anybody may begin a statement with these words: only the name of a command makes it one.
        let administrator = sql.strip_prefix(ADMINISTRATOR).and_then(command);
        match administrator {
            Some(command) => (command, &sql[2..]),
            None => (Command::Query, sql),
        }
    }

    fn hand_out(
        &self,
        at_ns: i64,
        schema: Option<&str>,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
    ) -> Result<()> {
        let (command, sql) = self.asked();
        let cut = self.text.bytes - self.text.head.len() as u64;
        each(&Statement {
            at_ns,
            connection: u64::from(self.session.unwrap_or(0)),
            session: self.session,
            user: self.user.as_deref(),
            host: self.host.as_deref(),
            schema,
            command,
            sql,
            sql_bytes: sql.len() as u64 + cut,
            is_unseen: false,
            first_ns: None,
            total_ns: self.total_ns,
            lock_ns: self.lock_ns,
            rows_sent: self.rows_sent,
            rows_examined: self.rows_examined,
            rows_affected: self.rows_affected,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            warnings: None,
            error: self.error,
            checksum: None,
            statement: None,
            values: None,
        })
    }

    /// Takes `root[root] @ localhost []  Id:     3`.
    fn who(&mut self, line: &[u8]) {
        let Some(at) = memchr::memmem::find(line, b"] @ ") else {
            return;
        };
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
            (!text.is_empty()).then_some(text)
        };
        self.has_who = true;
        let (user, rest) = (&line[..at], &line[at + 4..]);
        let open = memchr::memchr(b'[', user).unwrap_or(user.len());
        let login = user.get(open + 1..).and_then(text);
        self.user = login.or_else(|| text(&user[..open]));
        let open = memchr::memchr(b'[', rest).unwrap_or(rest.len());
        let close = memchr::memchr(b']', rest).unwrap_or(rest.len());
        let address = || rest.get(open + 1..close).and_then(text);
        self.host = text(&rest[..open]).or_else(address);
        self.facts(rest.get(close + 1..).unwrap_or_default());
    }

    /// Takes `Query_time: 0.000125  Lock_time: 0.000000 …`.
    fn facts(&mut self, line: &[u8]) {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let mut name = words.next();
        while let Some(reported) = name {
            let value = words.next();
            let Some(known) = reported.strip_suffix(b":") else {
                name = value;
                continue;
            };
            let Some(word) = value else { return };
            if word.ends_with(b":") {
                // Its value is empty.
                name = value;
                continue;
            }
            self.fact(known, word);
            name = words.next();
        }
    }

    fn fact(&mut self, name: &[u8], value: &[u8]) {
        let number = || times::number(value);
        let time = || times::seconds(value).and_then(|ns| u64::try_from(ns).ok());
        match name {
            b"Query_time" => self.total_ns = time(),
            b"Lock_time" => self.lock_ns = time(),
            b"Rows_sent" => self.rows_sent = number(),
            b"Rows_examined" => self.rows_examined = number(),
            b"Rows_affected" => self.rows_affected = number(),
            b"Bytes_sent" => self.bytes_out = number(),
            b"Bytes_received" => self.bytes_in = number(),
            b"Thread_id" | b"Id" => self.session = number().and_then(|id| u32::try_from(id).ok()),
            b"Last_errno" | b"Errno" => {
                let error = number().and_then(|error| u16::try_from(error).ok());
                self.error = error.filter(|error| *error != 0);
            }
            b"Start" => self.began_ns = times::iso(value),
            _ => {}
        }
    }
}

/// Returns the schema that a line of the header names.
fn schema_in(line: &[u8]) -> Option<String> {
    const SCHEMA: &[u8] = b"Schema: ";
    let at = memchr::memmem::find(line, SCHEMA)?;
    let rest = &line[at + SCHEMA.len()..];
    let end = [&b"QC_hit:"[..], b"Last_errno:"]
        .iter()
        .find_map(|next| memchr::memmem::find(rest, next));
    let name = rest[..end.unwrap_or(rest.len())].trim_ascii();
    Some(String::from_utf8_lossy(name).into_owned())
}
