//! Freezes a server's files without a repository: for a clone, and for the proofs of the freezing itself.

use crate::backup::freeze::{self, Frozen, Moments};
use crate::backup::request::BackupRequest;
use crate::backup::source_file::source;
use crate::backup::survey::{self, origin::Origin};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{FoundFile, ServerFiles};
use evenkeel_server::replication::SourceCoordinates;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files of a server as they were at one point in time, until dropped, released or kept.
pub struct HeldImage {
    pub(in crate::backup) frozen: Frozen,
    /// Host and data directory.
    source: String,
    version: Option<String>,
}

/// Freezes the files as a backup would, and stores nothing. The repository of the request is not
/// looked at. A kept base of former backups stays.
pub fn hold(request: &BackupRequest, run: Run<'_>) -> Result<HeldImage> {
    let survey = survey::survey(request, run)?;
    if survey.engine.is_some() {
        return Err(Error::usage(
            "no method of this file system can freeze the files, and what the hot-copy tool copies is only a stream",
        )
        .hint("back up with --snapshot engine, and restore that"));
    }
    let source = Origin::of(&survey).name();
    let abilities = survey.abilities.as_ref();
    let version = abilities.map(|abilities| abilities.version_text.clone());
    let frozen = freeze::freeze(survey, request, None, run)?;
    Ok(HeldImage {
        frozen,
        source,
        version,
    })
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

    /// Returns the files, as they were found on the server.
    pub(crate) fn found(&self) -> &ServerFiles {
        &self.frozen.files
    }

    /// Returns where a file's frozen bytes can be read.
    pub(crate) fn frozen_path(&self, found: &FoundFile) -> PathBuf {
        self.frozen.snapshot.frozen_path(&source(found))
    }

    /// Returns whose files these are: host and data directory.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the server's version.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns where the image is in the binary logs of the server's sources.
    #[must_use]
    pub fn source_coordinates(&self) -> &[SourceCoordinates] {
        &self.frozen.source_coordinates
    }

    /// Returns for how long the applier of a replica stood.
    #[must_use]
    pub fn applier_stood(&self) -> Duration {
        self.frozen.applier_stood
    }

    /// Fails when the files are no longer frozen.
    pub(crate) fn holds(&self) -> Result<()> {
        self.frozen.snapshot.holds()
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
