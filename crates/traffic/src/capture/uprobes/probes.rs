//! The programs in the kernel: loaded, put where the server's functions begin, and gone with this process.

use super::record::Record;
use super::symbols::{ProbeLocation, Symbols};
use aya::maps::{Array, MapData, RingBuf};
use aya::programs::uprobe::{UProbeAttachLocation, UProbeScope};
use aya::programs::{ProgramError, UProbe};
use aya::{Ebpf, EbpfError, EbpfLoader};
use evenkeel_op::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;

/// What clang made of `server.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/server.bpf.o"));

/// What waits to be read, and what puts it there.
pub(super) struct Probes {
    programs: Ebpf,
    ring: RingBuf<MapData>,
    lost: Array<MapData, u64>,
    program: File,
    pid: NonZeroU32,
    log: Option<ProbeLocation>,
}

impl fmt::Debug for Probes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Probes")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// What found no room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// Commands.
    pub(super) commands: u64,
    /// Ends of commands, pieces of texts, what is known of sessions.
    pub(super) others: u64,
}

impl Probes {
    /// Watches a process that runs `program`.
    ///
    /// # Errors
    ///
    /// `Refused` without the privileges; when the kernel has no such thing.
    pub(super) fn attach(
        pid: NonZeroU32,
        program: File,
        symbols: &Symbols,
        [ring_bytes, text_bytes]: [u32; 2],
    ) -> Result<Self> {
        let mut loader = EbpfLoader::new();
        loader.map_max_entries("ring", ring_bytes);
        let text_bytes = u64::from(text_bytes);
        loader.override_global("text_bytes", &text_bytes, true);
        loader.override_global("parameter_bytes", &symbols.parameter_bytes, true);
        let mut programs = loader.load(OBJECT).map_err(not_loaded)?;
        let missing = || Error::failed("the programs for the kernel are not complete");
        let ring = programs.take_map("ring").ok_or_else(missing)?;
        let lost = programs.take_map("lost").ok_or_else(missing)?;
        let failed = |error: aya::maps::MapError| {
            Error::failed("failed to share memory with the kernel").because(error)
        };
        let mut probes = Self {
            ring: RingBuf::try_from(ring).map_err(failed)?,
            lost: Array::try_from(lost).map_err(failed)?,
            programs,
            program,
            pid,
            log: symbols.log,
        };
        for place in &symbols.places {
            probes.watch(*place)?;
        }
        Ok(probes)
    }

    fn watch(&mut self, place: ProbeLocation) -> Result<()> {
        let program = self.programs.program_mut(place.program);
        let program: Option<&mut UProbe> = program.and_then(|it| it.try_into().ok());
        let program =
            program.ok_or_else(|| Error::failed("a program for the kernel is missing"))?;
        program.load().map_err(not_attached)?;
        // The file that was read, whatever lies at its path by now.
        let path = format!("/proc/self/fd/{}", self.program.as_raw_fd());
        let location = UProbeAttachLocation::AbsoluteOffset(place.offset);
        let attached = program.attach(location, path, UProbeScope::OneProcess(self.pid));
        attached.map(drop).map_err(not_attached)
    }

    /// Also has the texts of executions shown, if the server has a place for that; only the first call does anything.
    pub(super) fn watch_log(&mut self) -> Result<()> {
        match self.log.take() {
            Some(place) => self.watch(place),
            None => Ok(()),
        }
    }

    /// Takes nothing more in: what is there stays to be read.
    pub(super) fn detach(&mut self) -> Result<()> {
        for (_, program) in self.programs.programs_mut() {
            let program: std::result::Result<&mut UProbe, _> = program.try_into();
            if let Ok(program) = program
                && program.fd().is_ok()
            {
                program.unload().map_err(not_attached)?;
            }
        }
        Ok(())
    }

    /// Hands the next record to `each`; returns whether there was one.
    pub(super) fn next<T>(&mut self, each: impl FnOnce(Option<Record<'_>>) -> T) -> Option<T> {
        let item = self.ring.next()?;
        Some(each(Record::read(&item)))
    }

    /// Returns what found no room so far.
    pub(super) fn lost(&self) -> Result<Lost> {
        let count = |what| {
            let count = self.lost.get(&what, 0);
            count.map_err(|error| Error::failed("failed to ask for what was lost").because(error))
        };
        Ok(Lost {
            commands: count(0)?,
            others: count(1)?,
        })
    }
}

/// What else is needed where the kernel refuses.
const PRIVILEGES: &str =
    "run it with sudo, or with the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";

fn not_loaded(error: EbpfError) -> Error {
    refused_or_failed(error)
}

fn not_attached(error: ProgramError) -> Error {
    refused_or_failed(error)
}

/// Says why the kernel does not take a program.
fn refused_or_failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let mut kind = None;
    while let Some(one) = cause {
        if let Some(it) = one.downcast_ref::<io::Error>() {
            kind = it.raw_os_error();
        }
        cause = one.source();
    }
    match kind {
        Some(libc::EPERM | libc::EACCES) => {
            Error::refused("watching a server's functions needs root or the capabilities for it")
                .because(error)
                .hint(PRIVILEGES)
        }
        _ => Error::failed("the kernel does not take the programs that watch the server")
            .because(error)
            .hint("it needs Linux 5.8 or later with BPF and uprobes; capture packets with --interface, or use --tap"),
    }
}
