//! From a stream to a session.

use crate::auth::{self, Plugin};
use crate::decode::{Malformed, ServerError};
use crate::greeting::{Greeting, can};
use crate::packet::{Packets, broken};
use crate::stream::{NoStream, Patient, Stream, connect};
use crate::tls;
use evenkeel_op::Cancel;
use evenkeel_server::connect::check_files;
use evenkeel_server::options::{ConnectOptions, ServerKey, SslMode, login_name};
use std::io;
use std::time::{Duration, Instant};

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
    /// What the options name cannot be read.
    Options(evenkeel_op::Error),
    /// The name of the host has no address.
    Name(io::Error),
    /// The server wants to read the password, and nothing encrypts it.
    NoKey,
    /// The file with the server's public key has none that could encrypt it.
    KeyOfNoUse,
}

impl From<NoStream> for Failure {
    fn from(error: NoStream) -> Self {
        match error {
            NoStream::Name(error) => Self::Name(error),
            NoStream::Io(error) => Self::Io(error),
        }
    }
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

/// On which terms to log in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoginTerms {
    /// What comes then is compressed if the server can.
    pub(crate) compress: bool,
    /// What listens may be anyone's.
    pub(crate) distrust: Option<Distrust>,
}

/// What is given to nobody who may be anyone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Distrust {
    /// How long all of the login may take.
    pub(crate) within: Duration,
    /// No packet is longer, in bytes.
    pub(crate) packet_max: usize,
}

/// Connects and logs in.
pub(crate) fn login(
    options: &ConnectOptions,
    terms: LoginTerms,
    cancel: &Cancel,
) -> Result<Begun, Failure> {
    let tls = options.ssl_mode != SslMode::Disabled && !options.means_socket();
    let key = match options.means_socket() {
        true => None,
        false => {
            // One that is missing must not pass for a server without TLS.
            check_files(options).map_err(Failure::Options)?;
            options.server_key.read().map_err(Failure::Options)?
        }
    };
    let attempt = Attempt {
        options,
        terms,
        key,
    };
    match attempt.run(tls, cancel) {
        Err(Failure::Tls(_)) if options.ssl_mode == SslMode::Preferred => {
            attempt.run(false, cancel)
        }
        other => other,
    }
}

/// One attempt to log in, with TLS or without.
struct Attempt<'a> {
    options: &'a ConnectOptions,
    terms: LoginTerms,
    /// The server's public key, where it is known.
    key: Option<String>,
}

impl Attempt<'_> {
    fn run(&self, tls: bool, cancel: &Cancel) -> Result<Begun, Failure> {
        let stream = connect(self.options, cancel)?;
        let mut packets = match self.terms.distrust {
            None => Packets::new(stream),
            Some(Distrust { within, packet_max }) => {
                let stream = stream.within(within, Instant::now() + within);
                Packets::with_limit(stream, packet_max)
            }
        };
        let greeting = greet(&mut packets)?;
        let mut capabilities = greeting.capabilities & can::WANTED;
        if self.terms.compress {
            capabilities |= greeting.capabilities & can::COMPRESS;
        }
        if self.terms.distrust.is_some() {
            capabilities &= !can::LOCAL_FILES;
        }
        let has_tls = greeting.capabilities & can::TLS != 0;
        if tls && !has_tls && self.options.ssl_mode != SslMode::Preferred {
            return Err(Failure::NoTls);
        }
        // Without it, the same connection does: servers log those that end without a login.
        let mut packets = if tls && has_tls {
            capabilities |= can::TLS;
            packets.send(&Greeting::opening(capabilities))?;
            packets
                .upgrade(|stream| tls::wrap(stream, self.options))
                .map_err(Failure::Tls)?
        } else {
            packets.upgrade(|stream| Ok(Stream::Plain(stream)))?
        };
        self.prove(&mut packets, &greeting, capabilities)?;
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

    fn prove(
        &self,
        packets: &mut Packets<Stream>,
        greeting: &Greeting,
        capabilities: u32,
    ) -> Result<(), Failure> {
        let options = self.options;
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
                    self.resume(packets, plugin, &asked, &nonce)?;
                }
                _ => return Err(Malformed.into()),
            }
        }
        Err(Failure::Io(broken("the login repeats without end")))
    }

    /// Answers a plugin's further question.
    fn resume(
        &self,
        packets: &mut Packets<Stream>,
        plugin: Plugin,
        asked: &[u8],
        nonce: &[u8],
    ) -> Result<(), Failure> {
        let password = self.options.password.as_ref().map_or("", |p| p.reveal());
        let password = password.as_bytes();
        match (plugin, asked) {
            // The server knows the proof from before: an OK follows.
            (Plugin::CachingSha2, [3]) => Ok(()),
            (Plugin::CachingSha2, [4]) if packets.stream().is_private() => {
                let mut plain = password.to_vec();
                plain.push(0);
                Ok(packets.send(&plain)?)
            }
            (Plugin::CachingSha2, [4]) => match &self.key {
                Some(key) => {
                    let sealed = auth::sealed(password, nonce, key.as_bytes());
                    Ok(packets.send(&sealed.map_err(|_| Failure::KeyOfNoUse)?)?)
                }
                // Whoever sends a key can read what is encrypted with it.
                None if self.is_wary() => Err(Failure::NoKey),
                None => Ok(packets.send(&[2])?),
            },
            (Plugin::CachingSha2, key) if key.starts_with(b"-----") && !self.is_wary() => {
                let sealed = auth::sealed(password, nonce, key)?;
                Ok(packets.send(&sealed)?)
            }
            _ => Err(Malformed.into()),
        }
    }

    /// Returns whether no key is taken from whoever listens.
    fn is_wary(&self) -> bool {
        let by_file = self.key.is_some();
        by_file || self.terms.distrust.is_some() && self.options.server_key != ServerKey::Asked
    }
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
