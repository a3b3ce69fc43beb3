//! A port of this host that is closed to new clients while its server is not for use: by nftables, in a table of its
//! own, replaced in one transaction. Rules of others are left alone. Loopback stays open: it is how the server is
//! probed.
//!
//! **What is refused** is a first packet (SYN), with a reset: a client knows at once, and who is connected stays.
//! Nothing depends on connection tracking, which would not know connections from before it was loaded.
//!
//! **What is left of a process that was killed, or that ended while the server was not up,** stays until the next one
//! knows whether the server is well: nobody reaches a server that is down because its prober was restarted.
//!
//! **What others remove** (`nft flush ruleset`, as a reload of the service nftables does) comes back: while the port
//! is closed, the table is replaced again and again.

use crate::ended::{PATH, ended};
use crate::machine::HealthState;
use evenkeel_op::obeyed::is_obeyed;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result, units};
use rustix::fs::{FlockOperation, MemfdFlags, Mode, OFlags, flock, memfd_create, openat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use std::fmt;
use std::fs::File;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// After this, nft is killed.
const TIMEOUT: Duration = Duration::from_secs(5);
/// From a failure to the next try.
const RETRY: Duration = Duration::from_secs(1);
/// While the port is closed, it is closed again this often.
const AGAIN: Duration = Duration::from_secs(5);
/// Of what nft says.
const SAID_BYTES: usize = 4096;
const SAID_LETTERS: usize = 300;
/// Of what it prints.
const PRINTED_BYTES: usize = 1 << 20;
/// What our tables are called, before the port.
const TABLE: &str = "inet evenkeel_health_";
/// Where root's locks are.
const LOCKS: &str = "/run/evenkeel";

/// Who is never refused: an address, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exempt {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Exempt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let wrong = || {
            Error::usage(format!("'{text}' is not an address or a network"))
                .hint("write it as 10.0.0.7, 10.0.0.0/24 or fd00::/8")
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        // Packets over IPv4 have IPv4's addresses, however those are written.
        let (address, bits) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), v4 @ IpAddr::V4(_)) => (v4, bits.checked_sub(96).ok_or_else(wrong)?),
            _ => (address, bits),
        };
        match (bits, bits <= most) {
            (0, _) => Err(Error::usage(format!("'{text}' is everybody")).hint(
                "name who is never refused, or leave out --block: with this, nobody would be refused",
            )),
            (_, true) => Ok(Self { address, bits }),
            (_, false) => Err(wrong()),
        }
    }
}

impl fmt::Display for Exempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Which port, and how it is closed.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where nft is.
    pub program: PathBuf,
    /// The port of this host.
    pub port: u16,
    /// Who is never refused, besides loopback.
    pub exempt: Vec<Exempt>,
    /// A server that is down loses those that are connected, too.
    pub ends_sessions: bool,
}

/// What is refused at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Nothing,
    New,
    All,
}

impl Block {
    fn table(&self) -> String {
        format!("{TABLE}{}", self.port)
    }

    /// Returns the transaction that leaves the table with these rules, or none: whatever was there.
    fn transaction(&self, refused: Refused) -> String {
        let (table, port) = (self.table(), self.port);
        // What is there must be there to be deleted.
        let mut text = format!("add table {table}\ndelete table {table}\n");
        if refused == Refused::Nothing {
            return text;
        }
        text.push_str(&format!(
            "table {table} {{\n  chain refused {{\n    type filter hook input priority -10; policy accept;\n    \
             iifname \"lo\" accept\n"
        ));
        for exempt in &self.exempt {
            let family = if exempt.address.is_ipv4() {
                "ip"
            } else {
                "ip6"
            };
            text.push_str(&format!("    {family} saddr {exempt} accept\n"));
        }
        text.push_str(&match refused {
            Refused::All => {
                // To a reset there is no answer, and the server must hear it.
                format!("    tcp dport {port} tcp flags & rst == 0 reject with tcp reset\n")
            }
            _ => format!(
                "    tcp dport {port} tcp flags & (fin | syn | rst | ack) == syn reject with tcp reset\n"
            ),
        });
        text.push_str("  }\n}\n");
        text
    }

    fn wanted(&self, state: HealthState) -> Option<Refused> {
        match state {
            HealthState::Starting => None,
            HealthState::Up => Some(Refused::Nothing),
            HealthState::Draining => Some(Refused::New),
            HealthState::Down | HealthState::Maintenance if self.ends_sessions => {
                Some(Refused::All)
            }
            HealthState::Down | HealthState::Maintenance => Some(Refused::New),
        }
    }

    /// Runs nft with this as its input. Errors: what it said, in words.
    fn nft(&self, args: &[&str], input: &str) -> std::result::Result<(), String> {
        nft(&self.program, args, input).map(drop)
    }

