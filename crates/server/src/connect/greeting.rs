//! Whether a MySQL or MariaDB server listens, recognized by its first bytes: asked where an answer made no
//! sense.

use super::socket_path;
use crate::options::ConnectOptions;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for the first bytes: a server sends them unasked.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The header of a packet (length in three bytes, number) and the first byte of what is in it.
const START: usize = 5;

/// Returns whether what listens where `options` lead, at `host` if not at a socket, greets as a server does.
pub(super) fn is_heard(options: &ConnectOptions, host: &str) -> bool {
    let start = match options.means_socket() {
        true => of_socket(options),
        false => of_port(options, host),
    };
    start.is_ok_and(is_greeting)
}

fn of_socket(options: &ConnectOptions) -> io::Result<[u8; START]> {
    let mut stream = UnixStream::connect(socket_path(options))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    start(&mut stream)
}

fn of_port(options: &ConnectOptions, host: &str) -> io::Result<[u8; START]> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut stream = TcpStream::connect((bare, options.port.unwrap_or(3306)))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    start(&mut stream)
}

fn start(stream: &mut impl Read) -> io::Result<[u8; START]> {
    let mut start = [0; START];
    stream.read_exact(&mut start)?;
    Ok(start)
}

/// A first packet of less than 64 KiB that begins with the protocol's version, or with an error.
/// (MySQL's documentation, "Protocol::Handshake".)
fn is_greeting(start: [u8; START]) -> bool {
    let [_, _, high, number, first] = start;
    high == 0 && number == 0 && matches!(first, 10 | 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_greets() {
        assert!(is_greeting([0x4a, 0, 0, 0, 10]));
        assert!(is_greeting([0x17, 0, 0, 0, 0xff]), "too many connections");
        for other in [b"220 m", b"SSH-2", b"HTTP/", b"+OK P", b"\0\0\0\0\0"] {
            assert!(!is_greeting(*other), "{other:?}");
        }
    }
}
