//! Where a server keeps files, as its variables say.

use super::logs::Logs;
use super::redo_shape::RedoShape;
use super::{FileClass, keyring, system_tablespace};
use evenkeel_op::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory outside the data directory, and what is taken from it.
#[derive(Debug, Clone)]
pub(super) struct Special {
    /// The root's id.
    pub(super) id: &'static str,
    /// Where it is, without symbolic links.
    pub(super) path: PathBuf,
    /// The classes of files that are the server's there.
    pub(super) classes: &'static [FileClass],
}

/// What settings name that is no part of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) path: PathBuf,
    /// Whether it is a directory; else a file or a socket.
    pub(super) directory: bool,
    /// Whether it is a tablespace that is re-created at every start.
    pub(super) temporary: bool,
    pub(super) why: &'static str,
}

/// Everything that a walk has to know.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) datadir: PathBuf,
    /// Outside the data directory, in an order that never changes.
    pub(super) specials: Vec<Special>,
    /// The names of the system tablespace's files.
    pub(super) system_tablespace: Vec<String>,
    pub(super) logs: Logs,
    pub(super) redo: RedoShape,
    /// Files that are left out, and why.
    pub(super) leave_out: Vec<LeftOut>,
    /// Files that hold keys.
    pub(super) keyring: Vec<PathBuf>,
    /// Tablespaces that the server or its dictionary names, as it names them.
    pub(super) outside: Vec<PathBuf>,
    /// Whether schemas other than `mysql` are passed over.
    pub(super) only_system: bool,
    pub(super) page_size: u32,
}

impl Plan {
    /// Reads a server's variables. Refuses what is not covered.
    pub(super) fn from_variables(
        datadir: &Path,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let datadir = std::fs::canonicalize(datadir)
            .context(|| format!("failed to find the data directory {}", datadir.display()))?;
        let plan = Self::unchecked(&datadir, variables)?;
        super::refuse::other_engines(&plan.datadir, variables)?;
        Ok(plan)
    }

    /// The same without looking whether the data directory is there.
    pub(super) fn unchecked(datadir: &Path, variables: &BTreeMap<String, String>) -> Result<Self> {
        let at = Places { datadir, variables };
        let home = at.directory("innodb_data_home_dir");
        let system_tablespace = system_tablespace::files(variables, &home)?;
        let mut specials = Vec::new();
        // Files of the system tablespace may have absolute paths of their own.
        let mut homes = vec![home.clone()];
        homes.extend(
            system_tablespace
                .iter()
                .filter_map(|file| Some(file.parent()?.to_owned())),
        );
        for path in homes {
            at.add(&mut specials, "innodb-home", path, HOME);
        }
        let redo = at.directory("innodb_log_group_home_dir");
        at.add(&mut specials, "redo", redo.clone(), REDO);
        at.add(
            &mut specials,
            "undo",
            at.directory("innodb_undo_directory"),
            UNDO,
        );
        let doublewrite = at
            .value("innodb_doublewrite_dir")
            .map_or(home, |dir| at.absolute(dir));
        at.add(&mut specials, "doublewrite", doublewrite, DOUBLEWRITE);
        at.add(
            &mut specials,
            "aria-log",
            at.directory("aria_log_dir_path"),
            ARIA,
        );
        let logs = Logs {
            binlog: at.file("log_bin_basename"),
            binlog_index: at.file("log_bin_index"),
            relay: at.file("relay_log_basename"),
            relay_index: at.file("relay_log_index"),
        };
        for (place, id, classes) in [
            (&logs.binlog, "binlog", BINLOG),
            (&logs.binlog_index, "binlog-index", BINLOG),
            (&logs.relay, "relay", RELAY),
            (&logs.relay_index, "relay-index", RELAY),
        ] {
            if let Some((dir, _)) = place {
                at.add(&mut specials, id, dir.clone(), classes);
            }
        }
        Ok(Self {
            datadir: datadir.to_owned(),
            specials,
            system_tablespace: system_tablespace
                .iter()
                .filter_map(|p| file_name(p))
                .collect(),
            logs,
            redo: RedoShape::of(redo, variables),
            leave_out: at.leave_out(),
            keyring: keyring::files(datadir, variables),
            outside: Vec::new(),
            only_system: false,
            page_size: at.page_size(),
        })
    }
}

const HOME: &[FileClass] = &[FileClass::InnodbData, FileClass::InnodbDoublewrite];
const REDO: &[FileClass] = &[FileClass::InnodbRedo];
const UNDO: &[FileClass] = &[FileClass::InnodbData];
const DOUBLEWRITE: &[FileClass] = &[FileClass::InnodbDoublewrite];
const ARIA: &[FileClass] = &[FileClass::EngineLog];
const BINLOG: &[FileClass] = &[FileClass::Binlog, FileClass::BinlogIndex];
const RELAY: &[FileClass] = &[FileClass::RelayLog];

