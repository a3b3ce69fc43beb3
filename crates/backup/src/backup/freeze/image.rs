//! Reads the coordinates of an image from the image itself.

use evenkeel_binlog as binlog;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use std::path::PathBuf;

/// Where the binary log of an image ends.
#[derive(Debug)]
pub(in crate::backup) struct Ended {
    coordinates: Coordinates,
    /// As in [`binlog::End`].
    changes_until: u64,
}

/// Returns where the frozen binary log ends; `None` when there is none, or it cannot be read
/// because it is encrypted (then only the server's word is left).
pub(in crate::backup) fn coordinates(
    files: &ServerFiles,
    frozen: impl Fn(&FoundFile) -> PathBuf,
) -> Result<Option<Ended>> {
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
        Ok(end) => Ok(Some(Ended {
            coordinates: Coordinates {
                binlog_file: Some(name.to_string_lossy().into_owned()),
                binlog_position: Some(end.position),
                gtid: end.gtid,
            },
            changes_until: end.changes_until,
        })),
        Err(error) if error.kind() == ErrorKind::Refused => Ok(None),
        Err(error) => Err(error),
    }
}

/// The server's word and the image's must be the same, where both speak. Returns the server's.
///
/// MariaDB writes checkpoints of the binary log by itself a while after a file was begun, under every lock: where
/// the server said it is, and where the image ends, may differ by those.
pub(in crate::backup) fn agree(
    asked: Option<Coordinates>,
    image: Option<Ended>,
) -> Result<Coordinates> {
    let (asked, image) = match (asked, image) {
        (Some(asked), Some(image)) => (asked, image),
        (asked, image) => {
            let image = image.map(|image| image.coordinates);
            return Ok(asked.or(image).unwrap_or_default());
        }
    };
    let Ended {
        coordinates,
        changes_until,
    } = image;
    let is_same = asked.binlog_file == coordinates.binlog_file
        && asked.binlog_position >= Some(changes_until)
        && asked.binlog_position <= coordinates.binlog_position;
    if asked.binlog_file.is_some() && !is_same {
        return Err(Error::failed(format!(
            "the server reported {:?}:{:?}, but the frozen binary log ends at {:?}:{:?}",
            asked.binlog_file,
            asked.binlog_position,
            coordinates.binlog_file,
            coordinates.binlog_position
        ))
        .hint("the snapshot was not taken while the lock was held; nothing was stored"));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: &str, position: u64) -> Coordinates {
        Coordinates {
            binlog_file: Some(file.to_owned()),
            binlog_position: Some(position),
            gtid: None,
        }
    }

    fn image() -> Ended {
        Ended {
            coordinates: at("binlog.000034", 8841),
            changes_until: 8801,
        }
    }

    #[test]
    fn an_image_may_end_behind_checkpoints_and_nothing_else() {
        for (file, said, is_right) in [
            ("binlog.000034", 8801, true),
            ("binlog.000034", 8841, true),
            ("binlog.000034", 8800, false),
            ("binlog.000034", 8842, false),
            ("binlog.000033", 8841, false),
        ] {
            let agreed = agree(Some(at(file, said)), Some(image()));
            assert_eq!(agreed.is_ok(), is_right, "{file} {said}");
        }
    }

    #[test]
    fn who_speaks_alone_is_believed() {
        assert_eq!(
            agree(None, Some(image())).unwrap(),
            at("binlog.000034", 8841)
        );
        assert_eq!(agree(Some(at("a.1", 4)), None).unwrap(), at("a.1", 4));
        assert_eq!(agree(None, None).unwrap(), Coordinates::default());
    }
}
