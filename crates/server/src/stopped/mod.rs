//! A server that does not run: what its option files and its files say about it.
//!
//! ```text
//! option files ─► data directory ─► its files say whose they are ─► the groups which that server
//!                                                                   reads ─► settings
//! ```
//!
//! What stands on the server's own command line (a unit's `ExecStart`, for example) cannot be known.

mod maker;
mod settings;
mod state;

pub use maker::Maker;
pub use state::server_uuid;

use crate::abilities::Flavour;
use crate::files::{self, ServerFiles};
use crate::option_file::{self, DefaultsSpec, OptionLine};
use crate::options::{Origin, server_groups};
use evenkeel_op::paths::absent;
use evenkeel_op::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where packages put the data directory, and a server looks for it when no option file says.
pub const USUAL_DATADIR: &str = "/var/lib/mysql";

/// Which data directory is meant.
#[derive(Debug, Clone, Default)]
pub struct DatadirSpec {
    /// The directory itself; what the option files name when it is not given.
    pub datadir: Option<PathBuf>,
    /// Which option files say how the server is set up.
    pub defaults: DefaultsSpec,
}

/// A data directory and how the server on it is set up.
#[derive(Debug, Clone)]
pub struct StoppedServer {
    /// The data directory, without symbolic links.
    pub datadir: PathBuf,
    /// Who said that it is this one.
    pub datadir_from: Origin,
    /// The server that wrote the files, as far as they tell.
    pub maker: Option<Maker>,
    /// The server's variables as far as they are known, for [`files::discover_stopped`] and others:
    /// what the option files set, by the names that `SHOW VARIABLES` has.
    pub settings: BTreeMap<String, String>,
    /// A server's process that runs on the directory; 0 when it is in another container.
    pub pid: Option<i32>,
    /// What was passed over and why, one sentence each.
    pub warnings: Vec<String>,
}

impl StoppedServer {
    /// Finds out about the server that a place means. A server that runs is no error here: see
    /// [`StoppedServer::refuse_running`].
    ///
    /// Option files that nobody named, and that are of another data directory than the one given,
    /// are passed over with a warning.
    ///
    /// Errors: `Usage` for a directory that is none of a server, and for option files that the
    /// server would not start with; `Refused` for one that may not be read.
    pub fn find(place: &DatadirSpec) -> Result<Self> {
        let first = Said::read(place, None)?;
        let maker = Maker::of_files(&first.datadir, &first.redo_dir());
        let said = match &maker {
            Some(maker) => Said::read(place, Some(maker))?,
            None => first,
        };
        if maker.is_none() && !said.looks_like_a_server() {
            let error = Error::usage(format!(
                "{} is not a data directory of MySQL or MariaDB: it has neither a system \
                 tablespace nor a redo log",
                said.datadir.display()
            ))
            .hint(NAME_IT);
            return Err(error.hint(comes_from(&said.datadir_from)));
        }
        Ok(Self {
            pid: files::server_on(&said.datadir),
            settings: said.variables(maker.as_ref()),
            datadir: said.datadir,
            datadir_from: said.datadir_from,
            maker,
            warnings: said.warnings,
        })
    }

    /// Fails with `Refused` when a server runs on the data directory.
    pub fn refuse_running(&self) -> Result<()> {
        match self.pid {
            None => Ok(()),
            Some(pid) => Err(files::is_running(pid, &self.datadir)),
        }
    }

    /// Finds every file of the server. Errors: those of [`files::discover_stopped`].
    pub fn files(&self) -> Result<ServerFiles> {
        self.refuse_running()?;
        files::discover_stopped(&self.datadir, &self.settings)
    }

    /// Finds the files of the server that are no tables, however many of those there are. Errors:
    /// as [`StoppedServer::files`].
    pub fn system_files(&self) -> Result<ServerFiles> {
        self.refuse_running()?;
        files::discover_stopped_system(&self.datadir, &self.settings)
    }

    /// Returns the directory that a variable names, without symbolic links: the data directory
    /// when it names none.
    #[must_use]
    pub fn directory(&self, variable: &str) -> PathBuf {
        directory(&self.datadir, &self.settings, variable)
    }
}

/// What the option files say, read for a server of one kind.
struct Said {
    datadir: PathBuf,
    datadir_from: Origin,
    options: Vec<OptionLine>,
    warnings: Vec<String>,
}

