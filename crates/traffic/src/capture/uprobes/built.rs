//! Statements as a server's functions get them.

use super::probes::{Lost, Probes};
use super::sessions::{Reading, Sessions};
use super::symbols::Symbols;
use super::{MOST_TEXT, Settings};
use crate::Seen;
use crate::statement::Coverage;
use evenkeel_op::{Cancel, Context, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// The ring's memory where none is said.
const USUAL_RING: u64 = 64 << 20;
/// A small host gives this part of its memory.
const PART_OF_MEMORY: u64 = 64;
/// Less than this is no buffer.
const LEAST_RING: u64 = 1 << 20;
/// How long records are left to gather.
const GATHER: Duration = Duration::from_millis(10);
/// Records after which to look whether an end is wanted.
const LOOK: usize = 4096;

/// A capture of what a server does.
#[derive(Debug)]
pub struct Uprobes {
    probes: Probes,
    server: OwnedFd,
    reading: Reading,
    span: Option<Duration>,
    connections: u64,
    damage: Option<Error>,
}

impl Uprobes {
    /// Begins to watch: commands from here on are seen.
    ///
    /// # Errors
    ///
    /// `Refused` without the privileges; `Failed` when there is no such process, when its program does not show the
    /// functions, and when the kernel cannot watch them.
    pub fn open(settings: &Settings) -> Result<Self> {
        let pid = settings.pid;
        let known = Pid::from_raw(pid).zip(NonZeroU32::new(pid.unsigned_abs()));
        let (process, number) = known.ok_or_else(|| no_process(pid))?;
        // Holds on to the process: another one of its number is not it.
        let server = pidfd_open(process, PidfdFlags::empty()).map_err(|_| no_process(pid))?;
        let path = format!("/proc/{pid}/exe");
        let program = File::open(&path).map_err(|error| not_readable(pid, error))?;
        let again = program.try_clone();
        let again = again.context(|| format!("failed to read {path}"))?;
        let named = std::fs::read_link(&path).unwrap_or_default();
        let shown = format!("process {pid} ({})", named.display());
        let symbols = Symbols::read(again, &shown)?;
        let text_bytes = settings.text_bytes.min(MOST_TEXT);
        let sizes = [ring_bytes(settings.ring_bytes), text_bytes as u32];
        let mut probes = Probes::attach(number, program, &symbols, sizes)?;
        if !symbols.shows_prepared {
            probes.watch_log()?;
        }
        let capture = Self {
            probes,
            server,
            reading: Reading {
                text_bytes,
                parameter_bytes: symbols.parameter_bytes,
                has_packets: symbols.has_packets,
            },
            span: settings.span,
            connections: 0,
            damage: None,
        };
        if capture.is_server_gone(Duration::ZERO)? {
            return Err(no_process(pid));
        }
        Ok(capture)
    }

    /// Returns how many connections were seen.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns why the capture ended before it was to.
    #[must_use]
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Hands out statements as they end, until the time is up, `cancel` is set, the server ends or `each` fails.
    ///
    /// # Errors
    ///
    /// When the kernel fails, and what `each` fails with.
    pub fn watch(
        &mut self,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let mut all = Sessions::new(self.reading);
        let end = self.span.map(|span| Instant::now() + span);
        let is_over = || cancel.is_cancelled() || end.is_some_and(|end| Instant::now() >= end);
        while !is_over() {
            self.take(&mut all, each, &is_over)?;
            each(Seen::Pause)?;
            if all.needs_log {
                self.probes.watch_log()?;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if self.is_server_gone(left.map_or(GATHER, |left| left.min(GATHER)))? {
                self.damage = Some(Error::failed("the server ended"));
                break;
            }
        }
        // What came so far is handed out.
        self.probes.detach()?;
        self.take(&mut all, each, &|| false)?;
        all.end_all(&mut |statement| each(Seen::Statement(statement)))?;
        self.connections = all.count();
        let Lost { commands, others } = self.probes.lost()?;
        all.coverage.commands_lost = commands;
        all.coverage.events_lost = others;
        Ok(all.coverage)
    }

    /// Takes all records that are there.
    fn take(
        &mut self,
        all: &mut Sessions,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<()> {
        all.offset_ns = now_ns(ClockId::Realtime) - now_ns(ClockId::Monotonic);
        let mut each = |statement: &crate::Statement<'_>| each(Seen::Statement(statement));
        let mut count = 0;
        while let Some(taken) = self.probes.next(|record| match record {
            Some(record) => all.take(&record, &mut each),
            None => {
                all.coverage.undecodable += 1;
                Ok(())
            }
        }) {
            taken?;
            count += 1;
            if count % LOOK == 0 && is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the server to end, this long.
    fn is_server_gone(&self, most: Duration) -> Result<bool> {
        let mut wanted = [PollFd::new(&self.server, PollFlags::IN)];
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        match poll(&mut wanted, Some(&time)) {
            Ok(ready) => Ok(ready > 0),
            // A signal: somebody may want an end.
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(Error::failed("failed to watch the server's process").because(error)),
        }
    }
}

fn now_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Returns the size of the ring: a power of two, as the kernel has it.
fn ring_bytes(wanted: Option<u64>) -> u32 {
    let memory = || {
        let info = rustix::system::sysinfo();
        u64::from(info.mem_unit).saturating_mul(info.totalram)
    };
    let bytes = wanted.unwrap_or_else(|| USUAL_RING.min(memory() / PART_OF_MEMORY));
    let bytes = bytes.clamp(LEAST_RING, 1 << 30);
    // At least what was asked for, and no more than asked for where nobody asked.
    let bytes = match wanted {
        Some(_) => bytes.next_power_of_two(),
        None => 1 << bytes.ilog2(),
    };
    u32::try_from(bytes).unwrap_or(1 << 30)
}

fn no_process(pid: i32) -> Error {
    Error::failed(format!("there is no process {pid}"))
        .hint("name the server by its data directory, with --datadir, or look for it: pgrep -a 'mysqld|mariadbd'")
}

fn not_readable(pid: i32, error: io::Error) -> Error {
    let refused = error.kind() == io::ErrorKind::PermissionDenied;
    let error = match refused {
        true => Error::refused(format!("not allowed to look at process {pid}")).because(error),
        false => {
            Error::failed(format!("failed to read the program of process {pid}")).because(error)
        }
    };
    error.hint("run it with sudo, or with the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE")
}
