//! Reads by threads: where the kernel offers no ring, and where it would use threads itself.

use super::job::{Job, READ_BYTES, Sink};
use super::ramp::Ramp;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

/// How often it is looked whether the time is up while no read ends.
const LOOK: Duration = Duration::from_millis(50);
/// A reader keeps a buffer on the heap and little else.
const STACK_BYTES: usize = 256 << 10;

/// What the readers share.
struct Queue<'a> {
    jobs: &'a [Job],
    next: AtomicUsize,
    /// Readers that may continue: those of a lower number.
    depth: AtomicUsize,
    stop: AtomicBool,
}

/// Reads all jobs, in their order, until the sink says that it is over.
pub(super) fn read(jobs: &[Job], ramp: &mut Ramp, sink: &mut dyn Sink) -> io::Result<()> {
    let queue = Queue {
        jobs,
        next: AtomicUsize::new(0),
        depth: AtomicUsize::new(ramp.depth()),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let (reported, ends) = sync_channel(2 * super::ramp::DEPTH_MAX);
        let mut readers = 0;
        let mut outstanding = jobs.len();
        let result = loop {
            if outstanding == 0 || sink.is_over() {
                break Ok(());
            }
            let wanted = ramp.depth().min(jobs.len());
            queue.depth.store(ramp.depth(), Ordering::Relaxed);
            if let Err(error) = grow(scope, &queue, &mut readers, wanted, &reported) {
                break Err(error);
            }
            match ends.recv_timeout(LOOK) {
                Ok((job, outcome)) => {
                    outstanding -= 1;
                    let bytes = *outcome.as_ref().unwrap_or(&0);
                    ramp.done(bytes, Instant::now());
                    sink.done(job, outcome, ramp.depth());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        queue.stop.store(true, Ordering::Relaxed);
        // What ended meanwhile counts; and nobody waits for room to say so.
        drop(reported);
        for (job, outcome) in ends {
            sink.done(job, outcome, ramp.depth());
        }
        result
    })
}

type End = (usize, io::Result<u64>);

/// Starts readers until there are `wanted`. No more than there are is no error.
fn grow<'scope>(
    scope: &'scope Scope<'scope, '_>,
    queue: &'scope Queue<'_>,
    readers: &mut usize,
    wanted: usize,
    reported: &SyncSender<End>,
) -> io::Result<()> {
    while *readers < wanted {
        let (number, reported) = (*readers, reported.clone());
        let reader = Builder::new()
            .name("prewarm".to_owned())
            .stack_size(STACK_BYTES);
        match reader.spawn_scoped(scope, move || queue.work(number, &reported)) {
            Ok(_) => *readers += 1,
            Err(error) if *readers == 0 => return Err(error),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

impl Queue<'_> {
    fn work(&self, number: usize, reported: &SyncSender<End>) {
        let mut buffer = vec![0; READ_BYTES];
        // A depth that is found to be too much has its readers gone for good: it does not grow again.
        while !self.stop.load(Ordering::Relaxed) && number < self.depth.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(index) else {
                return;
            };
            if reported.send((index, perform(job, &mut buffer))).is_err() {
                return;
            }
        }
    }
}

/// Reads one range into a buffer, again and again: what counts is that the kernel has it.
fn perform(job: &Job, buffer: &mut [u8]) -> io::Result<u64> {
    let file = File::open(job.path.as_path())?;
    let mut done = 0;
    while done < job.length {
        let most = buffer.len().min((job.length - done) as usize);
        match file.read_at(&mut buffer[..most], job.start + done) {
            Ok(0) => break,
            Ok(got) => done += got as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
