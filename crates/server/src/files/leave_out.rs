//! What is no part of a generation, and why.

use super::redo_names;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// Why a symbolic link is left out whose file is there under its own name.
pub const SECOND_NAME: &str = "a symbolic link to a file that is backed up under its own name";

/// A name, or a part of one, and why what is called so is left out.
type Rule = (&'static str, &'static str);

/// Directories at the top of a data directory.
pub(super) const DIRECTORIES: [Rule; 2] = [
    ("lost+found", "the filesystem's own"),
    (
        "#innodb_temp",
        "temporary tablespaces, re-created at every start",
    ),
];

/// With this begins what evenkeel puts at the top of a data directory.
pub(super) const OURS: Rule = (".evenkeel-", "evenkeel's own snapshots");

/// Files at the top of a data directory.
pub(super) const TOP_FILES: [Rule; 2] = [
    (
        "ibtmp1",
        "the temporary tablespace, re-created at every start",
    ),
    ("core", CORE),
];

/// The same, with the number of a process behind it.
pub(super) const TOP_NUMBERED: [Rule; 1] = [("core.", CORE)];
const CORE: &str = "a core dump";

/// Ends of files at the top of a data directory.
pub(super) const TOP_ENDS: [Rule; 4] = [
    (".pid", "a pid file"),
    (".sock.lock", "the lock of a socket"),
    (".err", "an error log"),
    (".lower-test", "a test for case-insensitive file names"),
];

/// Ends of files in schemas. It takes the place of the table's file at the statement's end, and comes and goes
/// with each.
pub(super) const SCHEMA_ENDS: [Rule; 1] = [(".CSN", "temporary files of the CSV engine")];

/// Ends of files anywhere. Servers make it for a moment whenever a binary log begins or goes.
pub(super) const ENDS: [Rule; 1] = [(
    ".~rec~",
    "a note about binary logs that are created or purged, rewritten each time",
)];

/// Before the number of the file and of the name, in hexadecimal.
pub(super) const HELD_OPEN: Rule = (".nfs", "a deleted file that a process holds open");

/// Says why a file of this kind is left out.
pub(super) fn by_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_socket() {
        Some("a socket")
    } else if kind.is_fifo() {
        Some("a named pipe")
    } else {
        None
    }
}

/// Says why a directory of this name is left out; `top` when it is at the top of a data directory.
///
/// Whatever can be the name of a schema is none of these: servers write every other character than letters,
/// digits, `_` and `$` of it as `@` and a number.
pub(super) fn directory(name: &str, top: bool) -> Option<&'static str> {
    if !top {
        return None;
    }
    whole(&DIRECTORIES, name).or_else(|| name.starts_with(OURS.0).then_some(OURS.1))
}

/// Says why a file of this name is left out, wherever it is or at the top of a data directory. Not asked of
/// what the server needs: a tablespace may have any name that ends as theirs do.
pub(super) fn file(name: &str, top: bool) -> Option<&'static str> {
    let is_held_open = name
        .strip_prefix(HELD_OPEN.0)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_held_open {
        return Some(HELD_OPEN.1);
    }
    if redo_names::is_spare(name) {
        return Some("a spare redo log file, re-created when needed");
    }
    if let Some(why) = ending(&ENDS, name) {
        return Some(why);
    }
    if !top {
        return ending(&SCHEMA_ENDS, name);
    }
    whole(&TOP_FILES, name)
        .or_else(|| numbered(&TOP_NUMBERED, name))
        .or_else(|| name.starts_with(OURS.0).then_some(OURS.1))
        .or_else(|| ending(&TOP_ENDS, name))
}

fn whole(rules: &[Rule], name: &str) -> Option<&'static str> {
    let mut rules = rules.iter();
    rules.find(|(own, _)| *own == name).map(|(_, why)| *why)
}

fn ending(rules: &[Rule], name: &str) -> Option<&'static str> {
    let mut rules = rules.iter();
    rules
        .find(|(end, _)| name.ends_with(end))
        .map(|(_, why)| *why)
}

fn numbered(rules: &[Rule], name: &str) -> Option<&'static str> {
    let is_it = |stem: &str| {
        let number = name.strip_prefix(stem);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut rules = rules.iter();
    rules.find(|(stem, _)| is_it(stem)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_of_a_data_directory_has_such_files() {
        for name in [
            "ibtmp1",
            "core",
            "core.77",
            "db1.pid",
            "db1.err",
            ".evenkeel-0",
        ] {
            assert!(file(name, true).is_some(), "{name}");
            assert!(file(name, false).is_none(), "{name}");
        }
        for name in ["ibdata1", "core.ibd", "corep", "mysql", "undo001"] {
            assert!(file(name, true).is_none(), "{name}");
        }
        assert!(file(".nfs0000000000a3f20100000b41", false).is_some());
        assert!(file(".nfs2.ibd", false).is_none());
        assert!(file(".nfs", false).is_none());
        assert!(file("#ib_redo12_tmp", false).is_some());
        assert!(file("#ib_redo12", false).is_none());
        assert!(file("binlog.~rec~", false).is_some());
        assert!(file("binlog.000001", false).is_none());
        assert!(file("notes.CSN", false).is_some());
        assert!(file("notes.CSV", false).is_none());
    }

    #[test]
    fn no_schema_is_left_out() {
        for name in ["lost+found", "#innodb_temp", ".evenkeel-0"] {
            assert!(directory(name, true).is_some(), "{name}");
            assert!(directory(name, false).is_none(), "{name}");
        }
        for schema in ["core", "ibtmp1", "core@002e77", "db1@002epid", "sys"] {
            assert!(directory(schema, true).is_none(), "{schema}");
        }
    }
}
