//! Where clients connect, and where the server is: an address, or a socket file.

use super::socket_file::SocketFile;
use evenkeel_op::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind, connect,
    getsockname, listen, socket_with, sockopt,
};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Connections that may wait to be taken: a pool opens all of its own at once.
const BACKLOG: i32 = 1024;
/// A peer that vanished without a word is noticed in about a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;
/// How long a server may take to take the first connection, which only looks whether it is there.
const PROBE: Duration = Duration::from_secs(2);
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A place to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapAddress {
    /// A socket file.
    File(PathBuf),
    /// A name or an address, with its port.
    Host(String, u16),
}

impl fmt::Display for TapAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Host(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// An address that a connection can be made to.
#[derive(Debug, Clone)]
pub(super) enum Address {
    Tcp(SocketAddr),
    File(PathBuf),
}

impl TapAddress {
    /// Reads where to listen: `:3307` on this host only, `ADDRESS:PORT`, or a path with a slash in it.
    ///
    /// # Errors
    ///
    /// `Usage` when it is none of these.
    pub fn to_listen(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is no place to listen on")).hint(
                "give :PORT (this host only), ADDRESS:PORT, or the path of a socket file with a slash in it",
            )
        };
        match Self::read(text, None).ok_or_else(wrong)? {
            // Nobody opens a server to the network without saying so.
            Self::Host(host, port) if host.is_empty() => {
                Ok(Self::Host(Ipv4Addr::LOCALHOST.to_string(), port))
            }
            other => Ok(other),
        }
    }

    /// Reads where a server is: `HOST`, `HOST:PORT`, or a path with a slash in it.
    ///
    /// # Errors
    ///
    /// `Usage` when it is none of these.
    pub fn of_server(text: &str) -> Result<Self> {
        match Self::read(text, Some(3306)) {
            Some(Self::Host(host, port)) if host.is_empty() || port == 0 => None,
            other => other,
        }
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is no place of a server"))
                .hint("give HOST:PORT, or the path of a socket file with a slash in it")
        })
    }

    fn read(text: &str, usual: Option<u16>) -> Option<Self> {
        if text.contains('/') {
            return Some(Self::File(PathBuf::from(text)));
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port.parse().ok()?),
                None if rest.is_empty() => usual,
                None => None,
            };
            return Some(Self::Host(host.to_owned(), port?));
        }
        match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => Some(Self::Host(text.to_owned(), usual?)),
            Some((host, port)) => Some(Self::Host(host.to_owned(), port.parse().ok()?)),
            None if text.is_empty() => None,
            None => Some(Self::Host(text.to_owned(), usual?)),
        }
    }

    /// Checks that a tap does not connect to itself.
    pub(super) fn differs_from(&self, listen: &Self) -> Result<()> {
        match self == listen {
            false => Ok(()),
            true => Err(Error::usage(format!(
                "the tap cannot listen on {listen} itself: that is the server"
            ))
            .hint("listen on another port or socket file, and have clients connect there")),
        }
    }

    /// Checks that a server's place does not lead to the tap itself, under whatever name: each connection would open
    /// the next one, until there are no more.
    ///
    /// # Errors
    ///
    /// `Usage` when it does, or when it has no address.
    pub(super) fn is_not(&self, listener: &Listener) -> Result<()> {
        let leads = match (self, &listener.file) {
            (Self::File(path), Some(file)) => file.is_at(path),
            (Self::Host(..), None) => {
                let bound = listener.place.parse().ok();
                let leads = |address: &Address| match (address, bound) {
                    (Address::Tcp(address), Some(bound)) => leads_to(*address, bound),
                    _ => false,
                };
                self.addresses()?.iter().any(leads)
            }
            _ => false,
        };
        match leads {
            false => Ok(()),
            true => Err(Error::usage(format!(
                "--to {self} leads to the tap itself, which listens on {}",
                listener.place
            ))
            .hint("name the server's own port or socket file in --to")),
        }
    }

    /// Returns why nothing answers at the server's place, if so.
    pub(super) fn silence(&self) -> Option<String> {
        let addresses = match self.addresses() {
            Ok(addresses) => addresses,
            Err(error) => return Some(error.chain()),
        };
        let mut why = None;
        for address in addresses {
            let answer = match &address {
                Address::Tcp(address) => TcpStream::connect_timeout(address, PROBE).map(drop),
                Address::File(path) => UnixStream::connect(path).map(drop),
            };
            match answer {
                Ok(()) => return None,
                Err(error) => why = Some(error.to_string()),
            }
        }
        why
    }

    /// Returns the addresses that a name stands for.
    ///
    /// # Errors
    ///
    /// `Usage` when it stands for none.
    pub(super) fn addresses(&self) -> Result<Vec<Address>> {
        let (host, port) = match self {
            Self::File(path) => return Ok(vec![Address::File(path.clone())]),
            Self::Host(host, port) => (host, *port),
        };
        let unknown = || Error::usage(format!("the host '{host}' has no address"));
        let found = (&**host, port)
            .to_socket_addrs()
            .map_err(|error| unknown().because(error))?;
        let found: Vec<_> = found.map(Address::Tcp).collect();
        match found.is_empty() {
            true => Err(unknown()),
            false => Ok(found),
        }
    }
}

