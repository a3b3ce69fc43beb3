//! The files of queues whose server does not run.

use evenkeel_op::own_directory::{OwnDirectory, make_private, shown};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Context, Error, Result};
use evenkeel_queue::place::{ROOT, anchors, is_anchor, root_of};
use evenkeel_queue::plain;
use evenkeel_queue::salvage::{self, Checked};
use evenkeel_server::files::refuse_running;
use serde::Serialize;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What was found in files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesReport {
    /// The data directory.
    pub datadir: PathBuf,
    /// Whether a server would open all of them.
    pub sound: bool,
    /// The tables, by name.
    pub tables: Vec<TableFiles>,
}

/// What was found in one table's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TableFiles {
    /// Database and table, as their files are called: `shop/jobs`.
    pub table: String,
    /// Why nothing can be said of it: its own file is none, or cannot be read.
    pub problem: Option<String>,
    /// Where its rows are.
    pub directory: PathBuf,
    /// Files of rows.
    pub files: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Rows that are whole and were not removed.
    pub rows: u64,
    /// Those of them in frames that are not whole.
    pub rows_out_of_broken_frames: u64,
    /// Bytes that a crash left at the end: the server cuts them off when it starts.
    pub torn_bytes: u64,
    /// What broke otherwise.
    pub damage: Vec<Damage>,
    /// At most so many rows are missing, as far as is known.
    pub rows_missing: u64,
    /// Their ids, as far as they are known.
    pub missing: Vec<IdRange>,
    /// Removals may be lost: rows that were consumed may be there again.
    pub may_repeat: bool,
    /// The table that was written of it.
    pub written: Option<PathBuf>,
}

/// A piece of a file that does not hold what was written to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// How many bytes; 0 where that is not known.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

/// Row ids that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IdRange {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// What to salvage, and where to.
#[derive(Debug, Clone)]
pub struct Salvage {
    /// A table's file, or a data directory.
    pub path: PathBuf,
    /// A new or an empty directory: new files go there as in a data directory.
    pub into: PathBuf,
}

/// A data directory and tables of it.
struct DatadirTables {
    datadir: PathBuf,
    anchors: Vec<PathBuf>,
}

/// Checks the files of one table, or of all in a data directory. Nothing is written.
///
/// Errors: `Usage` for a path that is neither; `Refused` when a server runs there.
pub fn check(path: &Path) -> Result<FilesReport> {
    let place = DatadirTables::of(path)?;
    refuse_running(&place.datadir)?;
    let look = |anchor: &PathBuf| {
        let root = root_of(&place.datadir, anchor);
        TableFiles::of(anchor, salvage::check(anchor, &root))
    };
    Ok(FilesReport::new(
        &place,
        place.anchors.iter().map(look).collect(),
    ))
}

/// Writes what is whole of one table, or of all in a data directory, into new files with the same row
/// ids. Nothing is written into the old ones. A table whose own file is broken is named in the report.
///
/// Errors: as with [`check`]; `Usage` where the new place is not empty or in the data directory, `Failed`
/// where new files cannot be written: what is there so far is no table.
pub fn salvage(request: &Salvage) -> Result<FilesReport> {
    let place = DatadirTables::of(&request.path)?;
    refuse_running(&place.datadir)?;
    let open = empty_directory(&request.into, &place.datadir)?;
    let into = open.anchor();
    let new = into.join(ROOT);
    let mut tables = Vec::new();
    for anchor in &place.anchors {
        let to = into.join(anchor.strip_prefix(&place.datadir).unwrap_or(anchor));
        let database = to.parent().unwrap_or(&into);
        fs::create_dir_all(database)
            .context(|| format!("failed to create {}", shown(database).display()))?;
        let old = root_of(&place.datadir, anchor);
        // Nothing can be kept of a table whose own file is none: the others are.
        let salvaged = match salvage::check(anchor, &old) {
            Ok(_) => Ok(salvage::salvage(anchor, &old, &to, &new).map_err(failed)?),
            Err(why) => Err(why),
        };
        let mut table = TableFiles::of(anchor, salvaged);
        if table.problem.is_none() {
            keep_definition(anchor, &to)?;
            table.written = Some(shown(&to));
        }
        tables.push(table);
    }
    Ok(FilesReport::new(&place, tables))
}

fn failed(why: evenkeel_queue::Error) -> Error {
    Error::failed(why.to_string())
        .hint("name a new directory on a disk with enough free space, and run this again")
}

/// MariaDB keeps a table's columns in a file of its own, too. What is copied is going to be the server's: so it has to
/// be of whoever has the table.
fn keep_definition(anchor: &Path, to: &Path) -> Result<()> {
    let (from, to) = (anchor.with_extension("frm"), to.with_extension("frm"));
    let failed = || format!("failed to copy {}", from.display());
    let mut file = match plain::open(&from) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.context(failed)?,
    };
    let owner = plain::open(anchor).and_then(|anchor| Ok(anchor.metadata()?.uid()));
    let found = file.metadata().context(failed)?;
    if found.nlink() != 1 {
        return Err(Error::refused(format!(
            "{} has a second name (a hard link)",
            from.display()
        ))
        .hint("check who created it; replace the file with a copy of itself, and run this again"));
    }
    if found.uid() != owner.context(failed)? {
        return Err(Error::refused(format!(
            "{} belongs to another user than {}",
            from.display(),
            anchor.display()
        ))
        .hint("check who put it there; give both to the same user, and run this again"));
    }
    let mut copy = fs::File::create_new(&to).context(failed)?;
    io::copy(&mut file, &mut copy).context(failed)?;
    Ok(())
}

