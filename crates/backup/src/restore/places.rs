//! Paths that a server's own files hold: `.isl` files, and indexes of logs. A server goes wherever they
//! lead, so each is led to where the restored files are, and none to anywhere else.

use super::names;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{self as sys, Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Where the roots were, and where they are.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Old and new directory of each.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Where the data directory was: paths that are not whole begin there.
    data: PathBuf,
    /// New places of files outside the data directory, by their paths below their roots. A server may
    /// name them through a link, which no root is known by.
    outside: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Whether paths that lead to no root stay: a server of the user's own may have written them.
    leaves_strays: bool,
}

impl Places {
    /// Takes old and new directory of each root, by its id.
    pub(crate) fn new(roots: impl IntoIterator<Item = (String, PathBuf, PathBuf)>) -> Self {
        let mut places = Self::default();
        for (id, old, new) in roots {
            if id == super::DATA {
                places.data.clone_from(&old);
            }
            places.moved.push((old, new));
        }
        places
    }

    /// The same, where paths that lead to no root are not the repository's.
    pub(crate) fn leaving_strays(mut self) -> Self {
        self.leaves_strays = true;
        self
    }

    /// Takes note of a file of the generation, whose root is now at `root`.
    pub(crate) fn know(&mut self, name: &str, root: &Path) -> Result<()> {
        let (id, relative) = names::split(name)?;
        if id != super::DATA && !relative.as_os_str().is_empty() {
            let place = root.join(&relative);
            self.outside.entry(relative).or_default().push(place);
        }
        Ok(())
    }

    /// Gives the paths in a file, those below a root, their new places. What is not a file of its own,
    /// because a server put a link there, is refused.
    ///
    /// Errors: `Refused` for an `.isl` file that leads to no root.
    pub(crate) fn repoint(&self, path: &Path) -> Result<()> {
        let place = shown(path);
        let failed = || format!("failed to change the paths in {}", place.display());
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(sys::open(path, flags, Mode::empty()).context(failed)?);
        let found = file.metadata().context(failed)?;
        if !found.is_file() || found.nlink() > 1 {
            let place = place.display();
            return Err(Error::failed(format!("{place} is not a separate regular file"))
                .hint("something other than a server changed it: check which programs run as its user"));
        }
        let text = read_paths(&mut file, &place)?;
        let new = match names::has_extension(path, "isl") {
            true => self.link(&text, &place)?,
            false => self.lines(&text),
        };
        let Some(new) = new else { return Ok(()) };
        file.set_len(0)
            .and_then(|()| file.write_all_at(&new, 0))
            .context(failed)
    }

    /// Returns what an `.isl` file has to hold now; `None` when that is what it holds.
    fn link(&self, text: &[u8], place: &Path) -> Result<Option<Vec<u8>>> {
        let path = text.trim_ascii();
        if stays_below(path) {
            return Ok(None);
        }
        match self.resolve(path) {
            Some(new) => Ok(Some(new.into_os_string().into_vec())),
            None if self.leaves_strays => Ok(None),
            None => {
                let named: String = String::from_utf8_lossy(path).chars().take(200).collect();
                Err(Error::refused(format!(
                    "{} points to {}, which is in no directory of the generation: a server would \
                     open the file there",
                    place.display(),
                    named.escape_debug()
                ))
                .hint("evenkeel does not write that: check who can write to the repository")
                .hint("you can still read its other files: evenkeel mount"))
            }
        }
    }

