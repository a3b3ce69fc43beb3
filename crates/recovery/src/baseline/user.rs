//! Whether a process uses a data directory.

use evenkeel_op::Result;
use evenkeel_snapshot::Layout;
use evenkeel_snapshot::copy::{User, user_of};
use std::path::Path;

/// Returns a process that uses the files of a data directory.
pub(super) fn user_of_datadir(datadir: &Path) -> Result<Option<User>> {
    user_of(&layout(datadir))
}

pub(super) fn layout(datadir: &Path) -> Layout {
    Layout {
        datadir: datadir.to_owned(),
        dirs: vec![datadir.to_owned()],
        ..Layout::default()
    }
}