fn empty_directory(into: &Path, datadir: &Path) -> Result<OwnDirectory> {
    let failed = || format!("failed to find {}", into.display());
    // Before anything is made there.
    let there = into.ancestors().find(|path| path.exists());
    let there = there.filter(|path| !path.as_os_str().is_empty());
    let there = fs::canonicalize(there.unwrap_or(Path::new("."))).context(failed)?;
    if there.starts_with(datadir) {
        return Err(
            Error::usage(format!("{} is in the data directory", into.display())).hint(
                "name a directory elsewhere with --output: the server would take it for a database",
            ),
        );
    }
    let is_empty = match fs::read_dir(into) {
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        entries => entries
            .context(|| format!("failed to list {}", into.display()))?
            .next()
            .is_none(),
    };
    if !is_empty {
        return Err(Error::usage(format!("{} is not empty", into.display()))
            .hint("name a new directory with --output"));
    }
    make_private(into)
}

impl DatadirTables {
    fn of(path: &Path) -> Result<Self> {
        if is_anchor(path) && path.is_symlink() {
            return Err(
                Error::usage(format!("{} is a symbolic link", path.display()))
                    .hint("check who created it, and name the file it points to"),
            );
        }
        let seen = fs::canonicalize(path).map_err(|error| {
            unreadable("file or directory", path, error)
                .hint("give a data directory, or the file of one table in it: shop/jobs.QUE")
        })?;
        if seen.is_dir() {
            let failed = || format!("failed to list {}", path.display());
            let anchors = anchors(&seen).context(failed)?;
            return match anchors.is_empty() {
                false => Ok(Self {
                    datadir: seen,
                    anchors,
                }),
                true => Err(
                    Error::usage(format!("there is no queue in {}", path.display())).hint(
                        "give the server's data directory, or the file of one table: shop/jobs.QUE",
                    ),
                ),
            };
        }
        let datadir = seen.parent().and_then(Path::parent);
        match datadir.filter(|_| is_anchor(&seen)) {
            Some(datadir) => Ok(Self {
                datadir: datadir.to_owned(),
                anchors: vec![seen.clone()],
            }),
            None => Err(
                Error::usage(format!("{} is not the file of a queue", path.display())).hint(
                    "queue files end in .QUE and lie in their database's directory: shop/jobs.QUE",
                ),
            ),
        }
    }
}

impl FilesReport {
    fn new(place: &DatadirTables, tables: Vec<TableFiles>) -> Self {
        let is_sound = |table: &TableFiles| table.problem.is_none() && table.damage.is_empty();
        Self {
            datadir: place.datadir.clone(),
            sound: tables.iter().all(is_sound),
            tables,
        }
    }
}

