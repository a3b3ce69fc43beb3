//! Stands by while generations are shown, fills the scratch, and ends it all.

use super::lay_out;
use super::request::{Filled, MountEnd, MountReport};
use super::{Mount, Writable};
use crate::facts::DATA_ROOT;
use crate::restore::start_options;
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, Run};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// How long [`Mount::end`] waits for whoever still uses it.
const END_MAX: Duration = Duration::from_secs(60);

/// How filling ended.
type FillEnd = Result<Filled>;

impl Mount {
    /// Returns what is shown, and how a server is started on it.
    #[must_use]
    pub fn report(&self) -> &MountReport {
        &self.report
    }

    /// Stands by until it is unmounted, or until a stop is asked for and nobody uses it any more.
    /// `tell` is called when the scratch is full. A scratch that is full becomes a directory of its
    /// own; another is kept or removed, as it was asked for.
    pub fn serve(self, run: Run<'_>, tell: &mut dyn FnMut(&Filled)) -> Result<MountEnd> {
        let stop = Cancel::new();
        let (ended, end) = bounded::<FillEnd>(1);
        let filler = self.start_fill(&stop, ended, run)?;
        let stood = self.stand_by(&end, run, tell);
        stop.cancel(2);
        if let Some(filler) = filler {
            // It looks at `stop` before each piece.
            let _ = filler.join();
        }
        stood?;
        // It may have been full just before the end.
        if let Ok(Ok(filled)) = end.try_recv() {
            tell(&filled);
        }
        self.close(run)
    }

    /// Ends it: waits up to a minute for whoever still uses it.
    pub fn end(self) -> Result<MountEnd> {
        let until = Instant::now() + END_MAX;
        loop {
            match self.mounted.unmount() {
                Ok(()) => break,
                Err(error) if error.kind() != ErrorKind::Busy || Instant::now() > until => {
                    return Err(error);
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        self.close(Run {
            progress: &evenkeel_op::Silent,
            cancel: &Cancel::new(),
        })
    }

    fn start_fill(
        &self,
        stop: &Cancel,
        ended: Sender<FillEnd>,
        run: Run<'_>,
    ) -> Result<Option<std::thread::JoinHandle<()>>> {
        let Some(writable) = self.writable.as_ref().filter(|one| one.request.fill) else {
            return Ok(None);
        };
        let overlay = Arc::clone(&writable.overlay);
        let (rate, stop) = (writable.request.rate_bytes_per_s, stop.clone());
        let generation = self.report.generation;
        let scratch = writable.scratch.dir().to_owned();
        run.progress
            .note(format!("filling {} in the background", scratch.display()));
        let fill = move || {
            let begun = Instant::now();
            let limit = RateLimit::new(rate);
            let brought = AtomicU64::new(0);
            // Who uses the files has the processors first.
            let _ = rustix::process::nice(10);
            let filled = overlay.fill(&mut |bytes| {
                stop.check()?;
                limit.pace(bytes, || stop.is_cancelled());
                brought.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            });
            let filled = filled.map(|()| Filled {
                state: "filled",
                generation,
                scratch,
                bytes_filled: brought.load(Ordering::Relaxed),
                seconds: begun.elapsed().as_secs_f64(),
            });
            // Whoever does not listen any more has ended it.
            let _ = ended.send(filled);
        };
        let thread = std::thread::Builder::new()
            .name("fill".to_owned())
            .spawn(fill);
        thread
            .map(Some)
            .map_err(|error| Error::failed("failed to start a thread").because(error))
    }

    fn stand_by(
        &self,
        end: &Receiver<FillEnd>,
        run: Run<'_>,
        tell: &mut dyn FnMut(&Filled),
    ) -> Result<()> {
        let mut said_busy = false;
        loop {
            for complaint in self.complaints.try_iter() {
                run.progress.warn(complaint);
            }
            match end.try_recv() {
                Ok(Ok(filled)) => tell(&filled),
                Ok(Err(error)) => run.progress.warn(error.chain()),
                Err(_) => {}
            }
            if self.mounted.has_ended() {
                return Ok(());
            }
            if run.cancel.is_cancelled() {
                match self.mounted.unmount() {
                    Ok(()) => return Ok(()),
                    Err(error) if error.kind() != ErrorKind::Busy => return Err(error),
                    Err(_) if said_busy => {}
                    Err(_) => {
                        said_busy = true;
                        run.progress.warn(format!(
                            "{} is still in use: the mount ends when the server on it is \
                             stopped; a second signal ends it now",
                            self.report.mountpoint.display()
                        ));
                    }
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Takes leave of a filesystem that is not mounted any more.
    fn close(self, run: Run<'_>) -> Result<MountEnd> {
        let Self {
            mounted,
            report,
            writable,
            complaints,
        } = self;
        let joined = mounted.join();
        for complaint in complaints.try_iter() {
            run.progress.warn(complaint);
        }
        let mut end = MountEnd {
            state: "ended",
            mountpoint: report.mountpoint.clone(),
            generation: report.generation,
            scratch: None,
            target: None,
            roots: BTreeMap::new(),
            start_options: Vec::new(),
            bytes_missing: 0,
            complete: true,
        };
        if let Some(writable) = writable {
            put_away(writable, &report, &mut end)?;
        }
        joined.map(|()| end)
    }
}

fn put_away(writable: Writable, report: &MountReport, end: &mut MountEnd) -> Result<()> {
    let Writable {
        overlay,
        scratch,
        request,
        facts,
    } = writable;
    end.bytes_missing = overlay.missing();
    if request.fill && end.bytes_missing == 0 {
        // What was read by others is there without having been filled: its maps go.
        overlay.fill(&mut |_| Ok(()))?;
    }
    drop(overlay);
    if !request.fill || end.bytes_missing > 0 {
        end.complete = !request.fill;
        end.scratch = Some(match request.fill || request.keep {
            true => "kept",
            false => "removed",
        });
        return scratch.put_away();
    }
    let places: BTreeMap<String, PathBuf> = report
        .roots
        .keys()
        .map(|id| (id.clone(), scratch.dir().join(id)))
        .collect();
    lay_out::move_places(&scratch.files(), &facts, &report.roots, &places)?;
    scratch.settle()?;
    end.scratch = Some("restored");
    end.target = places.get(facts.main_root()).cloned();
    if places.contains_key(DATA_ROOT) {
        end.start_options = start_options(&facts.settings, &facts.roots, &places)?;
    }
    end.roots = places;
    Ok(())
}
