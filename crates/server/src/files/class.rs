//! What a file is, derived from its name.

use super::layout::Plan;
use super::{redo_names, redo_shape};
use std::path::Path;

/// What the names of the files of Aria's log begin with: a number of eight digits follows.
pub(super) const ARIA_LOG: &str = "aria_log.";
/// The file of Aria that names a checkpoint.
pub(super) const ARIA_CONTROL: &str = "aria_log_control";

/// What a file is: decides when it may be cloned, and how its bytes are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileClass {
    /// InnoDB pages that recovery brings up to date: tables, system, undo, dictionary.
    InnodbData,
    /// InnoDB's redo log.
    InnodbRedo,
    /// InnoDB's doublewrite files.
    InnodbDoublewrite,
    /// Definitions that only DDL changes.
    Definition,
    /// Tables of engines without recovery of their own that fits the redo log's point in time.
    EngineTable,
    /// Logs of other engines, of DDL and of distributed transactions.
    EngineLog,
    /// A file of the binary log.
    Binlog,
    /// The list of the binary log's files.
    BinlogIndex,
    /// A file of a relay log, or its list.
    RelayLog,
    /// What the server keeps about itself: identity, replication, warm-up, certificates, keys.
    ServerState,
    /// Anything else that lies there.
    Other,
}

impl FileClass {
    /// Tells the class of the file called `name`, which lies in `dir`.
    pub(super) fn of(name: &str, dir: &Path, plan: &Plan) -> Self {
        if let Some(class) = plan.logs.class(name, dir) {
            return class;
        }
        if let Some(class) = by_whole_name(name, plan) {
            return class;
        }
        by_extension(name)
    }
}

/// What stands before a number, of whatever length. Tables may be called ib_logfile_imports: theirs have an
/// extension.
pub(super) const NUMBERED: [(&str, FileClass); 5] = [
    ("undo", FileClass::InnodbData),
    ("undo_", FileClass::InnodbData),
    ("ibdata", FileClass::InnodbData),
    (redo_shape::FIXED, FileClass::InnodbRedo),
    (ARIA_LOG, FileClass::EngineLog),
];

/// Files that are known by all of their name.
pub(super) const WHOLE: [(&str, FileClass); 15] = [
    ("xb_doublewrite", FileClass::InnodbDoublewrite),
    (ARIA_CONTROL, FileClass::EngineLog),
    ("ddl_recovery.log", FileClass::EngineLog),
    ("ddl_recovery-backup.log", FileClass::EngineLog),
    ("ddl_log.log", FileClass::EngineLog),
    ("tc.log", FileClass::EngineLog),
    ("auto.cnf", FileClass::ServerState),
    ("mysqld-auto.cnf", FileClass::ServerState),
    ("ib_buffer_pool", FileClass::ServerState),
    ("master.info", FileClass::ServerState),
    ("relay-log.info", FileClass::ServerState),
    ("multi-master.info", FileClass::ServerState),
    ("mysql_upgrade_info", FileClass::ServerState),
    ("mariadb_upgrade_info", FileClass::ServerState),
    ("mysql_upgrade_history", FileClass::ServerState),
];

/// Ends of names that count whatever stands before them.
pub(super) const ENDS: [(&str, FileClass); 2] = [
    (".dblwr", FileClass::InnodbDoublewrite),
    (".bdblwr", FileClass::InnodbDoublewrite),
];

/// What stands behind the last dot.
pub(super) const EXTENSIONS: [(FileClass, &[&str]); 4] = [
    (FileClass::InnodbData, &["ibd", "ibu"]),
    (
        FileClass::Definition,
        &[
            "frm", "opt", "par", "isl", "TRG", "TRN", "sdi", "cfg", "cfp", "MRG", "sym",
        ],
    ),
    (
        FileClass::EngineTable,
        &[
            "MYD", "MYI", "MAD", "MAI", "CSV", "CSM", "ARZ", "ARM", "ARN",
        ],
    ),
    (FileClass::ServerState, &["pem", "info", "flag"]),
];

fn by_whole_name(name: &str, plan: &Plan) -> Option<FileClass> {
    let is_numbered = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    if plan.system_tablespace.iter().any(|file| file == name) {
        return Some(FileClass::InnodbData);
    }
    if redo_names::is_redo(name) || redo_shape::is_archived(name) {
        return Some(FileClass::InnodbRedo);
    }
    let whole = WHOLE.iter().find(|(own, _)| *own == name);
    let numbered = || NUMBERED.iter().find(|(stem, _)| is_numbered(stem));
    let ending = || ENDS.iter().find(|(end, _)| name.ends_with(end));
    let found = whole.or_else(numbered).or_else(ending);
    found.map(|(_, class)| *class)
}

fn by_extension(name: &str) -> FileClass {
    let Some((_, extension)) = name.rsplit_once('.') else {
        return FileClass::Other;
    };
    let mut known = EXTENSIONS.iter();
    known
        .find(|(_, extensions)| extensions.contains(&extension))
        .map_or(FileClass::Other, |(class, _)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileClass as C;
    use std::collections::BTreeMap;

    #[test]
    fn names_tell_classes() {
        let variables: BTreeMap<String, String> = [
            ("log_bin_basename", "/d/mysql-bin"),
            ("log_bin_index", "/d/mysql-bin.index"),
            ("relay_log_basename", "/d/relay"),
            (
                "innodb_data_file_path",
                "system1:12M;/d/system2:12M:autoextend",
            ),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let plan = Plan::unchecked(Path::new("/d"), &variables).unwrap();
        for (name, class) in [
            ("accounts.ibd", C::InnodbData),
            ("t#P#p0.ibd", C::InnodbData),
            ("system1", C::InnodbData),
            ("system2", C::InnodbData),
            ("ibdata7", C::InnodbData),
            ("undo001", C::InnodbData),
            ("undo_002", C::InnodbData),
            ("undone", C::Other),
            ("extra.ibu", C::InnodbData),
            ("ib_logfile0", C::InnodbRedo),
            ("#ib_redo12", C::InnodbRedo),
            ("ib_00000000000a3000.log", C::InnodbRedo),
            ("ib_errors.log", C::Other),
            ("#ib_16384_0.dblwr", C::InnodbDoublewrite),
            ("accounts.frm", C::Definition),
            ("accounts.isl", C::Definition),
            ("log.MYD", C::EngineTable),
            ("log.MAI", C::EngineTable),
            ("aria_log.00000001", C::EngineLog),
            ("aria_log_control", C::EngineLog),
            ("tc.log", C::EngineLog),
            ("mysql-bin.000012", C::Binlog),
            ("mysql-bin.index", C::BinlogIndex),
            ("mysql-bin.state", C::Binlog),
            ("mysql-bin.ibd", C::InnodbData),
            ("relay.000001", C::RelayLog),
            ("relay.index", C::RelayLog),
            ("relay-east.000001", C::RelayLog),
            ("auto.cnf", C::ServerState),
            ("ib_buffer_pool", C::ServerState),
            ("server-key.pem", C::ServerState),
            ("notes.txt", C::Other),
            ("ib_logfile_imports.ibd", C::InnodbData),
            ("ib_logfile0.frm", C::Definition),
            ("aria_log_rows.MAD", C::EngineTable),
            ("aria_log.MAI", C::EngineTable),
        ] {
            assert_eq!(C::of(name, Path::new("/d"), &plan), class, "{name}");
        }
        // The same name elsewhere is not the binary log.
        assert_eq!(
            C::of("mysql-bin.000012", Path::new("/d/db"), &plan),
            C::Other
        );
    }
}
