//! Cuts a stream of SQL into statements, where `mariadb` and `mysql` would cut it.
//!
//! One pass, and never more of the stream in memory than one statement and a read. What the clients
//! know is known here: strings and their escapes, names in backticks, comments of all four kinds,
//! `DELIMITER`. Text inside `/*! … */` and `/*M! … */` is code, and may hold strings and delimiters.

#[cfg(test)]
mod tests;

use evenkeel_op::{Error, Result};
use memchr::{memchr, memchr_iter, memchr2};
use std::io::{self, Read};

/// How much is read at a time, in bytes.
const READ: usize = 256 << 10;
/// A buffer that grew beyond this for a long statement shrinks again, in bytes.
const KEPT: usize = 4 << 20;
/// By how much the buffer grows at most at once, in bytes.
const GROWN: usize = 16 << 20;
/// The longest line of a DELIMITER command, in bytes.
const COMMAND_MAX: usize = 4096;
/// What the first line of recent dumps begins with: it only speaks to clients.
const SANDBOX: &[u8] = b"/*M!999999";

/// One statement, without its delimiter and without the comments in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its bytes, as they are in the stream.
    pub text: &'a [u8],
    /// The line that it begins on, from 1.
    pub line: u64,
}

/// What the server would make of quotes and backslashes just now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quoting {
    /// `NO_BACKSLASH_ESCAPES`: a backslash is a character like any other.
    pub no_backslash: bool,
    /// `ANSI_QUOTES`: double quotes are around names.
    pub ansi: bool,
}

/// Where in a statement the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    Quoted(u8),
    Line,
    Block,
}

