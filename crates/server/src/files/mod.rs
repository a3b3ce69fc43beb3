//! Finds every file that belongs to a server, wherever it keeps them, or refuses and says what it
//! cannot cover.
//!
//! | root | set by | what is taken from it |
//! |---|---|---|
//! | `data` | `datadir` | everything but what is excluded with a reason |
//! | `innodb-home` | `innodb_data_home_dir` | system tablespace files, doublewrite files |
//! | `redo`, `undo`, `doublewrite` | `innodb_log_group_home_dir`, … | those files |
//! | `aria-log` | `aria_log_dir_path` | `aria_log*` |
//! | `binlog`, `relay` | `log_bin`, `relay_log` | the logs and their indexes |
//! | `keyring` | `keyring_file_data` … | that one file |
//! | `schema-NAME` | a symbolic link in the data directory | everything |
//! | `tablespaces-N` | `DATA DIRECTORY`, `ADD DATAFILE` | those tablespaces |
//!
//! A root exists only where the directory is outside the data directory. A file behind a symbolic
//! link keeps the link's name: restored, it is an ordinary file. One that has a name of its own here has
//! that one, and the link is left out, or has its own copy where the file is a small one.

mod aria;
mod class;
mod found;
mod host;
mod keyring;
mod layout;
mod leave_out;
mod listing;
mod logs;
mod moving_redo;
mod name;
mod outside;
mod redo_names;
mod redo_shape;
mod refuse;
mod settings;
mod special;
mod system_tablespace;
mod walk;
mod whose;
mod zone;

pub use class::FileClass;
pub use found::{Access, FoundFile, Root, ServerFiles};
pub(crate) use host::{is_server, server_on};
pub use host::{process_in, server_processes};
pub use leave_out::SECOND_NAME;
pub use name::{generation_name, relative_path};
pub use settings::{CHANGE_MEANING, LISTS_THAT_CHANGE_MEANING};
pub use special::{SpecialNames, special_names};
pub use whose::refuse_strangers;
pub(crate) use whose::{Account, server_account};
pub use zone::{HOST_TIME_ZONE, is_zone};

use crate::abilities::Abilities;
use crate::connect::Session;
use evenkeel_op::{Context, Error, Result, paths};
use layout::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl ServerFiles {
    /// Returns what stands for a server's files where there is no server: the given ones, all below
    /// one root called `root`, in `dir`. Their class is [`FileClass::Other`].
    pub fn of_no_server(
        root: &str,
        dir: &Path,
        files: Vec<(String, PathBuf, u64)>,
    ) -> Result<Self> {
        let plan = Plan::unchecked(dir, &BTreeMap::new())?;
        let found = |(name, path, size)| FoundFile {
            name,
            path,
            class: FileClass::Other,
            size,
            access: None,
        };
        Ok(Self {
            datadir: dir.to_owned(),
            roots: vec![Root {
                id: root.to_owned(),
                path: dir.to_owned(),
            }],
            files: files.into_iter().map(found).collect(),
            dirs: Vec::new(),
            pid: None,
            page_size: plan.page_size,
            settings: BTreeMap::new(),
            excluded: Vec::new(),
            keyring: Vec::new(),
            plan,
        })
    }

    /// Looks at the directories again, without asking the server: for the moment in which it is
    /// stopped. Finds what it would find now, except tables newly put outside the data directory
    /// by a MySQL that keeps no `.isl` files (8.0).
    pub fn rescan(&self) -> Result<Self> {
        scan(&self.plan, self.pid, self.settings.clone())
    }
}