    fn apply(&self, refused: Refused) -> std::result::Result<(), String> {
        self.nft(&["-f", "-"], &self.transaction(refused))
    }
}

/// Runs nft with this as its input. Returns what it printed, or in words what it said. All of that is in memory, so that
/// neither side ever waits for the other.
fn nft(program: &Path, args: &[&str], input: &str) -> std::result::Result<String, String> {
    let shown = program.display();
    let failed = |error| format!("failed to run {shown}: {error}");
    let from = held("input").map_err(failed)?;
    let (printed, said) = (
        held("printed").map_err(failed)?,
        held("said").map_err(failed)?,
    );
    from.write_all_at(input.as_bytes(), 0).map_err(failed)?;
    let spawned = |to: &File| to.try_clone().map(Stdio::from);
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::from(from))
        .stdout(spawned(&printed).map_err(failed)?)
        .stderr(spawned(&said).map_err(failed)?)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    match ended(&mut child, TIMEOUT, &AtomicBool::new(false)).map_err(failed)? {
        Some(status) if status.success() => Ok(beginning(&printed, PRINTED_BYTES)),
        Some(status) => Err(format!("{shown}: {status}: {}", in_short(&said))),
        None => Err(format!(
            "{shown} was killed: it had not ended within {}",
            units::duration(TIMEOUT)
        )),
    }
}

/// Makes a file in memory.
fn held(name: &str) -> std::io::Result<File> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    Ok(File::from(file))
}

fn beginning(of: &File, most: usize) -> String {
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while let Ok(count @ 1..) = of.read_at(&mut bytes[filled..], filled as u64) {
        filled += count;
    }
    String::from_utf8_lossy(&bytes[..filled]).into_owned()
}

/// Returns what nft said, on one line.
fn in_short(said: &File) -> String {
    let text = beginning(said, SAID_BYTES);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = words.chars().filter(|letter| !is_obeyed(*letter));
    plain.take(SAID_LETTERS).collect()
}

/// Returns the ports that are blocked, and that no process opens: as one that was killed left them.
#[must_use]
pub fn left(program: &Path) -> Vec<u16> {
    // Who may not look cannot have blocked them.
    let tables = nft(program, &["list", "tables", "inet"], "").unwrap_or_default();
    let ports = tables.lines().filter_map(|line| {
        let (_, port) = line.split_once(TABLE)?;
        port.trim().parse().ok()
    });
    ports.filter(|port| lock(*port).is_ok()).collect()
}

/// Opens and closes the port.
#[derive(Debug)]
pub struct Blocker {
    block: Block,
    /// Held while this process has the table; `None` in tests.
    lock: Option<PortLock>,
    /// The table is as this says; `None` if nobody knows.
    done: Option<Refused>,
    /// There are rules, as far as is known.
    is_closed: bool,
    running: Option<(Refused, Receiver<std::result::Result<(), String>>)>,
    /// Not before this, unless something else is wanted.
    next: Option<Instant>,
    said: Option<String>,
    failures: u64,
}

impl Blocker {
    /// Takes the port, and finds out whether it can be closed. What another process left there stays.
    ///
    /// # Errors
    ///
    /// `Busy` if another process has it; `Refused` if nft may not, or cannot, change rules.
    pub fn take(block: Block) -> Result<Self> {
        let lock = lock(block.port)?;
        // As it would be done, but not done.
        block
            .nft(&["-c", "-f", "-"], &block.transaction(Refused::All))
            .map_err(|why| {
                Error::refused(format!("port {} cannot be blocked: {why}", block.port))
                    .hint("run it as root, or give it CAP_NET_ADMIN (in the service: see the task page of health)")
            })?;
        let table = block.table();
        let list: Vec<&str> = ["list", "table"]
            .into_iter()
            .chain(table.split(' '))
            .collect();
        let is_closed = block.nft(&list, "").is_ok();
        Ok(Self {
            block,
            lock: Some(lock),
            done: None,
            is_closed,
            running: None,
            next: None,
            said: None,
            failures: 0,
        })
    }

