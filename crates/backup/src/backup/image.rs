//! Reads the coordinates of an image from the image itself.

use evenkeel_binlog as binlog;
use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use std::path::PathBuf;

/// Returns where the frozen binary log ends; `None` when there is none, or it cannot be read
/// because it is encrypted (then only the server's word is left).
pub(super) fn coordinates(
    files: &ServerFiles,
    frozen: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Option<Coordinates>> {
    let Some(index) = files
        .files
        .iter()
        .find(|file| file.class == FileClass::BinlogIndex)
    else {
        return Ok(None);
    };
    let Some(last) = binlog::last_in_index(&frozen(index))? else {
        return Ok(None);
    };
    let Some(name) = last.file_name() else {
        return Ok(None);
    };
    let is_last =
        |file: &&FoundFile| file.class == FileClass::Binlog && file.path.file_name() == Some(name);
    let Some(file) = files.files.iter().find(is_last) else {
        return Ok(None);
    };
    match binlog::end_of_file(&frozen(file)) {
        Ok(end) => Ok(Some(Coordinates {
            binlog_file: Some(name.to_string_lossy().into_owned()),
            binlog_position: Some(end.position),
            gtid: end.gtid,
        })),
        Err(error) if error.kind() == ErrorKind::Refused => Ok(None),
        Err(error) => Err(error),
    }
}
