//! Who listens at a socket: known even of a server that is stopped and cannot answer.

use super::socket_path;
use crate::files::is_server;
use crate::options::ConnectOptions;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Returns the process that listens where `options` lead; `None` when that is no socket of a
/// server of this host, or when somebody else (a service manager) listens for it.
#[must_use]
pub fn server_behind(options: &ConnectOptions) -> Option<i32> {
    if !options.means_socket() {
        return None;
    }
    let address = SocketAddrUnix::new(socket_path(options)).ok()?;
    // The kernel takes the connection, unless too many wait already: that must not be waited for.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    connect(&socket, &address).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&socket).ok()?;
    Some(peer.pid.as_raw_pid()).filter(|pid| is_server(*pid))
}