/// What a look at the buffer led to.
enum Step {
    /// A statement ends before the first, and its delimiter before the second.
    Ended(usize, usize),
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
    state: State,
    /// Where the literal, name or comment began that is open now, as a line.
    opened: u64,
    delimiter: Vec<u8>,
    quoting: Quoting,
    /// The line number at `counted`.
    line: u64,
    counted: usize,
    /// The line on which the statement begins.
    first: u64,
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
            state: State::Plain,
            opened: 1,
            delimiter: b";".to_vec(),
            quoting: Quoting::default(),
            line: 1,
            counted: 0,
            first: 1,
            finished: false,
            limit,
        }
    }

    /// Says what quotes and backslashes mean from the next statement on.
    pub fn set_quoting(&mut self, quoting: Quoting) {
        self.quoting = quoting;
    }

    /// Returns the next statement; `None` at the end of the stream. What follows the last delimiter
    /// is a statement too.
    ///
    /// Errors: those of the stream, `Failed` for a statement beyond the limit and for a stream that
    /// ends inside a literal, a name or a comment. Each names the line.
    pub fn next_statement(&mut self) -> Result<Option<Statement<'_>>> {
        self.compact();
        loop {
            match self.step()? {
                Step::Ended(end, after) => {
                    self.at = after;
                    self.state = State::Plain;
                    let Some(begun) = self.begun.take() else {
                        continue;
                    };
                    if end - begun > self.limit {
                        return Err(self.too_long());
                    }
                    return Ok(Some(Statement {
                        text: self.buffer[begun..end].trim_ascii_end(),
                        line: self.first,
                    }));
                }
                Step::More if !self.finished => self.read()?,
                Step::More => return self.last(),
            }
        }
    }

    /// Returns what stands behind the last delimiter.
    fn last(&mut self) -> Result<Option<Statement<'_>>> {
        let what = match self.state {
            State::Plain | State::Line => None,
            State::Quoted(b'`') => Some("a name in backticks"),
            State::Quoted(_) => Some("a string"),
            State::Block => Some("a comment"),
        };
        if let Some(what) = what {
            return Err(Error::failed(format!(
                "the file ends inside {what} that begins on line {}",
                self.opened
            ))
            .hint("the file is cut off, or was damaged: look whether its last line is whole"));
        }
        self.at = self.end;
        let begun = self.begun.take();
        Ok(begun.map(|begun| Statement {
            text: self.buffer[begun..self.end].trim_ascii_end(),
            line: self.first,
        }))
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
            self.first, self.limit
        ))
        .hint("raise max_allowed_packet on the server (SET GLOBAL), up to 1 GiB, and try again")
    }

    /// Moves the count of lines on to `to`.
    fn count_to(&mut self, to: usize) {
        if to > self.counted {
            self.line += memchr_iter(b'\n', &self.buffer[self.counted..to]).count() as u64;
            self.counted = to;
        }
    }

    /// Looks at the buffer until something ends or it is used up.
    fn step(&mut self) -> Result<Step> {
        loop {
            let more = match self.state {
                State::Plain if self.begun.is_none() => self.before()?,
                State::Plain => match self.plain() {
                    Ok(ended) => return Ok(ended),
                    Err(more) => more,
                },
                State::Quoted(quote) => self.quoted(quote),
                State::Line => self.pass_line(),
                State::Block => self.pass_block(),
            };
            if more {
                return Ok(Step::More);
            }
        }
    }

    fn open(&mut self, state: State, length: usize) {
        self.count_to(self.at);
        self.opened = self.line;
        self.state = state;
        self.at += length;
    }

    /// Passes what may stand in front of a statement. Returns whether more has to be read.
    fn before(&mut self) -> Result<bool> {
        let rest = &self.buffer[self.at..self.end];
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blank.count();
        let rest = &self.buffer[self.at..self.end];
        // Longer than any of the openings below.
        if rest.len() < 10 && !self.finished {
            return Ok(true);
        }
        match rest {
            [] => return Ok(true),
            [b'#', ..] | [b'-', b'-', ..] => self.open(State::Line, 1),
            [b'/', b'*', ..] if rest.starts_with(SANDBOX) || !is_gate(rest) => {
                self.open(State::Block, 2);
            }
            _ if is_command(rest) => return self.command(),
            _ if rest.starts_with(&self.delimiter) => self.at += self.delimiter.len(),
            _ => {
                self.count_to(self.at);
                self.first = self.line;
                self.begun = Some(self.at);
            }
        }
        Ok(false)
    }

    /// Obeys a DELIMITER command, which ends with its line.
    fn command(&mut self) -> Result<bool> {
        let rest = &self.buffer[self.at..self.end];
        let length = match memchr(b'\n', rest) {
            Some(length) => length,
            None if self.finished => rest.len(),
            None if rest.len() < COMMAND_MAX => return Ok(true),
            None => rest.len(),
        };
        let wanted = rest["delimiter".len()..length].trim_ascii();
        let first = wanted.split(u8::is_ascii_whitespace).next();
        let first = first.unwrap_or_default();
        let bare = match first {
            [open @ (b'\'' | b'"'), inner @ .., close] if open == close => inner,
            other => other,
        };
        if bare.is_empty() || bare.contains(&b'\\') || length >= COMMAND_MAX {
            self.count_to(self.at);
            return Err(Error::failed(format!(
                "line {} has a DELIMITER command without a delimiter that can be used",
                self.line
            ))
            .hint("write it as clients take it: DELIMITER ;;"));
        }
        self.delimiter = bare.to_vec();
        self.at += length;
        Ok(false)
    }

    /// Passes code. Returns the end of a statement, or else whether more has to be read.
    fn plain(&mut self) -> std::result::Result<Step, bool> {
        let lead = self.delimiter[0];
        let rest = &self.buffer[self.at..self.end];
        let stops = |byte: &u8| STOPS[usize::from(*byte)] || *byte == lead;
        let Some(found) = rest.iter().position(stops) else {
            self.at = self.end;
            return Err(true);
        };
        self.at += found;
        let rest = &rest[found..];
        if rest.len() < self.delimiter.len().max(4) && !self.finished {
            return Err(true);
        }
        if rest.starts_with(&self.delimiter) {
            return Ok(Step::Ended(self.at, self.at + self.delimiter.len()));
        }
        match rest {
            [quote @ (b'\'' | b'"' | b'`'), ..] => {
                let quote = *quote;
                self.open(State::Quoted(quote), 1);
            }
            [b'#', ..] | [b'-', b'-'] => self.open(State::Line, 1),
            [b'-', b'-', after, ..] if after.is_ascii_whitespace() => self.open(State::Line, 1),
            [b'/', b'*', ..] if !is_gate(rest) => self.open(State::Block, 2),
            _ => self.at += 1,
        }
        Err(false)
    }

    /// Passes a literal or a name. Returns whether more has to be read.
    fn quoted(&mut self, quote: u8) -> bool {
        let escapes =
            quote != b'`' && !self.quoting.no_backslash && !(quote == b'"' && self.quoting.ansi);
        loop {
            let rest = &self.buffer[self.at..self.end];
            let found = match escapes {
                true => memchr2(quote, b'\\', rest),
                false => memchr(quote, rest),
            };
            match found {
                None => {
                    self.at = self.end;
                    return true;
                }
                Some(found) if rest[found] == quote => {
                    // A second one right behind it opens again: the same as an escape.
                    self.at += found + 1;
                    self.state = State::Plain;
                    return false;
                }
                Some(found) if found + 1 < rest.len() => self.at += found + 2,
                Some(found) => {
                    self.at += found;
                    return true;
                }
            }
        }
    }

    fn pass_line(&mut self) -> bool {
        match memchr(b'\n', &self.buffer[self.at..self.end]) {
            Some(length) => {
                self.at += length + 1;
                self.state = State::Plain;
                false
            }
            None => {
                self.at = self.end;
                true
            }
        }
    }

    fn pass_block(&mut self) -> bool {
        loop {
            let rest = &self.buffer[self.at..self.end];
            match memchr(b'*', rest) {
                None => {
                    self.at = self.end;
                    return true;
                }
                Some(found) if found + 1 == rest.len() => {
                    self.at += found;
                    return true;
                }
                Some(found) if rest[found + 1] == b'/' => {
                    self.at += found + 2;
                    self.state = State::Plain;
                    return false;
                }
                Some(found) => self.at += found + 1,
            }
        }
    }
}

/// Bytes of code at which to look closer.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut at = 0;
    while at < 6 {
        stops[b"'\"`#-/"[at] as usize] = true;
        at += 1;
    }
    stops
};

/// Returns whether a comment is executed by some servers, or is a hint to them.
fn is_gate(rest: &[u8]) -> bool {
    matches!(rest, [_, _, b'!' | b'+', ..] | [_, _, b'M', b'!', ..])
}

/// Returns whether a DELIMITER command begins here.
fn is_command(rest: &[u8]) -> bool {
    let name = b"delimiter";
    rest.len() > name.len()
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && rest[name.len()].is_ascii_whitespace()
}
