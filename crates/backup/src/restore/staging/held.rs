//! Whose a directory is while it is restored: root's and closed, but for the time that a server works on it.

use super::Staging;
use crate::restore::dress;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::FileMeta;
use evenkeel_server::launch::{Account, hand_over};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// The mode of a directory that only its owner enters.
pub(super) const CLOSED: u32 = 0o700;
/// The mode of one through which an account reaches what is its own.
const PASSABLE: u32 = 0o711;
/// The mode of one of which the generation tells nothing, and which is no server's.
const USUAL: u32 = 0o755;

/// An open directory and the way into it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) open: OwnDirectory,
    pub(super) path: PathBuf,
}

impl Held {
    pub(super) fn new(open: OwnDirectory) -> Self {
        let path = open.anchor();
        Self { open, path }
    }
}

impl Staging {
    /// Closes the mount point to everybody else.
    pub(super) fn close_around(&self) -> Result<()> {
        let failed = || format!("failed to close {}", self.target.display());
        let (open, was) = OwnDirectory::find(&self.target)?.ok_or_else(|| {
            Error::failed(format!("{} no longer exists", self.target.display()))
                .hint("mount it, and run again")
        })?;
        let (around, was) = self.around.get_or_init(|| (Held::new(open), was));
        let me = rustix::process::geteuid();
        if me.is_root() || was.st_uid == me.as_raw() {
            hand_over::close(&around.open, CLOSED).context(failed)?;
        }
        Ok(())
    }

    /// Says what the directory gets when nothing is left to be written.
    pub(crate) fn dress_last(&self, meta: FileMeta, owner: Option<(u32, u32)>) {
        self.last.get_or_init(|| (meta, owner));
    }

    /// Gives a directory away that is whole: from now on nothing is written in it.
    pub(super) fn dress(&self, directory: impl AsFd) -> Result<()> {
        if let Some((meta, owner)) = self.last.get() {
            return dress::dress(directory.as_fd(), &self.target, meta, *owner);
        }
        let failed = || format!("failed to set the mode of {}", self.target.display());
        match self.around.get() {
            Some(_) => self.give_back_around(),
            None => hand_over::close(directory, USUAL).context(failed),
        }
    }

    /// Lets the mount point be whose it was.
    pub(super) fn give_back_around(&self) -> Result<()> {
        let Some((around, was)) = self.around.get() else {
            return Ok(());
        };
        let me = rustix::process::geteuid();
        if !me.is_root() && was.st_uid != me.as_raw() {
            return Ok(());
        }
        let owner = Account {
            uid: was.st_uid,
            gid: was.st_gid,
        };
        hand_over::give_one(&around.open, owner, was.st_mode)
            .context(|| format!("failed to give {} back to its owner", self.target.display()))
    }

    /// Lets an account work on it.
    pub(in super::super) fn lend(&self, to: Account) -> Result<()> {
        let failed = || format!("failed to set owners in {}", self.place.display());
        if let Some((around, _)) = self.around.get() {
            hand_over::close(&around.open, PASSABLE).context(failed)?;
        }
        let made = self.made.get();
        made.map_or(Ok(()), |made| hand_over::give(&made.open, to))
            .context(failed)
    }

    /// Ends that: it is closed to everybody else again.
    pub(in super::super) fn take_back(&self) -> Result<()> {
        let failed = || format!("failed to set owners in {}", self.place.display());
        let made = self.made.get();
        made.map_or(Ok(()), |made| hand_over::take_back(&made.open))
            .context(failed)?;
        let around = self.around.get();
        around
            .map_or(Ok(()), |(around, _)| hand_over::close(&around.open, CLOSED))
            .context(failed)
    }

    /// Gives what is in it, and not itself, to its owner.
    pub(in super::super) fn give_content(&self, to: Account) -> Result<()> {
        let made = self.made.get();
        made.map_or(Ok(()), |made| hand_over::give_content(&made.open, to))
            .context(|| format!("failed to set owners in {}", self.place.display()))
    }
}
