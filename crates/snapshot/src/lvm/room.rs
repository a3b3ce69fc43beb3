//! Whether there is room for a snapshot: before it is made, and as long as it is read.
//!
//! A thick snapshot that overflows is lost. A thin pool that overflows is worse: the server's own
//! writes fail. So a run ends before either happens, and gives its snapshot back.

use super::name;
use super::report::Lv;
use super::status::{self, Thick, percent};
use evenkeel_op::{Error, Result, units};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How full a pool may be, in percent, for a snapshot to be made in it.
pub(super) const POOL_FULL_BEFORE: u64 = 90;
/// How full it may become, in percent, while the snapshot is read.
const POOL_FULL_DURING: u64 = 95;
/// The same for its metadata. LVM makes no new volumes in a pool with metadata fuller than some 75 %,
/// and the kernel is said to keep a tenth of it back.
const METADATA_FULL_BEFORE: u64 = 75;
const METADATA_FULL_DURING: u64 = 85;
/// How full a thick snapshot may become, in percent.
const THICK_FULL: u64 = 90;
/// How much of its origin a thick snapshot is, in percent, when nobody says.
const THICK_SHARE: u64 = 20;
/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

/// Returns how large a thick snapshot is made. `Refused` when its group has less room.
pub(super) fn for_thick(origin: &Lv, wanted: Option<u64>) -> Result<u64> {
    let extent = origin.extent_bytes.max(1);
    let share = origin.bytes / 100 * THICK_SHARE;
    let bytes = wanted.unwrap_or(share).max(extent);
    let bytes = bytes.checked_next_multiple_of(extent).unwrap_or(u64::MAX);
    if bytes <= origin.vg_free_bytes {
        return Ok(bytes);
    }
    let what = match wanted {
        Some(_) => "",
        None => ", 20 % of the volume,",
    };
    Err(Error::refused(format!(
        "volume group {} has {} free; a snapshot of {}{what} does not fit",
        origin.vg,
        units::bytes(origin.vg_free_bytes),
        units::bytes(bytes)
    ))
    .hint("choose a smaller one with --snapshot-size: it must hold all writes during the backup")
    .hint("or extend the group: vgextend"))
}

/// Fails when a pool is too full for one more snapshot. A pool that does not say is not held against.
pub(super) fn for_thin(pool: &Lv) -> Result<()> {
    let full = |share: Option<f64>, limit| share.is_some_and(|share| share >= limit as f64);
    let (what, share) = if full(pool.data_percent, POOL_FULL_BEFORE) {
        ("data", pool.data_percent)
    } else if full(pool.metadata_percent, METADATA_FULL_BEFORE) {
        ("metadata", pool.metadata_percent)
    } else {
        return Ok(());
    };
    Err(Error::refused(format!(
        "thin pool {} is {:.1} % full of {what}: a snapshot could fill it, and stop the server's \
         writes",
        pool.path(),
        share.unwrap_or_default()
    ))
    .hint(match what {
        "data" => format!("extend it: lvextend -L +SIZE {}", pool.path()),
        _ => format!(
            "extend it: lvextend --poolmetadatasize +SIZE {}",
            pool.path()
        ),
    }))
}

/// What is watched.
#[derive(Debug, Clone)]
pub(super) enum Watched {
    /// A thick snapshot, by its name in device-mapper.
    Thick(String),
    /// The pool of a thin one.
    Pool(String),
}

impl Watched {
    pub(super) fn thick(vg: &str, snapshot: &str) -> Self {
        Self::Thick(name::device_mapper(vg, snapshot))
    }

    pub(super) fn pool(vg: &str, pool: &str) -> Self {
        Self::Pool(format!("{}-tpool", name::device_mapper(vg, pool)))
    }

    /// Fails when there is no room left, or the snapshot is lost.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Thick(name) => thick_holds(status::thick(name)?),
            Self::Pool(name) => pool_holds(&status::pool(name)?),
        }
    }
}

fn thick_holds(found: Thick) -> Result<()> {
    match found {
        Thick::Valid(used, all) if percent((used, all)) < THICK_FULL => Ok(()),
        Thick::Valid(used, all) => Err(Error::failed(format!(
            "the LVM snapshot is {} % full, so the run stops before it overflows",
            percent((used, all))
        ))
        .hint("make it larger with --snapshot-size, or run when there are fewer writes")),
        Thick::Lost => Err(
            Error::failed("the LVM snapshot overflowed: its contents are lost")
                .hint("make it larger with --snapshot-size, or run when there are fewer writes"),
        ),
    }
}

