//! One queue: rows go in at the end, are owned by one session at a time, and are gone when that
//! session says so.
//!
//! Two locks: the tail's, which whoever writes holds, and that of what is known in memory, which is
//! held for moments. Whoever needs both takes the tail's first. Whoever compacts holds a third one, for one
//! slice, and takes the others within it.

mod checkpoint;
mod compact;
mod compaction;
mod condition;
mod counters;
mod file;
mod group;
mod handover;
mod index;
mod live;
mod options;
mod ready;
mod recover;
mod request;
mod tail;
mod write;

pub use condition::Condition;
pub use options::{Options, Sync};
pub use recover::Report;
pub use request::{Copied, Source};

pub(crate) use checkpoint::{
    Checkpoint, FILE as CHECKPOINT, read as read_small, replace as replace_small,
};
pub(crate) use file::DataFile;
pub(crate) use live::{Look, Waiter};
pub(crate) use tail::Tail;

use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::log::rows::{self, SLOTS, TableState};
use compaction::Compaction;
use counters::Counters;
use group::Group;
use live::Live;
use recover::Recovery;
use request::{Answer, Request};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Requests in one group, at most.
const GROUP: usize = 1024;

/// Rows that are looked at before others may do something.
const LOOKS: usize = 64;

/// One queue. It is shared by all who use it.
pub struct Queue {
    io: Arc<dyn Io>,
    dir: PathBuf,
    id: u128,
    options: RwLock<Options>,
    group: Group<Request, Answer>,
    tail: Mutex<Tail>,
    live: Mutex<Live>,
    compaction: Mutex<Compaction>,
    is_gone: AtomicBool,
    map_budget: AtomicU64,
    pub(crate) counters: Counters,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("stats", &self.stats())
            .finish()
    }
}

/// What became of rows that were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// They are there; the first has this id, the others follow.
    First(u64),
    /// Their source has sent them before.
    Repeated,
}

/// What a table looks like at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Rows that are there, owned ones too.
    pub rows: usize,
    /// Rows that a session owns.
    pub owned: usize,
    /// Sessions that wait.
    pub waiters: usize,
    /// Rows appended since the table was opened.
    pub appended: u64,
    /// Rows removed since then.
    pub removed: u64,
    /// Files of rows.
    pub files: usize,
    /// Bytes in them, dead rows too.
    pub bytes: u64,
    /// Of those, bytes of rows that are gone, roughly.
    pub dead_bytes: u64,
    /// Bytes of memory that finding rows takes.
    pub memory: usize,
    /// Waits, since the table was opened, that found a row at once.
    pub waits_at_once: u64,
    /// Waits that had one later.
    pub waits_later: u64,
    /// Waits that had none in time.
    pub waits_timed_out: u64,
    /// Rows that their owner gave back.
    pub back_by_abort: u64,
    /// Rows that came back because their owner went away.
    pub back_by_close: u64,
    /// Groups of requests that were written.
    pub groups: u64,
    /// Requests in them.
    pub requests: u64,
    /// How often what was written was made durable.
    pub syncs: u64,
}

impl Queue {
    /// Makes an empty table in a new directory.
    pub(crate) fn create(io: &dyn Io, dir: &Path, table: u128) -> Result<()> {
        io.make_dir(dir).during("make", dir)?;
        let (first, before) = (1, 0);
        Tail::start(io, dir, table, (first, before), &TableState::new())?;
        let checkpoint = Checkpoint {
            table,
            generation: 0,
            first_segment: first,
            parts: Vec::new(),
        };
        checkpoint.write(io, dir)
    }

    /// Opens a table: what a crash tore is cut off. With `salvages` what is broken is left out, and
    /// the rest rewritten.
    pub(crate) fn open(
        io: &Arc<dyn Io>,
        dir: &Path,
        table: u128,
        options: Options,
        salvages: bool,
    ) -> Result<(Self, Report)> {
        let recovery = Recovery::new(io, dir, table, salvages);
        let (index, tail, generation, report) = recovery.run()?;
        let this = Self {
            io: io.clone(),
            dir: dir.to_path_buf(),
            id: table,
            options: RwLock::new(options),
            group: Group::new(GROUP),
            tail: Mutex::new(tail),
            live: Mutex::new(Live {
                index,
                ..Live::default()
            }),
            compaction: Mutex::new(Compaction::after(generation)),
            is_gone: AtomicBool::new(false),
            map_budget: AtomicU64::new(options.map_bytes),
            counters: Counters::default(),
        };
        if salvages {
            this.compact(true)?;
        }
        Ok((this, report))
    }

    /// Which table it is, for ever.
    #[must_use]
    pub fn id(&self) -> u128 {
        self.id
    }

