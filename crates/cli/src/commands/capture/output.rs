//! Where captured statements go: to standard output, or into a directory.

use crate::args;
use crate::settings;
use crate::show::{Statements, Ui};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, Result};
use evenkeel_server::launch::Binary;
use evenkeel_traffic::kept::{Append, CaptureDirectory, CaptureEnd, Settings, Written};
use evenkeel_traffic::{SourceKind, Statement};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file of statements: not so small that there are only files, not so large that a kill costs much.
const FILES: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 30;

/// Where statements go.
pub(super) enum Output {
    Shown(Statements),
    Kept(Box<CaptureDirectory>),
}

impl Output {
    /// Begins to write to the directory, or to standard output.
    pub(super) fn of(
        args: &args::Capture,
        source: SourceKind,
        shown: Statements,
        ui: &Ui,
    ) -> Result<Self> {
        let Some(directory) = args.kept.directory.as_deref() else {
            return Ok(Self::Shown(shown));
        };
        if !FILES.contains(&args.kept.file_size) {
            return Err(Error::usage("--file-size is out of range").hint("give from 64K to 16G"));
        }
        if args.kept.file_time.is_zero() {
            return Err(Error::usage("--file-time is out of range").hint("give a second or more"));
        }
        let settings = Settings {
            source,
            is_redacted: args.kept.redact,
            file_bytes: args.kept.file_size,
            file_span: args.kept.file_time,
            recipients: args.kept.encrypt_to.clone(),
            append: match args.kept.append {
                true => Append::Allow,
                false => Append::Refuse,
            },
        };
        if !settings::is_url(directory) {
            refuse_of_others(directory)?;
        }
        let store = ui.location(directory, None)?.store();
        let kept = CaptureDirectory::begin(store, settings)?;
        ui.note(&format!("keeping in {}", settings::shown_place(directory)));
        Ok(Self::Kept(Box::new(kept)))
    }

    /// Takes a statement; returns whether it has a place here.
    pub(super) fn take(&mut self, statement: &Statement<'_>) -> Result<bool> {
        match self {
            Self::Shown(out) => out.show(statement),
            Self::Kept(kept) => kept.add(statement).map(|()| true),
        }
    }

    /// Shows what was held back; finishes a file that is old enough.
    pub(super) fn pause(&mut self) -> Result<()> {
        match self {
            Self::Shown(out) => out.flush(),
            Self::Kept(kept) => kept.pause(),
        }
    }

    /// Whether it is a directory.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// Returns whether nobody reads on.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Shown(out) => out.is_closed(),
            Self::Kept(_) => false,
        }
    }

    /// Ends the output, and returns what was written into the directory.
    pub(super) fn end(self, end: CaptureEnd) -> Result<Option<Written>> {
        match self {
            Self::Shown(mut out) => out.flush().map(|()| None),
            Self::Kept(kept) => kept.end(end).map(Some),
        }
    }
}

/// Refuses a directory whose owner, or everyone, would read or replace what is kept in it.
fn refuse_of_others(directory: &Path) -> Result<()> {
    let place = absolute(directory);
    let above = place.ancestors().skip(1).find(|above| above.exists());
    if geteuid().is_root() && !above.is_none_or(Binary::is_roots_alone) {
        let shown = directory.display();
        return Err(Error::refused(format!(
            "another user can replace {shown}, or a directory above it: statements are private"
        ))
        .hint("name a directory below directories that only root can write to"));
    }
    // Whoever made a link chooses where it leads; with a slash behind it, it would not be seen.
    let named = fs::symlink_metadata(place.components().collect::<PathBuf>());
    let friends = [0, geteuid().as_raw()];
    if named.is_ok_and(|named| named.is_symlink() && !friends.contains(&named.uid())) {
        return Err(Error::refused(format!(
            "{} is a link that another user made",
            directory.display()
        ))
        .hint("name the directory itself, or another one"));
    }
    // What is not there is made, for us alone; what cannot be looked at fails with its reason later.
    let Ok(there) = fs::metadata(directory) else {
        return Ok(());
    };
    let why = match (there.uid() == geteuid().as_raw(), there.mode() & 0o022 == 0) {
        (false, _) => "belongs to another user",
        (true, false) => "can be written to by other users",
        (true, true) => return Ok(()),
    };
    let shown = directory.display();
    Err(
        Error::refused(format!("{shown} {why}: statements are private"))
            .hint("name a directory that does not exist yet, or one that only you may write to"),
    )
}