impl Said {
    fn read(place: &DatadirSpec, maker: Option<&Maker>) -> Result<Self> {
        let groups = groups(maker);
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let found = option_file::read(&place.defaults, &groups)?;
        let (mut options, mut warnings) = (found.options, found.warnings);
        let named = options.iter().rfind(|option| option.key() == "datadir");
        let named = named.and_then(|option| {
            let path = PathBuf::from(option.value.as_ref()?);
            Some((path, origin(option)))
        });
        let said = named.unwrap_or((USUAL_DATADIR.into(), Origin::Default));
        let Some(given) = &place.datadir else {
            let datadir = existing(&said.0, &said.1)?;
            return Ok(Self {
                datadir,
                datadir_from: said.1,
                options,
                warnings,
            });
        };
        let datadir = existing(given, &Origin::CommandLine)?;
        let asked_for =
            place.defaults.defaults_file.is_some() || place.defaults.extra_file.is_some();
        if !asked_for && !options.is_empty() && !is_same(&said.0, &datadir) {
            options.clear();
            warnings.push(format!(
                "the option files belong to the server on {}, and are not used for {}: name the \
                 right one with --defaults-file",
                said.0.display(),
                datadir.display()
            ));
        }
        Ok(Self {
            datadir,
            datadir_from: Origin::CommandLine,
            options,
            warnings,
        })
    }

    fn variables(&self, maker: Option<&Maker>) -> BTreeMap<String, String> {
        settings::variables(&self.options, &self.datadir, maker)
    }

    fn redo_dir(&self) -> PathBuf {
        directory(
            &self.datadir,
            &self.variables(None),
            "innodb_log_group_home_dir",
        )
    }

    /// Whether something lies there that only a server makes. Files of another engine alone, or
    /// damaged ones, need not say who made them.
    fn looks_like_a_server(&self) -> bool {
        let home = directory(&self.datadir, &self.variables(None), "innodb_data_home_dir");
        home.join("ibdata1").is_file()
            || self.redo_dir().join("ib_logfile0").is_file()
            || self.datadir.join("mysql").is_dir()
    }
}

fn groups(maker: Option<&Maker>) -> Vec<String> {
    match maker {
        Some(maker) => server_groups(maker.flavour, maker.version),
        // MariaDB's are those of MySQL and more.
        None => server_groups(Flavour::MariaDb, None),
    }
}

fn origin(option: &OptionLine) -> Origin {
    Origin::File {
        path: option.file.clone(),
        line: option.line,
        group: option.group.clone(),
    }
}

fn directory(datadir: &Path, settings: &BTreeMap<String, String>, variable: &str) -> PathBuf {
    let named = settings.get(variable).filter(|dir| !dir.is_empty());
    let path = named.map_or_else(|| datadir.to_owned(), |dir| datadir.join(dir));
    path.canonicalize().unwrap_or(path)
}

/// What to do about a directory that is not the server's.
const NAME_IT: &str = "give the data directory with --datadir, or the server's --defaults-file";

/// Says who named a data directory.
fn comes_from(origin: &Origin) -> String {
    match origin {
        Origin::Default => "no option names one, so the default was used".to_owned(),
        Origin::CommandLine => "this path was given on the command line".to_owned(),
        other => format!("this path comes from {other}"),
    }
}

/// Returns a data directory without symbolic links.
fn existing(path: &Path, from: &Origin) -> Result<PathBuf> {
    let named = |error: Error| error.hint(comes_from(from));
    let place = path.display();
    // A directory that may not be listed could be anything.
    let found = path.canonicalize().and_then(|real| {
        std::fs::read_dir(&real)?;
        Ok(real)
    });
    found.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => named(
            Error::refused(format!("the data directory {place} cannot be read"))
                .because(error)
                .hint("run evenkeel as root or as the server's user"),
        ),
        io::ErrorKind::NotFound => named(absent("data directory", path).hint(NAME_IT)),
        io::ErrorKind::NotADirectory => named(
            Error::usage(format!("the data directory {place} is not a directory")).hint(NAME_IT),
        ),
        _ => named(
            Error::new(
                ErrorKind::Failed,
                format!("failed to look at the data directory {place}"),
            )
            .because(error),
        ),
    })
}

/// Whether two paths lead to one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    one == other || identity(one).is_some_and(|own| identity(other) == Some(own))
}

#[cfg(test)]
mod tests;
