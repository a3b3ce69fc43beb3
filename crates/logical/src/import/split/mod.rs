//! Cuts a stream of SQL into statements, where `mariadb` and `mysql` would cut it.
//!
//! One pass, and never more of the stream in memory than one statement and a read. What the clients
//! know is known here: strings and their escapes, names in backticks, comments of all four kinds,
//! character sets whose characters end in what looks like a quote, and the clients' own commands.
//! Text inside `/*! … */` and `/*M! … */` is code, and may hold strings and delimiters.
//!
//! Where a string, a name or a comment ends is the crate for SQL text's to say, piece by piece, as a row of a
//! gigabyte comes in many reads. What begins one is said here: the clients look at each byte of code for their
//! delimiter, which may be any text, and for their commands, before it is a token; and what they take for `-- `
//! is not all that a server does.

mod command;
mod comments;
#[cfg(test)]
mod tests;

pub use command::Command;
pub use comments::without_comments;

use evenkeel_op::{Error, Result};
use evenkeel_sql::{Inside, Mode, Passed, Wide, gate_at, is_blank};
use memchr::{memchr, memchr_iter, memmem, memrchr};
use std::io::{self, Read};

/// How much is read at a time, in bytes.
const READ: usize = 256 << 10;
/// A buffer that grew beyond this for a long statement shrinks again, in bytes.
const KEPT: usize = 4 << 20;
/// By how much the buffer grows at most at once, in bytes.
const GROWN: usize = 16 << 20;
/// The longest line of a command, in bytes.
const COMMAND_MAX: usize = 4096;
/// More bytes than the name of any command has, and the opening of any comment.
const OPENING: usize = 20;
/// What the first line of recent dumps begins with: it only speaks to clients.
const SANDBOX: &[u8] = b"/*M!999999";

/// One statement, without its delimiter and without the comments in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its bytes, as they are in the stream.
    pub text: &'a [u8],
    /// The line that it begins on, from 1.
    pub line: u64,
    /// The character of that line with which it begins, from 1.
    pub column: u32,
    /// It has a semicolon, which is not what ended it: it may be several statements for the server.
    pub several: bool,
}

/// What a file has between two delimiters, or on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// Something for the server.
    Statement(Statement<'a>),
    /// Something for the client.
    Command(Command),
}

/// Where in a statement the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorState {
    Plain,
    Inside(Inside),
}

/// What a look at the buffer led to.
enum Step {
    /// A statement ends before the first, and its delimiter before the second.
    Ended(usize, usize),
    /// A command was read.
    Command(Command),
    /// The buffer holds too little to tell.
    More,
}

/// Reads statements one after the other.
#[derive(Debug)]
pub struct Splitter<R> {
    from: R,
    buffer: Vec<u8>,
    /// What was read and is not used up lies in `buffer[..end]`, from `at` on not looked at yet.
    at: usize,
    end: usize,
    /// Where the statement begins, once something was found that is no blank and no comment.
    begun: Option<usize>,
    state: CursorState,
    /// Where the literal, name or comment began that is open now, as a line.
    opened: u64,
    delimiter: Vec<u8>,
    mode: Mode,
    /// The line number at `counted`, and how many characters of the line are before it.
    line: u64,
    column: u32,
    counted: usize,
    /// The line and the character with which the statement or the command begins.
    first: (u64, u32),
    /// Nothing but blanks and comments that end with their line stand in front of the cursor on its line.
    fresh: bool,
    /// Of the clients' commands, only DELIMITER is one.
    binary: bool,
    finished: bool,
    limit: usize,
}

