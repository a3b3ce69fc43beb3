//! What one connection owns and waits for.

use crate::fault::{Code, Fault};
use crate::owners::Known;
use crate::tables::Tables;
use evenkeel_queue::{Copied, Killer, Queue, Session, Source, Waited, Wanted};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a wait stays for a table that another thread is opening, closing or altering, however little time it
/// has: who only looks would find nothing in a table that has rows.
const GRACE: Duration = Duration::from_secs(1);

/// How often a wait looks whether the server has forgotten a table that was dropped.
const LOOKS_AGAIN: Duration = Duration::from_millis(5);

/// How long it stays where a longer time is asked for than clocks can tell.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A connection. When it goes, what it owns goes back.
#[derive(Debug)]
pub struct Connection {
    session: Session,
    /// Behind the session: as long as that owns a row it is known whose it is.
    _known: Known,
    /// It sees what it owns and nothing else.
    is_owner: bool,
    /// What the next rows come from.
    source: Option<Source>,
    copying: Option<Copying>,
    /// Names that its statement has touched, where a server's dictionary has the last word.
    unsettled: BTreeSet<PathBuf>,
}

/// What a connection copies.
#[derive(Debug)]
struct Copying {
    to: PathBuf,
    /// The row of the original that is at hand; none as long as it is no queue that is copied.
    row: Option<Arc<AtHand>>,
}

/// A row that is copied.
#[derive(Debug, Default)]
pub(crate) struct AtHand {
    id: AtomicU64,
    came: AtomicU64,
}

impl AtHand {
    /// Says which it is, and when it came.
    pub(crate) fn set(&self, id: u64, came: u64) {
        self.id.store(id, Ordering::Relaxed);
        self.came.store(came, Ordering::Relaxed);
    }

    /// The copy of it that has these bytes.
    pub(crate) fn copied(&self, bytes: &[u8]) -> Copied {
        Copied {
            id: self.id.load(Ordering::Relaxed),
            came: self.came.load(Ordering::Relaxed),
            bytes: bytes.to_vec(),
        }
    }
}

/// One of the tables that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Where it is.
    pub path: PathBuf,
    /// Which of its rows; none is any.
    pub condition: Option<String>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// This of the tables, counted from 0, gave rows.
    Rows(usize),
    /// The time is over.
    TimedOut,
    /// Somebody ended it.
    Killed,
    /// One of the tables is not there.
    Missing,
}

/// Returns whether there are all the tables that a wait would ask: one that cannot wait consumes nothing.
///
/// # Errors
///
/// A table cannot be read; `Misuse` for a condition that is none.
pub(crate) fn look(tables: &Tables, asked: &[Asked]) -> Result<bool, Fault> {
    let until = Instant::now() + GRACE;
    for one in asked {
        match tables.wanted(&one.path, one.condition.as_deref(), until) {
            Err(fault) if fault.code == Code::Missing => return Ok(false),
            Err(fault) => return Err(fault),
            Ok(_) => {}
        }
    }
    Ok(true)
}

impl Connection {
    /// One that owns nothing. `id` is the server's number of it.
    #[must_use]
    pub fn new(id: u64) -> Self {
        let session = Session::new();
        let known = Known::new(session.owner(), id);
        Self {
            session,
            _known: known,
            is_owner: false,
            source: None,
            copying: None,
            unsettled: BTreeSet::new(),
        }
    }

    /// Removes what is owned, then waits for up to `most` rows of the first of the tables that has
    /// one. From then on the connection sees only what it owns.
    ///
    /// # Errors
    ///
    /// What was owned cannot be removed, or a table not be read; `Misuse` for a condition that
    /// is none.
    pub fn wait(
        &mut self,
        tables: &Tables,
        asked: &[Asked],
        most: usize,
        timeout: Duration,
        is_killed: &dyn Fn() -> bool,
    ) -> Result<Ended, Fault> {
        let begun = Instant::now();
        let mut is_again = false;
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            if is_again && left.is_zero() {
                return self.in_vain();
            }
            let now = Instant::now();
            let until = now.checked_add(left.max(GRACE)).unwrap_or(now + LONGEST);
            let wanted = asked
                .iter()
                .map(|one| tables.wanted(&one.path, one.condition.as_deref(), until));
            let wanted: Vec<Wanted> = match wanted.collect::<Result<Option<_>, Fault>>() {
                Err(fault) if fault.code == Code::Missing => {
                    if !is_again || !asked.iter().any(|one| tables.is_going(&one.path)) {
                        return Ok(Ended::Missing);
                    }
                    if is_killed() {
                        self.is_owner = true;
                        return Ok(Ended::Killed);
                    }
                    std::thread::sleep(LOOKS_AGAIN);
                    continue;
                }
                Ok(None) => return self.in_vain(),
                Ok(Some(wanted)) => wanted,
                Err(fault) => return Err(fault),
            };
            let left = timeout.saturating_sub(begun.elapsed());
            let waited = self.session.wait(&wanted, most, left, is_killed);
            self.is_owner = true;
            return Ok(match waited {
                Ok(Waited::Rows(place, _)) => Ended::Rows(place),
                Ok(Waited::TimedOut) => Ended::TimedOut,
                Ok(Waited::Killed) => Ended::Killed,
                // Another may have its name already: it is asked once, however little time is left.
                Ok(Waited::Dropped(_)) | Err(evenkeel_queue::Error::Dropped) => {
                    is_again = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            });
        }
    }

