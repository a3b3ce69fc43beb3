//! What ssh starts on the other host: a bridge between the connection and the session, which
//! outlives it.

use super::directory::Directory;
use crate::link::SessionId;
use evenkeel_op::{Context, Error, Result};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a session may take to begin.
const BEGIN: Duration = Duration::from_secs(20);
const RETRY: Duration = Duration::from_millis(5);

/// Connects `input` and `output` with the session below `here`, until either ends. `start` is the
/// command that begins a session, where one should begin.
pub fn attach(
    here: &Path,
    session: SessionId,
    start: Option<Command>,
    input: impl Read + Send + 'static,
    mut output: impl Write,
) -> Result<()> {
    let directory = Directory::of(here, session);
    let stream = match start {
        Some(command) => begin(&directory, command)?,
        None => match UnixStream::connect(directory.socket()) {
            Ok(stream) => stream,
            Err(_) => {
                directory.remove();
                return output
                    .write_all(b"evenkeel:gone\n")
                    .context(|| "failed to answer");
            }
        },
    };
    output
        .write_all(b"evenkeel:ready\n")
        .and_then(|()| output.flush())
        .context(|| "failed to answer")?;
    let inward = stream
        .try_clone()
        .context(|| "failed to duplicate a socket")?;
    std::thread::spawn(move || {
        // Either end may go at any time; the session waits for the next connection.
        let _ = copy(input, &inward);
        let _ = inward.shutdown(Shutdown::Both);
    });
    let _ = copy(&stream, output);
    Ok(())
}

fn begin(directory: &Directory, mut command: Command) -> Result<UnixStream> {
    let failed = || format!("failed to create {}", directory.socket().display());
    directory.make().context(failed)?;
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = quiet
        .process_group(0)
        .spawn()
        .context(|| "failed to begin a session")?;
    let deadline = Instant::now() + BEGIN;
    loop {
        if let Ok(stream) = UnixStream::connect(directory.socket()) {
            return Ok(stream);
        }
        let ended = child.try_wait().context(|| "failed to begin a session")?;
        if ended.is_some() || Instant::now() > deadline {
            directory.remove();
            return Err(Error::failed("the session did not begin"));
        }
        std::thread::sleep(RETRY);
    }
}

/// Hands on what comes as it comes.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length])?;
        to.flush()?;
    }
}