impl<R: Read> Splitter<R> {
    /// Starts on a stream. A statement of more than `limit` bytes is an error.
    pub fn new(from: R, limit: usize) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            begun: None,
            state: CursorState::Plain,
            opened: 1,
            delimiter: b";".to_vec(),
            mode: Mode::default(),
            line: 1,
            column: 0,
            counted: 0,
            first: (1, 1),
            fresh: true,
            binary: false,
            finished: false,
            limit,
        }
    }

    /// Says what quotes and backslashes mean from the next statement on.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Says that the file is binary: it may hold zero bytes, and no commands but DELIMITER.
    pub fn set_binary(&mut self, binary: bool) {
        self.binary = binary;
    }

    /// Sets the delimiter, which outlives the file that set it.
    pub fn set_delimiter(&mut self, delimiter: Vec<u8>) {
        self.delimiter = delimiter;
    }

    /// Returns the delimiter.
    pub fn delimiter(&self) -> &[u8] {
        &self.delimiter
    }

    /// Returns where the last statement or command began: the line and the character in it, from 1.
    pub fn first(&self) -> (u64, u32) {
        self.first
    }

    /// Returns whether a statement was begun and not ended.
    pub fn is_inside(&self) -> bool {
        self.begun.is_some() || self.state != CursorState::Plain
    }

    /// Returns the line that the stream was read up to.
    pub fn line(&mut self) -> u64 {
        self.count_to(self.at);
        self.line
    }

    /// Returns the next statement; `None` at the end of the stream.
    ///
    /// Errors: as [`Splitter::next_item`]; `Failed` for a command of the clients.
    pub fn next_statement(&mut self) -> Result<Option<Statement<'_>>> {
        match self.next_item()? {
            Some(Item::Statement(statement)) => Ok(Some(statement)),
            None => Ok(None),
            Some(Item::Command(_)) => Err(Error::failed("it has a command for a client")),
        }
    }

    /// Returns the next statement or command; `None` at the end of the stream. What follows the last
    /// delimiter is a statement too.
    ///
    /// Errors: those of the stream, `Failed` for a statement beyond the limit or with a zero byte, and for a
    /// stream that ends inside a literal, a name or a comment.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>> {
        self.compact();
        loop {
            match self.step()? {
                Step::Command(command) => match self.own(command) {
                    Some(command) => return Ok(Some(Item::Command(command))),
                    None => continue,
                },
                Step::Ended(end, after) => {
                    self.at = after;
                    self.state = CursorState::Plain;
                    self.fresh = false;
                    let Some(begun) = self.begun.take() else {
                        continue;
                    };
                    if end - begun > self.limit {
                        return Err(self.too_long());
                    }
                    let text = begun..begun + self.buffer[begun..end].trim_ascii_end().len();
                    if !self.binary
                        && let Some(command) = command::of_line(&self.buffer[text.clone()])
                    {
                        match self.own(command) {
                            Some(command) => return Ok(Some(Item::Command(command))),
                            None => continue,
                        }
                    }
                    return self.statement(text).map(Some);
                }
                Step::More if !self.finished => self.read()?,
                Step::More => return self.last(),
            }
        }
    }

    /// Does what a command asks of the splitter, or returns it.
    fn own(&mut self, command: Command) -> Option<Command> {
        match command {
            Command::Delimiter(delimiter) => self.delimiter = delimiter,
            Command::Nothing => {}
            other => return Some(other),
        }
        None
    }

    fn statement(&self, text: std::ops::Range<usize>) -> Result<Item<'_>> {
        let text = &self.buffer[text];
        if !self.binary && memchr(0, text).is_some() {
            return Err(
                Error::failed("the statement has a zero byte, which clients refuse").hint(
                    "if it belongs there, use --binary-mode; if the file is UTF-16, convert it to UTF-8",
                ),
            );
        }
        Ok(Item::Statement(Statement {
            text,
            line: self.first.0,
            column: self.first.1,
            several: self.delimiter != b";" && memchr(b';', text).is_some(),
        }))
    }

    /// Returns what stands behind the last delimiter.
    fn last(&mut self) -> Result<Option<Item<'_>>> {
        let what = match self.state {
            CursorState::Plain | CursorState::Inside(Inside::Line) => None,
            CursorState::Inside(Inside::Quoted(b'`')) => Some("a name in backticks"),
            CursorState::Inside(Inside::Quoted(_)) => Some("a string"),
            CursorState::Inside(Inside::Block) => Some("a comment"),
        };
        if let Some(what) = what {
            return Err(Error::failed(format!(
                "the file ends inside {what} that begins on line {}",
                self.opened
            ))
            .hint("the file is truncated or damaged: check its last line"));
        }
        self.at = self.end;
        let Some(begun) = self.begun.take() else {
            return Ok(None);
        };
        let length = self.buffer[begun..self.end].trim_ascii_end().len();
        self.statement(begun..begun + length).map(Some)
    }

    /// Drops what was used up from the buffer.
    fn compact(&mut self) {
        self.count_to(self.at);
        let from = self.begun.unwrap_or(self.at);
        // Each byte moves at most once for each read.
        if from >= READ || from == self.end {
            self.buffer.copy_within(from..self.end, 0);
            self.end -= from;
            self.at -= from;
            self.counted -= from;
            self.begun = self.begun.map(|begun| begun - from);
        }
        if self.buffer.len() > KEPT && self.end <= READ {
            self.buffer.truncate(READ * 2);
            self.buffer.shrink_to_fit();
        }
    }

    fn read(&mut self) -> Result<()> {
        let held = self.end - self.begun.unwrap_or(self.at);
        if held > self.limit {
            return Err(self.too_long());
        }
        self.compact();
        if self.buffer.len() - self.end < READ {
            // In large steps, or a long statement would be copied for each read; but a very long
            // one is not to take half as much again.
            let grown = self.buffer.len() + (self.buffer.len() / 2).min(GROWN);
            let wanted = (self.end + READ).max(grown);
            self.buffer.reserve_exact(wanted - self.buffer.len());
            self.buffer.resize(wanted, 0);
        }
        loop {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.count_to(self.at);
                    return Err(Error::failed(format!(
                        "failed to read the file after line {}",
                        self.line
                    ))
                    .because(error));
                }
            }
            return Ok(());
        }
    }

    fn too_long(&self) -> Error {
        Error::failed(format!(
            "the statement on line {} is longer than {} bytes, which is what the server's max_allowed_packet allows",
            self.first.0, self.limit
        ))
        .hint("raise max_allowed_packet on the server (SET GLOBAL), up to 1 GiB, and try again")
    }

    /// Moves the count of lines on to `to`.
    fn count_to(&mut self, to: usize) {
        if to <= self.counted {
            return;
        }
        let passed = &self.buffer[self.counted..to];
        let begun = memrchr(b'\n', passed).map(|last| last + 1);
        if begun.is_some() {
            self.line += memchr_iter(b'\n', passed).count() as u64;
            self.column = 0;
        }
        // Characters of UTF-8, by their first bytes.
        let line = passed[begun.unwrap_or(0)..].iter();
        self.column += line.filter(|byte| **byte & 0xC0 != 0x80).count() as u32;
        self.counted = to;
    }

    /// Notes that a statement or a command begins at the cursor.
    fn begin(&mut self) {
        self.count_to(self.at);
        self.first = (self.line, self.column + 1);
    }

    /// Looks at the buffer until something ends or it is used up.
    fn step(&mut self) -> Result<Step> {
        loop {
            let step = match self.state {
                CursorState::Plain if self.begun.is_none() => self.before()?,
                CursorState::Plain => self.plain(),
                CursorState::Inside(inside) => self.inside(inside),
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    fn open(&mut self, inside: Inside, length: usize) {
        self.count_to(self.at);
        self.opened = self.line;
        self.state = CursorState::Inside(inside);
        self.at += length;
    }

    /// Passes what may stand in front of a statement.
    fn before(&mut self) -> Result<Option<Step>> {
        let rest = &self.buffer[self.at..self.end];
        let blank = rest.iter().take_while(|byte| is_blank(**byte)).count();
        self.fresh |= memchr(b'\n', &rest[..blank]).is_some();
        self.at += blank;
        let rest = &self.buffer[self.at..self.end];
        if rest.len() < OPENING.max(self.delimiter.len()) && !self.finished {
            return Ok(Some(Step::More));
        }
        match rest {
            [] => return Ok(Some(Step::More)),
            _ if is_delimiter(rest) => return self.delimiter_command(),
            _ if rest.starts_with(&self.delimiter) => {
                self.at += self.delimiter.len();
                self.fresh = false;
            }
            [b'#', ..] | [b'-', b'-', ..] => self.open(Inside::Line, 1),
            [b'/', b'*', ..] if rest.starts_with(SANDBOX) => {
                self.open(Inside::Block, 2);
                return Ok((!self.binary).then_some(Step::Command(Command::Sandbox)));
            }
            [b'/', b'*', ..] if gate_at(rest).is_none() => {
                self.fresh = false;
                self.open(Inside::Block, 2);
            }
            [b'\\'] | [b'\\', b'\n', ..] if !self.binary => self.drop_backslash(),
            [b'\\', letter, ..] if self.is_command(*letter) => return Ok(Some(self.letter())),
            _ if self.fresh && !self.binary && command::is_named(rest) => {
                return Ok(self.line_of_its_own());
            }
            _ => self.begin_statement(),
        }
        Ok(None)
    }

    fn begin_statement(&mut self) {
        self.begin();
        self.begun = Some(self.at);
    }

    /// Returns how long the line is from the cursor on, once all of it is there; the limit where it is longer.
    fn line_length(&self) -> Option<usize> {
        let rest = &self.buffer[self.at..self.end];
        match memchr(b'\n', rest) {
            Some(length) => Some(length.min(COMMAND_MAX)),
            None if self.finished || rest.len() >= COMMAND_MAX => Some(rest.len().min(COMMAND_MAX)),
            None => None,
        }
    }

    /// Obeys a DELIMITER command, which ends with its line.
    fn delimiter_command(&mut self) -> Result<Option<Step>> {
        let Some(length) = self.line_length() else {
            return Ok(Some(Step::More));
        };
        self.begin();
        let line = &self.buffer[self.at..self.at + length];
        let command = command::of_line(line);
        if let Some(Command::Refused(why)) = command {
            return Err(Error::failed(why));
        }
        self.at += length;
        Ok(command.map(Step::Command))
    }

    /// Reads a line that begins with a command's name, or begins a statement with it.
    fn line_of_its_own(&mut self) -> Option<Step> {
        let Some(length) = self.line_length() else {
            return Some(Step::More);
        };
        self.begin();
        let line = &self.buffer[self.at..self.at + length];
        let has = |part: &[u8]| memmem::find(line, part).is_some();
        // Then it ends there, and is looked at again.
        if has(&self.delimiter) || has(b"\\g") || length == COMMAND_MAX {
            self.begun = Some(self.at);
            return None;
        }
        match command::of_line(line) {
            Some(command) => {
                self.at += length;
                Some(Step::Command(command))
            }
            None => {
                self.begun = Some(self.at);
                None
            }
        }
    }

    /// Returns whether a backslash and this letter are a command.
    fn is_command(&self, letter: u8) -> bool {
        match self.binary {
            true => letter == b'C',
            false => letter != b'N',
        }
    }

    /// Drops a backslash at a line's end, as the clients do.
    fn drop_backslash(&mut self) {
        self.buffer[self.at] = b' ';
        self.at += 1;
    }

    /// Reads a command that is a backslash and a letter, at the cursor.
    fn letter(&mut self) -> Step {
        let Some(length) = self.line_length() else {
            return Step::More;
        };
        let line = &self.buffer[self.at..self.at + length];
        let letter = line[1];
        // The next delimiter may have the present one in it.
        let end = match letter {
            b'd' => length,
            _ => memmem::find(line, &self.delimiter).unwrap_or(length),
        };
        let (command, has_argument) = command::of_letter(letter, &line[2..end.max(2)]);
        let passed = match has_argument {
            true if end < length => end + self.delimiter.len(),
            true => length,
            false => 2,
        };
        if self.begun.is_none() {
            self.begin();
            (self.at, self.fresh) = (self.at + passed, false);
            return Step::Command(command);
        }
        match letter {
            b'g' | b'G' => Step::Ended(self.at, self.at + 2),
            // What stands before it is for the server first.
            b'q' => Step::Ended(self.at, self.at),
            b'c' => {
                self.begun = None;
                self.at += 2;
                Step::Command(command)
            }
            _ => {
                self.begun = None;
                self.at += passed;
                let shown = char::from(letter).escape_default();
                Step::Command(match command {
                    refused @ Command::Refused(_) => refused,
                    _ => Command::Refused(format!("\\{shown} is inside a statement")),
                })
            }
        }
    }

    /// Passes code up to the end of a statement.
    fn plain(&mut self) -> Option<Step> {
        let lead = self.delimiter[0];
        let wide = self.mode.wide;
        let rest = &self.buffer[self.at..self.end];
        let stops = |byte: &u8| {
            STOPS[usize::from(*byte)] || *byte == lead || (wide != Wide::No && *byte >= 0x80)
        };
        let Some(found) = rest.iter().position(stops) else {
            self.at = self.end;
            return Some(Step::More);
        };
        self.at += found;
        let rest = &rest[found..];
        if rest.len() < self.delimiter.len().max(4) && !self.finished {
            return Some(Step::More);
        }
        if rest.starts_with(&self.delimiter) {
            return Some(Step::Ended(self.at, self.at + self.delimiter.len()));
        }
        match rest {
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let quote = *quote;
                self.open(Inside::Quoted(quote), 1);
            }
            [b'#', ..] | [b'-', b'-'] => self.open(Inside::Line, 1),
            [b'-', b'-', after, ..] if is_blank(*after) => self.open(Inside::Line, 1),
            [b'/', b'*', ..] if gate_at(rest).is_none() => self.open(Inside::Block, 2),
            [b'\\'] | [b'\\', b'\n', ..] if !self.binary => self.drop_backslash(),
            [b'\\', letter, ..] if self.is_command(*letter) => return Some(self.letter()),
            _ if wide.is_pair(rest) => self.at += 2,
            _ => self.at += 1,
        }
        None
    }

    /// Passes a literal, a name or a comment.
    fn inside(&mut self, inside: Inside) -> Option<Step> {
        match inside.pass(&self.buffer[self.at..self.end], self.mode) {
            Passed::Ended(length) => {
                self.at += length;
                self.state = CursorState::Plain;
                if inside == Inside::Line {
                    self.at += 1;
                    self.fresh = true;
                }
                None
            }
            Passed::Open(length) => {
                self.at += length;
                Some(Step::More)
            }
        }
    }
}

/// Bytes of code at which to look closer.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let looked_at = b"'\"`#-/\\";
    let mut at = 0;
    while at < looked_at.len() {
        stops[looked_at[at] as usize] = true;
        at += 1;
    }
    stops
};

/// Returns whether a DELIMITER command begins here.
fn is_delimiter(rest: &[u8]) -> bool {
    let name = b"delimiter";
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && is_blank(rest[name.len()])
}