fn pool_holds(found: &status::Pool) -> Result<()> {
    let (data, metadata) = (percent(found.data), percent(found.metadata));
    if !found.writable {
        return Err(
            Error::failed("the thin pool no longer accepts writes").hint("extend it: lvextend")
        );
    }
    for (what, share, limit) in [
        ("data", data, POOL_FULL_DURING),
        ("metadata", metadata, METADATA_FULL_DURING),
    ] {
        if share >= limit {
            return Err(Error::failed(format!(
                "the thin pool is {share} % full of {what}, so the run stops before it overflows"
            ))
            .hint("extend it: lvextend"));
        }
    }
    Ok(())
}

/// Looks again and again, until dropped, and remembers the first failure.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<WatchState>,
    wake: Condvar,
}

#[derive(Default)]
struct WatchState {
    ended: bool,
    failure: Option<(String, Vec<String>)>,
}

impl Watch {
    /// Begins to look.
    pub(super) fn begin(watched: Vec<Watched>) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || own.look(&watched));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Fails once there was too little room.
    pub(super) fn check(&self) -> Result<()> {
        let state = self.shared.lock();
        let Some((message, hints)) = &state.failure else {
            return Ok(());
        };
        let error = Error::failed(message.clone());
        Err(hints
            .iter()
            .fold(error, |error, hint| error.hint(hint.clone())))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell but what was asked for already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, watched: &[Watched]) {
        loop {
            let failed = watched.iter().find_map(|one| one.check().err());
            let mut state = self.lock();
            if let Some(error) = failed {
                let hints = error.hints().into_iter().map(str::to_owned).collect();
                state.failure = Some((error.chain(), hints));
            }
            if state.ended || state.failure.is_some() {
                return;
            }
            let (state, _) = self
                .wake
                .wait_timeout(state, EVERY)
                .unwrap_or_else(PoisonError::into_inner);
            if state.ended {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(free: u64) -> Lv {
        Lv {
            vg: "vg".into(),
            name: "data".into(),
            bytes: 1000 << 20,
            vg_free_bytes: free,
            extent_bytes: 4 << 20,
            ..Lv::default()
        }
    }

    #[test]
    fn a_thick_snapshot_is_whole_extents_that_fit() {
        assert_eq!(for_thick(&origin(200 << 20), None).unwrap(), 200 << 20);
        assert_eq!(for_thick(&origin(200 << 20), Some(1)).unwrap(), 4 << 20);
        let refused = for_thick(&origin(196 << 20), None).unwrap_err();
        assert!(refused.to_string().contains("does not fit"), "{refused}");
        assert_eq!(refused.hints().len(), 2);
        assert!(for_thick(&origin(200 << 20), Some(201 << 20)).is_err());
    }

    #[test]
    fn a_pool_that_is_nearly_full_is_refused() {
        let pool = |data, metadata| Lv {
            data_percent: Some(data),
            metadata_percent: Some(metadata),
            ..origin(0)
        };
        assert!(for_thin(&pool(89.9, 74.9)).is_ok());
        assert!(for_thin(&pool(90.0, 1.0)).is_err());
        let refused = for_thin(&pool(1.0, 95.0)).unwrap_err();
        assert!(refused.to_string().contains("metadata"), "{refused}");
    }

    #[test]
    fn a_run_ends_before_anything_overflows() {
        assert!(thick_holds(Thick::Valid(89, 100)).is_ok());
        assert!(thick_holds(Thick::Valid(90, 100)).is_err());
        assert!(thick_holds(Thick::Lost).is_err());
        let pool = status::Pool {
            metadata: (84, 100),
            data: (94, 100),
            reserved: false,
            writable: true,
        };
        assert!(pool_holds(&pool).is_ok());
        for worse in [
            status::Pool {
                data: (95, 100),
                ..pool
            },
            status::Pool {
                metadata: (85, 100),
                ..pool
            },
            status::Pool {
                writable: false,
                ..pool
            },
        ] {
            assert!(pool_holds(&worse).is_err(), "{worse:?}");
        }
    }

    #[test]
    fn what_cannot_be_watched_counts_as_lost() {
        let watch = Watch::begin(vec![Watched::Thick("no-such-volume".into())]);
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while watch.check().is_ok() {
            assert!(std::time::Instant::now() < deadline, "nothing is noticed");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
