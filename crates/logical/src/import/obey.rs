//! The files that are read, one within the other, and the commands in them that are the clients' own.

use super::driver::Driver;
use super::places::At;
use super::source::{Ahead, Input};
use super::split::{Command, Item, Splitter, Statement};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_wire::Refusal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// After how many bytes of the file progress is reported.
const TOLD: u64 = 256 << 10;

/// How it continues after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// With what comes next in the file.
    Read,
    /// With what comes behind the file.
    Leave,
    /// Not at all: a connection failed.
    Stop,
}

impl Driver<'_> {
    /// Reads a file to its end. Returns the delimiter that it leaves behind; `None` when a connection failed.
    pub(super) fn file(&mut self, input: Input, delimiter: Vec<u8>) -> Result<Option<Vec<u8>>> {
        self.files.begin(&input);
        let ahead = Ahead::start(input, self.request.binary_mode, &self.pool.cancel)?;
        let read = ahead.read.clone();
        let mut splitter = Splitter::new(ahead, self.statement_max());
        splitter.set_binary(self.request.binary_mode);
        splitter.set_delimiter(delimiter);
        let continues = self.items(&mut splitter, &read)?;
        self.bytes += read.load(Ordering::Relaxed);
        self.lines = splitter.line();
        self.files.end();
        Ok(continues.then(|| splitter.delimiter().to_vec()))
    }

    fn items(&mut self, splitter: &mut Splitter<Ahead>, read: &AtomicU64) -> Result<bool> {
        let (mut noted, mut said) = (0, Instant::now());
        loop {
            self.pool.cancel.check()?;
            splitter.set_mode(self.mode);
            let item = match splitter.next_item() {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(error) => {
                    if splitter.is_inside() {
                        self.begin(splitter.first());
                    }
                    return Err(error);
                }
            };
            let next = match item {
                Item::Statement(statement) => {
                    self.begin((statement.line, statement.column));
                    self.run_or_forgive(&statement)?
                }
                Item::Command(command) => {
                    self.begin(splitter.first());
                    self.obey_or_forgive(command, splitter)?
                }
            };
            match next {
                Next::Read => self.at_hand = false,
                Next::Leave => break,
                Next::Stop => return Ok(false),
            }
            self.tell_forgiven();
            let now = read.load(Ordering::Relaxed);
            if self.files.depth() == 1 && now - noted >= TOLD {
                self.progress.advance(now - noted);
                noted = now;
            }
            if said.elapsed() >= self.request.tell_every {
                self.tell_line();
                said = Instant::now();
            }
        }
        self.at_hand = false;
        if self.files.depth() == 1 {
            self.progress.advance(read.load(Ordering::Relaxed) - noted);
        }
        Ok(true)
    }

    /// Notes where the next thing to do begins, in the file at hand.
    fn begin(&mut self, (line, column): (u64, u32)) {
        self.at = At {
            line: self.offset + line,
            column,
        };
        self.at_hand = true;
    }

    fn tell_line(&self) {
        let line = self.frontier();
        self.progress.note(format!(
            "everything before line {line} was executed; if interrupted, resume with --from-line {line}"
        ));
    }

    fn run_or_forgive(&mut self, statement: &Statement<'_>) -> Result<Next> {
        match self.statement(statement) {
            Ok(true) => Ok(Next::Read),
            Ok(false) => Ok(Next::Stop),
            Err(error) if self.forgives(&error) => self.note_forgiven(error).map(|()| Next::Read),
            Err(error) => Err(error),
        }
    }

    /// Returns whether it continues after an error: the server refused a statement, or we did.
    fn forgives(&self, error: &Error) -> bool {
        self.request.force && (Refusal::of(error).is_some() || error.kind() == ErrorKind::Failed)
    }

    fn obey_or_forgive(
        &mut self,
        command: Command,
        splitter: &mut Splitter<Ahead>,
    ) -> Result<Next> {
        // What a named file says is reported by itself.
        let files = self.files.depth();
        match self.obey(command, splitter) {
            Err(error) if self.files.depth() == files => match self.forgives(&error) {
                true => self.note_forgiven(error).map(|()| Next::Read),
                false => Err(error),
            },
            other => other,
        }
    }

    fn obey(&mut self, command: Command, splitter: &mut Splitter<Ahead>) -> Result<Next> {
        let skipped = self.at.line < self.request.from_line;
        let continues = match command {
            Command::Quit => return Ok(Next::Leave),
            Command::Sandbox => {
                self.sandboxed = true;
                true
            }
            Command::Use(name) => {
                let quoted = String::from_utf8_lossy(&name).replace('`', "``");
                self.use_database(&String::from_utf8_lossy(&name), &quoted)?;
                true
            }
            Command::Charset(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                if !name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                {
                    return Err(Error::failed(format!("{name} is not a character set")));
                }
                self.set(format!("SET NAMES {name}").as_bytes())?
            }
            Command::Source(named) => return self.source(&named, splitter),
            Command::Refused(why) if !skipped => {
                return Err(Error::failed(why).hint(
                    "remove the line from the file, or import the file with the mariadb or mysql client",
                ));
            }
            Command::Refused(_) | Command::Delimiter(_) | Command::Nothing => true,
        };
        Ok(if continues { Next::Read } else { Next::Stop })
    }

    /// Runs a file that another names. Also one that was run before an interruption is read, so that lines are
    /// counted as they were.
    fn source(&mut self, named: &[u8], splitter: &mut Splitter<Ahead>) -> Result<Next> {
        let shown = String::from_utf8_lossy(named).into_owned();
        if !self.request.source {
            return Err(
                Error::failed(format!("the file runs {shown}, but --no-source is set"))
                    .hint("without --no-source, files that it names are run"),
            );
        }
        if self.sandboxed {
            return Err(Error::failed(format!(
                "the file runs {shown} after the line that enables the sandbox mode"
            ))
            .hint("files of mariadb-dump have that line, so that nothing in them runs other files: check who wrote this one"));
        }
        let input = self.files.open(named)?;
        let own = splitter.first().0;
        let (outer, begun) = (self.offset, self.at.line);
        let file = self.places.enter(begun + 1, input.name.clone())?;
        (self.offset, self.at_hand) = (begun, false);
        let Some(delimiter) = self.file(input, splitter.delimiter().to_vec())? else {
            return Ok(Next::Stop);
        };
        // What that file forbade, it forbade itself.
        self.sandboxed = false;
        splitter.set_delimiter(delimiter);
        // The rest of the line that named it comes behind the file's last.
        self.offset = outer + self.lines + 1;
        self.places.resume(self.offset + own, file, own);
        Ok(Next::Read)
    }
}
