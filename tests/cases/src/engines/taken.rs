//! A server's files as a provider froze them, on their way to a place where a server can start on them.

use crate::rounds::{clone_image, transactions};
use crate::{Site, back_up, quiet};
use evenkeel_backup::backup::{BackupRequest, Done, HeldImage, SnapshotChoice, hold};
use evenkeel_op::{Cancel, ErrorKind, Result};
use std::fs;
use std::path::Path;

/// How often a lock is asked for again. On a busy machine a statement of the traffic may run for longer than
/// one is waited for.
const TRIES: usize = 6;

/// What was frozen.
pub(super) enum Taken {
    /// Files that can be read where they are.
    Held(Box<HeldImage>),
    /// What a tool streams exists in a repository only.
    Stored(Box<Done>),
}

impl Taken {
    /// Freezes as `request` says.
    pub(super) fn take(request: &BackupRequest) -> Result<Self> {
        let mut taken = Self::try_to(request);
        for _ in 1..TRIES {
            match &taken {
                Err(error) if error.kind() == ErrorKind::LockTimeout => {
                    taken = Self::try_to(request);
                }
                _ => break,
            }
        }
        taken
    }

    fn try_to(request: &BackupRequest) -> Result<Self> {
        match request.snapshot {
            SnapshotChoice::Engine => Ok(Self::Stored(Box::new(back_up(request)?))),
            _ => {
                let image = hold(request, quiet(&Cancel::new()))?;
                Ok(Self::Held(Box::new(image)))
            }
        }
    }

    /// Makes data directories of it below `copy`, and lets go of it; with `keep` the next one may start from
    /// it. Returns how many transactions were in the server's binary log then, where the image has no log
    /// that tells of them.
    pub(super) fn lay_out(self, site: &Site, copy: &Path, keep: bool) -> Result<Option<i64>> {
        match self {
            Self::Held(image) => {
                clone_image(&image, copy);
                match keep {
                    true => image.keep()?,
                    false => image.release()?,
                }
                Ok(None)
            }
            Self::Stored(done) => {
                fs::create_dir_all(copy).expect("a directory");
                site.restore_to(Some(done.report.generation), &copy.join("data"))?;
                let gtid = done.report.coordinates.gtid.as_deref();
                Ok(Some(transactions(gtid.expect("GTIDs"))))
            }
        }
    }
}
