//! Reads by io_uring: hundreds of reads under way, and one thread.
//!
//! Opening a file reads its inode, which is a wait of its own on cold storage: so that goes through
//! the ring, too. Where a filesystem cannot wait without a thread (FUSE, NFS in part), the kernel
//! uses threads of its own; it is asked to keep as many as there are places in the ring.
//!
//! `unsafe` is allowed in this module and nowhere else in the crate: the kernel is handed pointers to
//! paths and buffers, and writes to the buffers later. Both belong to slots that are neither moved nor
//! freed while an operation of theirs is under way: `read` does not return before each has ended, and
//! leaks the slots where it cannot know that.
#![allow(unsafe_code)]

use super::job::{Job, READ_BYTES, Sink};
use super::ramp::{DEPTH_MAX, Ramp};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// How often it is looked whether the time is up while no read ends.
const LOOK: Duration = Duration::from_millis(50);

/// A ring that is known to work here.
pub(super) struct Ring(IoUring);

/// One place in the ring: at most one operation of it is under way.
#[derive(Default)]
struct Slot {
    job: usize,
    path: CString,
    file: Option<OwnedFd>,
    buffer: Vec<u8>,
    done: u64,
}

/// What a slot's operation came to.
enum Next {
    Submit,
    Ended(io::Result<u64>),
}

impl Ring {
    /// Makes a ring. Fails where the kernel has none, or a container may not use it.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::new(DEPTH_MAX as u32)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let wanted = [opcode::OpenAt::CODE, opcode::Read::CODE];
        if !wanted.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The kernel's own number is four for each processor. Older ones cannot be configured; then
        // it is merely slower there.
        let workers = DEPTH_MAX as u32;
        let _ = ring
            .submitter()
            .register_iowq_max_workers(&mut [workers, workers]);
        Ok(Self(ring))
    }

    /// Reads all jobs, begun in their order, until the sink says that it is over.
    pub(super) fn read(
        &mut self,
        jobs: &[Job],
        ramp: &mut Ramp,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let mut work = Work {
            ring: &mut self.0,
            slots: Vec::new(),
            free: Vec::new(),
            under_way: 0,
        };
        // All of them now: a slot must not move later.
        work.slots.resize_with(DEPTH_MAX, Slot::default);
        work.free.extend((0..DEPTH_MAX).rev());
        let result = work.run(jobs, ramp, sink);
        if work.under_way > 0 {
            // The ring broke. The kernel may still write to the buffers.
            std::mem::forget(std::mem::take(&mut work.slots));
        }
        result
    }
}

struct Work<'a> {
    ring: &'a mut IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    under_way: usize,
}

impl Work<'_> {
    fn run(&mut self, jobs: &[Job], ramp: &mut Ramp, sink: &mut dyn Sink) -> io::Result<()> {
        let mut waiting = 0..jobs.len();
        loop {
            while self.under_way < ramp.depth() && !sink.is_over() {
                let (Some(job), Some(slot)) = (waiting.next(), self.free.pop()) else {
                    break;
                };
                self.begin(slot, job, &jobs[job]);
            }
            if self.under_way == 0 {
                return Ok(());
            }
            self.wait()?;
            let ended: Vec<(usize, i32)> = self
                .ring
                .completion()
                .map(|entry| (entry.user_data() as usize, entry.result()))
                .collect();
            for (slot, result) in ended {
                self.under_way -= 1;
                let job = self.slots[slot].job;
                match self.slots[slot].take(result, &jobs[job]) {
                    Next::Submit => self.submit(slot, &jobs[job]),
                    Next::Ended(outcome) => {
                        self.slots[slot].file = None;
                        self.free.push(slot);
                        ramp.done(*outcome.as_ref().unwrap_or(&0), Instant::now());
                        sink.done(job, outcome, ramp.depth());
                    }
                }
            }
        }
    }

    fn begin(&mut self, slot: usize, number: usize, job: &Job) {
        let own = &mut self.slots[slot];
        own.job = number;
        own.done = 0;
        // No path of a file that was found has a zero byte in it.
        own.path = CString::new(job.path.as_os_str().as_bytes()).unwrap_or_default();
        own.buffer.resize(READ_BYTES, 0);
        self.submit(slot, job);
    }

    /// Submits the slot's next operation: open, then read after read.
    fn submit(&mut self, slot: usize, job: &Job) {
        let entry = self.slots[slot].operation(job).user_data(slot as u64);
        // SAFETY: the pointers in `entry` are to the slot's path and buffer, which stay where they
        // are until its completion was seen: only then is the slot begun or submitted again.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There is a place in the ring for each slot, and each has one operation.
        if pushed.is_ok() {
            self.under_way += 1;
        }
    }

    /// Hands over what was submitted, and waits until something ends, or a while.
    fn wait(&mut self) -> io::Result<()> {
        let limit = Timespec::from(LOOK);
        let args = SubmitArgs::new().timespec(&limit);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }
}

impl Slot {
    fn operation(&mut self, job: &Job) -> squeue::Entry {
        match &self.file {
            None => opcode::OpenAt::new(Fd(libc::AT_FDCWD), self.path.as_ptr())
                .flags(libc::O_RDONLY | libc::O_CLOEXEC)
                .build(),
            Some(file) => {
                let most = (job.length - self.done).min(READ_BYTES as u64) as u32;
                opcode::Read::new(Fd(file.as_raw_fd()), self.buffer.as_mut_ptr(), most)
                    .offset(job.start + self.done)
                    .build()
            }
        }
    }

    fn take(&mut self, result: i32, job: &Job) -> Next {
        if result < 0 {
            return match -result {
                libc::EINTR | libc::EAGAIN => Next::Submit,
                code => Next::Ended(Err(io::Error::from_raw_os_error(code))),
            };
        }
        if self.file.is_none() {
            // SAFETY: the kernel just opened it for this slot, and nobody else knows its number.
            self.file = Some(unsafe { OwnedFd::from_raw_fd(result) });
            return Next::Submit;
        }
        self.done += result as u64;
        if result == 0 || self.done >= job.length {
            return Next::Ended(Ok(self.done));
        }
        Next::Submit
    }
}
