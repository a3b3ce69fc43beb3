//! A terminal that is drawn on as a whole, and given back as it was: at the end, on a panic, and while the process is
//! stopped.

use super::obeyed::is_obeyed;
use evenkeel_live::view::{Key, Line, Style};
use evenkeel_op::{Context, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, getppid, getsid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::SIGTSTP;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The other screen, without a cursor, with lines that end at its edge.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// How it was before, while it is ours: whoever takes that out gives the terminal back.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal.
pub struct Terminal {
    input: File,
    /// Somebody wants this process to stop (Ctrl-Z).
    asked_to_stop: Arc<AtomicBool>,
    handler: SigId,
}

impl Terminal {
    /// Returns whether standard output is a terminal that can be drawn on.
    #[must_use]
    pub fn is_there() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        io::stdout().is_terminal() && !is_dumb && open().is_ok()
    }

    /// Takes the terminal, until this is dropped.
    ///
    /// # Errors
    ///
    /// `Failed` where there is none.
    pub fn enter() -> Result<Self> {
        let input = open()?;
        let asked_to_stop = Arc::new(AtomicBool::new(false));
        let handler = signal_hook::flag::register(SIGTSTP, asked_to_stop.clone())
            .context(|| "failed to receive signals")?;
        let terminal = Self {
            input,
            asked_to_stop,
            handler,
        };
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // What it says is for the screen that stays.
            give_back();
            others(panic);
        }));
        terminal.take()?;
        Ok(terminal)
    }

    fn take(&self) -> Result<()> {
        let before = tcgetattr(&self.input).context(|| "failed to ask for the terminal's modes")?;
        let mut raw = before.clone();
        // Ctrl-C and Ctrl-Z remain signals.
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        *BEFORE.lock().unwrap_or_else(|e| e.into_inner()) = Some(before);
        tcsetattr(&self.input, OptionalActions::Now, &raw)
            .context(|| "failed to set the terminal's modes")?;
        write(ENTER)
    }

    /// Returns how many rows and columns there are.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(&self.input).ok();
        let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        size.map_or((24, 80), |size| (size.ws_row.into(), size.ws_col.into()))
    }

    /// Draws a frame over the one before.
    ///
    /// # Errors
    ///
    /// `Failed` when the terminal is gone.
    pub fn draw(&self, lines: &[Line]) -> Result<()> {
        let (rows, columns) = self.size();
        let mut text = String::from("\x1b[H");
        for (index, line) in lines.iter().take(rows).enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str(match line.style {
                Style::Plain => "",
                Style::Heading => "\x1b[1m",
                Style::Selected => "\x1b[7m",
            });
            text.extend(shown(&line.text).take(columns));
            text.push_str("\x1b[0m\x1b[K");
        }
        text.push_str("\x1b[J");
        write(&text)
    }

    /// Waits for keys, not longer than this; `None` when the terminal is gone. Stops this process where that was asked
    /// for, and returns when it is continued.
    ///
    /// # Errors
    ///
    /// `Failed` where the terminal cannot be taken again.
    pub fn keys(&mut self, wait: Duration) -> Result<Option<Vec<Key>>> {
        if self.asked_to_stop.swap(false, Ordering::Relaxed) && may_stop() {
            give_back();
            // Continues here.
            let _ = kill_process(getpid(), Signal::STOP);
            self.take()?;
        }
        let mut asked = [PollFd::new(&self.input, PollFlags::IN)];
        let wait = Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        match poll(&mut asked, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Some(Vec::new())),
            Ok(_) => {}
            Err(_) => return Ok(None),
        }
        let mut bytes = [0; 64];
        match self.input.read(&mut bytes) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(keys_in(&bytes[..length]))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Some(Vec::new())),
            Err(_) => Ok(None),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.handler);
        give_back();
    }
}

/// Opens what keys come from.
fn open() -> Result<File> {
    let terminal = OpenOptions::new().read(true).open("/dev/tty");
    terminal.map_err(|error| {
        Error::usage("there is no terminal to read keys from")
            .because(error)
            .hint("use --once or --count for plain text, or --json")
    })
}

/// Gives the terminal back, if it is ours.
fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some(before) = before {
        let _ = write(LEAVE);
        if let Ok(terminal) = open() {
            let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
        }
    }
}

/// Returns whether somebody could continue this process: a shell of the same session started it.
fn may_stop() -> bool {
    let own = getsid(None).ok();
    let parent = getppid().and_then(|parent| getsid(Some(parent)).ok());
    own.is_some() && own == parent
}

fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context(|| "failed to write to the terminal")
}

/// Returns a text's letters without those that a terminal obeys: what servers say is others'.
fn shown(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().map(|letter| match is_obeyed(letter) {
        true => ' ',
        false => letter,
    })
}

/// Returns a line as plain text, with its end.
#[must_use]
pub fn plain_line(line: &Line) -> String {
    let text: String = shown(&line.text).collect();
    format!("{}\n", text.trim_end())
}

/// Reads what a terminal sends for keys.
fn keys_in(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let arrow = match rest {
            [0x1b, b'[' | b'O', b'A', ..] => Some(Key::Up),
            [0x1b, b'[' | b'O', b'B', ..] => Some(Key::Down),
            _ => None,
        };
        rest = match arrow {
            Some(key) => {
                keys.push(key);
                &rest[3..]
            }
            None => {
                keys.extend(match first {
                    b'\r' | b'\n' => Some(Key::Enter),
                    letter if letter.is_ascii_graphic() => Some(Key::Letter(char::from(*letter))),
                    _ => None,
                });
                after
            }
        };
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_letters_arrows_and_enter() {
        assert_eq!(
            keys_in(b"s\x1b[B\x1bOA\r2q"),
            [
                Key::Letter('s'),
                Key::Down,
                Key::Up,
                Key::Enter,
                Key::Letter('2'),
                Key::Letter('q')
            ]
        );
    }

    #[test]
    fn what_servers_say_gives_no_orders() {
        let line = Line {
            text: "SELECT \x1b[2J 1\u{202E}  ".to_owned(),
            style: Style::Plain,
        };
        assert_eq!(plain_line(&line), "SELECT  [2J 1\n");
    }
}
