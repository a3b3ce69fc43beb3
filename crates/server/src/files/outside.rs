//! Tablespaces outside the data directory: who knows of them.
//!
//! MariaDB and MySQL 5.7 keep a `.isl` file in the data directory for each. MySQL 8 keeps the path
//! in its dictionary only: a running server is asked, a stopped one's `mysql.ibd` is searched.

use crate::abilities::Abilities;
use crate::connect::Session;
use evenkeel_op::own_directory::open_without_links;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest path looked for in a dictionary, in bytes.
const PATH_MAX: usize = 512;
/// The longest `.isl` file, in bytes: it holds one path.
const LINK_MAX: u64 = 64 << 10;

/// Asks the server. Needs the PROCESS privilege. Paths are absolute or relative to the data
/// directory.
///
/// `information_schema.FILES` says the same, but looks into every tablespace for it and waits for
/// those that a session holds with LOCK TABLES; this is a view of the dictionary alone.
pub(super) fn known_to_server(
    session: &mut Session,
    abilities: &Abilities,
) -> Result<Vec<PathBuf>> {
    if !abilities.dictionary_in_innodb {
        return Ok(Vec::new());
    }
    let rows = session
        .rows(
            "SELECT PATH FROM information_schema.INNODB_DATAFILES \
             WHERE PATH LIKE '/%' OR PATH LIKE '%../%'",
        )
        .context(|| "failed to query where the tablespaces are")?;
    Ok(rows
        .iter()
        .filter_map(|row| row.at(0).map(PathBuf::from))
        .collect())
}

/// Searches the dictionary tablespace of a stopped MySQL 8 for paths of tablespaces that exist.
/// Rows that were deleted name files that do not, or that are the server's anyway.
pub(super) fn known_to_dictionary(datadir: &Path) -> Result<Vec<PathBuf>> {
    let path = datadir.join("mysql.ibd");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    open(&path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .context(|| format!("failed to read {}", path.display()))?;
    let mut found = paths_in(&bytes);
    found.retain(|path| datadir.join(path).is_file());
    Ok(found)
}

/// Opens a file of the data directory, and nothing that a link there leads to.
fn open(path: &Path) -> io::Result<File> {
    open_without_links(path, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
}

/// Finds whatever reads like `/….ibd` or `/….ibu`, each once.
fn paths_in(bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for end in bytes
        .windows(4)
        .enumerate()
        .filter(|(_, w)| *w == b".ibd" || *w == b".ibu")
        .map(|(at, _)| at + 4)
    {
        let earliest = end.saturating_sub(PATH_MAX);
        let text = &bytes[earliest..end];
        let from = text
            .iter()
            .rposition(|byte| *byte < b' ')
            .map_or(0, |at| at + 1);
        let text = &text[from..];
        // What comes before the path in its row may be printable: every slash may begin it.
        // A path that begins with one dot is inside the data directory, with two outside.
        let begins = |at: usize| {
            text[at] == b'/' && (at == 0 || text[at - 1] != b'.') || text[at..].starts_with(b"../")
        };
        let starts = (0..text.len()).filter(|at| begins(*at));
        let candidates = starts.map(|at| PathBuf::from(OsStr::from_bytes(&text[at..])));
        found.extend(candidates);
    }
    found.sort();
    found.dedup();
    found
}

/// Reads the path in a `.isl` file; `None` when the file is gone.
pub(super) fn target(link: &Path) -> Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    match open(link).and_then(|file| file.take(LINK_MAX + 1).read_to_end(&mut bytes)) {
        Ok(length) if length as u64 > LINK_MAX => Err(Error::refused(format!(
            "{} is too long to hold a path",
            link.display()
        ))
        .hint("a server does not write such a file: check who did, and remove it")),
        Ok(_) => {
            let text = bytes.trim_ascii();
            Ok(Some(PathBuf::from(OsStr::from_bytes(text))))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(|| format!("failed to read {}", link.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_hold_a_path_and_nothing_longer() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("t.isl");
        assert_eq!(target(&link).unwrap(), None);
        std::fs::write(&link, "/ext/db/t.ibd\n").unwrap();
        assert_eq!(target(&link).unwrap(), Some(PathBuf::from("/ext/db/t.ibd")));
        // Sparse: as long as memory, and on the disk nothing.
        let long = std::fs::File::create(&link).unwrap();
        long.set_len(1 << 40).unwrap();
        let error = target(&link).unwrap_err();
        assert!(error.to_string().contains("t.isl is too long"), "{error}");
    }

    #[test]
    fn paths_are_found_in_rows() {
        let bytes = b"\x00\x01xx/ext/db/t.ibd\x00\x80./db/u.ibd\x00/undo/more.ibu/ext/db/t.ibd\x00\x0a../e/r.ibd";
        let found = paths_in(bytes);
        assert!(found.contains(&PathBuf::from("/ext/db/t.ibd")));
        assert!(found.contains(&PathBuf::from("/undo/more.ibu")));
        assert!(found.contains(&PathBuf::from("../e/r.ibd")));
        assert!(!found.contains(&PathBuf::from("/db/u.ibd")));
    }
}