impl TableFiles {
    fn of(anchor: &Path, found: evenkeel_queue::Result<Checked>) -> Self {
        let name = anchor.file_stem().unwrap_or_default();
        let database = anchor.parent().and_then(Path::file_name);
        let table = format!(
            "{}/{}",
            database.unwrap_or_default().to_string_lossy(),
            name.to_string_lossy()
        );
        let checked = match found {
            Ok(checked) => checked,
            Err(why) => {
                return Self {
                    table,
                    problem: Some(why.to_string()),
                    ..Self::default()
                };
            }
        };
        let damage = checked.damage.into_iter().map(|one| Damage {
            file: one.file,
            offset: one.offset,
            bytes: one.bytes,
            what: one.what,
        });
        let missing = checked.missing.into_iter();
        Self {
            table,
            problem: None,
            directory: checked.directory,
            files: checked.files,
            bytes: checked.bytes,
            rows: checked.rows,
            rows_out_of_broken_frames: checked.rows_out_of_broken_frames,
            torn_bytes: checked.torn_bytes,
            damage: damage.collect(),
            rows_missing: checked.rows_missing,
            missing: missing
                .map(|(first, count)| IdRange { first, count })
                .collect(),
            may_repeat: checked.may_repeat,
            written: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;
    use evenkeel_queue::io::Disk;
    use evenkeel_queue::{Options, Store};
    use std::sync::Arc;

    /// A data directory with two tables of three rows.
    fn datadir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        let store = Store::new(Arc::new(Disk), &dir.path().join(ROOT)).unwrap();
        for name in ["jobs", "mails"] {
            let anchor = dir.path().join(format!("shop/{name}.QUE"));
            store.create(&anchor, b"0\0").unwrap();
            let (table, _) = store.open(&anchor, Options::default()).unwrap();
            table.append(vec![vec![7; 100]; 3], None).unwrap();
            table.close().unwrap();
            fs::write(anchor.with_extension("frm"), name).unwrap();
        }
        dir
    }

    #[test]
    fn sound_tables_are_found_and_copied_whole() {
        let dir = datadir();
        let report = check(dir.path()).unwrap();
        assert!(report.sound, "{report:?}");
        let names: Vec<&str> = report.tables.iter().map(|one| &*one.table).collect();
        assert_eq!(names, ["shop/jobs", "shop/mails"]);
        let into = tempfile::tempdir().unwrap();
        let request = Salvage {
            path: dir.path().join("shop/mails.QUE"),
            into: into.path().join("new"),
        };
        let report = salvage(&request).unwrap();
        assert_eq!((report.tables.len(), report.tables[0].rows), (1, 3));
        let again = check(&request.into).unwrap();
        assert!(again.sound && again.tables[0].rows == 3, "{again:?}");
        let definition = fs::read_to_string(request.into.join("shop/mails.frm"));
        assert_eq!(definition.unwrap(), "mails");
        assert_eq!(salvage(&request).unwrap_err().kind(), ErrorKind::Usage);
    }

    #[test]
    fn one_broken_table_does_not_keep_others_from_being_salvaged() {
        let dir = datadir();
        fs::write(dir.path().join("shop/jobs.QUE"), "nonsense").unwrap();
        let into = tempfile::tempdir().unwrap();
        let report = salvage(&Salvage {
            path: dir.path().to_owned(),
            into: into.path().to_owned(),
        });
        let report = report.unwrap();
        assert!(!report.sound);
        assert!(report.tables[0].problem.is_some() && report.tables[1].written.is_some());
    }

    #[test]
    fn other_places_are_refused() {
        let dir = datadir();
        let empty = tempfile::tempdir().unwrap();
        for path in [empty.path().to_owned(), dir.path().join("shop/jobs.frm")] {
            assert_eq!(check(&path).unwrap_err().kind(), ErrorKind::Usage);
        }
        let inside = salvage(&Salvage {
            path: dir.path().to_owned(),
            into: dir.path().join("new"),
        });
        assert_eq!(inside.unwrap_err().kind(), ErrorKind::Usage);
    }

    /// What the server's account can put in the place of a file.
    fn put(path: &Path, what: &str, secret: &Path) {
        fs::remove_file(path).unwrap();
        match what {
            "link" => std::os::unix::fs::symlink(secret, path).unwrap(),
            "directory" => fs::create_dir(path).unwrap(),
            _ => {
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            }
        }
    }

    #[test]
    fn what_is_no_regular_file_is_not_read() {
        for what in ["link", "directory", "fifo"] {
            for name in ["shop/jobs.QUE", "segment", "CHECKPOINT"] {
                let dir = datadir();
                let known = check(dir.path()).unwrap().tables;
                let rows = &known[0].directory;
                let path = match name {
                    "segment" => rows.join("000000000001.seg"),
                    "CHECKPOINT" => rows.join(name),
                    name => dir.path().join(name),
                };
                // What a link leads to would do.
                let secret = dir.path().join("secret");
                fs::copy(&path, &secret).unwrap();
                put(&path, what, &secret);
                let report = check(dir.path()).unwrap();
                assert!(!report.sound, "{what}, {name}: {report:?}");
                let into = tempfile::tempdir().unwrap();
                let report = salvage(&Salvage {
                    path: dir.path().to_owned(),
                    into: into.path().to_owned(),
                });
                let report = report.unwrap();
                let reported = format!(
                    "{:?} {:?}",
                    report.tables[0].problem, report.tables[0].damage
                );
                let why = match what {
                    "link" => "symbolic link",
                    _ => "not a regular file",
                };
                assert!(reported.contains(why), "{what}, {name}: {reported}");
                assert_eq!(report.tables[1].rows, 3, "{what}, {name}");
            }
        }
    }

    #[test]
    fn a_directory_of_rows_that_is_a_link_is_not_looked_into() {
        let dir = datadir();
        let rows = check(dir.path()).unwrap().tables[0].directory.clone();
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(&rows, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &rows).unwrap();
        let problem = check(dir.path()).unwrap().tables[0].problem.clone();
        assert!(problem.unwrap().contains("symbolic link"));
    }

    #[test]
    fn a_definition_that_leads_elsewhere_is_not_copied() {
        for what in ["link", "directory", "fifo"] {
            let dir = datadir();
            let secret = dir.path().join("secret");
            fs::write(&secret, "secret").unwrap();
            put(&dir.path().join("shop/jobs.frm"), what, &secret);
            let into = tempfile::tempdir().unwrap();
            let refused = salvage(&Salvage {
                path: dir.path().join("shop/jobs.QUE"),
                into: into.path().to_owned(),
            });
            assert!(refused.is_err(), "{what}");
            assert!(!into.path().join("shop/jobs.frm").exists(), "{what}");
        }
    }

    #[test]
    fn an_anchor_that_is_named_is_no_link() {
        let dir = datadir();
        let link = dir.path().join("shop/link.QUE");
        std::os::unix::fs::symlink(dir.path().join("shop/jobs.QUE"), &link).unwrap();
        let refused = check(&link).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }
}
