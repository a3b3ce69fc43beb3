//! What is no part of a generation, and why.

use super::moving_redo;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// Why a symbolic link is left out whose file is there under its own name.
pub const SECOND_NAME: &str = "a symbolic link to a file that has its own name here";

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
    match name {
        "lost+found" if top => Some("the filesystem's own"),
        "#innodb_temp" if top => Some("temporary tablespaces, made anew at every start"),
        _ if top && name.starts_with(".evenkeel-") => Some("evenkeel's own snapshots"),
        _ => None,
    }
}

/// Says why a file of this name is left out, wherever it is or at the top of a data directory. Not asked of
/// what the server needs: a tablespace may have any name that ends as theirs do.
pub(super) fn file(name: &str, top: bool) -> Option<&'static str> {
    // The number of the file and of the name, in hexadecimal.
    if name
        .strip_prefix(".nfs")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Some("a deleted file that a process holds open");
    }
    if moving_redo::is_spare(name) {
        return Some("a spare redo log file, made anew when it is needed");
    }
    // Servers make it for a moment whenever a binary log begins or goes.
    if name.ends_with(".~rec~") {
        return Some("a note about binary logs that begin or go, made anew each time");
    }
    if !top {
        // It takes the place of the table's file at the statement's end, and comes and goes with each.
        let is_half_written = name.ends_with(".CSN");
        return is_half_written
            .then_some("what the CSV engine writes for the length of a statement");
    }
    let is_core = name == "core"
        || name
            .strip_prefix("core.")
            .is_some_and(|pid| pid.bytes().all(|b| b.is_ascii_digit()));
    match name {
        "ibtmp1" => Some("the temporary tablespace, made anew at every start"),
        _ if is_core => Some("a core dump"),
        _ if name.starts_with(".evenkeel-") => Some("evenkeel's own snapshots"),
        _ if name.ends_with(".pid") => Some("a pid file"),
        _ if name.ends_with(".sock.lock") => Some("the lock of a socket"),
        _ if name.ends_with(".err") => Some("an error log"),
        _ if name.ends_with(".lower-test") => Some("a test whether file names ignore case"),
        _ => None,
    }
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