    /// Returns whether the port is closed, as far as is known.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns how often it could not be opened or closed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Opens or closes it, if it is not as it should be in this state. Returns what failed, once.
    pub fn step(&mut self, state: HealthState) -> Option<String> {
        if let Some(lock) = &self.lock {
            lock.hang_up();
        }
        let mut failure = None;
        if let Some((was, running)) = &self.running {
            let outcome = match running.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err("its thread is gone".to_owned()),
                Ok(outcome) => outcome,
            };
            let was = *was;
            self.running = None;
            failure = self.ended(was, outcome);
        }
        let Some(wanted) = self.block.wanted(state) else {
            return failure;
        };
        let is_early = self.next.is_some_and(|at| Instant::now() < at);
        let is_done = self.done == Some(wanted);
        if is_done && (wanted == Refused::Nothing || is_early) || self.done.is_none() && is_early {
            return failure;
        }
        let (tell, running) = sync_channel(1);
        let block = self.block.clone();
        let thread = std::thread::Builder::new().name("block".to_owned());
        let started = thread.spawn(move || {
            let _ = tell.send(block.apply(wanted));
        });
        match started {
            Ok(_) => {
                self.running = Some((wanted, running));
                failure
            }
            Err(error) => self.ended(wanted, Err(error.to_string())),
        }
    }

    /// Notes how it went. Returns what failed, if that is new.
    fn ended(&mut self, was: Refused, outcome: std::result::Result<(), String>) -> Option<String> {
        let now = Instant::now();
        match outcome {
            Ok(()) => {
                (self.done, self.next, self.said) = (Some(was), Some(now + AGAIN), None);
                self.is_closed = was != Refused::Nothing;
                None
            }
            Err(why) => {
                (self.done, self.next) = (None, Some(now + RETRY));
                self.failures += 1;
                let verb = match was {
                    Refused::Nothing => "opened",
                    _ => "blocked",
                };
                let why = format!("port {} could not be {verb}: {why}", self.block.port);
                let is_new = self.said.as_ref() != Some(&why);
                self.said = Some(why);
                self.said.clone().filter(|_| is_new)
            }
        }
    }

    /// Ends it. The port is opened if its server is up. Otherwise it stays as it is: nobody would be there to close it.
    /// Returns what a person has to know.
    pub fn end(&mut self, state: HealthState) -> Option<String> {
        if let Some((was, running)) = self.running.take() {
            // It ends by itself.
            let outcome = running.recv_timeout(TIMEOUT * 2);
            self.ended(was, outcome.unwrap_or_else(|error| Err(error.to_string())));
        }
        let (port, table, word) = (self.block.port, self.block.table(), state.word());
        if state != HealthState::Up {
            return self.is_closed.then(|| {
                format!(
                    "port {port} stays blocked, as the server is {word}: the next 'evenkeel health run --block {port}' \
                     opens it once the server is up; to open it now: nft delete table {table}"
                )
            });
        }
        if self.done == Some(Refused::Nothing) {
            return None;
        }
        let failed = self.block.apply(Refused::Nothing).err()?;
        Some(format!(
            "port {port} may still be blocked: {failed}; to open it: nft delete table {table}"
        ))
    }
}

/// A port that this process alone blocks and opens.
#[derive(Debug)]
struct PortLock {
    /// A name in the namespace that the tables are in. Another user may have taken it, who has no say in this.
    name: Option<UnixListener>,
    /// Root's file, which nobody else can take; `None` for other users.
    _file: Option<File>,
}

impl PortLock {
    /// Hangs up on those who knock: who waits to be let in would keep a second process from finding this one.
    fn hang_up(&self) {
        if let Some(name) = &self.name {
            while name.accept().is_ok() {}
        }
    }
}

/// Takes a port, until the process ends.
fn lock(port: u16) -> Result<PortLock> {
    let file = file_lock(port)?;
    let name = format!("evenkeel-health-block-{port}");
    let failed = || format!("failed to take port {port}");
    let address = SocketAddr::from_abstract_name(&name).context(failed)?;
    match UnixListener::bind_addr(&address) {
        Ok(lock) => {
            lock.set_nonblocking(true).context(failed)?;
            return Ok(PortLock {
                name: Some(lock),
                _file: file,
            });
        }
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
        Err(error) => return Err(error).context(failed),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let owner = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| {
            connect(
                &socket,
                &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            )?;
            socket_peercred(&socket)
        })
        .map(|peer| peer.uid);
    match owner {
        Ok(uid) if uid.is_root() || uid == geteuid() => Err(is_taken(port)),
        // Whose it is cannot be known, as too many knock. Of root's, the file says more.
        Err(Errno::AGAIN) if file.is_none() => Err(is_taken(port)),
        _ => Ok(PortLock {
            name: None,
            _file: file,
        }),
    }
}

fn is_taken(port: u16) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!("another 'evenkeel health run' has --block {port}"),
    )
    .hint("end that one first: two would open what the other one closes")
}

