//! What is no part of a generation, and why.

use super::moving_redo;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

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

/// Says why a file of this name is left out, wherever it is or at the top of a data directory.
pub(super) fn by_name(name: &str, top: bool) -> Option<&'static str> {
    if name.starts_with(".nfs") {
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
        return None;
    }
    let is_core = name == "core"
        || name
            .strip_prefix("core.")
            .is_some_and(|pid| pid.bytes().all(|b| b.is_ascii_digit()));
    match name {
        "lost+found" => Some("the filesystem's own"),
        "#innodb_temp" => Some("temporary tablespaces, made anew at every start"),
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
    fn only_the_top_of_a_data_directory_has_such_names() {
        for name in [
            "lost+found",
            "ibtmp1",
            "core",
            "core.77",
            "db1.pid",
            "db1.err",
            ".evenkeel-0",
        ] {
            assert!(by_name(name, true).is_some(), "{name}");
            assert!(by_name(name, false).is_none(), "{name}");
        }
        for name in ["ibdata1", "core.ibd", "corep", "mysql", "undo001"] {
            assert!(by_name(name, true).is_none(), "{name}");
        }
        assert!(by_name(".nfs0001", false).is_some());
        assert!(by_name("#ib_redo12_tmp", false).is_some());
        assert!(by_name("#ib_redo12", false).is_none());
        assert!(by_name("binlog.~rec~", false).is_some());
        assert!(by_name("binlog.000001", false).is_none());
    }
}