    /// Returns a list of paths with those below a root in their new places, and without those that lead to
    /// no root: such a log is in no generation, and a server purges what its index names. `None` when
    /// nothing changes.
    fn lines(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut any = false;
        let mut new = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let path = line.trim_ascii();
            match self.resolve(path) {
                _ if stays_below(path) => new.extend_from_slice(line),
                Some(path) => {
                    any = true;
                    new.extend(path.into_os_string().into_vec());
                    new.extend(line.ends_with(b"\n").then_some(b'\n'));
                }
                None if self.leaves_strays => new.extend_from_slice(line),
                None => any = true,
            }
        }
        any.then_some(new)
    }

    /// Returns where a path leads now; `None` when that is to no root.
    fn resolve(&self, path: &[u8]) -> Option<PathBuf> {
        // A server would take the part before such a byte for all of it.
        if path.iter().any(u8::is_ascii_control) {
            return None;
        }
        let whole = plain(&self.data.join(OsStr::from_bytes(path)));
        let below = self.moved.iter().filter_map(|(old, new)| {
            // What an empty path is taken from stays absolute, and would lead anywhere.
            let rest = whole
                .strip_prefix(old)
                .ok()
                .filter(|rest| rest.is_relative())?;
            Some((old.as_os_str().len(), joined(new, rest)))
        });
        // The longest root is the one it belongs to.
        let found = below.max_by_key(|(length, _)| *length);
        found
            .map(|(_, place)| place)
            .or_else(|| self.by_its_name(&whole))
    }

    /// Finds the one file outside the data directory that has the path's last parts: a table's schema
    /// and name, or a log's name.
    fn by_its_name(&self, whole: &Path) -> Option<PathBuf> {
        let name = whole.file_name()?;
        let schema = whole.parent().and_then(Path::file_name);
        let both = schema.map(|schema| Path::new(schema).join(name));
        let found = both.and_then(|both| self.outside.get(&both));
        match found
            .or_else(|| self.outside.get(Path::new(name)))?
            .as_slice()
        {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

/// Whether a path leads to a place below the directory that a server is in, wherever that is.
pub(super) fn stays_below(path: &[u8]) -> bool {
    let mut parts = Path::new(OsStr::from_bytes(path)).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Takes `.` and `..` out of a whole path, as if it had no links.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// Joins without the slash that an empty rest would leave.
fn joined(dir: &Path, rest: &Path) -> PathBuf {
    match rest.as_os_str().is_empty() {
        true => dir.to_owned(),
        false => dir.join(rest),
    }
}

/// No file that holds paths is longer: an index names a binary log in each line.
const PATHS_MAX: u64 = 64 << 20;

/// Reads a file that holds paths, which is at `place`.
fn read_paths(file: &mut File, place: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(PATHS_MAX + 1)
        .read_to_end(&mut text)
        .context(|| format!("failed to read {}", place.display()))?;
    if text.len() as u64 > PATHS_MAX {
        return Err(Error::new(
            ErrorKind::Differs,
            format!("{} is too long for a list of paths", place.display()),
        )
        .hint("a server does not write such a file: check who did"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(roots: &[(&str, &str, &str)]) -> Places {
        let root = |(id, old, new): &(&str, &str, &str)| ((*id).to_owned(), old.into(), new.into());
        Places::new(roots.iter().map(root))
    }

    fn text(bytes: Option<Vec<u8>>) -> Option<String> {
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn lists_of_logs_follow_their_root() {
        let mut moved = places(&[
            ("data", "/var/lib/mysql", "/r/data"),
            ("binlog", "/var/log/mysql", "/r/binlog"),
        ]);
        let list = b"/var/log/mysql/a.000001\n./c.000003\n../../log/mysql/d.000004\n/var/log/mysql/a.000004";
        let expected = "/r/binlog/a.000001\n./c.000003\n/r/binlog/d.000004\n/r/binlog/a.000004";
        assert_eq!(text(moved.lines(list)).as_deref(), Some(expected));
        assert!(moved.lines(b"./c.000003\n").is_none());
        // A server would purge what such lines name.
        let strays = b"/other/b.000002\n../x.000003\n/var/log/mysql/../x.000001\n./c.000003\n";
        assert_eq!(text(moved.lines(strays)).as_deref(), Some("./c.000003\n"));
        // It was named through a link.
        moved
            .know("binlog/b.000002", Path::new("/r/binlog"))
            .unwrap();
        let through = text(moved.lines(b"/link/b.000002\n"));
        assert_eq!(through.as_deref(), Some("/r/binlog/b.000002\n"));
        assert!(moved.leaving_strays().lines(b"/other/q.000002\n").is_none());
    }

    #[test]
    fn links_follow_their_longest_root() {
        let moved = places(&[
            ("data", "/var/lib/mysql", "/r/data"),
            ("tablespaces-1", "/var/lib/mysql/x", "/x"),
        ]);
        let at = |path: &[u8]| text(moved.link(path, Path::new("t.isl")).unwrap());
        assert_eq!(
            at(b"/var/lib/mysql/a.ibd").as_deref(),
            Some("/r/data/a.ibd")
        );
        assert_eq!(at(b"/var/lib/mysql/x/b.ibd\n").as_deref(), Some("/x/b.ibd"));
        assert_eq!(at(b"/var/lib/mysql/x").as_deref(), Some("/x"));
        assert_eq!(at(b"../mysql/y.ibd").as_deref(), Some("/r/data/y.ibd"));
        assert_eq!(at(b"./shop/a.ibd"), None);
        assert_eq!(at(b""), None);
    }

    #[test]
    fn links_to_no_root_are_refused() {
        let mut moved = places(&[
            ("data", "/var/lib/mysql", "/r/data"),
            ("tablespaces-1", "/real", "/x"),
            ("tablespaces-2", "/more", "/y"),
        ]);
        moved
            .know("tablespaces-1/shop/a.ibd", Path::new("/x"))
            .unwrap();
        moved
            .know("tablespaces-1/shop/b.ibd", Path::new("/x"))
            .unwrap();
        moved
            .know("tablespaces-2/shop/b.ibd", Path::new("/y"))
            .unwrap();
        for stray in [
            "/elsewhere/c.ibd",
            "../other/c.ibd",
            "/var/lib/mysql/../other/c.ibd",
            "/var/lib/mysql-live/c.ibd",
            "shop/../../c.ibd",
            "/var/lib/mysql/a.ibd\0/b",
            // Two could be meant.
            "/link/shop/b.ibd",
        ] {
            let error = moved
                .link(stray.as_bytes(), Path::new("t.isl"))
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{stray}");
            assert!(error.to_string().contains("t.isl"), "{error}");
        }
        // What is said to have been nowhere has nothing below it.
        let nowhere = places(&[("data", "/v", "/r"), ("redo", "", "/x")]);
        assert!(
            nowhere
                .link(b"/elsewhere/c.ibd", Path::new("t.isl"))
                .is_err()
        );
        let through = moved.link(b"/link/shop/a.ibd", Path::new("t.isl")).unwrap();
        assert_eq!(text(through).as_deref(), Some("/x/shop/a.ibd"));
        let left = moved.leaving_strays();
        assert!(
            left.link(b"/elsewhere/c.ibd", Path::new("t.isl"))
                .unwrap()
                .is_none()
        );
    }
}
