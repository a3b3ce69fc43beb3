//! From a stream to a session.

use crate::auth::{self, Plugin};
use crate::decode::{Malformed, ServerError};
use crate::greeting::{Greeting, can};
use crate::packet::{Packets, broken};
use crate::stream::{Patient, Stream, connect};
use crate::tls;
use evenkeel_op::Cancel;
use evenkeel_server::options::{ConnectOptions, SslMode, login_name};
use std::io;

/// Rounds of questions and answers that a login may take.
const ROUNDS: usize = 12;

/// Why a login failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    /// TLS did not come about; without it, it may work.
    Tls(io::Error),
    Server(ServerError),
    /// What answers does not speak the protocol.
    Stranger,
    /// The server has no TLS.
    NoTls,
    /// The account wants a plugin that we do not know.
    Plugin(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Self {
        Self::Io(io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// A session that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) packets: Packets<Stream>,
    pub(crate) greeting: Greeting,
    /// What both sides can do.
    pub(crate) capabilities: u32,
}

/// Connects and logs in; with `compress`, what comes then is compressed if the server can.
pub(crate) fn login(
    options: &ConnectOptions,
    compress: bool,
    cancel: &Cancel,
) -> Result<Begun, Failure> {
    let tls = options.ssl_mode != SslMode::Disabled && !options.means_socket();
    match attempt(options, tls, compress, cancel) {
        Err(Failure::Tls(_) | Failure::NoTls) if options.ssl_mode == SslMode::Preferred => {
            attempt(options, false, compress, cancel)
        }
        other => other,
    }
}

fn attempt(
    options: &ConnectOptions,
    tls: bool,
    compress: bool,
    cancel: &Cancel,
) -> Result<Begun, Failure> {
    let mut packets = Packets::new(connect(options, cancel)?);
    let greeting = greet(&mut packets)?;
    let mut capabilities = greeting.capabilities & can::WANTED;
    if compress {
        capabilities |= greeting.capabilities & can::COMPRESS;
    }
    let mut packets = if tls {
        if greeting.capabilities & can::TLS == 0 {
            return Err(Failure::NoTls);
        }
        capabilities |= can::TLS;
        packets.send(&Greeting::opening(capabilities))?;
        packets
            .upgrade(|stream| tls::wrap(stream, options))
            .map_err(Failure::Tls)?
    } else {
        packets.upgrade(|stream| Ok(Stream::Plain(stream)))?
    };
    prove(&mut packets, &greeting, capabilities, options)?;
    if capabilities & can::COMPRESS != 0 {
        packets = packets.upgrade(|stream| Ok(stream.compressed()))?;
        packets.ignore_numbers();
    }
    Ok(Begun {
        packets,
        greeting,
        capabilities,
    })
}

fn greet(packets: &mut Packets<Patient>) -> Result<Greeting, Failure> {
    let packet = packets.next().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Failure::Stranger,
        _ => Failure::Io(error),
    })?;
    // Too many connections, a blocked host: the server says so instead of a greeting.
    if packet.first() == Some(&0xFF) {
        return Err(Failure::Server(ServerError::of(packet)?));
    }
    let greeting = Greeting::of(packet).map_err(|_| Failure::Stranger)?;
    if greeting.capabilities & can::NEEDED != can::NEEDED {
        return Err(Failure::Io(broken("the server is older than MySQL 4.1")));
    }
    Ok(greeting)
}

fn prove(
    packets: &mut Packets<Stream>,
    greeting: &Greeting,
    capabilities: u32,
    options: &ConnectOptions,
) -> Result<(), Failure> {
    let user = options.user.clone().unwrap_or_else(login_name);
    let password = options.password.as_ref().map_or("", |p| p.reveal());
    // The server's default may be nothing we know while the account's own plugin is: it will say.
    let named = Plugin::named(&greeting.plugin);
    let mut plugin = named.unwrap_or(Plugin::Native);
    let name = match named {
        Some(_) => greeting.plugin.as_str(),
        None => "mysql_native_password",
    };
    let mut nonce = greeting.nonce.clone();
    let proof = plugin.proof(&nonce, password.as_bytes());
    packets.send(&Greeting::answer(capabilities, &user, name, &proof))?;
    for _ in 0..ROUNDS {
        let packet = packets.next()?;
        let (first, rest) = packet.split_first().ok_or(Malformed)?;
        match first {
            0x00 => return Ok(()),
            0xFF => return Err(Failure::Server(ServerError::of(packet)?)),
            0xFE => {
                (plugin, nonce) = switched(rest)?;
                let proof = plugin.proof(&nonce, password.as_bytes());
                packets.send(&proof)?;
            }
            0x01 => {
                let asked = rest.to_vec();
                resume(packets, plugin, &asked, &nonce, password.as_bytes())?;
            }
            _ => return Err(Malformed.into()),
        }
    }
    Err(Failure::Io(broken("the login repeats without end")))
}

/// Reads which plugin the account wants.
fn switched(packet: &[u8]) -> Result<(Plugin, Vec<u8>), Failure> {
    let mut bytes = crate::decode::Bytes(packet);
    let name = String::from_utf8_lossy(bytes.until_zero()).into_owned();
    let nonce = bytes
        .0
        .strip_suffix(&[0])
        .filter(|_| name != "client_ed25519");
    let nonce = nonce.unwrap_or(bytes.0).to_vec();
    match Plugin::named(&name) {
        Some(plugin) => Ok((plugin, nonce)),
        None if packet.is_empty() => Err(Failure::Plugin("mysql_old_password".to_owned())),
        None => Err(Failure::Plugin(name)),
    }
}

/// Answers a plugin's further question.
fn resume(
    packets: &mut Packets<Stream>,
    plugin: Plugin,
    asked: &[u8],
    nonce: &[u8],
    password: &[u8],
) -> Result<(), Failure> {
    match (plugin, asked) {
        // The server knows the proof from before: an OK follows.
        (Plugin::CachingSha2, [3]) => Ok(()),
        (Plugin::CachingSha2, [4]) if packets.stream().is_private() => {
            let mut plain = password.to_vec();
            plain.push(0);
            Ok(packets.send(&plain)?)
        }
        (Plugin::CachingSha2, [4]) => Ok(packets.send(&[2])?),
        (Plugin::CachingSha2, key) if key.starts_with(b"-----") => {
            let sealed = auth::sealed(password, nonce, key)?;
            Ok(packets.send(&sealed)?)
        }
        _ => Err(Malformed.into()),
    }
}
