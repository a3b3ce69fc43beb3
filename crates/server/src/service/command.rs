//! Runs a command that stops or starts a server.

use crate::launch::kill_group;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);
/// How much of what it said an error shows, in bytes.
const SHOWN: usize = 2000;

/// Runs a program to its end; fails with what it said when it fails or `until` passes. What it
/// leaves in the background may keep its output: nobody waits for that.
pub(super) fn run(program: &str, args: &[&str], until: Instant) -> Result<()> {
    let shown = format!("{program} {}", args.join(" "));
    let failed = || format!("failed to run '{shown}'");
    let said = rustix::fs::memfd_create("evenkeel", MemfdFlags::CLOEXEC)
        .map(File::from)
        .context(failed)?;
    let copy = || said.try_clone().map(Stdio::from).context(failed);
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(copy()?)
        .stderr(copy()?)
        .process_group(0)
        .spawn()
        .context(failed)?;
    loop {
        match child.try_wait().context(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(Error::failed(format!(
                    "'{shown}' ended with {status}{}",
                    words(said)
                )));
            }
            None if Instant::now() >= until => {
                kill_group(&mut child);
                return Err(Error::failed(format!(
                    "'{shown}' took too long{}",
                    words(said)
                )));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

fn words(mut said: File) -> String {
    let mut bytes = Vec::new();
    let _ = said
        .seek(SeekFrom::Start(0))
        .and_then(|_| said.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN)..]).into_owned();
    match text.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_the_command_said() {
        let later = Instant::now() + Duration::from_secs(60);
        run("/bin/sh", &["-c", "true"], later).unwrap();
        let error = run("/bin/sh", &["-c", "echo because >&2; exit 3"], later).unwrap_err();
        assert!(error.to_string().contains("because"), "{error}");
        let error = run("/bin/sh", &["-c", "sleep 1000"], Instant::now()).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
