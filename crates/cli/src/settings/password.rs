//! Asking for a password.

use crate::args::{BinlogVerb, Verb};
use evenkeel_op::{Context, Error, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};

/// Returns the words of a verb for another host, where there is no terminal: a password that should
/// be asked for is asked for here.
pub fn with_password(verb: &Verb, words: &[OsString]) -> Result<Vec<OsString>> {
    let connection = match verb {
        Verb::Backup(args) => &args.connection,
        Verb::Clone(args) => &args.connection,
        Verb::Doctor(args) => &args.connection,
        Verb::Binlog(args) => match &args.verb {
            BinlogVerb::Archive(args) => &args.connection,
            BinlogVerb::List(_) | BinlogVerb::Extract(_) => return Ok(words.to_vec()),
        },
        _ => return Ok(words.to_vec()),
    };
    if !matches!(connection.password, Some(None)) {
        return Ok(words.to_vec());
    }
    let given = format!("--password={}", ask()?);
    let each = words.iter().map(|word| match word == "--password" {
        true => OsString::from(&given),
        false => word.clone(),
    });
    Ok(each.collect())
}

/// Asks on the terminal, whatever standard input is, and shows nothing of the answer.
pub(super) fn ask() -> Result<String> {
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(|error| {
            Error::usage("there is no terminal to ask for the password on")
                .because(error)
                .hint("put it in an option file that only you can read, or use a login path")
        })?;
    (&terminal)
        .write_all(b"Enter password: ")
        .context(|| "failed to ask for the password")?;
    let hushed = Hushed::new(&terminal)?;
    let mut line = String::new();
    BufReader::new(&terminal)
        .read_line(&mut line)
        .context(|| "failed to read the password")?;
    drop(hushed);
    // The newline that was typed did not show.
    let _ = (&terminal).write_all(b"\n");
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// A terminal that does not echo, until it is dropped.
struct Hushed<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hushed<'a> {
    fn new(terminal: &'a File) -> Result<Self> {
        let before = tcgetattr(terminal).context(|| "failed to turn off the terminal's echo")?;
        let mut hushed = before.clone();
        hushed.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &hushed)
            .context(|| "failed to turn off the terminal's echo")?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hushed<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}
