//! `files.jsonl` of a kept snapshot: which file in it had which generation name. A line is
//! `{"name": …, "path": …}`; the path, relative to the snapshot, is an array of bytes when it is not
//! UTF-8.

use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const INDEX: &str = "files.jsonl";

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    path: Stored,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Bytes(Vec<u8>),
}

/// Writes the index into a run's directory, and brings it to disk.
pub(super) fn write<'a>(
    directory: &Path,
    paths: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Result<()> {
    let failed = || format!("failed to write {}", shown(directory).join(INDEX).display());
    let mut out = BufWriter::new(File::create(directory.join(INDEX)).context(failed)?);
    for (name, path) in paths {
        let path = match path.to_str() {
            Some(text) => Stored::Text(text.to_owned()),
            None => Stored::Bytes(path.as_os_str().as_bytes().to_vec()),
        };
        serde_json::to_writer(
            &mut out,
            &Line {
                name: name.into(),
                path,
            },
        )
        .context(failed)?;
        out.write_all(b"\n").context(failed)?;
    }
    let file = out
        .into_inner()
        .map_err(io::IntoInnerError::into_error)
        .context(failed)?;
    file.sync_all().context(failed)
}

/// Reads the index of a base; `None` when it cannot be made sense of: the base is of no use then.
pub(super) fn read(directory: &Path) -> Result<Option<HashMap<String, PathBuf>>> {
    let failed = || format!("failed to read {}", shown(directory).join(INDEX).display());
    let mut paths = HashMap::new();
    for line in BufReader::new(File::open(directory.join(INDEX)).context(failed)?).lines() {
        let line = line.context(failed)?;
        let Ok(line) = serde_json::from_str::<Line>(&line) else {
            return Ok(None);
        };
        let path = match line.path {
            Stored::Text(text) => PathBuf::from(text),
            Stored::Bytes(bytes) => PathBuf::from(OsStr::from_bytes(&bytes)),
        };
        paths.insert(line.name.into_owned(), path);
    }
    Ok(Some(paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let odd = PathBuf::from(OsStr::from_bytes(b"db/\xFF\n\"t.ibd"));
        let pairs = [
            ("data/a \"b\"\n", Path::new("db/a.ibd")),
            ("data/\\xFF", odd.as_path()),
        ];
        write(directory.path(), pairs.into_iter()).unwrap();
        let read = read(directory.path()).unwrap().unwrap();
        assert_eq!(read.len(), 2);
        for (name, path) in pairs {
            assert_eq!(read[name], path);
        }
    }

    #[test]
    fn nonsense_is_no_index() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(INDEX), "{\"name\":\"x\"").unwrap();
        assert!(read(directory.path()).unwrap().is_none());
    }
}