    /// Ends a wait that no table was asked in.
    fn in_vain(&mut self) -> Result<Ended, Fault> {
        self.session.end()?;
        self.is_owner = true;
        Ok(Ended::TimedOut)
    }

    /// Removes what is owned for good, and sees all again.
    ///
    /// # Errors
    ///
    /// `Misuse` when it waited for nothing; or it cannot be written, and is owned still.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.must_be_owner("queue_end()")?;
        self.session.end()?;
        self.is_owner = false;
        Ok(())
    }

    /// Puts what is owned back, and sees all again.
    ///
    /// # Errors
    ///
    /// `Misuse` when it waited for nothing.
    pub fn abort(&mut self) -> Result<(), Fault> {
        self.must_be_owner("queue_abort()")?;
        self.session.abort();
        self.is_owner = false;
        Ok(())
    }

    /// Removes what is owned for good, if there is any. It goes on seeing nothing else.
    ///
    /// # Errors
    ///
    /// It cannot be written, and is owned still.
    pub fn consume(&mut self) -> Result<(), Fault> {
        Ok(self.session.end()?)
    }

    /// Whether it owns a row.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.session.held().is_some()
    }

    /// Starts over, as a connection that was just made: what is owned goes back.
    pub fn reset(&mut self) {
        self.session.leave();
        self.is_owner = false;
        self.source = None;
        self.copying = None;
    }

    fn must_be_owner(&self, what: &str) -> Result<(), Fault> {
        match self.is_owner {
            true => Ok(()),
            false => Err(Fault::misuse(format!(
                "this connection owns no row: call queue_wait() before {what}"
            ))),
        }
    }

    /// The id of the first row that is owned; 0 for none.
    ///
    /// # Errors
    ///
    /// `Misuse` when it waited for nothing.
    pub fn row_id(&self) -> Result<u64, Fault> {
        self.must_be_owner("queue_rowid()")?;
        let ids = self.session.held().map(|(_, ids)| ids);
        Ok(ids.and_then(|ids| ids.first()).copied().unwrap_or(0))
    }

    /// Says what the next rows come from.
    pub fn set_source(&mut self, source: Source) {
        self.source = Some(source);
    }

    pub(crate) fn take_source(&mut self) -> Option<Source> {
        self.source.take()
    }

    /// Says that rows go to this table now, from another one.
    pub fn copies_to(&mut self, to: &Path) {
        self.copying = Some(Copying {
            to: to.to_owned(),
            row: None,
        });
    }

    /// Where rows are copied to, and a place for whoever reads them to say which it has at hand.
    pub(crate) fn begin_copy(&mut self) -> Option<(&Path, Arc<AtHand>)> {
        let copying = self.copying.as_mut()?;
        let row = Arc::<AtHand>::default();
        copying.row = Some(row.clone());
        Some((&copying.to, row))
    }

    /// Which row of another queue the next one of this table is a copy of.
    pub(crate) fn copied_row(&self, to: &Path) -> Option<&AtHand> {
        let copying = self.copying.as_ref().filter(|copying| copying.to == to)?;
        copying.row.as_deref()
    }

    /// Names that its statement has touched; see [`Tables::leave`].
    pub(crate) fn unsettled(&mut self) -> &mut BTreeSet<PathBuf> {
        &mut self.unsettled
    }

    /// As whom it owns, when it sees nothing else.
    pub(crate) fn sees_only(&self) -> Option<u64> {
        self.is_owner.then(|| self.session.owner())
    }

    /// As whom it owns.
    pub(crate) fn owner(&self) -> u64 {
        self.session.owner()
    }

    /// Removes rows of a table for good that are owned, or were taken to be removed.
    pub(crate) fn remove(&mut self, table: &Arc<Queue>, ids: &[u64]) -> Result<(), Fault> {
        match self.is_owner {
            true => Ok(self.session.consume(ids)?),
            false => Ok(table.remove(self.session.owner(), ids)?),
        }
    }

    /// What ends its waits from another thread.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.session.killer()
    }
}
