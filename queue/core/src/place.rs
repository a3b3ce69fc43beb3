//! Where the rows of all tables are below a server's data directory; and how they come there from where
//! earlier versions had them. `docs/src/design/queue.md` says why it is there.

use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::plain;
use crate::store::{Anchor, SUFFIX};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory of the rows of all tables, below a server's data directory. MariaDB passes over what begins
/// with `#sql` when it looks for databases, and MySQL looks for none there.
pub const ROOT: &str = "#sqlqueue";

/// Where they were once; and what `mariadb-upgrade` makes of that, which takes it for a database.
const OLD: [&str; 2] = ["#queue", "@0023queue"];

/// What one of those is called while it is emptied: after a crash nobody takes it for a database.
const EMPTIED: &str = "#sqlqueue-old";

/// What servers write into a directory that they take for a database.
const OPTIONS: &str = "db.opt";

/// What is in a place.
#[derive(Debug, Default)]
struct Found {
    /// The directories of tables, by name.
    tables: Vec<String>,
    /// There is something that is not ours.
    has_others: bool,
    /// A server has taken it for a database.
    has_options: bool,
}

struct Places<'a> {
    io: &'a dyn Io,
    datadir: &'a Path,
}

/// Moves all rows to where they belong, and returns that directory; it may not be there yet. A table's
/// directory moves in one step, so that what a crash leaves is moved the next time.
///
/// # Errors
///
/// [`Error::Foreign`] where two places have rows of the same table; or the file system refuses. Nothing is lost
/// then, and it goes on the next time.
pub fn settle(io: &dyn Io, datadir: &Path) -> Result<PathBuf> {
    let places = Places { io, datadir };
    places.refuse_twice()?;
    places.finish()?;
    for name in OLD {
        let Some(found) = places.look(name)? else {
            continue;
        };
        if found.has_others {
            // A database of that name which somebody uses.
            places.pour(name, &found)?;
        } else if name == OLD[0] || !found.tables.is_empty() {
            places.rename(name, EMPTIED)?;
            places.finish()?;
        }
    }
    if places.look(ROOT)?.is_some_and(|found| found.has_options) {
        places.unlink(ROOT, OPTIONS)?;
    }
    Ok(datadir.join(ROOT))
}

/// The directory below which the rows of the table at `anchor` are, for those who only read: the server may
/// not have moved them yet.
#[must_use]
pub fn root_of(datadir: &Path, anchor: &Path) -> PathBuf {
    let bytes = plain::read(anchor).unwrap_or_default();
    let places = [ROOT, EMPTIED].into_iter().chain(OLD);
    let mut roots = places.map(|name| datadir.join(name));
    let has_it = |root: &PathBuf| {
        let known = Anchor::decode(&bytes);
        known.is_ok_and(|anchor| root.join(format!("{:032x}", anchor.id)).is_dir())
    };
    roots.find(has_it).unwrap_or_else(|| datadir.join(ROOT))
}

/// Whether a path is called like a table's anchor.
#[must_use]
pub fn is_anchor(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == SUFFIX)
}

/// What is called like an anchor in all databases of a data directory, in order. A database may be a link to a directory
/// elsewhere. Whoever reads one finds out whether it is a regular file.
///
/// # Errors
///
/// A directory cannot be listed.
pub fn anchors(datadir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for database in std::fs::read_dir(datadir)? {
        let database = database?.path();
        if !database.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(database)? {
            let entry = entry?;
            if is_anchor(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

impl Places<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.datadir.join(name)
    }

    /// None: it is not there.
    fn look(&self, name: &str) -> Result<Option<Found>> {
        let dir = self.at(name);
        let names = match self.io.list(&dir) {
            Err(why) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&why.kind()) => {
                return Ok(None);
            }
            names => names.during("list", &dir)?,
        };
        let mut found = Found::default();
        for name in names {
            if name == OPTIONS {
                found.has_options = true;
            } else if is_table(&name) {
                found.tables.push(name);
            } else {
                found.has_others = true;
            }
        }
        Ok(Some(found))
    }

    /// Which of two that are called the same is the table nobody can know.
    fn refuse_twice(&self) -> Result<()> {
        let mut seen = BTreeMap::new();
        for place in [ROOT, EMPTIED].into_iter().chain(OLD) {
            for table in self.look(place)?.unwrap_or_default().tables {
                let here = self.at(place).join(&table);
                if let Some(there) = seen.insert(table, here.clone()) {
                    return Err(Error::Foreign {
                        file: here.display().to_string(),
                        what: format!(
                            "the same table is in {} as well. With the server stopped, move the one that is \
                             older to another place",
                            there.display()
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Empties what is being emptied, if there is something.
    fn finish(&self) -> Result<()> {
        let Some(found) = self.look(EMPTIED)? else {
            return Ok(());
        };
        if self.look(ROOT)?.is_none() {
            return self.rename(EMPTIED, ROOT);
        }
        self.pour(EMPTIED, &found)?;
        if found.has_options {
            self.unlink(EMPTIED, OPTIONS)?;
        }
        let dir = self.at(EMPTIED);
        // It may be a link to a directory elsewhere.
        let gone = self
            .io
            .remove_dir(&dir)
            .or_else(|why| self.io.unlink(&dir).map_err(|_| why));
        gone.during("remove", &dir)?;
        self.sync(self.datadir)
    }

    /// Moves the tables of a place to where they belong, one by one.
    fn pour(&self, from: &str, found: &Found) -> Result<()> {
        if found.tables.is_empty() {
            return Ok(());
        }
        let (from, to) = (self.at(from), self.at(ROOT));
        self.io.make_dir(&to).during("make", &to)?;
        self.sync(self.datadir)?;
        for table in &found.tables {
            let old = from.join(table);
            self.io.rename(&old, &to.join(table)).during("move", &old)?;
        }
        self.sync(&to)?;
        self.sync(&from)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let old = self.at(from);
        self.io.rename(&old, &self.at(to)).during("rename", &old)?;
        self.sync(self.datadir)
    }

    fn unlink(&self, place: &str, name: &str) -> Result<()> {
        let path = self.at(place).join(name);
        self.io.unlink(&path).during("remove", &path)?;
        self.sync(&self.at(place))
    }

    fn sync(&self, dir: &Path) -> Result<()> {
        self.io.sync_dir(dir).during("sync", dir)
    }
}

/// Whether a directory's name is a table's.
pub(crate) fn is_table(name: &str) -> bool {
    name.len() == 32 && u128::from_str_radix(name, 16).is_ok()
}
