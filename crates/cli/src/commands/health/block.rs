//! `health run --block`.

use crate::args::HealthRun;
use crate::show::Ui;
use evenkeel_health::block::{Block, Blocker, left};
use evenkeel_health::watch::Target;
use evenkeel_op::{Error, Result};
use evenkeel_server::options::ConnectOptions;
use rustix::process::geteuid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

/// Where nft is: nobody's PATH decides what is run with the right to change rules.
const PLACES: [&str; 4] = [
    "/usr/sbin/nft",
    "/sbin/nft",
    "/usr/bin/nft",
    "/usr/local/sbin/nft",
];

/// Takes the port that is to be blocked, if there is one.
///
/// # Errors
///
/// `Usage` with several servers; `Refused` where it cannot be blocked; `Busy` where another process does.
pub(super) fn blocker(args: &HealthRun, servers: &[&Target], ui: &Ui) -> Result<Option<Blocker>> {
    let blocker = match args.block {
        Some(port) => Some(taken(args, port, servers, ui)?),
        None => None,
    };
    // As the program is looked at only for this, whatever is wrong with it is not said.
    for port in program().map(|program| left(&program)).unwrap_or_default() {
        ui.warn(&format!(
            "port {port} is blocked, as an earlier 'health run --block {port}' left it, and no process opens it: to \
             open it, nft delete table inet evenkeel_health_{port}"
        ));
    }
    Ok(blocker)
}

fn taken(args: &HealthRun, port: u16, servers: &[&Target], ui: &Ui) -> Result<Blocker> {
    let [server] = servers else {
        return Err(
            Error::usage("--block is the port of one server, and there are several")
                .hint("run one 'evenkeel health run --block PORT' on the host of each"),
        );
    };
    warn_of_another(port, &server.options, ui);
    let exempt = args.block_exempt.iter().map(|text| text.parse());
    let blocker = Blocker::take(Block {
        program: program()?,
        port,
        exempt: exempt.collect::<Result<_>>()?,
        ends_sessions: args.block_sessions,
    })?;
    if blocker.is_closed() {
        ui.note(&format!(
            "port {port} is still blocked, as an earlier process left it: it stays so until a check says 'up'"
        ));
    }
    Ok(blocker)
}

/// Says so where what is asked is not what is behind the port, as far as that can be seen.
fn warn_of_another(port: u16, options: &ConnectOptions, ui: &Ui) {
    let Some(host) = options.host.as_deref().filter(|_| !options.means_socket()) else {
        return;
    };
    let asked = options.port.unwrap_or(3306);
    if asked != port {
        ui.warn(&format!(
            "the server at port {asked} is asked, and port {port} is blocked: both must lead to the same server"
        ));
    }
    let mut found = (host, asked).to_socket_addrs().into_iter().flatten();
    if found.any(|address| is_elsewhere(address.ip())) {
        ui.warn(&format!(
            "{host} is not an address of this host, and --block closes a port of this host: run it where the server is"
        ));
    }
}

/// Whether packets to an address leave this host: then they come from another one. Nothing is sent.
fn is_elsewhere(address: IpAddr) -> bool {
    let unspecified = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let from = UdpSocket::bind((unspecified, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    // Where there is no way, nothing is known.
    !address.is_loopback() && from.is_ok_and(|from| from.ip() != address)
}

fn program() -> Result<PathBuf> {
    let mut places = PLACES.iter().map(Path::new);
    let found = places.find(|place| place.is_file());
    let found = found.ok_or_else(|| {
        Error::refused("--block needs nft, which is not installed")
            .hint("install the package nftables")
    })?;
    if geteuid().is_root() {
        super::refuse_program_of_others(found, "give it back to root")?;
    }
    Ok(found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_are_not_elsewhere() {
        let is = |text: &str| is_elsewhere(text.parse().unwrap());
        assert!(!is("127.0.0.1"));
        assert!(!is("127.0.0.2"));
    }
}
