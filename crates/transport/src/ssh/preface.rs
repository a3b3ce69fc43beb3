//! What is said before the program speaks: lines that begin with `evenkeel:`. What a login shell says besides is
//! skipped.

use super::{Refusal, Watch};
use crate::program::Program;
use evenkeel_op::{Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdin, ChildStdout};

/// A line of the bootstrap begins with this.
const MARK: &str = "evenkeel:";
const KEPT: &str = "kept ";
const UNKEPT: &str = "unkept ";
const UNFIT: &str = "cannot run ";
/// So much of what is said before the program is looked at.
const PREFACE_MAX: u64 = 1 << 20;

/// What becomes of the program on the other host.
pub(super) enum Kept {
    /// It stays, in this directory.
    Yes(String),
    /// It cannot stay, for this reason.
    No(String),
}

impl Kept {
    /// Says so to the user.
    pub(super) fn reported(&self, host: &str) -> String {
        match self {
            Self::Yes(place) => format!("the program stays on {host} for the next run, in {place}"),
            Self::No(why) => format!(
                "the program cannot be kept on {host}, so each run sends it: {why} \
                 (--no-ssh-keep-program silences this)"
            ),
        }
    }
}

/// Talks to the bootstrap until the program is there. Returns how many bytes of it were pushed.
pub(super) fn preface(
    reader: &mut BufReader<ChildStdout>,
    stdin: &mut ChildStdin,
    program: &Program,
    watch: &Watch,
    note: &dyn Fn(Kept),
) -> Result<u64, Refusal> {
    let mut left = PREFACE_MAX;
    let mut pushed = 0;
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(left).read_until(b'\n', &mut line);
        let length =
            read.map_err(|error| Refusal::Failed(Error::failed("ssh ended").because(error)))?;
        left = left.saturating_sub(length as u64);
        if length == 0 {
            return Err(Refusal::Failed(Error::failed("the connection ended")));
        }
        // What is shown of it must not be obeyed by a terminal.
        let line = String::from_utf8_lossy(&line).replace(char::is_control, " ");
        let Some(word) = line.trim_end().strip_prefix(MARK) else {
            continue;
        };
        watch.renew();
        match word {
            "need" | "need packed" => {
                let done = program.push(word == "need packed", stdin, &|| watch.renew());
                pushed += done.map_err(|error| {
                    Refusal::Failed(Error::failed("failed to push the program").because(error))
                })?;
            }
            "have" => {}
            "ready" => return Ok(pushed),
            "gone" => return Err(Refusal::Gone),
            word if word.starts_with(KEPT) => {
                note(Kept::Yes(word.trim_start_matches(KEPT).to_owned()));
            }
            word if word.starts_with(UNKEPT) => {
                note(Kept::No(word.trim_start_matches(UNKEPT).to_owned()));
            }
            word if word.starts_with(UNFIT) => {
                return Err(Refusal::Unfit(unfit(word.trim_start_matches(UNFIT))));
            }
            other => return Err(Refusal::Never(Error::refused(other.to_owned()))),
        }
    }
}

/// Says why the program does not run on the other host, given what its loader or the shell said, and what
/// to do.
fn unfit(said: &str) -> Error {
    let said = said.trim();
    let (why, hint) = if said.starts_with("it was built for") {
        (
            "the program does not run on that host's processor",
            "send one that was built for it: --ssh-program FILE",
        )
    } else if said.contains("GLIBC_") && said.contains("not found") {
        (
            "that host's C library is older than the program needs",
            "send the program from the packages, or one built by `make portable`; they need \
             glibc 2.17: --ssh-program FILE",
        )
    } else {
        (
            "the program does not run on that host",
            "it needs the GNU C library there; --ssh-program FILE sends another program, for \
             example from the packages",
        )
    };
    Error::refused(why).because(said.to_owned()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_that_lacks_a_version_is_told_from_other_failures() {
        let loader = "/x/program: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.35' not found (required by /x)";
        assert!(unfit(loader).chain().contains("C library is older"));
        assert!(unfit(loader).hints()[0].contains("make portable"));
        let other = unfit("/x/program: not found");
        assert!(!other.chain().contains("older"));
    }
}