impl Address {
    /// Begins to connect; returns the socket, and whether the server has accepted. `AGAIN`: its queue is full.
    pub(super) fn connect(&self) -> Result<(OwnedFd, bool), Errno> {
        let (socket, connected) = match self {
            Self::Tcp(address) => {
                let socket = socket_with(family(*address), SocketType::STREAM, FLAGS, None)?;
                prepare(&socket)?;
                let connected = connect(&socket, address);
                (socket, connected)
            }
            Self::File(path) => {
                let address = SocketAddrUnix::new(path)?;
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
                let connected = connect(&socket, &address);
                (socket, connected)
            }
        };
        match connected {
            Ok(()) => Ok((socket, true)),
            Err(Errno::INPROGRESS) => Ok((socket, false)),
            Err(error) => Err(error),
        }
    }
}

/// Whether a connection to an address comes to a socket that is bound like this.
fn leads_to(address: SocketAddr, bound: SocketAddr) -> bool {
    let (to, on) = (address.ip().to_canonical(), bound.ip().to_canonical());
    // All addresses of this host: only those can be bound to.
    let is_own = || std::net::TcpListener::bind((to, 0)).is_ok();
    let reaches = to == on || (on.is_unspecified() && (to.is_unspecified() || is_own()));
    // A connection to no address in particular is one to this host.
    address.port() == bound.port() && (reaches || (to.is_unspecified() && on.is_loopback()))
}

fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Has small packets leave at once, and a peer that vanished noticed.
fn prepare(socket: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_TRIES)
}

/// Where clients connect.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    place: String,
    file: Option<SocketFile>,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Listener {
    pub(super) fn open(place: &TapAddress, mode: u32) -> Result<Self> {
        if let TapAddress::File(path) = place {
            let (socket, file) = SocketFile::listen(path, mode, BACKLOG)?;
            return Ok(Self {
                socket,
                place: place.to_string(),
                file: Some(file),
            });
        }
        let mut last = Error::usage(format!("{place} is no address of this host"));
        for address in place.addresses()? {
            let Address::Tcp(address) = address else {
                continue;
            };
            match on_address(address) {
                Ok(socket) => {
                    let bound = getsockname(&socket)
                        .ok()
                        .and_then(|any| SocketAddr::try_from(any).ok());
                    return Ok(Self {
                        socket,
                        place: bound.unwrap_or(address).to_string(),
                        file: None,
                    });
                }
                Err(error) => last = not_listening(&address.to_string(), error),
            }
        }
        Err(last)
    }

    pub(super) fn place(&self) -> String {
        self.place.clone()
    }

    pub(super) fn replaced(&self) -> bool {
        self.file.as_ref().is_some_and(SocketFile::replaced)
    }

    /// Takes a client; returns its socket, and where it is.
    pub(super) fn accept(&self) -> Result<(OwnedFd, String), Errno> {
        let (socket, from) = acceptfrom_with(&self.socket, FLAGS)?;
        if self.file.is_some() {
            return Ok((socket, "localhost".to_owned()));
        }
        prepare(&socket)?;
        let address = from.and_then(|any| SocketAddr::try_from(any).ok());
        let host = address.map(|address| address.ip().to_canonical());
        let host = host.as_ref().map_or_else(String::new, IpAddr::to_string);
        Ok((socket, host))
    }
}

fn on_address(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let socket = socket_with(family(address), SocketType::STREAM, FLAGS, None)?;
    // Connections of an earlier run may still wait for their end.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

pub(super) fn not_listening(place: &str, error: Errno) -> Error {
    match error {
        Errno::ADDRINUSE => Error::usage(format!("{place} is in use")).hint(
            "listen on another port; the server keeps its own, and clients connect to the tap's",
        ),
        Errno::ADDRNOTAVAIL => Error::usage(format!("{place} is no address of this host")),
        error => {
            Error::failed(format!("failed to listen on {place}")).because(io::Error::from(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_itself_is_known() {
        for (to, bound, leads) in [
            ("127.0.0.1:7", "127.0.0.1:7", true),
            ("[::ffff:127.0.0.1]:7", "127.0.0.1:7", true),
            ("127.0.0.1:7", "127.0.0.1:8", false),
            ("127.0.0.2:7", "127.0.0.1:7", false),
            ("127.0.0.2:7", "0.0.0.0:7", true),
            ("127.0.0.1:7", "[::]:7", true),
            ("0.0.0.0:7", "127.0.0.1:7", true),
            ("192.0.2.1:7", "0.0.0.0:7", false),
        ] {
            let is = leads_to(to.parse().unwrap(), bound.parse().unwrap());
            assert_eq!(is, leads, "{to} {bound}");
        }
    }

    #[test]
    fn places_are_read() {
        let listen = |text: &str| {
            TapAddress::to_listen(text)
                .map(|place| place.to_string())
                .ok()
        };
        for (text, place) in [
            (":3307", Some("127.0.0.1:3307")),
            ("0.0.0.0:3307", Some("0.0.0.0:3307")),
            ("[::1]:3307", Some("[::1]:3307")),
            ("./tap.sock", Some("./tap.sock")),
            ("3307", None),
            ("tap.sock", None),
            (":", None),
            (":99999", None),
            ("[::1]", None),
            ("", None),
        ] {
            assert_eq!(listen(text).as_deref(), place, "{text}");
        }
        let server = |text: &str| {
            TapAddress::of_server(text)
                .map(|place| place.to_string())
                .ok()
        };
        for (text, place) in [
            ("db1", Some("db1:3306")),
            ("db1:3307", Some("db1:3307")),
            ("::1", Some("[::1]:3306")),
            ("[::1]:9", Some("[::1]:9")),
            ("/run/mysqld/mysqld.sock", Some("/run/mysqld/mysqld.sock")),
            (":3306", None),
            ("db1:0", None),
            ("", None),
        ] {
            assert_eq!(server(text).as_deref(), place, "{text}");
        }
    }
}