    /// How it is kept.
    fn options(&self) -> Options {
        *self.options.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps it otherwise from the next write on. Files that are mapped stay so.
    pub fn set_options(&self, options: Options) {
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = options;
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compaction(&self) -> MutexGuard<'_, Compaction> {
        let compaction = self.compaction.lock();
        compaction.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, request: Request) -> Answer {
        if self.live().is_dropped {
            return Err(Error::Dropped);
        }
        let answer = self.group.submit(request, |requests| self.lead(requests));
        answer.unwrap_or_else(|| Err(Error::Poisoned("a thread ended while it wrote".into())))
    }

    /// Appends rows, all or none. They are durable when this returns, if the options say so.
    ///
    /// # Errors
    ///
    /// A full disk, too large rows, an error of the file system: then none of them is there. After
    /// [`Error::Poisoned`] they may be there when the table is opened again.
    pub fn append(&self, rows: Vec<Vec<u8>>, source: Option<Source>) -> Result<Append> {
        if let Some(source) = source.filter(|source| usize::from(source.slot) >= SLOTS) {
            return Err(Error::NoSlot(u64::from(source.slot)));
        }
        let bytes = rows::size(&rows)?;
        let request = Request::Append {
            rows,
            bytes,
            source,
        };
        Ok(match self.submit(request)? {
            Some(first) => Append::First(first),
            None => Append::Repeated,
        })
    }

    /// Gives up to `most` of the oldest rows that pass to an owner, and returns their ids. It does not
    /// wait.
    ///
    /// # Errors
    ///
    /// The table was dropped, or a row cannot be read to ask the condition about it.
    pub fn take(&self, owner: u64, condition: Option<&Condition>, most: usize) -> Result<Vec<u64>> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let mut live = self.live();
            if live.is_dropped {
                return Err(Error::Dropped);
            }
            match live.look(condition, LOOKS, &self.map_budget)? {
                Look::Found(id) => {
                    live.ready.own(id, owner);
                    taken.push(id);
                }
                Look::More => {}
                Look::Nothing => break,
            }
        }
        Ok(taken)
    }

    /// Takes a row, or leaves a waiter. True: a row was taken, and the waiter's token won with it.
    pub(crate) fn take_or_wait(&self, waiter: Waiter) -> Result<bool> {
        use crate::wait::token::Outcome;
        loop {
            let mut live = self.live();
            if live.is_dropped {
                return Err(Error::Dropped);
            }
            match live.look(waiter.condition.as_ref(), LOOKS, &self.map_budget)? {
                Look::Found(id) => {
                    let won = waiter.token.settle(Outcome::Granted(waiter.place));
                    if won {
                        live.ready.own(id, waiter.token.owner());
                    } else {
                        live.ready.give_back(id);
                    }
                    return Ok(won);
                }
                Look::More => {}
                Look::Nothing => {
                    live.waiters.push_back(waiter);
                    return Ok(false);
                }
            }
        }
    }

    /// Makes a certain row an owner's. False if it is gone or somebody else's.
    pub fn own(&self, id: u64, owner: u64) -> bool {
        let mut live = self.live();
        live.index.is_live(id) && live.ready.own(id, owner)
    }

    /// The rows of an owner, oldest first.
    pub fn owned_by(&self, owner: u64) -> Vec<u64> {
        let live = self.live();
        match live.successor.clone() {
            Some(next) => {
                drop(live);
                next.owned_by(owner)
            }
            None => live.ready.of(owner),
        }
    }

    /// The first row from this id on that is nobody's, or with `owner` the first of that owner's: for
    /// scans.
    pub fn next_visible(&self, from: u64, owner: Option<u64>) -> Option<u64> {
        let live = self.live();
        if let Some(owner) = owner {
            return live.ready.next_of(owner, from);
        }
        let mut id = live.index.next_live(from)?;
        while live.ready.owner(id).is_some() {
            id = live.index.next_live(id + 1)?;
        }
        Some(id)
    }

    /// The bytes of a row, unless it is gone.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or does not hold what was written.
    pub fn read(&self, id: u64) -> Result<Option<Vec<u8>>> {
        let place = self.live().index.find(id);
        let row = place.map(|(file, offset)| file.row(id, offset, &self.map_budget));
        row.transpose()
    }

    /// Removes rows of an owner for good. Those that are gone already were truncated.
    ///
    /// # Errors
    ///
    /// One of them is somebody else's, or the removal cannot be written: they stay the owner's.
    pub fn remove(&self, owner: u64, ids: &[u64]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let live = self.live();
        let is_foreign =
            |id: &&u64| live.index.is_live(**id) && live.ready.owner(**id) != Some(owner);
        let foreign = ids.iter().find(is_foreign);
        drop(live);
        match foreign {
            Some(id) => Err(Error::NotOwner(*id)),
            None => {
                let removed = self.submit(Request::Remove(ids.to_vec()));
                // They may be in another table since.
                match (removed, self.successor()) {
                    (Err(_), Some(next)) => next.remove(owner, ids),
                    (removed, _) => removed.map(|_| ()),
                }
            }
        }
    }

    /// Puts rows of an owner back where they were; the next who waits gets them. Returns how many of them
    /// were still there, and the owner's.
    pub fn give_back(&self, owner: u64, ids: &[u64]) -> usize {
        let mut back = 0;
        // Those of a portion come back together: who waits gets what it wants most.
        for some in ids.chunks(LOOKS) {
            let mut live = self.live();
            if let Some(next) = live.successor.clone() {
                drop(live);
                return back + next.give_back(owner, ids);
            }
            let mut own = some.to_vec();
            own.retain(|id| live.ready.owner(*id) == Some(owner));
            for id in &own {
                live.ready.give_back(*id);
            }
            back += own.len();
            // Only conditions need to see rows.
            let is_asked = live.waiters.iter().any(|one| one.condition.is_some());
            let row = |id: u64| {
                let place = live.index.find(id).filter(|_| is_asked);
                let row = place.map(|(file, offset)| file.row(id, offset, &self.map_budget));
                (id, row.and_then(Result::ok).unwrap_or_default())
            };
            let rows: Vec<(u64, Vec<u8>)> = match live.waiters.is_empty() {
                true => Vec::new(),
                false => own.into_iter().map(row).collect(),
            };
            live.grant(&rows);
        }
        back
    }

    /// Removes all rows in one step, owned ones too: their owners own nothing then, and what they end or
    /// give back is gone.
    ///
    /// # Errors
    ///
    /// As with [`remove`](Self::remove): then all are still there.
    pub fn truncate(&self) -> Result<()> {
        self.submit(Request::Truncate).map(|_| ())
    }

    /// Makes everything durable that was written.
    ///
    /// # Errors
    ///
    /// The file system refuses: the table takes no more writes.
    pub fn sync(&self) -> Result<()> {
        self.submit(Request::Close(false)).map(|_| ())
    }

    /// Makes everything durable and says so in the log: whatever is broken when the table is opened
    /// again was not torn by a crash.
    ///
    /// # Errors
    ///
    /// As with [`sync`](Self::sync). The table may be used on.
    pub fn close(&self) -> Result<()> {
        self.submit(Request::Close(true)).map(|_| ())
    }

    /// Whether it was dropped, or its rows are in another table.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Forgets whoever waits with this token.
    pub(crate) fn forget_waiter(&self, token: &Arc<crate::wait::token::Token>) {
        let mut live = self.live();
        live.waiters
            .retain(|waiter| !Arc::ptr_eq(&waiter.token, token));
    }

    /// Ends all waits, and refuses everything from now on. When it returns nobody makes a file any more.
    pub(crate) fn drop_now(&self) {
        self.is_gone.store(true, Ordering::Release);
        let mut live = self.live();
        live.is_dropped = true;
        live.drop_waiters();
        drop(live);
        // Whoever compacts or writes ends the piece that it has begun, and begins none.
        drop(self.compaction());
        self.tail().poisoned = Some("it was dropped".into());
    }

    /// What the table looks like now.
    pub fn stats(&self) -> Stats {
        let live = self.live();
        Stats {
            rows: live.index.live(),
            owned: live.ready.owned(),
            waiters: live.waiters.len(),
            appended: live.appended,
            removed: live.removed,
            files: live.index.files.len(),
            bytes: live.index.bytes(),
            dead_bytes: live.index.dead_bytes(),
            memory: live.index.memory(),
            waits_at_once: self.counters.at_once.get(),
            waits_later: self.counters.later.get(),
            waits_timed_out: self.counters.timed_out.get(),
            back_by_abort: self.counters.back_by_abort.get(),
            back_by_close: self.counters.back_by_close.get(),
            groups: self.counters.groups.get(),
            requests: self.counters.requests.get(),
            syncs: self.counters.syncs.get(),
        }
    }

    /// How long the oldest row that is there has waited, in seconds: 0 where there is none, or the clock was set back.
    /// None where nobody knows: an earlier version wrote it.
    pub fn oldest_s(&self) -> Option<u64> {
        let live = self.live();
        let Some(oldest) = live.index.next_live(0) else {
            return Some(0);
        };
        let came = live.index.came(oldest);
        drop(live);
        (came > 0).then(|| self.io.unix_s().saturating_sub(came))
    }

    /// All who own rows, and how many each.
    pub fn owners(&self) -> Vec<(u64, usize)> {
        self.live().ready.counts()
    }

    /// Whether what was acknowledged may be durable only later, when [`sync`](Self::sync) is called.
    #[must_use]
    pub fn may_lag(&self) -> bool {
        let lags = |sync| matches!(sync, Sync::Every(_));
        let options = self.options();
        lags(options.rows) || lags(options.removals)
    }

    fn release_map(&self, bytes: u64) {
        self.map_budget.fetch_add(bytes, Ordering::AcqRel);
    }
}