/// Takes root's file for a port of this network namespace. `None` for other users, and where there can be none.
fn file_lock(port: u16) -> Result<Option<File>> {
    let network = std::fs::metadata("/proc/self/ns/net");
    let (true, Ok(network)) = (geteuid().is_root(), network) else {
        return Ok(None);
    };
    let Ok(directory) = OwnDirectory::make(Path::new(LOCKS), 0o755) else {
        return Ok(None);
    };
    let name = format!("block-{port}-{}.lock", network.ino());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(&*directory, &name, flags, Mode::RUSR | Mode::WUSR) else {
        return Ok(None);
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(File::from(file))),
        Err(Errno::WOULDBLOCK) => Err(is_taken(port)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::Scratch;
    use std::os::unix::fs::PermissionsExt;

    fn block() -> Block {
        Block {
            program: "/nonexistent/nft".into(),
            port: 3306,
            exempt: vec!["10.0.0.0/24".parse().unwrap(), "fd00::7".parse().unwrap()],
            ends_sessions: false,
        }
    }

    #[test]
    fn one_transaction_replaces_what_is_there() {
        let text = block().transaction(Refused::New);
        let begin = "add table inet evenkeel_health_3306\ndelete table inet evenkeel_health_3306\ntable inet ";
        assert!(text.starts_with(begin), "{text}");
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}: {text}"))
        };
        let refusal = at("tcp dport 3306");
        for exempt in [
            "iifname \"lo\"",
            "ip saddr 10.0.0.0/24",
            "ip6 saddr fd00::7/128",
        ] {
            assert!(at(exempt) < refusal, "{text}");
        }
        assert_eq!(block().transaction(Refused::Nothing).lines().count(), 2);
    }

    #[test]
    fn what_is_refused_depends_on_the_state() {
        let all = |ends_sessions| {
            let block = Block {
                ends_sessions,
                ..block()
            };
            HealthState::ALL.map(|state| block.wanted(state))
        };
        use Refused::{All, New, Nothing};
        let [starting, up, draining] = [None, Some(Nothing), Some(New)];
        assert_eq!(all(false), [starting, up, draining, Some(New), Some(New)]);
        assert_eq!(all(true), [starting, up, draining, Some(All), Some(All)]);
    }

    #[test]
    fn addresses_are_addresses() {
        for wrong in [
            "",
            "db1",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/8 accept",
        ] {
            assert!(wrong.parse::<Exempt>().is_err(), "{wrong}");
        }
        // Nobody would be refused.
        for everybody in ["0.0.0.0/0", "::/0", "::ffff:0:0/96"] {
            assert!(everybody.parse::<Exempt>().is_err(), "{everybody}");
        }
        let mapped = |text: &str| text.parse::<Exempt>().unwrap().to_string();
        assert_eq!(mapped("::ffff:10.77.0.2"), "10.77.0.2/32");
        assert_eq!(mapped("::ffff:10.77.0.0/112"), "10.77.0.0/16");
    }

    fn program(room: &Scratch, body: &str) -> PathBuf {
        let path = room.join("nft");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn however_much_is_read_or_said_nft_ends() {
        let room = Scratch::new();
        let exempt: Exempt = "fd00:1111:2222:3333:4444:5555:6666:7777".parse().unwrap();
        let mut block = Block {
            program: program(&room, "sleep 1000"),
            exempt: vec![exempt; 5000],
            ..block()
        };
        let why = block.apply(Refused::New).unwrap_err();
        assert!(why.contains("was killed"), "{why}");
        block.program = program(&room, "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 3");
        let why = block.apply(Refused::New).unwrap_err();
        assert!(why.contains("exit status: 3: xxxx"), "{why}");
        let text = room.join("text");
        block.program = program(&room, &format!("cat > {}", text.display()));
        block.apply(Refused::New).unwrap();
        let read = std::fs::read_to_string(text).unwrap();
        assert_eq!(read, block.transaction(Refused::New));
    }

    #[test]
    fn a_second_one_finds_the_first_whoever_knocks() {
        let port = 1;
        let first = lock(port).unwrap();
        for _ in 0..5000 {
            let second = lock(port);
            assert!(second.is_err(), "{second:?}");
        }
        drop(first);
        lock(port).unwrap();
    }

    #[test]
    fn what_fails_is_said_once_and_counted() {
        let mut blocker = Blocker {
            block: block(),
            lock: None,
            done: None,
            is_closed: false,
            running: None,
            next: None,
            said: None,
            failures: 0,
        };
        let mut said = Vec::new();
        evenkeel_testkit::until("it failed twice", || {
            said.extend(blocker.step(HealthState::Down));
            blocker.failures() == 2
        });
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("port 3306 could not be blocked"));
        assert!(!blocker.is_closed());
        // Nobody knows of a table, and one that is up must not have any.
        assert_eq!(blocker.end(HealthState::Down), None);
        let said = blocker.end(HealthState::Up).unwrap();
        assert!(said.contains("may still be blocked"), "{said}");
    }
}
