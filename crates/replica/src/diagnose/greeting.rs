//! Whether a source that was not asked answers: a MySQL or MariaDB server speaks first.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a source may take to accept a connection, and again to say something.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How a source took a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Greeting {
    /// It said something.
    Answers,
    /// It accepted the connection, and said nothing.
    Silent,
    /// It cannot be reached.
    Refused(String),
}

/// Connects, waits for the first byte, and hangs up. A server counts that as a failed connection of this host: it is
/// done only where the replica cannot connect either.
#[must_use]
pub(super) fn greeting(host: &str, port: u16) -> Greeting {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = match (bare, port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => return Greeting::Refused(error.to_string()),
    };
    let mut refused = format!("{host} has no address");
    for address in addresses {
        let connected = TcpStream::connect_timeout(&address, TIMEOUT);
        match connected {
            Ok(mut stream) => {
                let mut first = [0];
                let heard = stream
                    .set_read_timeout(Some(TIMEOUT))
                    .and_then(|()| stream.read(&mut first));
                return match heard {
                    Ok(1) => Greeting::Answers,
                    Ok(_) => Greeting::Refused("it hangs up".to_owned()),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        Greeting::Silent
                    }
                    Err(error) => Greeting::Refused(error.to_string()),
                };
            }
            Err(error) => refused = error.to_string(),
        }
    }
    Greeting::Refused(refused)
}
