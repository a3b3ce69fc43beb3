//! What was read of objects and is kept for the next reads, within one limit for all of them.

use super::Fault;
use super::calls::{Answer, Pending};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Objects are read in whole pieces of this size.
pub(super) const PIECE: u64 = 64 << 10;
/// Bytes that are kept, of all objects together.
const KEPT_MAX: u64 = 32 << 20;

/// Consecutive bytes of an object: asked for once, read by any number of threads.
pub(super) struct Run {
    range: Range<u64>,
    state: Mutex<FetchState>,
}

enum FetchState {
    Asked(Option<Pending>),
    Have(Arc<Vec<u8>>),
    Failed(Fault),
}

impl Run {
    pub(super) fn asked(range: Range<u64>, pending: Pending) -> Arc<Self> {
        Self::new(range, FetchState::Asked(Some(pending)))
    }

    pub(super) fn have(range: Range<u64>, bytes: Vec<u8>) -> Arc<Self> {
        Self::new(range, FetchState::Have(Arc::new(bytes)))
    }

    fn new(range: Range<u64>, state: FetchState) -> Arc<Self> {
        let state = Mutex::new(state);
        Arc::new(Self { range, state })
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns its bytes; waits for them if they are still on their way.
    pub(super) fn bytes(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        if let FetchState::Asked(pending) = &mut *state {
            // Only the first to come finds it, and whoever comes meanwhile waits for the lock.
            let answer = pending.take().map(Pending::wait);
            *state = match answer.map(|answer| self.whole(answer)) {
                Some(Ok(bytes)) => FetchState::Have(Arc::new(bytes)),
                Some(Err(error)) => FetchState::Failed(Fault::of(&error)),
                None => FetchState::Failed(Fault::of(&io::ErrorKind::Interrupted.into())),
            };
        }
        match &*state {
            FetchState::Have(bytes) => Ok(bytes.clone()),
            FetchState::Failed(fault) => Err(fault.clone().error()),
            FetchState::Asked(_) => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    fn whole(&self, answer: Answer) -> io::Result<Vec<u8>> {
        let (_, bytes) = answer?;
        match bytes.len() as u64 == self.range.end - self.range.start {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The runs of all objects. What was used longest ago goes first.
#[derive(Default)]
pub(super) struct Kept(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    /// By object and where they begin; those of one object do not overlap. With when it was used.
    all: BTreeMap<(u64, u64), (Arc<Run>, u64)>,
    bytes: u64,
    clock: u64,
}

impl Kept {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the run with this byte of the object. Where there is none, `ask` makes it: it is told
    /// where the next run that is kept begins, and must neither reach beyond that nor wait.
    pub(super) fn find(
        &self,
        object: u64,
        at: u64,
        ask: impl FnOnce(u64) -> io::Result<Arc<Run>>,
    ) -> io::Result<Arc<Run>> {
        let mut runs = self.runs();
        runs.clock += 1;
        let clock = runs.clock;
        let before = runs.all.range_mut((object, 0)..=(object, at)).next_back();
        if let Some((_, (run, used))) = before
            && run.range.contains(&at)
        {
            *used = clock;
            return Ok(run.clone());
        }
        let mut after = runs.all.range((object, at)..=(object, u64::MAX));
        let limit = after.next().map_or(u64::MAX, |((_, start), _)| *start);
        let run = ask(limit)?;
        runs.keep(object, run.clone());
        Ok(run)
    }

    /// Keeps a run that overlaps none of those that are kept.
    pub(super) fn keep(&self, object: u64, run: Arc<Run>) {
        self.runs().keep(object, run);
    }

    /// Forgets a run that could not be read, so that the next to need it asks again.
    pub(super) fn forget(&self, object: u64, run: &Arc<Run>) {
        let mut runs = self.runs();
        let key = (object, run.range.start);
        if runs
            .all
            .get(&key)
            .is_some_and(|(one, _)| Arc::ptr_eq(one, run))
        {
            runs.remove(key);
        }
    }

    /// Forgets an object.
    pub(super) fn forget_object(&self, object: u64) {
        let mut runs = self.runs();
        let of_it = runs.all.range((object, 0)..=(object, u64::MAX));
        for key in of_it.map(|(key, _)| *key).collect::<Vec<_>>() {
            runs.remove(key);
        }
    }
}

impl Runs {
    fn keep(&mut self, object: u64, run: Arc<Run>) {
        self.clock += 1;
        self.bytes += run.range.end - run.range.start;
        let key = (object, run.range.start);
        self.all.insert(key, (run, self.clock));
        while self.bytes > KEPT_MAX && self.all.len() > 1 {
            // A scan of a few hundred, because a miss costs a round trip.
            let oldest = self.all.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.remove(key);
        }
    }

    fn remove(&mut self, key: (u64, u64)) {
        if let Some((run, _)) = self.all.remove(&key) {
            self.bytes -= run.range.end - run.range.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: u64, length: u64) -> Arc<Run> {
        Run::have(at..at + length, Vec::new())
    }

    #[test]
    fn what_is_kept_has_one_limit_and_the_oldest_goes_first() {
        let kept = Kept::default();
        let mib = 1 << 20;
        for number in 0..=KEPT_MAX / mib {
            // The first stays in use, and the second does not.
            kept.find(1, 0, |_| Ok(run(0, mib))).unwrap();
            kept.keep(2, run(number * mib, mib));
        }
        assert!(kept.runs().bytes <= KEPT_MAX);
        let has = |object, at| kept.runs().all.contains_key(&(object, at));
        assert!(has(1, 0));
        assert!(!has(2, 0) && has(2, KEPT_MAX));
        kept.forget_object(2);
        assert_eq!(kept.runs().bytes, mib);
    }

    #[test]
    fn runs_of_an_object_do_not_overlap() {
        let kept = Kept::default();
        kept.keep(1, run(100, 50));
        let mut reported = None;
        let found = kept.find(1, 20, |limit| {
            reported = Some(limit);
            Ok(run(20, 80))
        });
        assert_eq!((reported, found.unwrap().range()), (Some(100), 20..100));
        let found = kept.find(1, 99, |_| panic!("it is there"));
        assert_eq!(found.unwrap().range(), 20..100);
        let found = kept.find(2, 99, |limit| {
            assert_eq!(limit, u64::MAX);
            Ok(run(0, 200))
        });
        assert_eq!(found.unwrap().range(), 0..200);
    }
}
