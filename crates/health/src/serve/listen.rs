//! Where it listens.

use evenkeel_op::{Error, Result};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens at `ADDRESS:PORT`; `:PORT` is every address that this host has, of both versions of IP.
pub(super) fn at(address: &str) -> Result<TcpListener> {
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "another process listens there: 'ss -ltnp' says which",
            io::ErrorKind::InvalidInput => "write it as ADDRESS:PORT, or :9200 for every address",
            _ => "check that the address is one of this host",
        };
        Error::failed(format!("failed to listen at {address}"))
            .because(error)
            .hint(hint)
    };
    let everywhere = address.strip_prefix(':').map(str::parse::<u16>);
    let Some(Ok(port)) = everywhere else {
        return TcpListener::bind(address).map_err(failed);
    };
    match on_both(port) {
        // This host has no IPv6.
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::PROTONOSUPPORT) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(failed)
        }
        listening => listening.map_err(|error| failed(error.into())),
    }
}

/// Whatever the host's setting for such sockets is.
fn on_both(port: u16) -> rustix::io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Says where it listens, at an address as it was typed.
#[must_use]
pub fn place_heard(at: SocketAddr, typed: &str) -> String {
    match (typed.starts_with(':'), at.is_ipv6()) {
        (false, _) => at.to_string(),
        (true, true) => format!("port {} of every address, over IPv4 and IPv6", at.port()),
        (true, false) => format!(
            "port {} of every address, over IPv4: this host has no IPv6",
            at.port()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_port_alone_is_heard_on_every_address() {
        let listener = at(":0").unwrap();
        let heard = listener.local_addr().unwrap();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, heard.port())).is_ok());
        let said = place_heard(heard, ":0");
        assert!(said.contains("every address, over IPv4"), "{said}");
        if heard.is_ipv6() {
            assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, heard.port())).is_ok());
            assert!(said.contains("and IPv6"), "{said}");
        }
        let one = at("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(place_heard(one, "127.0.0.1:0"), one.to_string());
        for wrong in [":", ":port", ":70000", "localhost"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        let hint = |typed: &str| at(typed).unwrap_err().hints().join(" ");
        assert!(hint("9200").contains(":9200"), "{}", hint("9200"));
        let taken = listener.local_addr().unwrap().port();
        assert!(hint(&format!(":{taken}")).contains("ss -ltnp"));
    }
}
