//! A memcached of our own on a private socket, and what of its protocol is needed.

use evenkeel_op::{Context, Error, Result};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to start.
const START: Duration = Duration::from_secs(10);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// The longest value that is believed: memcached's own limit.
const LONGEST: usize = 1 << 20;

/// A memcached that ends with this.
#[derive(Debug)]
pub(super) struct Memcached {
    child: Child,
    socket: PathBuf,
}

impl Memcached {
    /// Starts one that listens in a directory and may hold so many megabytes.
    ///
    /// Errors: `Refused` when there is none to start.
    pub(super) fn start(program: &Path, directory: &Path, megabytes: u32) -> Result<Self> {
        let socket = directory.join("memcached.sock");
        let mut command = Command::new(program);
        command.arg("-s").arg(&socket);
        command.args(["-m", &megabytes.to_string(), "-t", "2"]);
        if rustix::process::geteuid().is_root() {
            // It does not run as root unless told to; its directory is ours.
            command.args(["-u", "root"]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // It dies with this process, however that ends.
        let child = evenkeel_server::launch::spawn(command).map_err(|error| {
            Error::refused(format!("failed to start {}", program.display()))
                .because(error)
                .hint("install memcached, or name the program with --memcached")
        })?;
        let mut started = Self { child, socket };
        let until = Instant::now() + START;
        while started.connect().is_err() {
            let ended = started
                .child
                .try_wait()
                .context(|| "failed to manage memcached")?;
            if let Some(status) = ended {
                return Err(Error::failed(format!("memcached ended at once: {status}")));
            }
            if Instant::now() >= until {
                return Err(Error::failed("memcached did not start within 10 s"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(started)
    }

    pub(super) fn connect(&self) -> io::Result<Client> {
        Client::open(&self.socket)
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // Nothing is lost with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a memcached.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<UnixStream>,
    line: String,
}

impl Client {
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            line: String::new(),
        })
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads a line, a short one.
    fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        let read = self.stream.by_ref().take(1024).read_line(&mut self.line)?;
        match read {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(self.line.trim_end()),
        }
    }

    /// Returns whether the key is there; its value is in `into` then.
    pub(super) fn get(&mut self, key: &str, into: &mut Vec<u8>) -> io::Result<bool> {
        self.send(format!("get {key}\r\n").as_bytes())?;
        let head = self.line()?;
        if head == "END" {
            return Ok(false);
        }
        let length = head
            .strip_prefix("VALUE ")
            .and_then(|rest| rest.rsplit(' ').next());
        let length: Option<usize> = length.and_then(|text| text.parse().ok());
        let length = length
            .filter(|length| *length <= LONGEST)
            .ok_or_else(|| nonsense(head))?;
        into.resize(length + 2, 0);
        self.stream.read_exact(into)?;
        into.truncate(length);
        match self.line()? {
            "END" => Ok(true),
            other => Err(nonsense(other)),
        }
    }

    /// Keeps a value.
    pub(super) fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let mut bytes = format!("set {key} 0 0 {}\r\n", value.len()).into_bytes();
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
        self.send(&bytes)?;
        match self.line()? {
            "STORED" => Ok(()),
            other => Err(nonsense(other)),
        }
    }

    /// Forgets a key.
    pub(super) fn delete(&mut self, key: &str) -> io::Result<()> {
        self.send(format!("delete {key}\r\n").as_bytes())?;
        match self.line()? {
            "DELETED" | "NOT_FOUND" => Ok(()),
            other => Err(nonsense(other)),
        }
    }

    /// Forgets everything.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.send(b"flush_all\r\n")?;
        match self.line()? {
            "OK" => Ok(()),
            other => Err(nonsense(other)),
        }
    }
}

fn nonsense(answer: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("memcached answered {answer:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_until_they_are_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let server = Memcached::start(Path::new("memcached"), directory.path(), 16).unwrap();
        let mut client = server.connect().unwrap();
        let mut value = Vec::new();
        assert!(!client.get("a", &mut value).unwrap());
        client.set("a", b"one\r\nEND\r\n").unwrap();
        assert!(client.get("a", &mut value).unwrap());
        assert_eq!(value, b"one\r\nEND\r\n");
        client.delete("a").unwrap();
        client.delete("a").unwrap();
        assert!(!client.get("a", &mut value).unwrap());
        client.set("b", b"").unwrap();
        client.flush().unwrap();
        assert!(!client.get("b", &mut value).unwrap());
    }

    #[test]
    fn a_program_that_is_missing_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let error = Memcached::start(Path::new("/nowhere/memcached"), directory.path(), 16);
        assert!(error.unwrap_err().hints()[0].contains("install memcached"));
    }
}
