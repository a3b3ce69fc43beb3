//! Orders of people, over a Unix socket: one line each way. Only this user and root are heard.

use crate::board::{Board, Shown};
use crate::keep::Keep;
use crate::machine::HealthOrder;
use crate::reason::plain;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result, units};
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long one side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest request, and the longest answer.
const REQUEST_BYTES: u64 = 4096;
const ANSWER_BYTES: u64 = 16 << 20;
const PAUSE: Duration = Duration::from_millis(50);
/// A socket's address has 108 bytes, and ends with a zero. The way to the directory is up to `/proc/self/fd/1234567/`.
const NAME_BYTES: usize = 107 - 22;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "ask")]
pub enum HealthRequest {
    /// How every server is.
    Status,
    /// An order for a server.
    Order {
        /// Which; empty for the only one.
        server: String,
        /// What.
        #[serde(flatten)]
        order: HealthOrder,
    },
    /// The end of orders, holds and locks of a server.
    Release {
        /// Which; empty for the only one.
        server: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer<T> {
    servers: Option<T>,
    kind: Option<String>,
    message: Option<String>,
}

/// The socket, removed in the end.
#[derive(Debug)]
pub struct Control {
    directory: OwnDirectory,
    name: OsString,
    /// Device and number of the socket: the path may be another one's by now.
    own: Option<(u64, u64)>,
}

impl Control {
    /// Obeys at a path from now on.
    ///
    /// # Errors
    ///
    /// `Busy` if another process obeys there; `Refused` if the directory is another user's, or open to other writers.
    pub fn obey(path: &Path, board: Arc<Board>, keep: Option<Arc<Keep>>) -> Result<Self> {
        let (directory, name) = split(path)?;
        let directory = OwnDirectory::make(&directory, 0o755)?;
        let failed = || format!("failed to listen at {}", path.display());
        let anchor = directory.anchor().join(&name);
        if let Ok(there) = sys::statat(&*directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            if FileType::from_raw_mode(there.st_mode) != FileType::Socket {
                return Err(
                    Error::refused(format!("{} is not a socket", path.display()))
                        .hint("name another path with --control"),
                );
            }
            if is_answered(&anchor) {
                let busy = format!("another 'evenkeel health run' obeys at {}", path.display());
                return Err(Error::new(ErrorKind::Busy, busy).hint("give each its own --control"));
            }
            // Of one that was killed.
            sys::unlinkat(&*directory, &name, AtFlags::empty())
                .map_err(io::Error::from)
                .context(failed)?;
        }
        let listener = UnixListener::bind(&anchor).context(failed)?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&anchor, mode).context(failed)?;
        let own = identity(&directory, &name);
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        // Whoever hung up wants no answer.
                        Ok(stream) => drop(serve(stream, &board, keep.as_deref())),
                        Err(_) => std::thread::sleep(PAUSE),
                    }
                }
            })
            .context(|| "failed to start a thread")?;
        Ok(Self {
            directory,
            name,
            own,
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Whoever found it dead and took its place keeps its own.
        if self.own.is_some() && identity(&self.directory, &self.name) == self.own {
            let _ = sys::unlinkat(&*self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn identity(directory: &OwnDirectory, name: &OsStr) -> Option<(u64, u64)> {
    let found = sys::statat(&**directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// Returns whether a process listens at a socket, whatever that does now.
fn is_answered(path: &Path) -> bool {
    match reach(path) {
        Ok(_) => true,
        // So many wait already that it must be there.
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// Connects, and does not wait for one that is stopped: `WouldBlock` if too many wait already.
fn reach(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn split(path: &Path) -> Result<(PathBuf, OsString)> {
    let path = evenkeel_op::paths::absolute(path);
    // Whatever leads there, what is found there must be this user's own.
    let both = path.parent().zip(path.file_name());
    let (parent, name) =
        both.ok_or_else(|| Error::usage(format!("{} cannot be a socket", path.display())))?;
    if name.len() > NAME_BYTES {
        let shown = path.display();
        return Err(Error::usage(format!(
            "{shown} cannot be a socket: its name has {} bytes",
            name.len()
        ))
        .hint(format!("give it a name of at most {NAME_BYTES} bytes")));
    }
    Ok((evenkeel_op::paths::resolved(parent), name.to_owned()))
}

fn serve(stream: UnixStream, board: &Board, keep: Option<&Keep>) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let peer = socket_peercred(&stream)?.uid;
    let outcome = if peer.is_root() || peer == geteuid() {
        let mut line = String::new();
        BufReader::new((&stream).take(REQUEST_BYTES)).read_line(&mut line)?;
        obeyed(&line, board, keep)
    } else {
        Err(Error::refused(
            "only root and the user that runs it may give orders",
        ))
    };
    let answer = match outcome {
        Ok(servers) => Answer {
            servers: Some(servers),
            kind: None,
            message: None,
        },
        Err(error) => Answer {
            servers: None,
            kind: Some(error.kind().name().to_owned()),
            message: Some(error.chain()),
        },
    };
    let mut text = serde_json::to_vec(&answer).map_err(io::Error::other)?;
    text.push(b'\n');
    (&stream).write_all(&text)
}

/// Does what is asked. An order counts only once it would outlast this process.
fn obeyed(line: &str, board: &Board, keep: Option<&Keep>) -> Result<Vec<Shown>> {
    let request: HealthRequest =
        serde_json::from_str(line).context(|| "the request is not understood")?;
    let find = |name: &str| {
        board.find(name).ok_or_else(|| match name {
            "" => Error::usage("there are several servers: name one"),
            name => Error::usage(format!("there is no server '{name}' here")),
        })
    };
    let server = match request {
        HealthRequest::Status => return Ok((0..board.len()).map(|at| board.shown(at)).collect()),
        HealthRequest::Order { server, order } => {
            let server = find(&server)?;
            if !board.order(server, order) {
                let name = board.name(server);
                return Err(Error::refused(format!(
                    "'{name}' is in maintenance, which is stricter than a drain: end that first, with 'evenkeel \
                     health undrain'"
                )));
            }
            server
        }
        HealthRequest::Release { server } => {
            let server = find(&server)?;
            board.release(server);
            server
        }
    };
    if let Some(keep) = keep {
        keep.save(board)
            .context(|| "it is done, but would be forgotten at the next start")?;
    }
    Ok(vec![board.shown(server)])
}

/// Asks the process that obeys at a path. The servers are as JSON.
///
/// # Errors
///
/// `Unreachable` if none does; what it refuses.
pub fn ask(path: &Path, request: &HealthRequest) -> Result<serde_json::Value> {
    let shown = path.display();
    let failed = || format!("no answer from 'evenkeel health run' at {shown}");
    let none = |error: Error| {
        error
            .of_kind(ErrorKind::Unreachable)
            .hint("check that it runs with this --control, and that you are the user who runs it")
    };
    let text = serde_json::to_string(request).context(|| "the request cannot be written")?;
    if text.len() as u64 >= REQUEST_BYTES {
        return Err(Error::usage("the order is too long").hint(format!(
            "give a shorter --reason: an order has at most {REQUEST_BYTES} bytes"
        )));
    }
    let (parent, name) = split(path)?;
    // A directory's path may be longer than a socket's address.
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = sys::open(&parent, way, Mode::empty());
    let parent = parent.map_err(io::Error::from).context(failed);
    let parent = parent.map_err(none)?;
    let way = format!("/proc/self/fd/{}", parent.as_raw_fd());
    let exchanged = reach(&Path::new(&way).join(name)).and_then(|it| exchange(&it, text));
    let answer = match exchanged {
        Err(error) if is_late(&error) => {
            let waited = units::duration(TIMEOUT);
            return Err(Error::new(
                ErrorKind::Unreachable,
                format!("'evenkeel health run' at {shown} is there, but has not answered for {waited}"),
            )
            .hint(
                "it is stopped, or its disk hangs: see 'systemctl status evenkeel-health', or its process in ps; \
                 continue it with kill -CONT, or restart it",
            ));
        }
        exchanged => exchanged.context(failed).map_err(none)?,
    };
    match answer {
        Answer {
            servers: Some(servers),
            ..
        } => Ok(servers),
        Answer { kind, message, .. } => {
            let kind = kind.and_then(|kind| ErrorKind::named(&kind));
            // It may be another user's, and say what it likes.
            let message = message.map_or_else(failed, |message| plain(&message));
            Err(Error::new(kind.unwrap_or(ErrorKind::Failed), message))
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn exchange(stream: &UnixStream, mut text: String) -> io::Result<Answer<serde_json::Value>> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    text.push('\n');
    let mut to = stream;
    to.write_all(text.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(ANSWER_BYTES)).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::Error::other("it hung up"));
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
