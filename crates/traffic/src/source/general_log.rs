//! The general query log of MySQL and MariaDB: what was asked for and when, not how long it took.

use super::lines::{Lines, Text};
use super::{Input, Unread, Untimed, command, is_banner, keep, times};
use crate::{Command, Coverage, Source, Statement};
use evenkeel_op::{Cancel, Error, Result};
use jiff::tz::TimeZone;
use std::collections::HashMap;

/// Of so many connections the account is known; beyond them all are forgotten, as those are whose end was not seen.
const CONNECTIONS_MAX: usize = 65_536;
const LOOK_EVERY: u64 = 4096;
/// So many entries wait for the first time.
const EARLY_MAX: usize = 1000;

/// Whether an entry begins with this line.
pub(super) fn begins_entry(line: &[u8]) -> bool {
    head(line, &TimeZone::UTC).is_some()
}

/// The beginning of an entry.
struct Head {
    at_ns: Option<i64>,
    /// It has a time that cannot be read.
    is_untimed: bool,
    session: u32,
    command: Command,
    /// Where its argument begins.
    argument: usize,
}

/// Takes `TIME⇥     4 Query⇥…`, and `⇥⇥     4 Query⇥…` where the time is that of the line before.
fn head(line: &[u8], zone: &TimeZone) -> Option<Head> {
    let tab = memchr::memchr(b'\t', line.get(..40).unwrap_or(line))?;
    let at_ns = match tab {
        0 if line.get(1) == Some(&b'\t') => None,
        0 => return None,
        _ => times::iso(&line[..tab]).or_else(|| times::short(&line[..tab], zone)),
    };
    let is_untimed = tab > 0 && at_ns.is_none();
    if is_untimed && !times::is_like_one(&line[..tab]) {
        return None;
    }
    let begin = tab + 1 + usize::from(tab == 0);
    let rest = line.get(begin..)?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let digits = rest[spaces..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let session = times::number(&rest[spaces..spaces + digits])?;
    let named = rest[spaces + digits..].strip_prefix(b" ")?;
    let end = memchr::memchr(b'\t', named).unwrap_or(named.len());
    let command = command(named[..end].trim_ascii_end())?;
    let argument = begin + spaces + digits + 1 + end + 1;
    Some(Head {
        at_ns,
        is_untimed,
        session: u32::try_from(session).ok()?,
        command,
        argument: argument.min(line.len()),
    })
}

#[derive(Default, Clone)]
struct Account {
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
}

/// A general query log.
pub struct GeneralLog {
    lines: Lines,
    zone: TimeZone,
    accounts: HashMap<u32, Account>,
    at_ns: Option<i64>,
    untimed: Untimed,
    /// Entries before the first time: a log that was rotated goes on within a second.
    early: Vec<(u32, Command, Text, Account)>,
    open: Option<(u32, Command, u64)>,
    text: Text,
    /// Whether the last line of the statement ended before the file did.
    is_ended: bool,
    coverage: Coverage,
    unread: Vec<Unread>,
}

impl GeneralLog {
    /// Reads a log; `zone` is that of the server, for times that come without one.
    #[must_use]
    pub fn new(input: Input, zone: TimeZone) -> Self {
        Self {
            lines: Lines::new(&input.name, input.bytes),
            zone,
            accounts: HashMap::new(),
            at_ns: None,
            untimed: Untimed::default(),
            early: Vec::new(),
            open: None,
            text: Text::default(),
            is_ended: false,
            coverage: Coverage::default(),
            unread: Vec::new(),
        }
    }

    /// Takes a time for that of entries before the first one that has one: of a log that is followed from its end, they
    /// are of the same second as the last entry before them.
    pub(super) fn begin_at(&mut self, at_ns: i64) {
        self.at_ns = Some(at_ns);
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

    /// Returns how many entries have a time that cannot be read.
    #[must_use]
    pub fn untimed(&self) -> Untimed {
        self.untimed
    }

    fn line(&mut self, each: &mut dyn FnMut(&Statement<'_>) -> Result<()>) -> Result<()> {
        if let Some(head) = head(&self.lines.text, &self.zone) {
            self.end(each)?;
            self.at_ns = head.at_ns.or(self.at_ns);
            self.hand_out_early(each)?;
            if head.is_untimed {
                self.untimed.unreadable += 1;
                let line = self.lines.number;
                self.untimed.first_line.get_or_insert(line);
            }
            self.open = Some((head.session, head.command, self.lines.number));
            self.text.clear();
            let argument = &self.lines.text[head.argument..];
            let bytes = self.lines.bytes - head.argument as u64;
            self.text.add(argument, bytes);
        } else if is_banner(self.lines.trimmed()) {
            self.end(each)?;
        } else if self.open.is_some() {
            self.text.add(b"\n", 1);
            self.text.add(&self.lines.text, self.lines.bytes);
        } else if !self.lines.trimmed().is_empty() {
            if self.coverage.undecodable == 0 || self.is_ended {
                self.coverage.undecodable += 1;
                keep(
                    &mut self.unread,
                    self.lines.number,
                    "a line that belongs to no entry",
                );
            }
            // Lines that follow each other count once.
            self.is_ended = false;
            return Ok(());
        }
        self.is_ended = self.lines.is_ended;
        Ok(())
    }

    fn end(&mut self, each: &mut dyn FnMut(&Statement<'_>) -> Result<()>) -> Result<()> {
        let Some((session, command, line)) = self.open.take() else {
            return Ok(());
        };
        if !self.is_ended {
            self.coverage.undecodable += 1;
            keep(&mut self.unread, line, "an entry that is not complete");
            return Ok(());
        }
        if self.text.head.len() as u64 == self.text.bytes && self.text.head.ends_with(b"\r") {
            self.text.cut(1);
        }
        let account = self.account(session, command);
        self.coverage.statements += 1;
        if self.at_ns.is_none() && self.early.len() < EARLY_MAX {
            let text = std::mem::take(&mut self.text);
            self.early.push((session, command, text, account));
            return Ok(());
        }
        let at_ns = self.at_ns.unwrap_or(0);
        hand_out(at_ns, session, command, &self.text, &account, each)
    }

    /// Hands out what came before the first time, once that is known.
    fn hand_out_early(&mut self, each: &mut dyn FnMut(&Statement<'_>) -> Result<()>) -> Result<()> {
        let Some(at_ns) = self.at_ns.filter(|_| !self.early.is_empty()) else {
            return Ok(());
        };
        for (session, command, text, account) in std::mem::take(&mut self.early) {
            hand_out(at_ns, session, command, &text, &account, each)?;
        }
        Ok(())
    }

    /// Returns whose session it is, and learns from the command.
    fn account(&mut self, session: u32, command: Command) -> Account {
        if self.accounts.len() >= CONNECTIONS_MAX {
            self.accounts.clear();
        }
        let text = String::from_utf8_lossy(&self.text.head[..self.text.head.len().min(1024)]);
        match command {
            Command::Connect | Command::Other(17) => {
                self.accounts.insert(session, connected(&text));
            }
            Command::Quit => return self.accounts.remove(&session).unwrap_or_default(),
            Command::Other(2) => {
                self.accounts.entry(session).or_default().schema = Some(text.trim().to_owned());
            }
            Command::Query => {
                if let Some(name) = used(&text) {
                    self.accounts.entry(session).or_default().schema = Some(name);
                }
            }
            _ => {}
        }
        self.accounts.get(&session).cloned().unwrap_or_default()
    }
}

fn hand_out(
    at_ns: i64,
    session: u32,
    command: Command,
    text: &Text,
    account: &Account,
    each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
) -> Result<()> {
    let name = super::COMMANDS.iter().find(|(_, known)| *known == command);
    let instead = match command {
        Command::Query | Command::Prepare | Command::Execute => None,
        Command::Connect | Command::Quit => Some(String::new()),
        Command::Other(_) => Some(format!(
            "administrator command: {}",
            name.map_or("?", |(name, _)| *name)
        )),
    };
    let (sql, sql_bytes) = match &instead {
        Some(text) => (text.as_bytes(), text.len() as u64),
        None => (&text.head[..], text.bytes),
    };
    each(&Statement {
        at_ns,
        connection: u64::from(session),
        session: Some(session),
        user: account.user.as_deref(),
        host: account.host.as_deref(),
        schema: account.schema.as_deref(),
        command,
        sql,
        sql_bytes,
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
    })
}

/// Takes `root@localhost on shop using TCP/IP`.
fn connected(text: &str) -> Account {
    let (who, rest) = text.split_once(" on ").unwrap_or((text, ""));
    let who = who.split_once(" as ").map_or(who, |(who, _)| who);
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (user, host) = who.rsplit_once('@').unwrap_or((who, ""));
    let schema = rest.split_once("using ").map_or(rest, |(schema, _)| schema);
    Account {
        user: some(user.trim()),
        host: some(host.trim()),
        schema: some(schema.trim()),
    }
}

/// Returns the schema that `USE` names.
fn used(text: &str) -> Option<String> {
    let is_use = text
        .get(..4)
        .is_some_and(|verb| verb.eq_ignore_ascii_case("use "));
    let name = is_use.then(|| text[4..].trim().trim_end_matches(';').trim_matches('`'))?;
    (!name.contains(char::is_whitespace)).then(|| name.to_owned())
}

impl Source for GeneralLog {
    fn read(
        &mut self,
        each: &mut dyn FnMut(&Statement<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        while self.lines.next() {
            self.line(each)?;
            if self.lines.number.is_multiple_of(LOOK_EVERY) && cancel.is_cancelled() {
                return Ok(self.coverage);
            }
        }
        self.end(each)?;
        if self.at_ns.is_none() && !self.early.is_empty() {
            // The log has no time.
            self.untimed.unreadable += self.early.len() as u64;
            self.untimed.first_line.get_or_insert(1);
            self.at_ns = Some(0);
        }
        self.hand_out_early(each)?;
        Ok(self.coverage)
    }
}
