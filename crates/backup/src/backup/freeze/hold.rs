//! Freezes a server's files without a repository: what the proofs of the freezing itself stand on.

use crate::backup::freeze::{self, Frozen, Moments};
use crate::backup::request::BackupRequest;
use crate::backup::source_file::source;
use crate::backup::survey;
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::coordinates::Coordinates;
use std::path::{Path, PathBuf};

/// Files of a server as they were at one point in time, until dropped, released or kept.
pub struct HeldImage {
    frozen: Frozen,
}

/// Freezes the files as a backup would, and stores nothing. The repository of the request is not
/// looked at. A kept base of former backups stays.
pub fn hold(request: &BackupRequest, run: Run<'_>) -> Result<HeldImage> {
    let survey = survey::survey(request, run)?;
    if survey.engine.is_some() {
        return Err(Error::usage(
            "the hot-copy tool's copy cannot be kept: it is only a stream",
        ));
    }
    let frozen = freeze::freeze(survey, request, None, run)?;
    Ok(HeldImage { frozen })
}

impl HeldImage {
    /// Returns every file's generation name, and where its frozen bytes can be read.
    pub fn files(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let files = self.frozen.files.files.iter();
        files.map(|found| {
            (
                found.name.as_str(),
                self.frozen.snapshot.frozen_path(&source(found)),
            )
        })
    }

    /// Returns every directory's generation name and its original.
    pub fn dirs(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.frozen
            .files
            .dirs
            .iter()
            .map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// Returns where the image is in the binary log.
    #[must_use]
    pub fn coordinates(&self) -> &Coordinates {
        &self.frozen.coordinates
    }

    /// Returns between which moments the point in time lies.
    #[must_use]
    pub fn instant(&self) -> Moments {
        self.frozen.instant
    }

    /// Keeps the image for the next one to start from, as a backup does.
    pub fn keep(self) -> Result<()> {
        self.frozen.snapshot.check()?.commit("held")
    }

    /// Checks that the files stayed frozen, and lets go of them.
    pub fn release(self) -> Result<()> {
        self.frozen.snapshot.check()?.abandon()
    }
}