struct Places<'a> {
    datadir: &'a Path,
    variables: &'a BTreeMap<String, String>,
}

impl Places<'_> {
    /// In bytes.
    fn page_size(&self) -> u32 {
        let said = self.value("innodb_page_size");
        said.and_then(|text| text.parse().ok()).unwrap_or(16384)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?.as_str();
        (!value.is_empty()).then_some(value)
    }

    /// Makes a path absolute as the server does, whose working directory is the data directory.
    fn absolute(&self, path: &str) -> PathBuf {
        let path = self.datadir.join(path);
        // A missing directory has no links to resolve.
        std::fs::canonicalize(&path).unwrap_or(path)
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.value(name)
            .map_or_else(|| self.datadir.to_owned(), |dir| self.absolute(dir))
    }

    /// Splits the path in a variable into its directory, without symbolic links, and its name.
    fn file(&self, name: &str) -> Option<(PathBuf, String)> {
        let path = self.datadir.join(self.value(name)?);
        let dir = path.parent()?;
        let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        Some((dir, file_name(&path)?))
    }

    /// Adds a directory, unless the walk of the data directory or of another one covers it.
    fn add(
        &self,
        specials: &mut Vec<Special>,
        id: &'static str,
        path: PathBuf,
        classes: &'static [FileClass],
    ) {
        let known = specials
            .iter()
            .any(|s| s.path == path && s.classes == classes);
        if !path.starts_with(self.datadir) && !known {
            specials.push(Special { id, path, classes });
        }
    }

    fn leave_out(&self) -> Vec<LeftOut> {
        let files = [
            ("pid_file", "the pid file of the running server"),
            ("socket", "a socket"),
            ("log_error", "the error log"),
            ("slow_query_log_file", "the slow query log"),
            ("general_log_file", "the general query log"),
            ("log_slow_query_file", "the slow query log"),
        ];
        let directories = [
            ("tmpdir", "temporary files"),
            ("innodb_tmpdir", "temporary files"),
            (
                "innodb_temp_tablespaces_dir",
                "temporary tablespaces, re-created at every start",
            ),
        ];
        let left_out = |(name, why): &(&str, &'static str), directory| {
            Some(LeftOut {
                path: self.absolute(self.value(name)?),
                directory,
                temporary: false,
                why,
            })
        };
        let files = files.iter().filter_map(|one| left_out(one, false));
        let directories = directories.iter().filter_map(|one| left_out(one, true));
        files
            .chain(directories)
            .filter(|left_out| left_out.path != self.datadir)
            .chain(self.temporary_tablespace())
            .collect()
    }

    fn temporary_tablespace(&self) -> impl Iterator<Item = LeftOut> {
        let files = self.value("innodb_temp_data_file_path").unwrap_or("ibtmp1");
        let home = self.directory("innodb_data_home_dir");
        files
            .split(';')
            .filter_map(|spec| spec.split(':').next())
            .map(|file| LeftOut {
                path: home.join(file),
                directory: false,
                temporary: true,
                why: "the temporary tablespace, re-created at every start",
            })
            .collect::<Vec<_>>()
            .into_iter()
    }
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pairs: &[(&str, &str)]) -> Result<Plan> {
        let variables = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Plan::unchecked(Path::new("/d"), &variables)
    }

    fn specials(plan: &Plan) -> Vec<(&str, &Path)> {
        plan.specials
            .iter()
            .map(|s| (s.id, s.path.as_path()))
            .collect()
    }

    #[test]
    fn directories_inside_the_data_directory_need_no_root() {
        let plan = plan(&[
            ("innodb_log_group_home_dir", "./"),
            ("innodb_undo_directory", "undo"),
            ("aria_log_dir_path", "/d/"),
            ("log_bin_basename", "/d/binlog"),
        ])
        .unwrap();
        assert_eq!(specials(&plan), []);
    }

    #[test]
    fn directories_outside_become_roots() {
        let plan = plan(&[
            ("innodb_data_home_dir", "/home-of-innodb"),
            (
                "innodb_data_file_path",
                "ibdata1:12M;/else/ibdata2:12M:autoextend",
            ),
            ("innodb_log_group_home_dir", "/redo"),
            ("log_bin_basename", "/logs/binlog"),
            ("log_bin_index", "/logs/binlog.index"),
        ])
        .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            specials(&plan),
            [
                ("innodb-home", Path::new("/home-of-innodb")),
                ("innodb-home", Path::new("/else")),
                ("redo", Path::new("/redo")),
                ("doublewrite", Path::new("/home-of-innodb")),
                ("binlog", Path::new("/logs")),
            ]
        );
    }
}
