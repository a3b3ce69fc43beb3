//! The files of a server, as they were found.

use super::class::FileClass;
use super::layout::Plan;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whose a file is, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The owner's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// Permissions, without the file's type.
    pub mode: u32,
}

impl Access {
    /// Reads it out of what the kernel says of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            uid: metadata.uid(),
            gid: metadata.gid(),
            mode: metadata.mode() & 0o7777,
        }
    }
}

/// One file of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its name in a generation: `data/bank/accounts.ibd`.
    pub name: String,
    /// Where it is on this host, without symbolic links.
    pub path: PathBuf,
    /// What it is.
    pub class: FileClass,
    /// Its length in bytes when it was looked at.
    pub size: u64,
    /// Whose it was then; `None` where there is no server. A clone is ours, and the original may be gone by
    /// the time it is read.
    pub access: Option<Access>,
}

/// A directory that a server keeps files in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The first part of its files' names: `data`, `redo`, `tablespaces-1`.
    pub id: String,
    /// Where it is on this host, without symbolic links.
    pub path: PathBuf,
}

/// All files of a server, at one look.
#[derive(Debug, Clone)]
pub struct ServerFiles {
    /// The data directory, without symbolic links.
    pub datadir: PathBuf,
    /// Every root, `data` first.
    pub roots: Vec<Root>,
    /// Every file, by name.
    pub files: Vec<FoundFile>,
    /// Every directory below a root, by name; empty schemas have nothing else.
    pub dirs: Vec<(String, PathBuf)>,
    /// The server's process, when it runs and can be seen.
    pub pid: Option<i32>,
    /// `innodb_page_size` in bytes.
    pub page_size: u32,
    /// The variables that decide whether a server starts on these files.
    pub settings: BTreeMap<String, String>,
    /// What was left out, and why.
    pub excluded: Vec<(PathBuf, &'static str)>,
    /// The names of those files that hold encryption keys.
    pub keyring: Vec<String>,
    /// How they were found.
    pub(super) plan: Plan,
}

impl ServerFiles {
    /// Returns whether somebody's own tables are in an engine without transactions: then only
    /// stopping writes gives point-in-time consistency.
    #[must_use]
    pub fn has_nontransactional_user_tables(&self) -> bool {
        self.files
            .iter()
            .filter(|file| file.class == FileClass::EngineTable)
            .any(|file| !in_system_schema(&file.name))
    }

    /// Returns whether there are queues (tables of ENGINE=QUEUE): their files belong together, and no lock
    /// of the server keeps consumers from writing to them.
    #[must_use]
    pub fn has_queues(&self) -> bool {
        // Each has one in its schema, wherever its rows are.
        self.files.iter().any(|file| file.name.ends_with(".QUE"))
    }

    /// Returns the files of InnoDB's system tablespace, in their order.
    #[must_use]
    pub fn system_tablespace(&self) -> Vec<&FoundFile> {
        let path = self.settings.get("innodb_data_file_path");
        let path = path.map_or("ibdata1:12M", String::as_str);
        path.split(';')
            .filter_map(|part| Path::new(part.split(':').next()?).file_name())
            .filter_map(|name| {
                let is_it = |file: &&FoundFile| {
                    file.class == FileClass::InnodbData && file.path.file_name() == Some(name)
                };
                self.files.iter().find(is_it)
            })
            .collect()
    }
}

pub(super) fn in_system_schema(name: &str) -> bool {
    let mut parts = name.split('/');
    let schema = match parts.next() {
        Some("data") => parts.next(),
        Some(root) => root.strip_prefix("schema-"),
        None => None,
    };
    matches!(
        schema,
        Some("mysql" | "performance_schema" | "sys" | "information_schema")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_schemas_are_told_from_users() {
        assert!(in_system_schema("data/mysql/user.MYD"));
        assert!(in_system_schema("schema-sys/x.MAD"));
        assert!(!in_system_schema("data/shop/log.MYD"));
        assert!(!in_system_schema("schema-shop/log.MYD"));
    }
}
