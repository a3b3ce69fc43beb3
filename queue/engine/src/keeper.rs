//! The thread that compacts, and makes durable what may wait.

use crate::tables::Tables;
use evenkeel_queue::Queue;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it looks. Nothing waits for it but space, and what may be lost in a crash.
const TICK: Duration = Duration::from_millis(500);
/// Slices of one table in a row: then others have their turn.
const SLICES: usize = 64;

type Reported = (Mutex<bool>, Condvar);

/// A running keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Arc<Reported>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(tables: Arc<Tables>) -> std::io::Result<Self> {
        let stop: Arc<Reported> = Arc::default();
        let reported = stop.clone();
        let thread = std::thread::Builder::new()
            .name("queue-keeper".to_owned())
            .spawn(move || {
                let mut written = HashMap::new();
                while !rest(&reported, TICK) {
                    let all = tables.all();
                    sync(&all, &mut written);
                    all.iter().for_each(|(_, table)| compact(table, &reported));
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ends within a slice; one that panicked has ended.
            let _ = thread.join();
        }
    }
}

/// Sleeps. Returns whether to stop.
fn rest(reported: &Reported, time: Duration) -> bool {
    let stop = reported.0.lock().unwrap_or_else(PoisonError::into_inner);
    if *stop {
        return true;
    }
    let woken = reported.1.wait_timeout(stop, time);
    *woken.unwrap_or_else(PoisonError::into_inner).0
}

/// Makes durable what was written since the last look, where that may wait.
fn sync(all: &[(PathBuf, Arc<Queue>)], written: &mut HashMap<PathBuf, (u64, u64)>) {
    written.retain(|path, _| all.iter().any(|(known, _)| known == path));
    for (path, table) in all.iter().filter(|(_, table)| table.may_lag()) {
        let stats = table.stats();
        let now = (stats.appended, stats.removed);
        // What fails poisons the table: whoever writes next is told.
        if written.insert(path.clone(), now) != Some(now) {
            let _ = table.sync();
        }
    }
}

fn compact(table: &Queue, reported: &Reported) {
    for _ in 0..SLICES {
        let begun = Instant::now();
        // A failure shows in what users do with the table; here it starts over next time.
        let continues = matches!(table.compact_slice(), Ok(true));
        // Half of the disk's time is theirs.
        if !continues || rest(reported, begun.elapsed().min(TICK)) {
            break;
        }
    }
}
