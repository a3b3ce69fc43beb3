//! Runs the user's command: signals are handed on, its end is its own.

use crate::signals::HandOn;
use evenkeel_op::{Context, Error, Result};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(u8),
    /// This signal killed it.
    Signal(u8),
}

impl Ended {
    /// Reads it from a status.
    #[must_use]
    pub fn of(status: ExitStatus) -> Self {
        // An exit code has eight bits and a signal number seven.
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(u8::try_from(code & 0xff).unwrap_or(1)),
            (None, Some(signal)) => Self::Signal(u8::try_from(signal & 0x7f).unwrap_or(1)),
            (None, None) => Self::Code(evenkeel_op::exit::FAILED),
        }
    }

    /// Returns the exit code that passes this on: as it was, or 128 + the signal's number.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// Returns whether it exited with code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code:{code}"),
            Self::Signal(signal) => write!(f, "died with signal:{signal}"),
        }
    }
}

/// Makes the command of the words after `--`.
pub fn command(words: &[OsString]) -> Result<Command> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| Error::usage("there is no command to run"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Starts the command. What it is given to write to is closed on our side, so that its readers
/// see the end when it, and not when we, are done.
pub fn start(mut command: Command) -> Result<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .context(|| format!("failed to start '{name}'"))
        .map_err(|error| error.hint("put the command and its arguments after --"))
}

/// Waits until the command ends, handing signals on to it meanwhile; `meanwhile` runs with the
/// child alive. `guard` is from before it was started.
pub fn finish<T>(
    mut child: Child,
    guard: HandOn<'_>,
    meanwhile: impl FnOnce() -> T,
) -> Result<(Ended, T)> {
    let pid = Pid::from_child(&child);
    guard.to(pid);
    let value = meanwhile();
    // The child is left unreaped until signals stop going to its number, which the system could
    // otherwise give to a stranger.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = waitid(WaitId::Pid(pid), options) {
        if error != rustix::io::Errno::INTR {
            return Err(Error::failed("failed to wait for the command").because(error));
        }
    }
    drop(guard);
    let status = child.wait().context(|| "failed to wait for the command")?;
    Ok((Ended::of(status), value))
}

/// Returns the words as one line for a log: quoted where a shell would need it, passwords left out.
#[must_use]
pub fn as_line(words: &[OsString]) -> String {
    let mut is_client = false;
    let mut shown = Vec::new();
    for word in words {
        shown.push(as_word(word, is_client));
        is_client = is_client || takes_passwords(word);
    }
    shown.join(" ")
}

/// Whether a word is a program to which `-pSECRET` is a password: to others it may be anything.
fn takes_passwords(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    ["evenkeel", "mysql", "mariadb"]
        .iter()
        .any(|client| name.starts_with(client))
}

fn as_word(word: &OsStr, is_of_client: bool) -> String {
    let text = word.to_string_lossy();
    let text = match text.split_once('=') {
        Some((name @ "--password", secret)) if !secret.is_empty() => format!("{name}=***").into(),
        _ if is_of_client && text.starts_with("-p") && text.len() > 2 => "-p***".into(),
        _ => text,
    };
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+*".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Signals;

    fn run(script: &str) -> Ended {
        let words = ["sh", "-c", script].map(OsString::from);
        let child = start(command(&words).unwrap()).unwrap();
        finish(child, Signals::default().hand_on(), || ())
            .unwrap()
            .0
    }

    #[test]
    fn the_end_of_a_command_is_passed_on() {
        assert_eq!(run("exit 37"), Ended::Code(37));
        assert_eq!(run("kill -9 $$").exit_code(), 137);
        assert!(run("true").is_success());
        assert!(!Ended::Signal(0).is_success());
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let error = start(Command::new("/nonexistent/x")).unwrap_err();
        assert!(
            error
                .chain()
                .starts_with("failed to start '/nonexistent/x': ")
        );
    }

    #[test]
    fn lines_are_quoted_and_hide_passwords() {
        let words = ["mysql", "--password=x", "-e", "it's", ""].map(OsString::from);
        assert_eq!(as_line(&words), r"mysql --password=*** -e 'it'\''s' ''");
        let line = |words: &[&str]| as_line(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(
            line(&[
                "nice",
                "-p5",
                "/usr/bin/evenkeel",
                "backup",
                "-psecret",
                "-p"
            ]),
            "nice -p5 /usr/bin/evenkeel backup -p*** -p"
        );
    }
}
