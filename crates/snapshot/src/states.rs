//! A run with a snapshot: a type for each of its steps, so that what is out of order does not compile.
//!
//! ```text
//! open ─► Opened ── instant ─► Made
//!           └──── seal(Made) ───┴─► Sealed ── check ─► Checked ── commit
//! ```
//!
//! The snapshot is made while a server waits, and so its making only lends the run: one that fails is dropped by
//! whoever owns it, when nobody waits any more. Later steps take the run, and drop it where they fail. Dropping is
//! `abandon`, except that nobody is told where that fails.

use crate::provider::{Atomicity, Changed, Provider, SourceFile};
use evenkeel_op::Result;
use std::fmt;
use std::path::{Path, PathBuf};

/// A run that has begun: files are taken. What lies in the snapshot is asked for with the proof that it is made:
///
/// ```compile_fail,E0423
/// # use evenkeel_snapshot::{Made, Opened};
/// # fn f(run: Opened) -> evenkeel_op::Result<()> {
/// run.seal(Made(()))?; // there is no proof but that of `instant`
/// # Ok(()) }
/// ```
///
/// ```compile_fail,E0599
/// # use evenkeel_snapshot::{Opened, SourceFile};
/// # fn f(mut run: Opened, file: &SourceFile) -> evenkeel_op::Result<()> {
/// let made = run.instant()?;
/// run.changed(file)?; // before it is sealed
/// # Ok(()) }
/// ```
pub struct Opened(Box<dyn Provider>);

/// The proof that a run's snapshot was made. It is not another run's: nobody has two at a time.
#[derive(Debug)]
#[must_use]
pub struct Made(());

/// A run whose snapshot is on disk: it is read.
///
/// ```compile_fail,E0599
/// # fn f(run: evenkeel_snapshot::Sealed) -> evenkeel_op::Result<()> {
/// run.commit("token") // before it is checked
/// # }
/// ```
///
/// ```compile_fail,E0382
/// # fn f(run: evenkeel_snapshot::Sealed, file: &evenkeel_snapshot::SourceFile) -> evenkeel_op::Result<()> {
/// let checked = run.check()?;
/// run.changed(file)?; // what is read now is not checked
/// checked.commit("token")
/// # }
/// ```
pub struct Sealed(Box<dyn Provider>);

/// A run whose files stayed frozen until they were read.
///
/// ```
/// # use evenkeel_snapshot::{Opened, SourceFile};
/// # fn f(mut run: Opened, files: &[SourceFile]) -> evenkeel_op::Result<()> {
/// run.take(files)?;
/// let made = run.instant()?;
/// let run = run.seal(made)?;
/// for file in files {
///     let (_place, _what) = (run.frozen_path(file), run.changed(file)?);
/// }
/// run.check()?.commit("token")
/// # }
/// ```
pub struct Checked(Box<dyn Provider>);

impl Opened {
    pub(crate) fn new(provider: impl Provider + 'static) -> Self {
        Self(Box::new(provider))
    }

    /// Returns what the snapshot is atomic over.
    #[must_use]
    pub fn atomicity(&self) -> Atomicity {
        self.0.atomicity()
    }

    /// Does what can be done beforehand of a `take` of these files, so that it takes less time:
    /// optional, and outside any lock or pause. A file may vanish meanwhile; what fails here is
    /// left to `take`.
    pub fn prepare(&mut self, files: &[SourceFile]) {
        self.0.prepare(files);
    }

    /// Per-file: clones these files now, in the order in which they stand; may be called several times. Whole:
    /// remembers them; after `instant`, those that are in the snapshot, though perhaps gone since.
    pub fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        self.0.take(files)
    }

    /// Whole: makes the snapshot now. Per-file: what was taken is the snapshot.
    pub fn instant(&mut self) -> Result<Made> {
        self.0.instant()?;
        Ok(Made(()))
    }

    /// Returns where a directory lies in the snapshot. Whole only.
    pub fn frozen_dir(&self, _: &Made, live: &Path) -> Result<PathBuf> {
        self.0.frozen_dir(live)
    }

    /// Returns where the frozen bytes of a file that was taken can be read.
    #[must_use]
    pub fn frozen_path(&self, _: &Made, file: &SourceFile) -> PathBuf {
        self.0.frozen_path(file)
    }

    /// Overwrites bytes of a frozen file. Per-file only.
    pub fn patch(&mut self, _: &Made, file: &SourceFile, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.patch(file, offset, bytes)
    }

    /// Fails if what is frozen did not stay frozen so far: why something could not be read.
    pub fn stayed_frozen(&self, _: &Made) -> Result<()> {
        self.0.check()
    }

    /// Brings the snapshot to disk; to be called when all locks are released.
    pub fn seal(mut self, _: Made) -> Result<Sealed> {
        self.0.seal()?;
        Ok(Sealed(self.0))
    }
}

impl Sealed {
    /// Returns where the frozen bytes of a file that was taken can be read.
    #[must_use]
    pub fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        self.0.frozen_path(file)
    }

    /// Returns where a file may differ from the base that the run was opened with.
    pub fn changed(&self, file: &SourceFile) -> Result<Changed> {
        self.0.changed(file)
    }

    /// Says why `changed` can tell of no file what differs from that base; nothing where it can.
    #[must_use]
    pub fn nothing_to_compare_with(&self) -> Option<&'static str> {
        self.0.nothing_to_compare_with()
    }

    /// Fails when the snapshot is lost, or is about to be: asked again and again while it is read, so
    /// it takes no time.
    pub fn holds(&self) -> Result<()> {
        self.0.holds()
    }

    /// Fails if the frozen files did not stay frozen so far: why something could not be read.
    pub fn stayed_frozen(&self) -> Result<()> {
        self.0.check()
    }

    /// Fails if the frozen files did not stay frozen. To be called after the last byte was read and
    /// before the generation is published.
    pub fn check(self) -> Result<Checked> {
        self.0.check()?;
        Ok(Checked(self.0))
    }
}

impl Checked {
    /// Makes this snapshot the base for the next run, under `token`; the former base is gone then.
    pub fn commit(self, token: &str) -> Result<()> {
        self.0.commit(token)
    }
}

/// What is the same in several states.
macro_rules! of_states {
    ($($state:ident)*) => {$(
        impl $state {
            /// Returns `btrfs`, `reflink`, `lvm`, `copy` or `hook`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                self.0.name()
            }

            /// Ends a run without a generation: the next one finds what changed since the former base.
            pub fn abandon(self) -> Result<()> {
                self.0.abandon()
            }
        }

        impl fmt::Debug for $state {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($state)).field(&self.0.name()).finish()
            }
        }
    )*};
}

of_states!(Opened Sealed Checked);