/// Finds the files of a running server on this host.
///
/// Errors: `Refused` when the server runs elsewhere, keeps files this program cannot cover, or
/// could not recover from a crash at the moment.
pub fn discover(session: &mut Session, abilities: &Abilities) -> Result<ServerFiles> {
    let variables = all_variables(session)?;
    refuse::unrecoverable(session)?;
    let datadir = variables
        .get("datadir")
        .ok_or_else(|| Error::refused("the server does not report its data directory"))?;
    let pid = host::server_process(session, Path::new(datadir), &variables)?;
    let mut plan = Plan::from_variables(Path::new(datadir), &variables)?;
    plan.outside = outside::known_to_server(session, abilities)?;
    let mut settings = settings::of(&variables);
    settings.insert("version".into(), abilities.version_text.clone());
    settings.insert("version_comment".into(), abilities.version_comment.clone());
    if let Some(plugins) = plugins(session)? {
        settings.insert("plugins".into(), plugins);
    }
    if settings::sysdate_is_now(session) {
        settings.insert("sysdate_is_now".into(), "ON".into());
    }
    if let Some(zone) = pid.and_then(zone::of_process) {
        settings.insert(HOST_TIME_ZONE.into(), zone);
    }
    scan(&plan, pid, settings)
}

/// Finds the files of a server that is not running. `settings` are its variables as far as they
/// are known (those of an earlier generation, or of its option files); defaults stand for others.
///
/// Errors: `Refused` also when a server runs on the directory.
pub fn discover_stopped(
    datadir: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<ServerFiles> {
    stopped(datadir, settings, false)
}

/// The same without the tables: schemas other than `mysql` are not looked into, however many files
/// they have. Not for whoever needs all files.
pub fn discover_stopped_system(
    datadir: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<ServerFiles> {
    stopped(datadir, settings, true)
}

fn stopped(
    datadir: &Path,
    settings: &BTreeMap<String, String>,
    only_system: bool,
) -> Result<ServerFiles> {
    if let Some(pid) = host::process_in(datadir) {
        return Err(is_running(pid, datadir)
            .hint("stop it, or give its socket to back it up while it runs"));
    }
    let datadir = paths::directory("data directory", datadir)?;
    let mut plan = Plan::from_variables(&datadir, settings)?;
    plan.only_system = only_system;
    plan.outside = outside::known_to_dictionary(&plan.datadir)?;
    scan(&plan, None, settings.clone())
}

/// Fails with `Refused` when a server runs on a data directory.
pub fn refuse_running(datadir: &Path) -> Result<()> {
    match host::server_on(datadir) {
        Some(pid) => Err(is_running(pid, datadir).hint("stop the server first")),
        None => Ok(()),
    }
}

/// Says that a server runs on a data directory that should be left alone then.
pub(crate) fn is_running(pid: i32, datadir: &Path) -> Error {
    let process = match pid {
        0 => "in another container".to_owned(),
        pid => format!("process {pid}"),
    };
    let place = datadir.display();
    Error::refused(format!("a server ({process}) is running on {place}"))
}

fn scan(plan: &Plan, pid: Option<i32>, settings: BTreeMap<String, String>) -> Result<ServerFiles> {
    plan.redo.check()?;
    let mut walk = walk::Walk::new(plan)?;
    walk.data_directory()?;
    walk.special_directories()?;
    walk.outside_tablespaces()?;
    let walk::Found {
        roots,
        mut files,
        mut dirs,
        excluded,
        keyring,
    } = walk.finish();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    dirs.sort();
    Ok(ServerFiles {
        datadir: plan.datadir.clone(),
        roots,
        files,
        dirs,
        pid,
        page_size: plan.page_size,
        settings,
        excluded,
        keyring,
        plan: plan.clone(),
    })
}

fn all_variables(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let rows = session
        .rows("SHOW GLOBAL VARIABLES")
        .context(|| "failed to read the server's variables")?;
    let pair = |row: &crate::connect::Row| Some((row.at(0)?.to_owned(), row.at(1)?.to_owned()));
    Ok(rows.iter().filter_map(pair).collect())
}

/// The plugins that come from libraries: a server without them may not start on these files.
fn plugins(session: &mut Session) -> Result<Option<String>> {
    let rows = session.rows(
        "SELECT PLUGIN_NAME, PLUGIN_LIBRARY FROM information_schema.PLUGINS \
         WHERE PLUGIN_LIBRARY IS NOT NULL AND PLUGIN_STATUS = 'ACTIVE' ORDER BY PLUGIN_NAME",
    )?;
    let each: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{}={}", row.at(0)?, row.at(1)?)))
        .collect();
    Ok((!each.is_empty()).then(|| each.join(";")))
}
